"""Dense linear algebra: LAPACK on CPUs, cuSOLVER on GPUs, XLA's expansions and plain operations on TPUs."""
