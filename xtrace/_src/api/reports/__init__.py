"""Reports about functions and programs: caches, compile time, memory, costs."""
