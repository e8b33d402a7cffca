"""The statement as one page, in words: what a privacy officer reads and signs.

It follows from the statement's JSON byte for byte: no clock, no ledger and no config is read here.
So `dpladder verify` can hold the one against the other (contract: signed-bytes).
"""

from __future__ import annotations

from dpladder.privacy.accounting.rounding import markdown_cell, round_up_short
from dpladder.privacy.ledger.book import OWN_CODE
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import (
    FALSE_ALARMS_PERCENT,
    lineage_facts,
    modified_code_warning,
)
from dpladder.privacy.statement.templates import fill

RELEASED_NUMBERS = 1_000_000  # released numbers that float64's slack is told for
DEPLOYED = ("name", "curators", "authors", "use", "data", "region", "access")  # shown in this order


def page(statement: SealedStatement) -> str:
    """One page that a privacy officer can sign: what is guaranteed, in plain words, and then the
    figures behind it. Its words stand in texts/page.md.jinja.

    Args:
        statement: sealed, for the page names its id and its seal. The same statement gives the same
            bytes.
    """
    deployment, stated = statement.deployment or {}, statement.datasets.values()
    selected = {
        line.label
        for dataset in stated
        for line in dataset.spends
        if line.spend["event"]["type"] in ("RepeatAndSelect", "SubsetSelect")
    }
    said = {key: deployment[key] for key in DEPLOYED if key in deployment}
    facts = {
        "statement": statement,
        "lineages": lineage_facts(statement),
        "release": statement.mode == "release",
        "workflow": bool(statement.config),  # mechanisms outside the workflow have no config
        "false_alarms": FALSE_ALARMS_PERCENT,
        "units": " or ".join(dict.fromkeys(one.unit for one in stated)),
        "deltas": " or ".join(dict.fromkeys(round_up_short(one.delta) for one in stated)),
        "deployment": {
            key: markdown_cell(words if isinstance(words, str) else ", ".join(words))
            for key, words in said.items()
        },
        "slack": rounding_text(),
        "selects": bool(selected),
        "padded": selected <= {"search"},
        "own_code": OWN_CODE,
        "code_warnings": [*modified_code_warning(statement)],
    }
    return fill("privacy/statement/texts/page.md.jinja", facts)


def rounding_text() -> str:
    """What float64 adds to ideal noise for RELEASED_NUMBERS numbers, rounded up (grid.py)."""
    # numpy, which the start of a workflow does without
    from dpladder.privacy.release.grid import slack

    epsilon, delta = slack(RELEASED_NUMBERS)
    return (
        f"{round_up_short(epsilon, 2)} in epsilon and {round_up_short(delta, 2)} in delta for each "
        "million released numbers"
    )
