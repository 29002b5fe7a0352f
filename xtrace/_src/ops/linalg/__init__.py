"""Dense linear algebra: by LAPACK on CPUs, cuSOLVER on GPUs, XLA's forms and plain operations on TPUs."""
