"""Names say what they stand for: no bare participle names a module, a function or a variable."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
BANNED = {
    *("asked", "due", "found", "given", "held", "kept", "made", "named", "others", "own"),
    *("settled", "shown", "told"),
}
"""Each stood for three things at least, and a reader had to look up which."""

FIELDS = {"kept", "made", "named", "others"}
"""Fields of documents that others read, and of what queries hang on."""


def names(path: Path) -> Iterator[tuple[str, int]]:
    """What a module defines: itself, its functions, their parameters, and all that is bound."""
    yield path.stem, 1
    nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
    fields = {
        id(field.target)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and ast.unparse(field.target) in FIELDS
    }
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in fields:
                yield name, node.lineno


def test_no_name_is_a_bare_participle() -> None:
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("workflow/scripts/*.py")]
    assert len(files) > 200
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files
        for name, line in names(path)
        if name.strip("_").lower() in BANNED
    ]
    assert not wrong
