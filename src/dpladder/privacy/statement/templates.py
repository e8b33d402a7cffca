"""Words with facts put in: documents whose sentences stand in templates of jinja's.

A template writes facts, chooses by them, and rounds figures by the filters here: stated ones to the
safe side (`up`, `up_short`, `mu`, `cost`), measured ones to the nearest (`nearest`, `percent`).
tests/privacy/statement/test_figures.py refuses any other way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpladder.privacy.accounting.rounding import (
    markdown_cell,
    mu_text,
    percent,
    round_nearest,
    round_up,
    round_up_short,
)
from dpladder.privacy.statement.facts import cost_text

if TYPE_CHECKING:
    from jinja2 import Environment

FILTERS = {
    "cell": markdown_cell,
    "cost": cost_text,
    "mu": mu_text,
    "nearest": round_nearest,
    "percent": percent,
    "up": round_up,
    "up_short": round_up_short,
}


def fill(path: str, facts: Mapping[str, Any]) -> str:
    """A template with its facts. A fact that is missing stops it, and so does a figure that no
    filter rounds: no text goes out with a gap, or with less than the truth.

    Args:
        path: of the template, inside dpladder. In HTML what stands for facts is escaped; other
            documents escape by the filter `cell`.
        facts: by the names that the template has for them.
    """
    return environment(path.endswith(".html.jinja")).get_template(path).render(facts)


def environment(autoescape: bool = False) -> Environment:
    """Jinja as all of dpladder's templates are filled.

    Args:
        autoescape: whether what stands for facts is escaped for HTML.
    """
    # which the start of a workflow does without
    from jinja2 import Environment, PackageLoader, StrictUndefined

    jinja = Environment(
        loader=PackageLoader("dpladder", "."),
        autoescape=autoescape,
        undefined=StrictUndefined,
        finalize=_refuse_unrounded,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters |= FILTERS
    return jinja


def _refuse_unrounded(fact: Any) -> Any:
    """What a template writes, which is no number with digits behind the point."""
    if isinstance(fact, float):
        raise TypeError(f"a template shows {fact}, which no filter has rounded")
    return fact
