"""Digests of the code that a rule's output depends on. Snakemake does not see changes in an imported package.

A digest covers the transitive imports inside dpladder, read as syntax trees: comments, docstrings and formatting do
not count. Modules that cannot change what a mechanism computes are INERT and left out; a test holds them so.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
NAME = PACKAGE.name

INERT = frozenset(
    {
        "dpladder",
        "dpladder.code",
        "dpladder.config",
        "dpladder.config.check",
        "dpladder.config.load",
        "dpladder.config.model",
        "dpladder.config.wording",
        "dpladder.errors",
        "dpladder.job",
        "dpladder.privacy",
        "dpladder.privacy.home",
        "dpladder.privacy.journal",
        "dpladder.privacy.ledger",
        "dpladder.privacy.statement",
        "dpladder.privacy.store",
        "dpladder.privacy.units",
        "dpladder.rules",
        "dpladder.rules.places",
        "dpladder.rules.record",
        "dpladder.stages",
    }
)
"""They move bytes, parse config (whose values are part of every query) or stop with an error; none computes a release."""


def digest_of(*entries: str) -> str:
    """Digest of the modules or script files `entries` and of all that they import from dpladder."""
    modules = {name: path for entry in entries for name, path in _closure(entry).items()}
    lines = sorted(
        f"{Path(name).name if name.endswith('.py') else name} {_fingerprint(name)}" for name in modules
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _closure(entry: str) -> dict[str, Path]:
    """Every counted module that `entry` reaches, each once, and `entry` itself."""
    found: dict[str, Path] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        path = _path(name)
        if name in found or path is None or (name in INERT and name != entry):
            continue
        found[name] = path
        waiting.extend(_imports(name))
    return found


@cache
def _tree(name: str) -> ast.Module:
    path = _path(name)
    assert path is not None
    return ast.parse(path.read_bytes(), filename=str(path))


@cache
def _imports(name: str) -> tuple[str, ...]:
    """What a module imports from dpladder, lazily or not, and the packages on the way, whose __init__ runs too."""
    names: list[str] = []
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    inside = [item for item in names if item.split(".")[0] == NAME]
    return tuple(
        ".".join(item.split(".")[:length]) for item in inside for length in range(1, item.count(".") + 2)
    )


def _path(name: str) -> Path | None:
    """The file of a dotted module of dpladder, or of a script given as a path."""
    if name.endswith(".py"):
        return Path(name)
    base = PACKAGE.joinpath(*name.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def _fingerprint(name: str) -> str:
    hasher = hashlib.sha256()
    for token in _dump(_tree(name)):
        hasher.update(token.encode() + b"\0")
    return hasher.hexdigest()


def _dump(node: object) -> Iterator[str]:
    """The tree's content without positions, docstrings and empty fields. ast.dump differs between Python versions."""
    if isinstance(node, ast.AST):
        yield type(node).__name__
        for field, value in ast.iter_fields(node):
            if field in ("type_comment", "kind") or value is None or value == []:
                continue
            yield field
            yield from _dump(_without_docstring(node, value) if field == "body" else value)
        yield ")"
    elif isinstance(node, list):
        for item in node:
            yield from _dump(item)
    else:
        yield f"{type(node).__name__}:{node!r}"


def _without_docstring(owner: ast.AST, body: object) -> object:
    documented = isinstance(owner, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    if documented and isinstance(body, list) and body and isinstance(body[0], ast.Expr):
        value = body[0].value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return body[1:]
    return body
