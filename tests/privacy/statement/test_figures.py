"""Stated figures are rounded to the safe side, by one function, wherever they are shown."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, nodes

from dpladder.privacy.accounting.rounding import mu_up, round_down, round_up, round_up_short
from dpladder.privacy.ledger.state import State, Terms
from dpladder.privacy.statement.facts import closing_line
from dpladder.privacy.statement.templates import FILTERS, environment

SRC = Path(__file__).parents[3] / "src/dpladder"


def modules_of(folder: str) -> list[Path]:
    found = sorted((SRC / folder).glob("*.py"))
    assert found, f"{folder} is somewhere else now"
    return found


# Modules whose every number is a stated figure, or stands beside one.
STATED = (
    *modules_of("privacy/statement"),
    *modules_of("../dpladder_ledger"),
    SRC / "use/card.py",
    SRC / "commands/ledgers.py",
    SRC / "commands/mlflow.py",
    SRC / "privacy/ledger/limits.py",
)
# Modules that write other numbers as well: there a stated figure is known by its name.
MIXED = (*modules_of("report"), *modules_of("commands"), SRC / "plan/table.py")
FIGURE = re.compile(r"epsilon|delta|\bmu\b|limit|lifetime|\btarget\b(?!\.)|\btotal\b")
NUMERIC = re.compile(r"[eEfFgGn%]$")
TEMPLATE = re.compile(r"\{[^{}]*:[^{}]*[eEfFgGn%]\}")  # for str.format
MEASURED = {"percent", "round_nearest", "short_number"}  # they say that a figure was measured
ROUNDING = {"format", "round", *MEASURED}


def roundings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a number is turned into text other than by `round_up` and its like: the line and what
    is written."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            spec = "".join(
                part.value
                for part in ast.walk(node.format_spec)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
            if NUMERIC.search(spec):
                yield node.lineno, ast.unparse(node.value)
        elif isinstance(node, ast.Constant) and TEMPLATE.search(str(node.value)):
            yield node.lineno, ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ROUNDING:
                yield node.lineno, ", ".join(map(ast.unparse, node.args))
        elif (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mod)
            and isinstance(node.left, ast.Constant)
            and isinstance(node.left.value, str)
        ):
            yield node.lineno, ast.unparse(node.right)


def wrong(path: Path) -> list[str]:
    tree = ast.parse(path.read_text("utf-8"))
    by_name = path not in STATED
    return [
        f"{path.relative_to(SRC)}:{line}: {what}"
        for line, what in roundings(tree)
        if FIGURE.search(what) or (not by_name and not _is_measured(tree, line))
    ]


def _is_measured(tree: ast.AST, line: int) -> bool:
    """Whether a line rounds by a function that says that a figure was measured."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in MEASURED
        and node.lineno == line
        for node in ast.walk(tree)
    )


def test_what_no_figure_bounds_is_infinite() -> None:
    assert (round_up(math.inf), mu_up(math.inf), round_up_short(math.inf)) == ("inf", "inf", "inf")


@pytest.mark.parametrize("path", sorted({*STATED, *MIXED}), ids=lambda path: path.stem)
def test_no_stated_figure_is_written_but_by_the_one_function(path: Path) -> None:
    assert not wrong(path)


TEMPLATES = (*(SRC / "privacy/statement/texts").glob("*.*"), SRC / "use/card.md.jinja")
CHOOSES = (nodes.If, nodes.For, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.Test)
WRITES = (nodes.Output, nodes.TemplateData, nodes.Name, nodes.Getattr, nodes.Const, nodes.Tuple)
LOGIC = (nodes.And, nodes.Or, nodes.Not)
NEAREST = {"nearest", "percent"}
"""Filters that may show less than there is, so they are for measured figures alone."""


def computed(template: str) -> list[str]:
    """What a template does besides writing facts, choosing by them, and rounding them safely."""
    tree = Environment(autoescape=False).parse(template)
    allowed = (*CHOOSES, *WRITES, *LOGIC)
    return [
        type(one).__name__
        for one in tree.find_all(nodes.Node)
        if not isinstance(one, allowed) and not (isinstance(one, nodes.Filter) and _is_safe(one))
    ]


def _is_safe(one: nodes.Filter) -> bool:
    """Whether a filter is one of the house's, and shows no stated figure to the nearest."""
    names = [str(node.name) for node in one.find_all(nodes.Name)]
    names += [node.attr for node in one.find_all(nodes.Getattr)]
    return one.name in {*FILTERS, "items"} - (NEAREST if FIGURE.search(" ".join(names)) else set())


@pytest.mark.parametrize("path", sorted(TEMPLATES), ids=lambda path: path.name)
def test_a_text_names_facts_and_computes_none(path: Path) -> None:
    """A filter, a slice or a sum could state less than the truth."""
    text = path.read_text("utf-8")
    assert text.count("{{") > 5
    assert not computed(text)


def test_every_way_to_compute_in_a_text_is_seen() -> None:
    ways = (
        "{{ epsilon | round(1) }}",
        "{{ model.stated.epsilon | percent }}",
        "{{ delta | nearest(2) }}",
        "{{ epsilon | up | truncate(3) }}",
        "{{ epsilon[:3] }}",
        "{{ epsilon - 1 }}",
        '{{ "%.1f" % epsilon }}',
        "{{ epsilon.rstrip('9') }}",
        "{% set epsilon = 1 %}",
        "{% filter round %}{{ epsilon }}{% endfilter %}",
    )
    assert all(map(computed, ways))
    assert not computed("{{ epsilon | up }} {{ search_share | percent }}")


def test_a_figure_that_no_filter_rounds_stops_a_template() -> None:
    """Its digits would be Python's nearest."""
    assert environment().from_string("{{ figure | up }}").render(figure=0.1) == "0.1000"
    with pytest.raises(TypeError, match="no filter has rounded"):
        environment().from_string("{{ figure }}").render(figure=0.1)


def test_every_other_way_to_write_a_figure_is_seen() -> None:
    ways = (
        'f"{delta:g}"',
        'f"{limit:.4f}"',
        'f"{epsilon:>{width}.2e}"',
        'f"{share:.0%}"',
        '"{:g}".format(limit)',
        '"%g" % limit',
        "round(epsilon, 2)",
        'format(mu, ".3f")',
        "short_number(summary.delta)",
        "round_nearest(epsilon)",
    )
    assert all(list(roundings(ast.parse(way))) for way in ways)
    assert not list(roundings(ast.parse('f"{round_up_short(delta)} {name:<9} {count}"')))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"),
        (0.5, "0.5"),
        (1.2345634, "1.23457"),
        (1e-05, "1e-05"),
        (1.2345671e-06, "1.23457e-06"),
        (1.2345600001e-06, "1.23457e-06"),
        (999999.2, "1e+06"),
        (1e9, "1e+09"),
        (0.1 + 0.2, "0.3"),
        (0.0, "0"),
    ],
)
def test_a_limit_is_shown_as_it_was_declared_or_rounded_up(value: float, shown: str) -> None:
    assert round_up_short(value) == shown


@given(st.floats(1e-12, 1e12), st.integers(0, 6))
def test_no_figure_is_below_what_it_is_of(value: float, places: int) -> None:
    """But by far less than its last digit; nor is it a whole digit above."""
    true = Decimal(repr(value))
    for shown, step in (
        (round_up(value, places), Decimal(10) ** -places),
        (round_up_short(value), Decimal(10) ** (true.adjusted() - 5)),
        (mu_up(value), min(Decimal(10) ** (true.adjusted() - 2), Decimal(1))),
    ):
        room = step / 10**9 + true * Decimal(2) ** -51
        assert -room <= Decimal(shown) - true <= step + room
    room = Decimal(10) ** -places / 10**9 + true * Decimal(2) ** -51
    assert Decimal(round_down(value, places)) <= true + room


def test_the_guarantees_own_sentence_never_states_less_than_the_limit() -> None:
    terms = Terms("wards", "add_remove", "record", 1, 1.2345634e-06, "sha256:0", 1.2345634)
    line = closing_line(terms, State())
    assert "epsilon = 1.23457 for each" in line
    assert "(1.23457, 1.23457e-06)-differentially private" in line
