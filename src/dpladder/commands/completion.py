"""The table of commands, and what shells complete from it: scripts that start no Python."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

Run = Callable[[argparse.Namespace], int]
SLURM, VERBOSE = "--slurm", "--verbose"


@dataclass(frozen=True)
class Argument:
    """What `argparse` is told of one argument."""

    names: tuple[str, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Command:
    help: str
    takes: tuple[Argument, ...]
    run: Run


def takes(*names: str, **options: Any) -> Argument:
    return Argument(names, options)


@dataclass(frozen=True)
class Expected:
    """What may follow the words `after`: `words`, each with its help; options, each with its help
    and what it may be; and files, only configs where `configs`."""

    after: str
    words: Mapping[str, str]
    options: Mapping[str, tuple[str, Sequence[str]]]
    configs: bool = False


def script(shell: str, commands: Mapping[str, Command], groups: Mapping[str, str]) -> str:
    """What `shell` reads to complete `dpladder`."""
    return SHELLS[shell](list(_places(commands, groups)))


def _places(commands: Mapping[str, Command], groups: Mapping[str, str]) -> Iterator[Expected]:
    for name, command in commands.items():
        said = {argument.names[0]: argument.options for argument in command.takes}
        yield Expected(
            name,
            {
                word: ""
                for of, how in said.items()
                if of[0] != "-"
                for word in how.get("choices", ())
            },
            {of: (how["help"], how.get("choices", ())) for of, how in said.items() if of[0] == "-"},
            "config" in said,
        )
    inside = {name: command.help for name, command in commands.items()} | dict(groups)
    for group in groups:
        actions = {
            name.removeprefix(f"{group} "): what
            for name, what in inside.items()
            if name.startswith(f"{group} ")
        }
        yield Expected(group, actions, {})
    first = {name: what for name, what in inside.items() if " " not in name}
    yield Expected("", first, {"--version": ("which dpladder this is", ())})


def _cases(places: Sequence[Expected], told: Callable[[Expected], str]) -> str:
    """Lines of a shell's `case` on the words before the cursor: values of an option, words right
    behind a command, then all that may follow."""
    lines = []
    for place in places:
        for option, (_, choices) in place.options.items():
            if choices:
                only = Expected(place.after, dict.fromkeys(choices, ""), {})
                lines.append(f'    "{place.after} "*"{option}") {told(only)} ;;')
        if place.words:
            lines.append(f'    "{place.after}") {told(place)} ;;')
        if place.after:
            rest = replace(place, words={})
            lines.append(f'    "{place.after}"|"{place.after} "*) {told(rest)} ;;')
    return "\n".join(lines)


BASH = """_dpladder() {
  local word=${COMP_WORDS[COMP_CWORD]} words= options= configs=
  case "${COMP_WORDS[*]:1:COMP_CWORD-1}" in
%s
  esac
  [[ $word == -* ]] && words=$options configs=
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [[ $configs ]]; then
    compopt -o filenames
    COMPREPLY+=($(compgen -d -- "$word"; compgen -f -X '!*.y*ml' -- "$word"))
  fi
}
complete -o default -F _dpladder dpladder"""


def _bash(place: Expected) -> str:
    words, options = " ".join(place.words), " ".join(place.options)
    return f'words="{words}" options="{options}" configs={"1" if place.configs else ""}'


ZSH = """_dpladder() {
  local -a found options
  local configs=
  case "${words[2,CURRENT-1]}" in
%s
  esac
  if [[ ${words[CURRENT]} == -* ]]; then _describe option options
  elif (( $#found )); then _describe word found
  elif [[ $configs ]]; then _files -g '*.y*ml'
  else _files
  fi
}
compdef _dpladder dpladder"""


def _zsh(place: Expected) -> str:
    words = " ".join(quote(f"{word}:{what}") for word, what in place.words.items())
    options = " ".join(quote(f"{name}:{what}") for name, (what, _) in place.options.items())
    return f"found=({words}) options=({options}) configs={'1' if place.configs else ''}"


FISH = """function __dpladder_after
    set -l given (commandline -opc)
    string match -qr -- "^$argv[1]\\$" "$given[2..]"
end
"""


def _fish(places: Sequence[Expected]) -> str:
    return FISH + "\n".join(line for place in places for line in _fish_lines(place))


def _fish_lines(place: Expected) -> Iterator[str]:
    def here(after: str) -> str:
        return f"complete -c dpladder -n {quote(f'__dpladder_after {quote(after)}')}"

    for word, what in place.words.items():
        yield f"{here(place.after)} -f -a {word} -d {quote(what)}"
    for option, (what, choices) in place.options.items():
        values = f" -x -a {quote(' '.join(choices))}" if choices else ""
        yield f"{here(f'{place.after}( .*)?')} -l {option[2:]} -d {quote(what)}{values}"
    if place.configs:
        yield f"{here(f'{place.after}( .*)?')} -k -f -a '(__fish_complete_suffix .yaml)'"


SHELLS: Mapping[str, Callable[[Sequence[Expected]], str]] = {
    "bash": lambda places: BASH % _cases(places, _bash),
    "zsh": lambda places: ZSH % _cases(places, _zsh),
    "fish": _fish,
}
