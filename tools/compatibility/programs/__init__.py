"""Programs that use a library, for both frontends; `run_program` says what they print."""
