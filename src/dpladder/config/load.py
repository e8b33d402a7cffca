"""From YAML files and command-line overrides to resolved experiments, with every mistake shown at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from dpladder.config.check import problems_of_experiment, problems_of_project
from dpladder.config.model import NAME_PATTERN, Config
from dpladder.errors import BadInput

KeyPath = tuple[str | int, ...]
BASE = "main"
RESERVED_NAMES = (BASE, "benchmarks", "data", "figures", "logs", "privacy", "report", "tables")
PROJECT_KEYS = ("mode", "paths")  # one value for the whole project, so no experiment may override them


@dataclass(frozen=True)
class Project:
    """Every experiment of a config, resolved and checked. The base is called main and comes first."""

    experiments: dict[str, Config]

    @property
    def main(self) -> Config:
        return self.experiments[BASE]


@dataclass(frozen=True)
class Source:
    """A parsed YAML file: its values, and where each key stands."""

    values: dict[str, Any]
    lines: dict[KeyPath, str]


def load(paths: Sequence[Path | str], overrides: Mapping[str, Any] | None = None) -> Project:
    """Read `paths` in order, each laid over the last, then `overrides`; check everything; resolve experiments."""
    values: dict[str, Any] = {}
    lines: dict[KeyPath, str] = {}
    for path in paths:
        source = read_yaml(Path(path))
        values = overlay(values, source.values)
        lines.update(source.lines)
    return resolve(overlay(values, dict(overrides or {})), lines)


def resolve(values: Mapping[str, Any], lines: Mapping[KeyPath, str] | None = None) -> Project:
    """Validate the base and each named experiment laid over it."""
    lines = lines or {}
    base = {key: value for key, value in values.items() if key != "experiments"}
    named = values.get("experiments") or {}
    config, problems = _validate(base, lines)
    experiments = {} if config is None else {BASE: config}
    if not isinstance(named, Mapping):
        problems.append(f"experiments{_at(lines, ('experiments',))}: given {named!r}; write a mapping of names to the keys they override")
        named = {}
    for name, override in named.items():
        found = _problems_of_name(name, override)
        if not found:
            resolved, found = _validate(overlay(base, override or {}), lines, ("experiments", name))
            found = [problem for problem in found if _body(problem, name) not in map(_body, problems)]
            if resolved is not None:
                experiments[str(name)] = resolved
        problems.extend(found)
    if not problems:
        problems = problems_of_project(experiments)
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise BadInput("\n".join([f"config: {count}", *(f"  - {problem}" for problem in problems)]))
    return Project(experiments)


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merge key by key; everything else, lists included, is replaced whole."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = overlay(merged[key], value) if both else value
    return merged


# --- reading -----------------------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """SafeLoader that reads 1e-5 as a number; YAML 1.1 asks for a dot and would give a string."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def read_yaml(path: Path) -> Source:
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise BadInput(f"config file {path}: not found; check the path, or copy config/config.yaml and edit it") from None
    except IsADirectoryError:
        raise BadInput(f"config file {path}: is a folder; name the YAML file in it") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"config file {path}: not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise BadInput(f"config file {path}: cannot be read ({error.strerror}); check its permissions") from None
    try:
        node = yaml.compose(text, Loader=_Loader)
        lines: dict[KeyPath, str] = {}
        _index_lines(node, (), path, lines)
        values = yaml.load(text, Loader=_Loader)
    except RecursionError:
        raise BadInput(f"config file {path}: nested too deeply, or an anchor that contains itself; write the values out") from None
    except yaml.YAMLError as error:
        raise BadInput(_yaml_message(path, text, error)) from None
    if values is None:
        raise BadInput(f"config file {path}: empty; start from config/config.yaml")
    if not isinstance(values, dict):
        raise BadInput(f"config file {path}: the top level must be a mapping of keys, not a {type(values).__name__}")
    return Source(values, lines)


def _index_lines(node: yaml.Node | None, at: KeyPath, path: Path, lines: dict[KeyPath, str]) -> None:
    """Remember where every key stands, and refuse a key given twice, which YAML would silently let win."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            key: KeyPath = (*at, str(key_node.value))
            where = f"{path}:{key_node.start_mark.line + 1}"
            if key in lines:
                raise BadInput(f"config file {where}: {dotted(key)} stands twice, first at {lines[key]}; keep one of them")
            lines[key] = where
            _index_lines(value_node, key, path, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*at, index)] = f"{path}:{item.start_mark.line + 1}"
            _index_lines(item, (*at, index), path, lines)


def _yaml_message(path: Path, text: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return f"config file {path}: not valid YAML ({error})"
    line = text.splitlines()[mark.line] if mark.line < len(text.splitlines()) else ""
    hint = "use spaces, YAML forbids tabs for indentation" if "\t" in line else "check the indentation and the colon on this line"
    return f"config file {path}:{mark.line + 1}: not valid YAML: {getattr(error, 'problem', None) or 'syntax error'}; {hint}"


# --- validating --------------------------------------------------------------------------------------------------


def _validate(values: Mapping[str, Any], lines: Mapping[KeyPath, str], under: KeyPath = ()) -> tuple[Config | None, list[str]]:
    """A config or its problems. JSON mode keeps types strict (no "yes" for 1.0) while lists may fill tuples."""
    try:
        config = Config.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        return None, _explain(error, values, lines, under)
    problems = problems_of_experiment(config)
    return config, [_located(key, message, lines, under) for key, message in problems]


def _explain(error: ValidationError, values: Mapping[str, Any], lines: Mapping[KeyPath, str], under: KeyPath) -> list[str]:
    """One message per key: pydantic reports each branch of a union, and a list beside its bad items."""
    by_key: dict[KeyPath, list[str]] = {}
    for detail in error.errors(include_url=False):
        key = _key_of(detail["loc"])
        by_key.setdefault(key, []).append(_message(dict(detail), key))
    problems = []
    for key, messages in by_key.items():
        if any(other[: len(key)] == key and other != key for other in by_key):
            continue
        given = _value_at(values, key)
        quoted = "" if given is None else f"given {given!r}; "
        problems.append(_located(key, quoted + ", or ".join(dict.fromkeys(messages)), lines, under))
    return problems


def _message(detail: dict[str, Any], key: KeyPath) -> str:
    kind, text = detail["type"], detail["msg"].removeprefix("Value error, ")
    if kind == "extra_forbidden":
        section = _section(key[:-1])
        allowed = list(section.model_fields) + (["experiments"] if section is Config else [])
        return f"unknown key; {_nearest(str(key[-1]), allowed)}allowed here: {', '.join(allowed)}"
    if kind == "missing":
        field = _section(key[:-1]).model_fields[str(key[-1])]
        return f"required, but missing ({field.description}); add it"
    if kind == "value_error":
        return text
    if kind == "string_pattern_mismatch":
        return f"allowed are lower-case letters, digits, - and _, starting with a letter or digit ({NAME_PATTERN})"
    if kind == "literal_error":
        options = [part.strip("'") for part in re.split(r", | or ", detail["ctx"]["expected"])]
        return f"{_nearest(str(detail['input']), options)}allowed: {', '.join(options)}"
    return text.replace("Input should be", "it should be").replace("Tuple should have", "the list should have")


def _key_of(loc: Iterable[str | int]) -> KeyPath:
    """The part of a pydantic location that the user wrote, without the names of union branches."""
    key: list[str | int] = []
    model: type[BaseModel] | None = Config
    for part in loc:
        if isinstance(part, str) and model is None:
            break
        key.append(part)
        if isinstance(part, str) and model is not None:
            model = _model_of(model, part)
    return tuple(key)


def _section(key: KeyPath) -> type[BaseModel]:
    model: type[BaseModel] = Config
    for part in key:
        if isinstance(part, str):
            model = _model_of(model, part) or model
    return model


def _model_of(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The section that a field holds, directly, optionally, or as a list of sections."""
    field = model.model_fields.get(name)
    waiting: list[Any] = [] if field is None else [field.annotation]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
        waiting.extend(get_args(kind))
    return None


def _problems_of_name(name: object, override: object) -> list[str]:
    where = f"experiments.{name}"
    if not isinstance(name, str) or not re.match(NAME_PATTERN, name):
        return [f"{where}: not a valid experiment name; use lower-case letters, digits, - and _ ({NAME_PATTERN})"]
    if name in RESERVED_NAMES:
        return [f"{where}: this name is reserved ({', '.join(RESERVED_NAMES)}); choose another"]
    if override is not None and not isinstance(override, Mapping):
        return [f"{where}: given {override!r}; write a mapping of the keys this experiment overrides"]
    return [
        f"{where}.{key}: holds for the whole project; set it at the top level" for key in PROJECT_KEYS if key in (override or {})
    ]


# --- wording -----------------------------------------------------------------------------------------------------


def dotted(key: KeyPath) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).lstrip(".")


def _at(lines: Mapping[KeyPath, str], key: KeyPath) -> str:
    return f" ({lines[key]})" if key in lines else ""


def _located(key: KeyPath, message: str, lines: Mapping[KeyPath, str], under: KeyPath) -> str:
    own = (*under, *key)
    return f"{dotted(own)}{_at(lines, own) or _at(lines, key)}: {message}"


def _body(problem: str, experiment: object = None) -> str:
    """A problem without the experiment's prefix, to say what the base already said only once."""
    return problem.removeprefix(f"experiments.{experiment}.")


def _nearest(given: str, options: Sequence[str]) -> str:
    close = get_close_matches(given, options, n=1)
    return f"did you mean {close[0]}? " if close else ""


def _value_at(values: Any, key: KeyPath) -> Any:
    for part in key:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return None
    return values
