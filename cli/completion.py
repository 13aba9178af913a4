"""`metaphrase completion`: what a shell asks to complete the command's words.

In: `bash`, `zsh` or `fish`. Out: text for the shell's configuration, made of the parser itself. Example:

    metaphrase completion bash > ~/.local/share/bash-completion/completions/metaphrase
    metaphrase completion zsh > ~/.zfunc/_metaphrase        # a folder of $fpath
    metaphrase completion fish > ~/.config/fish/completions/metaphrase.fish
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple


class Option(NamedTuple):
    """One option of a command. `words`: its values, where they are known; `takes`: whether it has a value."""

    names: tuple[str, ...]
    help: str
    takes: bool
    words: tuple[str, ...]


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "completion", help="print completions for a shell", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("shell", choices=sorted(SHELLS))
    parser.set_defaults(run=lambda options: run(options, commands))


def run(options: argparse.Namespace, commands: argparse._SubParsersAction) -> int:
    print(SHELLS[options.shell](commands), end="")
    return 0


def _commands(commands: argparse._SubParsersAction) -> Iterator[tuple[str, str, list[Option], tuple[str, ...]]]:
    """(name, help, options, words that may stand alone) of each command."""
    helps = {action.dest: action.help or "" for action in commands._choices_actions}
    for name, parser in commands.choices.items():
        options: list[Option] = []
        words: tuple[str, ...] = ()
        for action in parser._actions:
            known = tuple(map(str, action.choices or ()))
            if action.option_strings:
                options.append(Option(tuple(action.option_strings), action.help or "", action.nargs != 0, known))
            else:
                words += known
        yield name, helps[name], options, words


def bash(commands: argparse._SubParsersAction) -> str:
    rows = ["_metaphrase() {", "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} known="]
    rows += ["    COMPREPLY=()", '    case "${COMP_WORDS[1]},$before" in']
    cases, names = [], []
    for name, _, options, words in _commands(commands):
        names.append(name)
        flags = [flag for option in options for flag in option.names]
        for option in options:
            if option.takes:
                for flag in option.names:
                    known = (
                        f'known="{" ".join(option.words)}"' if option.words else 'COMPREPLY=($(compgen -f -- "$word"))'
                    )
                    rows.append(f"        {name},{flag}) {known} ;;")
        cases.append(f'        {name},*) known="{" ".join([*flags, *words])}" ;;')
    rows += [*cases, "    esac", f'    [[ $COMP_CWORD -eq 1 ]] && known="{" ".join(names)}"']
    rows += ['    [[ ${#COMPREPLY[@]} -eq 0 && -n $known ]] && COMPREPLY=($(compgen -W "$known" -- "$word"))']
    return "\n".join([*rows, "}", "complete -o default -F _metaphrase metaphrase", ""])


def zsh(commands: argparse._SubParsersAction) -> str:
    rows = ["#compdef metaphrase", "", "_metaphrase() {", "    local -a known", "    if (( CURRENT == 2 )); then"]
    found = [*_commands(commands)]
    described = " ".join(_quoted(f"{name}:{text}") for name, text, _, _ in found)
    rows += [f"        known=({described})", "        _describe command known", "        return", "    fi"]
    rows += ["    case $words[2] in"]
    for name, _, options, words in found:
        parts = []
        for option in options:
            value = f":value:({' '.join(option.words)})" if option.words else ":value:_files" if option.takes else ""
            parts += [_quoted(f"{flag}[{_plain(option.help)}]{value}") for flag in option.names]
        parts.append(_quoted(f"*:word:({' '.join(words)})" if words else "*:file:_files"))
        rows.append(f"        {name}) shift words; (( CURRENT-- )); _arguments {' '.join(parts)} ;;")
    return "\n".join([*rows, "    esac", "}", "", '_metaphrase "$@"', ""])


def fish(commands: argparse._SubParsersAction) -> str:
    rows = []
    for name, text, options, words in _commands(commands):
        rows.append(f"complete -c metaphrase -n __fish_use_subcommand -f -a {name} -d {_quoted(text)}")
        seen = f'-n "__fish_seen_subcommand_from {name}"'
        if words:
            rows.append(f"complete -c metaphrase {seen} -f -a {_quoted(' '.join(words))}")
        for option in options:
            flags = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in option.names)
            value = f" -x -a {_quoted(' '.join(option.words))}" if option.words else " -r" if option.takes else ""
            rows.append(f"complete -c metaphrase {seen} {flags}{value} -d {_quoted(_plain(option.help))}")
    return "\n".join([*rows, ""])


def _plain(text: str) -> str:
    """Without what zsh reads as its own."""
    return text.replace("%%", "%").translate({ord(c): " " for c in "[]:`"})


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
