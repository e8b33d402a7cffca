"""Small bugs, generated from a module's source: each is one edit of a function or a constant."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil"}
UNWRAPPED = {"sqrt", "abs", "sorted", "fsum"}


@dataclass(frozen=True)
class Bug:
    """One edit: the lines of its statement, both texts, and the module with it."""

    lines: range
    old: str
    new: str
    tree: ast.Module


def bugs(source: str) -> Iterator[Bug]:
    """All bugs of a module, in the order of its lines."""
    tree = ast.parse(source)
    for holder, field, place, node, lines in list(_nodes(tree, range(0))):
        for instead in _edits(node):
            value = getattr(holder, field)
            new = instead if place is None else [*value[:place], instead, *value[place + 1 :]]
            setattr(holder, field, new)
            edited = copy.deepcopy(tree)
            setattr(holder, field, value)
            after = "nothing" if isinstance(instead, ast.Pass) else ast.unparse(instead)
            yield Bug(lines, ast.unparse(node), after, ast.fix_missing_locations(edited))


Node = tuple[ast.AST, str, int | None, ast.AST, range]


def _nodes(holder: ast.AST, lines: range) -> Iterator[Node]:
    """What runs when a function is called, and a module's constants."""
    skipped = {"annotation", "returns", "decorator_list", "exc", "msg"}
    kinds: tuple[type, ...] = (ast.expr, ast.stmt, ast.comprehension)
    if isinstance(holder, ast.Module | ast.ClassDef):
        kinds = (ast.FunctionDef, ast.ClassDef)
    if isinstance(holder, ast.Module):
        kinds = (*kinds, ast.Assign)
    for field, value in ast.iter_fields(holder):
        if field in skipped:
            continue
        for place, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, kinds):
                if isinstance(node, ast.stmt):
                    body = getattr(node, "body", None)
                    end = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
                    lines = range(node.lineno, end + 1)
                yield holder, field, place, node, lines
                yield from _nodes(node, lines)


def _edits(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            yield _with(node, ops=[COMPARISONS[type(operator)]()])
        case ast.BinOp(op=operator) if type(operator) in ARITHMETIC and not _text(node):
            yield _with(node, op=ARITHMETIC[type(operator)]())
        case ast.BoolOp(values=values):
            for place in range(len(values)):
                rest = values[:place] + values[place + 1 :]
                yield _with(node, values=rest) if len(rest) > 1 else rest[0]
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(value * 1.1 if value else 0.1)
        case ast.Call(func=function, args=[first, *_]):
            name = getattr(function, "id", None) or getattr(function, "attr", "")
            if name in CALLS:
                field = "id" if isinstance(function, ast.Name) else "attr"
                yield _with(node, func=_with(function, **{field: CALLS[name]}))
            elif name in UNWRAPPED:
                yield first
        case ast.If() | ast.IfExp():
            yield _with(node, test=ast.Constant(False))
            yield _with(node, test=ast.Constant(True))
        case ast.comprehension(ifs=[_, *rest]):
            yield _with(node, ifs=rest)
        case ast.With(body=body):
            yield ast.If(ast.Constant(True), body, [])
        case ast.Expr(value=ast.Constant() | ast.Yield() | ast.YieldFrom()):
            pass
        case ast.Expr() | ast.AugAssign() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()


def _text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed
