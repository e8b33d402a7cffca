"""The table of planted bugs still fits the code. Planting them, one by one: tests/mutation."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutation.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_is_one_edit_of_the_code_as_it_stands(mutant: Mutant) -> None:
    text = (ROOT / "src/dpladder" / mutant.file).read_text("utf-8")
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old
    compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
    assert all((ROOT / "tests" / test.partition("::")[0]).exists() for test in mutant.tests)


def test_mutants_have_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
