"""The commands of ``python -m xtrace``: their options, and the functions that run them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from xtrace.cli.argument_grammar import ACCEPTED
from xtrace.cli.artifacts import export_function, run_artifact
from xtrace.cli.cache import describe_cache
from xtrace.cli.completion import SHELLS, make_script
from xtrace.cli.demo import EPOCHS, run_demo
from xtrace.cli.errors import WRONG_COMMAND, CommandError
from xtrace.cli.exploring import TRANSFORMS, Presentation, explore_function
from xtrace.cli.inspection import STAGES, Request, inspect_function
from xtrace.cli.memory import describe_memory
from xtrace.cli.options import Parser
from xtrace.cli.results import Result
from xtrace.version import __version__


def _parse_positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return number


def _parse_count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _add_command_on_function(commands: Any, name: str, purpose: str) -> argparse.ArgumentParser:
    """Add and return a command on a function of a file, with options for its arguments and devices."""
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=purpose,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"""{ACCEPTED}

Example:
    python -m xtrace {name} model.py:forward --arg '{{"w": f32[64,10]}}' --arg f32[8,64] --static depth=2

Exit codes: 0 done, 1 the function or its file failed, 2 the command line is wrong.""",
    )
    command.add_argument("function", metavar="FILE.py:FUNCTION", help="a function, jitted or not")
    command.add_argument(
        "--arg", action="append", default=[], metavar="TYPE",
        help="an argument's type, in order; a parameter whose default or annotation is a ShapeDtypeStruct, or a pytree "
        "of them, needs none",
    )
    command.add_argument(
        "--static", action="append", default=[], metavar="NAME=VALUE", help="an argument that is part of the program"
    )
    command.add_argument(
        "--target", metavar="DEVICE", help="compile for devices that need not be here: h200, tpu-v5e, tpu-v5e:4x4"
    )
    command.add_argument("--mesh", metavar="AXES", help="partition over a mesh of the devices, as data=4,model=2")
    command.add_argument(
        "--sharding", action="append", default=[], metavar="NAME=AXES",
        help="the mesh axes that the dimensions of an argument are sharded over, as params=-,model",
    )
    return command


def _request(options: argparse.Namespace) -> Request:
    return Request(
        options.function, options.arg, options.static, options.target, options.mesh, options.sharding
    )


def _add_explore(commands: Any) -> argparse.ArgumentParser:
    explore = _add_command_on_function(
        commands, "explore", "write a page of a function's source, jaxpr, StableHLO and HLO, linked line by line"
    )
    explore.epilog = f"{explore.epilog}\n\nSeveral devices go on one page: --target cpu,h200,tpu-v5e"
    explore.add_argument("--out", metavar="FILE", help="the page to write (default: the function's name and .html)")
    explore.add_argument(
        "--transform", action="append", default=[], choices=TRANSFORMS,
        help="show the function transformed, too; several are applied one after the other, and all are shown. The "
        "arguments are those of the function; vmap adds an axis of --batch examples",
    )
    explore.add_argument("--batch", type=_parse_positive, default=8, help="examples of vmap (default: %(default)s)")
    explore.add_argument(
        "--beside", action="append", default=[], metavar="FILE.py:FUNCTION",
        help="another function with the same arguments, to be compared on the page",
    )
    return explore


def _build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m xtrace", description="Trace, lower and run Python functions.")
    parser.add_argument("--version", action="version", version=f"xtrace {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="train a classifier of handwritten digits with a jitted step")
    demo.add_argument(
        "--epochs", type=_parse_positive, default=EPOCHS, help="passes over the data (default: %(default)s)"
    )

    inspect = _add_command_on_function(commands, "inspect", "print one stage of a function's compilation")
    inspect.add_argument("--stage", choices=STAGES, help="what to print (default: jaxpr, with a mesh report)")
    memory = _add_command_on_function(commands, "memory", "say what memory a function takes, and whether it fits")
    explore = _add_explore(commands)
    cache = commands.add_parser("cache", help="show, verify or clear the folder of compiled programs")
    cache.add_argument("--directory", help="the folder (default: that of XTRACE_COMPILATION_CACHE_DIR)")
    action = cache.add_mutually_exclusive_group()
    action.add_argument("--clear", action="store_true", help="delete all programs")
    action.add_argument("--verify", action="store_true", help="check each program, and set wrong ones aside")
    export = _add_command_on_function(commands, "export", "write a function as a file that jax.export reads, too")
    export.add_argument("--out", required=True, metavar="FILE", help="the file to write")
    export.add_argument("--platforms", metavar="NAMES", help="cpu,cuda,rocm,tpu or some (default: the one at hand)")
    export.add_argument(
        "--vjp-order", type=_parse_count, default=0, metavar="N", help="how many times it can be differentiated"
    )
    completion = commands.add_parser(
        "completion", help="print a script that completes commands in a shell",
        formatter_class=argparse.RawDescriptionHelpFormatter, epilog=_COMPLETION,
    )
    completion.add_argument("shell", choices=SHELLS)
    run = commands.add_parser(
        "run", help="run an exported function, or a program written for jax", usage=_RUN_USAGE,
        description="Run an exported function, a StableHLO module, or a Python program whose jax is xtrace.",
        formatter_class=argparse.RawDescriptionHelpFormatter, epilog=_RUN_ARGUMENTS,
    )
    run.add_argument("artifact", metavar="ARTIFACT", help="a file of xtrace.export or of StableHLO")
    run.add_argument("--arg", action="append", default=[], metavar="VALUE", help="an argument, in order")
    for command in (demo, inspect, memory, explore, cache, export, completion, run):
        command.add_argument("--json", action="store_true", help="print JSON, errors included")
        command.set_defaults(parser=command)
    return parser


_COMPLETION = """Load it in the file that the shell runs at its start:
    bash  eval "$(python -m xtrace completion bash)"          in ~/.bashrc
    zsh   source <(python -m xtrace completion zsh)           in ~/.zshrc, after compinit
    fish  python -m xtrace completion fish | source           in ~/.config/fish/config.fish"""
_RUN_USAGE = """python -m xtrace run ARTIFACT [--arg VALUE ...] [--json]
       python -m xtrace run FILE.py [ARGUMENT ...]
       python -m xtrace run -m MODULE [ARGUMENT ...]"""
_RUN_ARGUMENTS = f"""{ACCEPTED}
A type stands for ones, and x.npy, in a container "x.npy", for the array in that file. Without --arg all
arguments are ones.

The words after FILE.py and MODULE are the program's.

Exit codes: 0 done, 1 the artifact or its program failed, 2 the command line is wrong. A program gives its own."""


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command; `CommandError` if it cannot be read, SystemExit if it asks for help."""
    parser = _build_parser()
    if not words:
        parser.print_help(sys.stderr)
        raise CommandError("name a command", WRONG_COMMAND)
    options, unknown = parser.parse_known_args(words)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def run(options: argparse.Namespace) -> Result:
    """Run the command of `options`, and return its result."""
    if options.command == "demo":
        return run_demo(options.epochs)
    if options.command == "cache":
        return describe_cache(options.directory, options.clear, options.verify)
    if options.command == "completion":
        script = make_script(_build_parser(), options.shell)
        return Result(script.rstrip(), {"shell": options.shell, "script": script})
    if options.command == "run":
        return run_artifact(options.artifact, options.arg)
    if options.command == "export":
        return export_function(_request(options), options.out, options.platforms, options.vjp_order)
    if options.command == "explore":
        return explore_function(_request(options), Presentation(
            options.transform, options.batch, options.beside, options.out, options.json
        ))
    if options.command == "memory":
        return describe_memory(_request(options))
    return inspect_function(_request(options), options.stage or ("report" if options.mesh else "jaxpr"))
