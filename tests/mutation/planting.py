"""An edit of a function's tree, which formatting and moves within its file leave alone."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator


def planted(source: str, at: str, old: str, new: str) -> str:
    """A module with one edit.

    Args:
        source: The module.
        at: The function or class that is edited, by its dotted name; empty for the module itself.
        old: One expression, or statements that follow each other. They must stand there exactly
            once.
        new: What takes their place; nothing removes statements.
    """
    tree = ast.parse(source)
    room = _room(tree, at)
    before, after = ast.parse(old).body, ast.parse(new or "pass").body
    edits = [*_in_expressions(room, before, after), *_in_statements(room, before, after)]
    if len(edits) != 1:
        raise LookupError(f"{old!r} stands {len(edits)} times in {at or 'the module'}, not once")
    holder, name, value = edits[0]
    setattr(holder, name, value)
    return ast.unparse(ast.fix_missing_locations(tree))


Edit = tuple[ast.AST, str, object]


def _room(tree: ast.Module, at: str) -> ast.AST:
    found: ast.AST = tree
    for name in filter(None, at.split(".")):
        inside = [node for node in ast.walk(found) if getattr(node, "name", None) == name]
        if not inside:
            raise LookupError(f"{at} is not there")
        found = inside[0]
    return found


def _in_expressions(room: ast.AST, before: list[ast.stmt], after: list[ast.stmt]) -> Iterator[Edit]:
    if [type(one) for one in (*before, *after)] != [ast.Expr, ast.Expr]:
        return
    wanted, instead = (one.value for one in (*before, *after) if isinstance(one, ast.Expr))
    for holder, name, value in _fields(room):
        if isinstance(value, list):
            for place, item in enumerate(value):
                if _same(item, wanted):
                    yield (
                        holder,
                        name,
                        [*value[:place], copy.deepcopy(instead), *value[place + 1 :]],
                    )
        elif _same(value, wanted):
            yield holder, name, copy.deepcopy(instead)


def _in_statements(room: ast.AST, before: list[ast.stmt], after: list[ast.stmt]) -> Iterator[Edit]:
    if len(before) == len(after) == 1 and all(
        isinstance(one, ast.Expr) for one in (*before, *after)
    ):
        return
    for holder, name, value in _fields(room):
        if isinstance(value, list):
            for place in range(len(value) - len(before) + 1):
                there = value[place : place + len(before)]
                if all(map(_same, there, before)):
                    yield holder, name, [*value[:place], *after, *value[place + len(before) :]]


def _fields(room: ast.AST) -> Iterator[Edit]:
    for holder in ast.walk(room):
        for name, value in ast.iter_fields(holder):
            yield holder, name, value


def _same(one: object, other: ast.AST) -> bool:
    return (
        type(one) is type(other) and isinstance(one, ast.AST) and ast.dump(one) == ast.dump(other)
    )
