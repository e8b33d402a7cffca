"""dpladder as a module of another workflow: its rules may have other names there, and its handlers
are not run by themselves.

Rules of a module are jobs of the outer workflow, so there a job learns from the environment that it
is one (`VARIABLE`). Private files and results still lie where the ledger knows them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from dpladder.config.load import from_command_line
from dpladder.errors import BadInput
from dpladder.wording import KeyPath

VARIABLE = "DPLADDER_MODULE"  # for the jobs: the module's name, and what its rules are called
PLACE = "results/privacy.json"


def enter_module(workflow: Any) -> bool:
    """Whether this parse is that of a module; its jobs are told so.

    Args:
        workflow: Snakemake's own object. It keeps the module's name from one parse to the next.

    Raises:
        BadInput: the module has a prefix, or a second dpladder would write to the same results.
    """
    modifier = workflow.modifier
    if modifier.is_main_snakefile():
        os.environ.pop(VARIABLE, None)
        return False
    if modifier.modify_path(PLACE) != PLACE:
        raise BadInput(
            "this module has a prefix. The ledger knows results by their places, results/ and "
            "private/: leave prefix out, and run other configs in folders of their own."
        )
    # one object for the whole parse
    first = vars(workflow).setdefault("dpladder_module", modifier.namespace)
    if first != modifier.namespace:
        raise BadInput(
            f"{first} and {modifier.namespace} are both dpladder, and would write to the same "
            "results/. Make them one module with `experiments:` in its config, or run them in "
            "folders of their own."
        )
    pattern = modifier.modify_rulename("*")
    if "*" in pattern:
        os.environ[VARIABLE] = f"{modifier.namespace} {pattern}"
    else:  # `use rule` of a single one, beside `use rule *`
        os.environ.setdefault(VARIABLE, f"{modifier.namespace} *")
    return True


def config_of(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> Any:
    """The config that the outer workflow gives. What `overrides`, Snakemake's --config, say there
    is text where they stand inside braces; what files say is typed, and quoted words stay words.

    Args:
        values: the module's config, as Snakemake merged it.
        overrides: what the command line said, which arrives as text alone.

    Raises:
        BadInput: the module was given no config.
    """
    if not values:
        raise BadInput(
            "this module has no config. Give it one: `module dpladder:` with `snakefile:` and "
            '`config: config["dpladder"]`, the '
            "keys of config/README.md below that key of the outer config."
        )
    said = {(path[place:], text) for path, text in _texts(overrides) for place in range(len(path))}
    return _parse_typed(values, (), said)


def _texts(values: Any, at: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Each text in a config, with the way to it."""
    if isinstance(values, str):
        yield at, values
    elif isinstance(values, Mapping):
        for key, value in values.items():
            yield from _texts(value, (*at, str(key)))
    elif isinstance(values, list):
        for place, value in enumerate(values):
            yield from _texts(value, (*at, place))


def _parse_typed(values: Any, at: KeyPath, said: Collection[tuple[KeyPath, str]]) -> Any:
    """The config with each text parsed that the command line gave: the place and the text must both
    match."""
    if isinstance(values, Mapping):
        return {key: _parse_typed(value, (*at, str(key)), said) for key, value in values.items()}
    if isinstance(values, list):
        return [_parse_typed(value, (*at, place), said) for place, value in enumerate(values)]
    return from_command_line(values) if (at, values) in said else values


def inner_rule_name(rule: str) -> str:
    """What a rule of the outer workflow is called here.

    Outside a module it is the same name.
    """
    before, _, after = os.environ.get(VARIABLE, "* *").split(" ")[1].partition("*")
    return rule.removeprefix(before).removesuffix(after)


def module_advice() -> str:
    """What a job that nothing was reserved for has to say, beside clusters.

    Empty where dpladder is the main workflow.
    """
    if VARIABLE not in os.environ:
        return ""
    name = os.environ[VARIABLE].split(" ")[0]
    return (
        f" dpladder runs as the module {name} here, and Snakemake runs the handlers of the outer "
        f"Snakefile alone: it needs the line `onstart: {name}.onstart()`, which reserves."
    )
