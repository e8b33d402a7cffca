"""Mechanisms by their names: what a private job is known by, in place of its code.

A mechanism is a rule, a learner, a search or what guides a descent. What it released is kept,
restored and built upon, whatever code made it. So code may be renamed, moved and made faster, and
nobody pays twice. tests/golden says when what a mechanism computes, draws or charges changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpladder.config import learners, searches
from dpladder.config.method import Method

METHODS: Mapping[str, Method] = {**learners.METHODS, **searches.METHODS}
BROUGHT = {name: method for name, method in METHODS.items() if not method.built_in}
"""Those of other packages."""
AUTHORS_WORD = (
    "its noise is held to what it declares, and a learner's sums are made and kept within their "
    "bounds by dpladder; that it reaches for nothing else, that a search looks at no more than it "
    "declares, and how far a unit moves what a search adds noise to, is its authors' word"
)

GUIDE = "public_gradient"
