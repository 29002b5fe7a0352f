"""The error of commands."""

from __future__ import annotations

FAILED = 1  # the user's code, the installation or the compiler failed
WRONG_COMMAND = 2  # the command line cannot be read, or names something that does not exist


class CommandError(Exception):
    """The failure of a command; `main` prints the message on standard error and exits with the code."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
