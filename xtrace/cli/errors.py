"""How a command ends without doing its work."""

from __future__ import annotations

FAILED = 1  # what the user's code, the installation or the compiler could not do
WRONG_COMMAND = 2  # what the command line asked for cannot be read or found


class CommandError(Exception):
    """A command cannot go on; `main` prints the message on standard error and exits with the code."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
