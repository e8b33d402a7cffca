"""Liu & Talwar 2019: after each run a coin says whether to stop, which makes a geometric number of
them."""

from __future__ import annotations

from dpladder.search.secret_runs import RandomRuns as Searcher

__all__ = ["Searcher"]
