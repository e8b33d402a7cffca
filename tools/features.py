"""docs/features.md: everything that dpladder can do, a line each, from what the code says.

`python tools/features.py` writes it; with `--check` it only says whether it is out of step.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import resources
from itertools import chain

import dpladder
from dpladder.cli import COMMANDS
from dpladder.config.docs import write
from dpladder.config.sources import SOURCES
from dpladder.learn.measures.figures import FIGURES
from dpladder.plan.mechanisms import METHODS
from dpladder.plan.pictures import kinds
from dpladder_ledger.mechanisms import KNOWN as MECHANISMS

PAGE = "docs/features.md"
PROGRAMS = {
    "PrivateClassifier": "train and predict with scikit-learn's conventions ([api.md](api.md))",
    "PrivateRegressor": "train on numbers and predict them, in the same way ([api.md](api.md))",
    "Ledger": f"book what other DP code spends, dp_accounting's events among it ({MECHANISMS}); "
    "release noised counts, histograms by levels, sums, quantiles ([ledger.md](ledger.md))",
    "load": "a released model, to predict with ([models.md](models.md))",
}


def page() -> str:
    """The page in Markdown: each command, name, source, method, figure and picture once."""
    return "\n".join(["# Everything it can do", "", *_lines()])


def _lines() -> Iterator[str]:
    yield "A line each, generated from the code by `make docs`."
    yield "[config/README.md](../config/README.md) and `dpladder keys WORD` say what each key does."
    yield from ("", "## Commands", "")
    for name, command in COMMANDS.items():
        yield f"- `dpladder {name}`: {command.help}"
    yield from ("", "## In Python", "")
    for name in dpladder.__all__:
        yield f"- `dpladder.{name}`: {PROGRAMS[name]}"
    names = (
        name + (f":{source.after}" if source.after else "") for name, source in SOURCES.items()
    )
    yield from ("", "## Sources", "")
    yield f"`dataset.source` reads {', '.join(f'`{name}`' for name in names)} ([data.md](data.md))."
    yield from ("", "## Learners and searches", "")
    yield f"{', '.join(f'`{name}`' for name in METHODS)}: [learners](learners.md),"
    yield "[searches](searches.md), [those of papers](papers.md)."
    yield from ("", "## What a test tells", "")
    yield "`evaluate.measures` buys counts, of which these follow ([evaluation.md](evaluation.md)):"
    yield f"{', '.join(figure.heading for figure in FIGURES)}."
    yield from ("", "## Figures and tables of the report", "")
    # others have no caption, or another's
    captions = {kind.name: kind.package for kind in chain(*kinds()) if kind.chapter}
    for name, package in captions.items():
        caption = resources.files(package) / "captions" / f"{name}.rst"
        title = caption.read_text("utf-8").split("**")[1]
        yield f"- `{name}`: {title.rstrip('.')}"
    yield ""


if __name__ == "__main__":
    raise SystemExit(write({PAGE: page()}, sys.argv[1:]))
