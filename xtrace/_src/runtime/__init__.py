"""Arrays, transfers, the execution of programs, and programs on disk."""
