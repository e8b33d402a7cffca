"""Digests of the code that a rule's output depends on. Snakemake does not see changes in an
imported package.

A digest covers the transitive imports inside dpladder, read as syntax trees: comments, docstrings
and formatting do not count. Modules that cannot change what a mechanism computes are INERT and left
out; a test holds them so.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
NAME = PACKAGE.name

INERT = frozenset(
    {
        "dpladder",
        "dpladder.plan.digests",
        "dpladder.config",
        "dpladder.config.check",
        "dpladder.config.learner_sections",
        "dpladder.config.learners",
        "dpladder.config.learner_rules",
        "dpladder.config.load",
        "dpladder.config.dataset_rules",
        "dpladder.config.dataset_sections",
        "dpladder.config.evaluate_sections",
        "dpladder.config.features_sections",
        "dpladder.config.model",
        "dpladder.config.search_sections",
        "dpladder.config.section",
        "dpladder.config.sweep_sections",
        "dpladder.config.shift",
        "dpladder.config.task_rules",
        "dpladder.config.wording",
        "dpladder.errors",
        "dpladder.formats",
        "dpladder.jobs.task",
        "dpladder.learn.trainings",
        "dpladder.privacy",
        "dpladder.privacy.ledger.anchors",
        "dpladder.privacy.ledger.home",
        "dpladder.privacy.ledger.journal",
        "dpladder.privacy.ledger.book",
        "dpladder.privacy.ledger.limits",
        "dpladder.privacy.ledger.state",
        "dpladder.privacy.statement.build",
        "dpladder.privacy.statement.check",
        "dpladder.privacy.statement.page",
        "dpladder.privacy.statement.records",
        "dpladder.privacy.release.store",
        "dpladder.privacy.ledger.units",
        "dpladder.jobs",
        "dpladder.jobs.places",
        "dpladder.jobs.record",
        "dpladder.plan.job_identity",
        "dpladder.plan.mechanisms",
        "dpladder.plan.rule_params",
        "dpladder.plan.rule_specs",
    }
)
"""They move bytes, parse config (whose values are part of every query), look a learner or a search
up (whose own module is part of every query) or stop with an error; none computes a release."""


@dataclass(frozen=True)
class _Module:
    fingerprint: str
    imports: frozenset[str]


def digest_of(*entries: str) -> str:
    """Digest of the modules `entries` and of all that they import from dpladder."""
    modules = set().union(*map(_closure, entries))
    lines = sorted(
        f"{name} {module.fingerprint}" for name in modules if (module := _read_module(name))
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _closure(entry: str) -> set[str]:
    """Every counted module that `entry` reaches, each once, and `entry` itself."""
    names: set[str] = set()
    waiting = {entry}
    while waiting:
        name = waiting.pop()
        module = _read_module(name)
        if module is not None:
            names.add(name)
            waiting |= module.imports - names - INERT
    return names


@cache
def _read_module(name: str) -> _Module | None:
    """A module of dpladder, or all of a package that adds to it (config/plugins.py); None for a
    name that only looks like a module, such as a function imported from one."""
    top, *inner = name.split(".")
    if top != NAME:
        return _module_of(_files_of(top))
    base = PACKAGE.joinpath(*inner)
    files = [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]
    return _module_of(files[:1]) if files else None


def _files_of(package: str) -> list[Path]:
    """All of a package, however its modules import each other."""
    spec = find_spec(package)
    folders = (spec and spec.submodule_search_locations) or ()
    return sorted(path for folder in folders for path in Path(folder).rglob("*.py"))


def _module_of(files: Iterable[Path]) -> _Module:
    tokens: list[str] = []
    imported: list[str] = []
    for file in files:
        _dump(ast.parse(file.read_bytes(), filename=str(file)), tokens, imported)
    digest = hashlib.sha256("\0".join(tokens).encode()).hexdigest()
    return _Module(digest, frozenset(_modules_inside(imported)))


def _dump(node: object, tokens: list[str], imported: list[str]) -> None:
    """The tree's content without positions, docstrings and empty fields; ast.dump differs between
    Python versions. What is imported, lazily or not, is collected on the way."""
    if isinstance(node, ast.AST):
        tokens.append(type(node).__name__)
        for field in node._fields:
            value = getattr(node, field, None)
            if value is None or value == [] or field in ("type_comment", "kind"):
                continue
            tokens.append(field)
            _dump(_without_docstring(node, value) if field == "body" else value, tokens, imported)
        tokens.append(")")
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            imported += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    elif isinstance(node, list):
        for item in node:
            _dump(item, tokens, imported)
    else:
        tokens.append(f"{type(node).__name__}:{node!r}")


def _modules_inside(names: list[str]) -> Iterator[str]:
    """Those of dpladder, and the packages on the way to them, whose __init__ runs too."""
    for name in names:
        parts = name.split(".")
        if parts[0] == NAME:
            yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def _without_docstring(owner: ast.AST, body: object) -> object:
    documented = isinstance(
        owner, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    )
    if documented and isinstance(body, list) and body and isinstance(body[0], ast.Expr):
        value = body[0].value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return body[1:]
    return body
