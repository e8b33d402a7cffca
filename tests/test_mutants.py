"""The table of planted bugs still fits the code. Planting them, one by one: tests/mutation."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from mutation.mutants import MUTANTS, Mutant
from mutation.planting import planted

ROOT = Path(__file__).parents[1]


@cache
def source(file: Path) -> tuple[str, str]:
    """A module as it is written, and as its tree is."""
    text = (ROOT / "src" / file).read_text("utf-8")
    return text, ast.unparse(ast.parse(text))


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_is_one_edit_of_the_code_as_it_stands(mutant: Mutant) -> None:
    text, unedited = source(mutant.path)
    # refuses what does not stand there just once
    assert planted(text, mutant.at, mutant.old, mutant.new) != unedited
    assert mutant.tests
    assert all((ROOT / "tests" / test.partition("::")[0]).exists() for test in mutant.tests)


def test_mutants_have_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
