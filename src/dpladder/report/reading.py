"""What figures and tables read off a summary, and how they write its values. Without the libraries
that draw: a job pays for each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]


def counted(summary: Document, otherwise: str) -> str:
    """What a share of the records' counts is, in words: of a language model, whose records count by
    their losses."""
    tests = [target["test"] or {} for target in summary["targets"]]
    return (
        "1 − loss / log of all words"
        if any(test.get("perplexity") for test in tests)
        else otherwise
    )


def plain(value: float, _: object = None) -> str:
    """Three digits, as people write them: 1,000 and 1e-5."""
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def percent(value: float, _: object = None) -> str:
    return f"{value:.1%}"


def r_label(summary: Document) -> str:
    """What the ladder's r stands for."""
    return (
        "1/λ, r of the ladder" if summary.get("searches") == "ridge" else "total step size r = η·T"
    )


def share(trial: Document) -> float:
    """A trial's score as a share of the nominal number of records it was counted on; noise may
    leave [0, 1]."""
    return float(trial["score"] / trial["counted"])


def noised(summary: Document) -> bool:
    """Whether noise was paid for to see the trials' scores; scores on public data need none."""
    return any(trial["score_sd"] > 0 for rung in summary["rungs"] for trial in rung["trials"])


def open_target(summary: Document) -> list[Document]:
    """A research run's training without noise, as the final models are told."""
    found = summary.get("open")
    if found is None:
        return []
    empty = dict.fromkeys(("kappa_star", "steps", "sigma", "search_share"))
    tests = summary["targets"][0]["also"]  # other lineages measure none that has no noise
    also = [
        one | {"test": found["also"][one["name"]]} for one in tests if one["name"] in found["also"]
    ]
    infinite = {"target_epsilon": math.inf, "epsilon": math.inf}
    return [empty | infinite | {"r_star": found["r"], "test": found["test"], "also": also}]
