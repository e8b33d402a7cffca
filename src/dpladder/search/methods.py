"""The searches, by the names that the config uses: each one's module holds its `Searcher`. What
they spend of a total stands in cost.py, without numpy."""

from __future__ import annotations

from importlib import import_module

from dpladder.config.search_sections import PrivateSearch, runner_of
from dpladder.search.asking import Searcher


def searcher_of(section: PrivateSearch) -> Searcher:
    """The search that a section of the config describes."""
    found: Searcher = import_module(runner_of(section.name)).Searcher(section)
    return found
