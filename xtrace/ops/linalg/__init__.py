"""Dense linear algebra: factorisations and solutions, by LAPACK on CPUs and XLA's own forms elsewhere."""
