"""From YAML files and command-line overrides to resolved experiments, with every mistake shown at
once.

Nothing private is read here. A file of the config names sources, and what those hold is not looked
at, but for whether a path is there. So a message may quote any value that was given.

Files are read and laid over one another. Experiments and cells of the grid are laid over the base.
Each is validated by pydantic, then by the rules between keys, and repeats are expanded. What is
left to the plan is resolved later (plan/resolve.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from yaml.constructor import ConstructorError

from dpladder.config.check import problems_of_experiment, problems_of_project
from dpladder.config.dataset_sections import TAGS
from dpladder.config.learners import DEFAULT, OF_NUMBERS
from dpladder.config.model import Config, repeat_name
from dpladder.config.rules import Problem
from dpladder.config.task_rules import apply_task, problems_of_task
from dpladder.errors import BadInput
from dpladder.section import NAME_PATTERN, described_fields, nested_sections
from dpladder.wording import (
    KeyPath,
    closest,
    did_you_mean,
    first_sentence,
    holds_key,
    key_as_text,
    value_as_text,
)

BASE = "main"
# files and folders of a run have these names already
RESERVED_NAMES = (
    BASE,
    "benchmarks",
    "data",
    "figures",
    "logs",
    "privacy",
    "report",
    "results",
    "tables",
)
LONGEST_NAME = 64
# sections of several kinds, and the kind without a name
DEFAULT_NAMES = {"learner": DEFAULT, "hpo": "ladder"}
# one for the whole project: no experiment overrides them
PROJECT_KEYS = (
    "mode",
    "paths",
    "deployment",
    "on_end",
    "experiments",
    "grid",
)
# for required keys that are wrong, so that the others can be checked; never part of a config
STAND_IN = {
    "dataset": {"lineage": BASE, "source": "digits", "nominal_size": 1},
    "privacy": {"epsilon": 1.0, "delta": 0.5},
}
MOST_CELLS = 200
# far above any class list; a few nested aliases would otherwise expand without end
MOST_ENTRIES = 100_000


@dataclass(frozen=True)
class Project:
    """Every experiment of a config, resolved and checked.

    Attributes:
        experiments: by name; the base is called main and comes first.
        repeats: the further repeats of each experiment, which are experiments too.
        grid: of each experiment that is a cell of the grid, its place on each axis.
        choices: what each experiment left to the plan, in words.
        resolved_choices: of each that left something, what was chosen, and digests of what that
            followed from, as ledgers keep both.
    """

    experiments: dict[str, Config]
    repeats: Mapping[str, Sequence[str]] = field(default_factory=dict)
    grid: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    resolved_choices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def main(self) -> Config:
        """The base, which every other experiment overrides in part."""
        return self.experiments[BASE]

    def of_lineage(self, lineage: str) -> dict[str, Config]:
        """The experiments on a lineage's records."""
        return {
            name: config
            for name, config in self.experiments.items()
            if config.dataset.lineage == lineage
        }


@dataclass(frozen=True)
class ParsedFile:
    """A parsed YAML file.

    Attributes:
        values: its mapping, as YAML reads it.
        lines: for each key, `<file>:<line>`; entries of lists have theirs too.
    """

    values: dict[str, Any]
    lines: dict[KeyPath, str]


def load(paths: Sequence[Path | str], overrides: Mapping[str, Any] | None = None) -> Project:
    """Read `paths` in order, each laid over the last, then `overrides`; check everything; resolve
    experiments.

    Args:
        paths: YAML files, at least one that names what is required. Later ones win.
        overrides: keys of the command line, as a nested mapping; None where there are none.

    Raises:
        BadInput: a file cannot be read, or anything in it is wrong. The message lists all problems
            of the config, each with its key and line.
    """
    values: dict[str, Any] = {}
    lines: dict[KeyPath, str] = {}
    for path in paths:
        source = read_yaml(Path(path))
        values = overlay(values, source.values)
        lines.update(source.lines)
    overrides = overrides or {}
    return resolve(
        overlay(values, overrides),
        {key: line for key, line in lines.items() if not holds_key(overrides, key)},
    )


def from_command_line(values: Any) -> Any:
    """What Snakemake's --config gives: it leaves numbers, true, false and null inside braces as
    text.

    Args:
        values: a mapping, a list or a single value, of any depth.

    Returns:
        The same with such texts as values. What YAML would read as a date, a list or a mapping
        stays text.
    """
    if isinstance(values, Mapping):
        return {key: from_command_line(value) for key, value in values.items()}
    if isinstance(values, list):
        return [from_command_line(value) for value in values]
    if not isinstance(values, str):
        return values
    try:
        value = yaml.load(values, Loader=_Loader)
    except (yaml.YAMLError, RecursionError):
        return values
    return value if value is None or isinstance(value, bool | int | float) else values


def resolve(values: Mapping[str, Any], lines: Mapping[KeyPath, str] | None = None) -> Project:
    """Validate the base and each named experiment laid over it.

    Args:
        values: the whole config as plain values, `experiments` and `grid` among them.
        lines: where keys stand, for messages; None of values that are in no file.

    Raises:
        BadInput: with every problem. One that an experiment merely inherits is said once, of the
            base.
    """
    lines = lines or {}
    cells = _cells(values.get("grid"))
    base = {key: value for key, value in values.items() if key not in ("experiments", "grid")}
    # the first cell of a grid is the base itself, so that the base is always an experiment
    first, *further_cells = cells or ("",)
    written, base = base, overlay(base, cells[first].override) if cells else base
    config, of_base = _validate(base)
    experiments = {} if config is None else {BASE: config}
    problems = list(of_base)
    problems += _problems_of_grid(values.get("grid"), cells)
    experiment_values = values.get("experiments")
    if experiment_values is not None and not isinstance(experiment_values, Mapping):
        problems.append(
            (
                ("experiments",),
                f"given {value_as_text(experiment_values)}; map names to the keys that they "
                f"override",
            )
        )
    derived = [("grid", written, name, cells[name].override) for name in further_cells]
    derived += [
        ("experiments", base, name, override)
        for name, override in _mapping(experiment_values).items()
    ]
    for kind, below, name, override in derived:
        at, keys = (kind, str(name)), _experiment_keys(override)
        config, broken_rules = _validate(overlay(below, keys))
        # what an experiment only inherits was said once, of the base
        broken_rules = [
            problem
            for problem in broken_rules
            if problem not in of_base or holds_key(keys, problem[0])
        ]
        broken_rules += _problems_of_override(name, override)
        problems += [((*at, *key), message) for key, message in broken_rules]
        if config is not None:
            experiments[str(name)] = config
    problems += problems_of_project(experiments)
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        located = [f"  - {_message_with_line(key, message, lines)}" for key, message in problems]
        raise BadInput("\n".join([f"config: {count}", *located]))
    grid = {BASE if name == first else name: cell.places for name, cell in cells.items()}
    return replace(_expand_repeats(experiments), grid=grid)


def _experiment_keys(override: Any) -> dict[str, Any]:
    """What an experiment overrides, of what it may."""
    return {key: value for key, value in _mapping(override).items() if key not in PROJECT_KEYS}


@dataclass(frozen=True)
class Cell:
    """One experiment of a grid.

    Attributes:
        override: what it lays over the base, by section.
        places: by axis, the name of its entry there; the report has a column for each axis.
    """

    override: dict[str, Any]
    places: dict[str, str]


def _cells(grid: Any) -> dict[str, Cell]:
    """Every combination of one entry of each axis, the last axis fastest. An axis is a section, and
    what it may be by name."""
    cells = {"": Cell({}, {})}
    for axis, entries in _mapping(grid).items():
        cells = {
            f"{name}-{entry}".removeprefix("-"): Cell(
                overlay(cell.override, {} if override is None else {str(axis): override}),
                cell.places | {str(axis): str(entry)},
            )
            for name, cell in cells.items()
            for entry, override in _mapping(entries).items()
        }
    return cells if _mapping(grid) else {}


def _problems_of_grid(grid: Any, cells: Mapping[str, Cell]) -> Iterator[Problem]:
    if grid is None:
        return
    if not isinstance(grid, Mapping):
        yield (
            ("grid",),
            f"given {value_as_text(grid)}; map sections (features, dataset, learner) to named "
            f"entries",
        )
    for axis, entries in _mapping(grid).items():
        if axis not in Config.model_fields or axis in PROJECT_KEYS:
            known = [name for name in Config.model_fields if name not in PROJECT_KEYS]
            yield (
                ("grid", str(axis)),
                f"no section; {did_you_mean(str(axis), known)}allowed: {', '.join(known)}",
            )
        if not isinstance(entries, Mapping) or not entries:
            yield (
                ("grid", str(axis)),
                f"given {value_as_text(entries)}; name at least one entry, and what it overrides",
            )
        for entry in _mapping(entries):
            if not re.fullmatch(NAME_PATTERN, str(entry)):
                yield (
                    ("grid", str(axis), str(entry)),
                    "an experiment is called so: lower-case letters, digits, _ and -",
                )
    if len(cells) > MOST_CELLS:
        yield ("grid",), f"{len(cells):,} combinations; at most {MOST_CELLS} in one project"


def _expand_repeats(experiments: Mapping[str, Config]) -> Project:
    """Every repeat of an experiment as an experiment of its own, after the one that it repeats."""
    names = {
        name: [repeat_name(name, number) for number in range(config.research.repeats)]
        for name, config in experiments.items()
    }
    expanded = {
        repeat_keys: experiments[name].repeat(number)
        for name, repeats in names.items()
        for number, repeat_keys in enumerate(repeats)
    }
    return Project(expanded, {name: repeats[1:] for name, repeats in names.items()})


def _mapping(value: Any) -> Mapping[Any, Any]:
    """A value that should be a mapping; an empty one in its place where it is none, which is said
    elsewhere."""
    return value if isinstance(value, Mapping) else {}


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merge key by key; everything else, lists included, is replaced whole, and so is a
    section by one of another name.

    A learner of another name has keys of its own. Those of the first, laid below, would be refused.

    Args:
        below: the values that give way.
        above: the values that win.

    Returns:
        A new mapping; neither argument is changed.
    """
    merged = dict(below)
    for key, value in above.items():
        merge = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        if merge and key in DEFAULT_NAMES:
            # without a name it is about the section that stands below
            merge = value.get("name", name := merged[key].get("name", DEFAULT_NAMES[key])) == name
        merged[key] = overlay(merged[key], value) if merge else value
    return merged


# --- reading --------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """SafeLoader that reads 1e-5 as a number, where YAML 1.1 asks for a dot and would give a
    string. It says where a value stands that has the form of a date or number but is none."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, LookupError, AttributeError, TypeError):
            kind = node.tag.rpartition(":")[2]
            raise ConstructorError(
                None,
                None,
                f"{value_as_text(node.value)} is no valid {kind}; put it in quotes if it is text",
                node.start_mark,
            ) from None


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)
TEXT_TAG, MERGE_TAG = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


def read_yaml(path: Path) -> ParsedFile:
    """A file's mapping, and the line of each key for messages.

    Raises:
        BadInput: the file cannot be read, is no mapping, or has a key twice or as no text. The
            message has the line.
    """
    text = _read_text(path)
    lines: dict[KeyPath, str] = {}
    try:
        problems = list(_index(yaml.compose(text, Loader=_Loader), (), path, lines))
        values = None if problems else yaml.load(text, Loader=_Loader)
    except RecursionError:
        raise BadInput(
            f"config file {path}: nested too deeply, or an anchor that contains itself; write the "
            "values out"
        ) from None
    except yaml.YAMLError as error:
        raise BadInput(_yaml_message(path, text, error)) from None
    if problems:
        raise BadInput("\n".join(problems))
    if values is None:
        raise BadInput(f"config file {path}: empty; start from config/config.yaml")
    if not isinstance(values, dict):
        raise BadInput(
            f"config file {path}: the top level must be a mapping of keys, not a "
            f"{type(values).__name__}; start from config/config.yaml"
        )
    return ParsedFile(values, lines)


def _read_text(path: Path) -> str:
    """A file's text; why it cannot be read is said in the words of the file system."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise BadInput(
            f"config file {path}: not found; check the path, or copy config/config.yaml and edit it"
        ) from None
    except IsADirectoryError:
        raise BadInput(f"config file {path}: is a folder; name the YAML file in it") from None
    except UnicodeDecodeError as error:
        raise BadInput(
            f"config file {path}: not UTF-8 (byte {error.start}); save it as UTF-8"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(
            f"config file {path}: cannot be read ({reason}); check its path and permissions"
        ) from None


def _index(
    node: yaml.Node | None, at: KeyPath, path: Path, lines: dict[KeyPath, str]
) -> Iterator[str]:
    """Remember where every key stands; name keys that are no text, or given twice, which YAML would
    silently let win."""
    # before anything is expanded: aliases inside aliases grow without bound
    if len(lines) > MOST_ENTRIES:
        raise BadInput(
            f"config file {path}: more than {MOST_ENTRIES:,} entries once its aliases are written "
            "out; simplify it"
        )
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            key: KeyPath = (*at, key_node.value if isinstance(key_node, yaml.ScalarNode) else "?")
            where = f"{path}:{key_node.start_mark.line + 1}"
            if key_node.tag not in (TEXT_TAG, MERGE_TAG):
                yield (
                    f"config file {where}: {key_as_text(key)}: YAML reads this key as "
                    f"{key_node.tag.rpartition(':')[2]}; put the key in quotes"
                )
            elif key in lines:
                yield (
                    f"config file {where}: {key_as_text(key)} stands twice, first at {lines[key]}; "
                    "keep one of them"
                )
            lines.setdefault(key, where)
            yield from _index(value_node, key, path, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*at, index)] = f"{path}:{item.start_mark.line + 1}"
            yield from _index(item, (*at, index), path, lines)


def _yaml_message(path: Path, text: str, error: yaml.YAMLError) -> str:
    """Where YAML ends to be valid, with the two mistakes that are made most."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return f"config file {path}: not valid YAML: {' '.join(str(error).split())}"
    problem = getattr(error, "problem", None) or "syntax error"
    line = text.splitlines()[mark.line] if mark.line < len(text.splitlines()) else ""
    hint = (
        # the parser only says that a token cannot start there
        "use spaces, YAML forbids tabs for indentation"
        if "\t" in line
        else "check the indentation and the colon on this line"
    )
    return f"config file {path}:{mark.line + 1}: not valid YAML: {problem}" + (
        "" if "; " in problem else f"; {hint}"
    )


# --- validating -----------------------------------------------------------------------------------


def _validate(values: Mapping[str, Any]) -> tuple[Config | None, list[Problem]]:
    """A config, or none and every problem. Where some keys are wrong, what holds between the others
    is still checked."""
    config, problems = _parse(values)
    if config is not None:
        resolved = apply_task(config)
        return resolved, [*problems_of_task(config), *problems_of_experiment(resolved)]
    # an entry of a list cannot be left out by itself, so the whole list is
    wrong = {tuple(takewhile(lambda part: isinstance(part, str), key)) for key, _ in problems}
    rest, _ = _parse(overlay(STAND_IN, _drop_keys(values, wrong)))
    if rest is not None:
        problems += problems_of_experiment(
            apply_task(rest), doubtful=[_suggest_key(key) for key in wrong]
        )
    return None, problems


def _parse(values: Mapping[str, Any]) -> tuple[Config | None, list[Problem]]:
    """JSON mode keeps types strict (no "yes" for 1.0) while lists may fill tuples."""
    dataset = values.get("dataset")
    if isinstance(dataset, Mapping) and dataset.get("target") is not None:
        values = {"task": "regression", "learner": {}, **values}
    features = values.get("features")
    of_table = isinstance(features, Mapping) and features.get("model") == "none"
    of_numbers = values.get("task") == "regression" and of_table
    names = {**DEFAULT_NAMES, "learner": OF_NUMBERS} if of_numbers else DEFAULT_NAMES
    learner = values.get("learner")
    leaves_learner = of_numbers and isinstance(learner, Mapping) and "name" not in learner
    files = {
        key: {"name": name, **values[key]}
        for key, name in names.items()
        if isinstance(values.get(key), Mapping)
    }
    if values.get("sweep") == "auto":
        files["sweep"] = {}
    values = {**values, **files}
    try:
        config = Config.model_validate_json(json.dumps(values, default=str))
        if leaves_learner:  # to the plan (plan/curves.py)
            config.learner.model_fields_set.discard("name")
        return config, []
    except ValidationError as error:
        return None, _explain(error)
    except (TypeError, ValueError, RecursionError):
        return None, [
            ((), "a key or value is no plain text, number, list or mapping; write it out plainly")
        ]


def _drop_keys(values: Mapping[str, Any], keys: Collection[KeyPath]) -> dict[str, Any]:
    """The values without some keys, at any depth; lists are left whole."""
    return {
        name: _drop_keys(value, {key[1:] for key in keys if key[:1] == (name,)})
        if isinstance(value, Mapping)
        else value
        for name, value in values.items()
        if (name,) not in keys
    }


def _suggest_key(key: KeyPath) -> KeyPath:
    """The key itself, or the one it most likely misspells."""
    _, sections = _place(key[:-1])
    fields = [field for section in sections for field in section.model_fields]
    return key[:-1] + tuple(closest(str(part), fields) or part for part in key[-1:])


def _explain(error: ValidationError) -> list[Problem]:
    """One message per key: pydantic reports each branch of a union, and a list beside its bad
    items."""
    by_key: dict[KeyPath, list[dict[str, Any]]] = {}
    for detail in error.errors(include_url=False):
        about = _name_key(dict(detail))
        by_key.setdefault(_place(about["loc"])[0], []).append(about)
    innermost = [
        key
        for key in by_key
        if not any(other[: len(key)] == key and other != key for other in by_key)
    ]
    return [
        (
            key,
            _given_text(by_key[key][0])
            + ", or ".join(dict.fromkeys(_wanted_text(d, key) for d in by_key[key])),
        )
        for key in innermost
    ]


def _name_key(detail: dict[str, Any]) -> dict[str, Any]:
    """A section's own rule begins with the key that it is about: name that key and its value, not
    the section. The same for a section whose name is not among those that it could have."""
    if detail["type"] == "union_tag_invalid":
        name, options = detail["input"]["name"], {"expected": detail["ctx"]["expected_tags"]}
        return detail | {
            "type": "literal_error",
            "loc": (*detail["loc"], "name"),
            "input": name,
            "ctx": options,
        }
    if detail["type"] != "value_error" or not isinstance(detail["input"], Mapping):
        return detail
    said = detail["msg"].removeprefix("Value error, ")
    key, _, rule = said.partition(" ")
    if key not in detail["input"]:
        return detail | {"msg": said}
    return detail | {"loc": (*detail["loc"], key), "input": detail["input"][key], "msg": rule}


def _given_text(detail: dict[str, Any]) -> str:
    """What was given, to stand before what is allowed. Of a section or a missing key there is
    nothing to quote."""
    whole = detail["type"] in ("missing", "json_invalid") or isinstance(detail["input"], Mapping)
    return "" if whole else f"given {value_as_text(detail['input'])}; "


def _wanted_text(detail: dict[str, Any], key: KeyPath) -> str:
    """What is allowed in a place, by the kind of pydantic's error; its own words where none is
    known here."""
    kind, value = detail["type"], detail["input"]
    _, sections = _place(detail["loc"][:-1])
    if kind == "extra_forbidden":
        (section,) = sections
        allowed = [*section.model_fields, *(["experiments", "grid"] if section is Config else [])]
        return (
            f"unknown key; {did_you_mean(str(key[-1]), allowed)}allowed here: {', '.join(allowed)}"
        )
    if kind == "missing" and isinstance(key[-1], str):
        meaning = described_fields(sections[0])[key[-1]].description
        return f"required, but missing{f' ({first_sentence(meaning)})' if meaning else ''}; add it"
    if kind == "literal_error":
        options = [part.strip("'") for part in re.split(r", | or ", detail["ctx"]["expected"])]
        return f"{did_you_mean(str(value), options)}allowed: {', '.join(options)}"
    if kind in WANTED:
        return WANTED[kind].format(**detail.get("ctx", {})) + _quotes(kind, value)
    return str(detail["msg"]).replace("Input should be", "it should be")


def _quotes(kind: str, value: object) -> str:
    """Quotes make text of a number, and their absence makes true of yes."""
    if kind == "string_type" and isinstance(value, bool):
        return "; put it in quotes: YAML reads yes, no, on and off as true and false"
    if kind == "string_type" and isinstance(value, int | float):
        return "; put it in quotes"
    if kind in ("bool_type", "float_type", "int_type") and isinstance(value, str):
        return ", without quotes"
    return ""


WANTED = {
    "bool_type": "allowed: true, false",
    "finite_number": "it should be a finite number",
    "dict_type": "write its keys under it, one per line, or leave it out",
    "float_type": "it should be a number",
    "int_type": "it should be a whole number",
    "json_invalid": "nested too deeply, or text that is not valid Unicode; write it out plainly",
    "missing": "an entry is missing; add it",
    "model_type": "write its keys under it, one per line, or leave it out",
    "string_pattern_mismatch": "use lower-case letters, digits, - and _, starting with a letter "
    f"or digit ({NAME_PATTERN})",
    "string_type": "it should be text",
    "too_long": "it should have at most {max_length} entries",
    "too_short": "it should have at least {min_length}, so add one",
    "tuple_type": "it should be a list, like [a, b]",
}


def _place(loc: Iterable[str | int]) -> tuple[KeyPath, list[type[BaseModel]]]:
    """The part of a pydantic location that the user wrote, without the names of union branches, and
    the sections that may stand there."""
    key: list[str | int] = []
    sections: list[type[BaseModel]] = [Config]
    names_branch = False
    for part in loc:
        # pydantic's own words for the branches of a union, which no user wrote
        if part in TAGS or names_branch:
            names_branch = False
            continue
        sections_with = [section for section in sections if part in _names(section)]
        if sections_with:
            sections = sections_with
            continue
        if isinstance(part, int) or sections:
            key.append(part)
        if isinstance(part, str):
            names_branch = any(_mixes_kinds(section, part) for section in sections)
            sections = [inner for section in sections for inner in _sections(section, part)]
    return tuple(key), sections


def _mixes_kinds(model: type[BaseModel], name: str) -> bool:
    """Whether a field holds a section or something else that is not empty (respend). Pydantic puts
    the name of the branch behind the field's then."""
    field = model.model_fields.get(name)
    kinds = get_args(field.annotation) if field is not None else ()
    sections = [isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds]
    return any(sections) and not all(
        is_section or kind is type(None) for is_section, kind in zip(sections, kinds, strict=True)
    )


def _names(section: type[BaseModel]) -> tuple[Any, ...]:
    """The names that choose a section among those which may stand in one place; none of a plain
    section."""
    return (
        get_args(section.model_fields["name"].annotation) if "name" in section.model_fields else ()
    )


def _sections(model: type[BaseModel], name: str) -> list[type[BaseModel]]:
    """The sections that a field may hold, directly, optionally, or as a list of sections."""
    field = model.model_fields.get(name)
    return [] if field is None else [one for one, _ in nested_sections(field.annotation)]


def _problems_of_override(name: object, override: object) -> Iterator[Problem]:
    """What is wrong with an experiment by its name and form. Its values are checked as a
    config's."""
    if (
        not isinstance(name, str)
        or not re.fullmatch(NAME_PATTERN, name)
        or len(name) > LONGEST_NAME
    ):
        yield (
            (),
            f"not a valid experiment name; use up to {LONGEST_NAME} lower-case letters, digits, - "
            f"and _ ({NAME_PATTERN})",
        )
    if name in RESERVED_NAMES:
        yield (), f"this name is reserved ({', '.join(RESERVED_NAMES)}); choose another"
    if override is not None and not isinstance(override, Mapping):
        yield (
            (),
            f"given {value_as_text(override)}; write the keys that this experiment overrides under "
            f"it",
        )
    for key in PROJECT_KEYS:
        if key in _mapping(override):
            yield (key,), "holds for the whole project; set it at the top level"


def _message_with_line(key: KeyPath, message: str, lines: Mapping[KeyPath, str]) -> str:
    """An experiment's inherited key stands where the base gives it."""
    line = lines.get(key) or (lines.get(key[2:]) if key[:1] == ("experiments",) else None)
    return key_as_text(key) + (f" ({line})" if line else "") + f": {message}"
