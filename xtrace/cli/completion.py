"""``python -m xtrace completion SHELL``: a script for a shell to complete commands, options and choices.

The scripts are made from the parser, and complete ``python -m xtrace``; other uses of Python keep their completion.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

SHELLS = ("bash", "zsh", "fish")
_PROGRAMS = ("python", "python3", "python3.11", "python3.12", "python3.13")


class _Option(NamedTuple):
    """An option of a command; `choices` are the words that may follow it."""

    name: str
    choices: tuple[str, ...]
    takes_value: bool
    help: str


class _Command(NamedTuple):
    """A command; `choices` are the words of its positional arguments."""

    name: str
    help: str
    options: tuple[_Option, ...]
    choices: tuple[str, ...]


def make_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for `shell` that completes the commands of `parser`."""
    make = {"bash": _make_bash_script, "zsh": _make_zsh_script, "fish": _make_fish_script}[shell]
    return make(list(_list_commands(parser)))


def _list_commands(parser: argparse.ArgumentParser) -> Iterator[_Command]:
    (subparsers,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    helps = {action.dest: action.help or "" for action in subparsers._get_subactions()}
    for name, command in subparsers.choices.items():
        options, words = [], list[str]()
        for action in command._actions:
            choices = tuple(map(str, action.choices or ()))
            if not action.option_strings:
                words += choices
                continue
            described = (action.help or "").replace("%(default)s", str(action.default))
            options.append(_Option(action.option_strings[-1], choices, action.nargs != 0, described))
        yield _Command(name, helps.get(name, ""), tuple(options), tuple(words))


def _make_bash_script(commands: list[_Command]) -> str:
    values = [
        f'        "{c.name} {o.name}") words="{" ".join(o.choices)}" ;;'
        for c in commands for o in c.options if o.choices
    ]
    values += [f'        "{c.name} "*) words="{" ".join(c.choices)}" ;;' for c in commands if c.choices]
    options = [f'        {c.name}) options="{" ".join(o.name for o in c.options)}" ;;' for c in commands]
    return f"""\
# bash: put  eval "$(python -m xtrace completion bash)"  into ~/.bashrc
_xtrace_complete() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} words="" options=""
    COMPREPLY=()
    if [[ ${{COMP_WORDS[1]}} != -m || ${{COMP_WORDS[2]}} != xtrace ]]; then
        if declare -F _python >/dev/null; then _python "$@"; fi
        return
    fi
    if ((COMP_CWORD == 3)); then
        COMPREPLY=($(compgen -W "{' '.join(c.name for c in commands)}" -- "$current"))
        return
    fi
    case ${{COMP_WORDS[3]}} in
{chr(10).join(options)}
    esac
    case "${{COMP_WORDS[3]}} $previous" in
{chr(10).join(values)}
    esac
    if [[ -n $words && $current != -* ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    elif [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    fi
}}
complete -o default -o bashdefault -F _xtrace_complete {' '.join(_PROGRAMS)}
"""


def _make_zsh_script(commands: list[_Command]) -> str:
    def quote(text: str) -> str:
        return text.replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(":", "\\:")

    names = "\n".join(f"        '{c.name}:{quote(c.help)}'" for c in commands)
    cases = []
    for command in commands:
        specs = []
        for option in command.options:
            value = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
            specs.append(f"'*{option.name}[{quote(option.help)}]{value if option.takes_value else ''}'")
        specs.append(f"'*:word:({' '.join(command.choices)})'" if command.choices else "'*:file:_files'")
        cases.append(f"        {command.name}) _arguments {' '.join(specs)} ;;")
    return f"""\
# zsh: put  source <(python -m xtrace completion zsh)  into ~/.zshrc, after compinit
_xtrace_complete() {{
    if [[ ${{words[2]}} != -m || ${{words[3]}} != xtrace ]]; then
        (( $+functions[_python] )) && _python "$@" || _files
        return
    fi
    local -a commands=(
{names}
    )
    if (( CURRENT == 4 )); then
        _describe command commands
        return
    fi
    local command=${{words[4]}}
    shift 3 words
    (( CURRENT -= 3 ))
    case $command in
{chr(10).join(cases)}
    esac
}}
compdef _xtrace_complete {' '.join(_PROGRAMS)}
"""


def _make_fish_script(commands: list[_Command]) -> str:
    lines = [
        "# fish: python -m xtrace completion fish >~/.config/fish/completions/python.fish",
        "function __xtrace_command",
        "    set -l words (commandline -poc)",
        '    test (count $words) -ge 3; and test "$words[2] $words[3]" = "-m xtrace"; or return 1',
        '    if test (count $argv) -eq 0; test (count $words) -eq 3; else; test "$words[4]" = "$argv[1]"; end',
        "end",
    ]
    for program in _PROGRAMS:
        for command in commands:
            described = f"-a {command.name} -d {_fish_quote(command.help)}"
            lines.append(f"complete -c {program} -f -n __xtrace_command {described}")
            within = f"complete -c {program} -n '__xtrace_command {command.name}'"
            for option in command.options:
                words = f" -x -a '{' '.join(option.choices)}'" if option.choices else ""
                values = words or (" -r" if option.takes_value else "")
                name = f"-l {option.name[2:]}" if option.name.startswith("--") else f"-s {option.name[1:]}"
                lines.append(f"{within} {name}{values} -d {_fish_quote(option.help)}")
            if command.choices:
                lines.append(f"{within} -f -a '{' '.join(command.choices)}'")
    return "\n".join(lines) + "\n"


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
