"""A parser of options whose errors are the command line's own."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from xtrace.cli.errors import WRONG_COMMAND, CommandError


class Parser(argparse.ArgumentParser):
    """A parser of a command's options, whose errors are `CommandError`."""

    def error(self, message: str) -> NoReturn:
        """Print the usage on standard error, and raise the error of the message."""
        self.print_usage(sys.stderr)
        raise CommandError(message, WRONG_COMMAND)
