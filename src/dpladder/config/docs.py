"""What is generated from the typed config: the JSON schema and the key reference.

`python -m dpladder.config.docs` writes both; with `--check` it only says which one is out of step.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from dpladder.config import searches
from dpladder.config.learners import DEFAULT, SECTIONS
from dpladder.config.method import name_of
from dpladder.config.model import Config
from dpladder.section import NAME_PATTERN, described_fields, nested_sections

TASKS = {
    "name the data and say what it holds": (
        *("dataset.lineage", "dataset.source", "dataset.classes", "dataset.nominal_size"),
        *("dataset.label", "dataset.labels", "dataset.columns"),
    ),
    "read images that lie apart from their labels": ("dataset.source",),
    "tell several findings of a record": (
        *("dataset.labels", "dataset.label", "dataset.unknown", "dataset.blank", "learner.link"),
    ),
    "protect people, not records": ("dataset.unit", "dataset.user", "dataset.id"),
    "say how much may be learned": ("privacy.epsilon", "privacy.delta", "privacy.lifetime"),
    "choose the public network": ("features.model", "features.weights", "features.image_size"),
    "use a few public records": ("dataset.public_sample", "learner.public", "learner.look"),
    "train a whole network": ("learner.name", "learner.lora", "learner.head"),
    "choose how to train": ("learner.name", "final.targets"),
    "choose how to search": ("sweep", "hpo", "fit"),
    "measure more than accuracy": (
        *("evaluate.measures", "evaluate.also", "dataset.group"),
        *("dataset.majority", "dataset.rare"),
    ),
    "compare several ways": ("experiments", "grid", "mode"),
    "pay again for a changed question": ("respend",),
    "say who publishes what": ("deployment",),
    "be told when a run ends": ("on_end",),
    "fit the machine": ("resources", "features.shards", "paths"),
}
"""The keys of what people come for. tests/test_docs.py holds them to the config."""

COMMAND = "make docs"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def generated_files() -> dict[str, str]:
    """The text of each generated file, by its path in the repository."""
    return {
        "workflow/schemas/config.schema.yaml": schema(),
        "config/README.md": reference(),
    }


def schema() -> str:
    """The config's JSON schema, by which editors complete keys and underline wrong ones, and of
    which the catalogue of Snakemake's workflows makes its table of parameters.

    Returns:
        YAML, as the catalogue reads it. What configs alone have, experiments and grids, is added by
        hand: they are no keys of one experiment.
    """
    document = Config.model_json_schema()
    for section in (
        *SECTIONS,
        *searches.SECTIONS,
    ):  # one without a name is the default one, and no other
        if name_of(section) != DEFAULT:
            document["$defs"][section.__name__]["required"] = ["name"]
    document["properties"]["experiments"] = {
        "type": "object",
        "description": "Named experiments. Each overrides keys of all of the above.",
        "additionalProperties": {"type": ["object", "null"]},
    }
    document["properties"]["grid"] = {
        "type": "object",
        "description": "Sections, each with named entries that override it: an experiment for "
        "every combination.",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {"type": ["object", "null"]},
        },
    }
    document = {"$schema": DIALECT, **document}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


# --- the key reference ----------------------------------------------------------------------------


def reference() -> str:
    """The page of all keys: type, default and meaning, by section.

    Returns:
        Markdown: a table of what people come for, then a list of the keys of each section.
    """
    lines = [
        "# Config reference",
        "",
        "Every key of the config, with what it may hold and, in bold, its default; a key without "
        "one may",
        "stay empty. Unknown keys are errors. Every value is public: choose it before you look at "
        "the data,",
        "or derive it from releases. `config/config.yaml` is the demo's, `config/examples/` has "
        "more.",
        "`dpladder keys NAME` prints the keys of the [papers' methods](../docs/papers.md).",
        f"(Generated from `src/dpladder/config/` by `{COMMAND}`.)",
        "",
        "`experiments:` maps names to overrides of any key but `mode`, `paths`, `deployment` and",
        "`on_end`. Experiments share caches and ledger; the base itself is called `main`.",
        "",
        "`grid:` maps sections to named entries: an experiment for every combination of them. The",
        "first is `main`; the others are called by their entries, such as `lite1-digits`.",
        "",
        "| to | set |",
        "|---|---|",
        *(f"| {task} | {', '.join(f'`{key}`' for key in keys)} |" for task, keys in TASKS.items()),
        "",
        *map(_as_markdown, _rows(Config, "", of_core=True)),
        "",
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


@dataclass(frozen=True)
class DescribedKey:
    """One meaning of a key of the config, in words.

    Attributes:
        name: in full, such as `dataset.lineage`.
        allowed: what it may hold, in Markdown.
        default: in Markdown; empty of a section, whose keys have defaults of their own.
        text: what it means.
        methods: the learners or searches that have the key with this meaning; empty of a key that
            is none of theirs.
    """

    name: str
    allowed: str
    default: str
    text: str
    methods: tuple[str, ...] = ()


def described_keys() -> list[DescribedKey]:
    """Each meaning of each key once, in the order of the reference, those of one key together."""
    keys = dict.fromkeys(row for row in _rows(Config, "") if isinstance(row, DescribedKey))
    names = [*dict.fromkeys(key.name for key in keys)]
    return sorted(keys, key=lambda key: names.index(key.name))


def _rows(
    model: type[BaseModel], prefix: str, of_core: bool = False
) -> Iterator[DescribedKey | str]:
    """The keys of a section and of those inside it, and headings among them in Markdown; `[]` marks
    entries of a list.

    Args:
        of_core: whether keys of other packages' learners and searches are left out.
    """
    for name, field in described_fields(model).items():
        key, inner = prefix + name, list(nested_sections(field.annotation))
        yield _described(key, _allowed_values(field), field)
        # a union of sections: each has rows of its own under one key
        if len(inner) > 1:
            yield from _alternatives(key, [section for section, _ in inner], of_core)
            continue
        for section, listed in inner:
            yield from _rows(section, f"{key}[]." if listed else f"{key}.", of_core)


def _described(key: str, allowed: str, field: FieldInfo) -> DescribedKey:
    default, text = _default(field), " ".join((field.description or "").split())
    # that a key may be empty is said once where that is its default
    return DescribedKey(
        key, allowed.removesuffix(" or empty") if default == "empty" else allowed, default, text
    )


def _alternatives(
    key: str, sections: Sequence[type[BaseModel]], of_core: bool
) -> Iterator[DescribedKey | str]:
    """The sections of which a name chooses one; what several of them have stands once, first.

    Two meanings are the same where type, default and text are all equal. Of several meanings that
    several have, the most frequent stands first, and any other below each name that has it.
    """
    chosen = [section.model_fields["name"] for section in sections]
    allowed = " | ".join(f"`{name}`" for name in map(name_of, sections))
    default = next(field for field in chosen if not field.is_required())
    yield _described(f"{key}.name", allowed, default)
    sections = [one for one in sections if not of_core or one.__module__.startswith("dpladder.")]
    having: dict[DescribedKey | str, list[str]] = {}
    for section in sections:
        for row in [*_rows(section, f"{key}.")][1:]:  # [0]: its name
            having.setdefault(row, []).append(name_of(section))
    keys = [
        replace(row, methods=tuple(names))
        for row, names in having.items()
        if isinstance(row, DescribedKey)
    ]
    frequent: dict[str, DescribedKey] = {}
    for row in sorted(keys, key=lambda row: -len(row.methods)):
        frequent.setdefault(row.name, row)
    shared = [row for row in keys if row == frequent[row.name] and len(row.methods) > 1]
    if shared:
        yield f"\n### {key}: what several have\n"
        yield from shared
    for section in sections:
        rows = [row for row in keys if name_of(section) in row.methods]
        has = [row.name.removeprefix(f"{key}.") for row in rows if row in shared]
        also = f" Has {', '.join(f'`{name}`' for name in has if '.' not in name)}." if has else ""
        yield f"\n### {key}: {name_of(section)}\n\n{_escaped(section.__doc__ or '')}{also}\n"
        yield from (row for row in rows if row not in shared)


def _as_markdown(row: DescribedKey | str) -> str:
    if isinstance(row, str):
        return row
    allowed = _with_default(row)
    if "." in row.name:
        return f"- `{row.name}` ({allowed}): {_escaped(row.text)}"
    values = "" if allowed.startswith("section") else f"({allowed}) "
    return f"\n## {row.name}\n\n{values}{_escaped(row.text)}\n"


def _with_default(row: DescribedKey) -> str:
    """What a key may hold, with its default in bold among the values, or behind them."""
    values = row.allowed.split(" | ")
    if row.default in values:
        return ", ".join(f"**{value}**" if value == row.default else value for value in values)
    bold = f"; **{row.default}**" if row.default not in ("", "empty") else ""
    return ", ".join(values) + bold


def _allowed_values(field: FieldInfo) -> str:
    """What a key may hold, in Markdown."""
    written = [item for item in field.metadata if isinstance(item, WithJsonSchema)]
    if written:  # in another form than it is kept
        schema = written[0].json_schema or {}
        if "enum" in (first := schema.get("anyOf", [{}])[0]):
            return " | ".join(f"`{word}`" for word in first["enum"]) + ", or a list of these"
        return "text or mapping" if "type" in schema else "list or mapping of text"
    return _kind(field.annotation, tuple(field.metadata))


def _kind(kind: Any, metadata: tuple[Any, ...] = ()) -> str:
    """A type in words; bounds stand in its metadata."""
    if any(getattr(item, "pattern", None) == NAME_PATTERN for item in _flat(metadata)):
        return "name"
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _kind(arguments[0], arguments[1:] + metadata)
    if origin in (Union, UnionType):
        kinds = ["empty" if item is NoneType else _kind(item, metadata) for item in arguments]
        return " or ".join(dict.fromkeys(kinds))
    if origin is Literal:
        return " | ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return (
            "list of " + _kind(arguments[0])
            if arguments[-1] is Ellipsis
            else f"[{', '.join(_kind(item) for item in arguments)}]"
        )
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "section"
    names = {int: "whole number", float: "number", bool: "`true` | `false`", str: "text"}
    return names[kind] + _bounds(metadata)


def _bounds(metadata: tuple[Any, ...]) -> str:
    """The bounds of a number, such as ` > 0, ≤ 1`."""
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    bounds = [
        f" {sign} {getattr(item, name):,.10g}"
        for item in _flat(metadata)
        for name, sign in signs.items()
        if getattr(item, name, None) is not None
    ]
    return ",".join(bounds)


def _flat(metadata: tuple[Any, ...]) -> list[Any]:
    """Metadata with that of pydantic's own `Field` entries laid out."""
    return [item for entry in metadata for item in getattr(entry, "metadata", [entry])]


def _default(field: FieldInfo) -> str:
    """The default in Markdown; blank of a section, whose keys have defaults of their own."""
    if field.is_required():
        return "required"
    if field.default_factory is not None or field.default is PydanticUndefined:
        return ""
    return f"`{_flow(field.default)}`" if field.default is not None else "empty"


def _flow(value: Any) -> str:
    """A value as YAML writes it on one line. Texts have no quotes, for no default needs any."""
    if isinstance(value, tuple):
        return f"[{', '.join(_flow(item) for item in value)}]"
    if isinstance(value, BaseModel):
        return (
            "{"
            + ", ".join(f"{key}: {_flow(getattr(value, key))}" for key in type(value).model_fields)
            + "}"
        )
    if isinstance(value, float):
        # every YAML reader takes 1.0e-05 for a number, few take 1e-05
        return re.sub(r"^(-?\d+)e", r"\1.0e", str(value))
    return (
        {None: "null", True: "true", False: "false"}[value]
        if value is None or isinstance(value, bool)
        else str(value)
    )


def _escaped(text: str) -> str:
    """A text on one line, without what Markdown would take for emphasis or a tag."""
    return re.sub(r"([<*])", r"\\\1", " ".join(text.split()))


def write(texts: Mapping[str, str], arguments: Sequence[str]) -> int:
    """Write what is out of step, or with --check only say so.

    Args:
        texts: what each file must hold, by its path below the working directory.
        arguments: of the command line; all but `--check` are passed over.

    Returns:
        An exit code: 1 with `--check` where a file is out of step, else 0.
    """
    stale = [
        path
        for path, text in texts.items()
        if not Path(path).is_file() or Path(path).read_text("utf-8") != text
    ]
    if "--check" in arguments:
        if stale:
            print(
                f"out of step with the code: {', '.join(stale)}; run `{COMMAND}`", file=sys.stderr
            )
        # so a check in CI fails where somebody edited a generated file, or forgot to renew it
        return 1 if stale else 0
    for path in stale:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(texts[path], "utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(write(generated_files(), sys.argv[1:]))
