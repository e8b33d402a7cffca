"""Papernot & Steinke 2022, Algorithm 1: by the law that the section names."""

from __future__ import annotations

from dpladder.search.secret_runs import RandomRuns as Searcher

__all__ = ["Searcher"]
