"""Each thing that a config can name is in the page of its kind. (Learners:
tests/learn/test_interface.py.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from dpladder.config.learner_sections import names
from dpladder.config.search_sections import SEARCHES
from dpladder.config.sources import FORMS, SOURCES

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(("name", "form"), zip(SOURCES, FORMS, strict=True))
def test_a_source_is_in_the_page_of_data(name: str, form: str) -> None:
    page = (DOCS / "data.md").read_text("utf-8")
    assert f"`{form}`" in page or f"`{name}`" in page


@pytest.mark.parametrize("name", [name for section in SEARCHES for name in names(section)])
def test_a_search_is_in_the_page_of_searches(name: str) -> None:
    assert f"`{name}`" in (DOCS / "searches.md").read_text("utf-8")
