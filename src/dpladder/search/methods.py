"""The searches, by the names that the config uses, which are those of their rooms.

A room holds `price.py` (what the search spends of a total, without numpy) and `run.py` (its
`Searcher`).
"""

from __future__ import annotations

from importlib import import_module

from dpladder.config.search_sections import PrivateSearch
from dpladder.search.asking import Searcher


def searcher_of(section: PrivateSearch) -> Searcher:
    """The search that a section of the config describes."""
    found: Searcher = import_module(f"dpladder.search.{section.name}.run").Searcher(section)
    return found
