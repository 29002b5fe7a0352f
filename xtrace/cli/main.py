"""The command line of ``python -m xtrace``."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from xtrace._late_imports import late_modules
from xtrace.cli.errors import CommandError
from xtrace.cli.programs import is_artifact, run_program

# A program written for jax needs none of them.
with late_modules(globals()):
    from xtrace.cli import colours, commands, results

_INTERRUPTED = 130  # a shell's exit code for a process that SIGINT ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of `argv`, by default the process's, and return the exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    # All words after `run`, also options, belong to the program.
    is_program = words[:1] == ["run"] and not any(w in ("-h", "--help") or is_artifact(w) for w in words[1:2])
    as_json = not is_program and "--json" in words
    try:
        if is_program:
            run_program(words[1:])
        else:
            options = commands.parse(words)
            # With --json, standard output has only the data.
            with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
                result = commands.run(options)
            print(results.to_json(result.data) if as_json else result.text)
        sys.stdout.flush()
    except CommandError as error:
        if as_json:
            print(results.to_json({"error": str(error), "exit_code": error.exit_code}))
        else:
            print(colours.colour_error(f"{' '.join(['xtrace', *words[:1]])}: {error}", sys.stderr), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe, as in `| head`. The rest of the buffer must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
