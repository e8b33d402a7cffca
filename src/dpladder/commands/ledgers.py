"""`dpladder ledger` and `dpladder verify`: what was spent, and whether it is as it was written.

These commands read home and change nothing. Entries tell of mechanisms and prices, never of
records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpladder.commands.output import report
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.accounting.rounding import round_up, round_up_short
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.limits import lifetime_cost
from dpladder.privacy.ledger.state import Anchor, State
from dpladder.privacy.statement.check import (
    REPORT,
    anchors_in,
    check,
    key_of_seal,
    lacks_report,
    parse_statement,
    read_statement,
    unchecked_files,
)
from dpladder.wording import printable

NO_LEDGER = "nothing was ever spent, or DPLADDER_HOME names another place: no ledger in"


def show(as_json: bool, by: str | None) -> None:
    """Print every lineage: its entries, or what each user asked for.

    Args:
        as_json: for programs: `documents` as it is.
        by: `user` prints what each member of a group asked for; None prints entries.
    """
    lineages = documents()
    print(json.dumps(lineages, indent=2) if as_json else table(lineages, by == "user"))


def documents() -> dict[str, dict[str, Any]]:
    """Every lineage of this home, with what each of its entries costs.

    `epsilon` of a lineage composes all that is spent or reserved. That of an entry or a user is
    what it would cost alone, so these do not add up to the lineage's.

    Returns:
        By lineage, plain JSON values. A lineage that was never opened is left out.
    """
    home = open_home(create=False)
    lineages = {
        name: _lineage_as_json(ledgers.load(Ledger(home, name))) for name in ledgers.lineages(home)
    }
    return {name: lineage for name, lineage in lineages.items() if lineage is not None}


def _lineage_as_json(state: State) -> dict[str, Any] | None:
    """A lineage for the reader; None where its first entry was never written."""
    terms = state.terms
    if terms is None:
        return None
    return {
        "epsilon": lifetime_cost(terms, state.charged_spends()).epsilon,
        "delta": terms.delta,
        "relation": terms.relation,
        "lifetime_epsilon": terms.lifetime_epsilon,
        "items": [
            {
                "job": str(h.job),
                "state": h.status,
                "epsilon": compose(h.spends, terms.delta).epsilon,
                "user": h.by,
            }
            for h in state.charges.values()
        ],
        "users": {
            name: lifetime_cost(terms, ledgers.spends_of(state, name)).epsilon
            for name in sorted({h.by for h in state.charges.values()})
        },
    }


def table(lineages: Mapping[str, Mapping[str, Any]], by_user: bool) -> str:
    """Ledgers as text: a line for each lineage, and below it a line for each entry, or for each
    user. Every epsilon is rounded up."""
    if not lineages:
        return f"{NO_LEDGER} {open_home(create=False).path}"
    return "\n".join(line for name in lineages for line in _lines(name, lineages[name], by_user))


def _lines(name: str, lineage: Mapping[str, Any], by_user: bool) -> Iterator[str]:
    limit = lineage["lifetime_epsilon"]
    cost = lineage["epsilon"]
    spent = f"epsilon = {round_up(cost)} spent or reserved" if cost else "nothing spent or reserved"
    yield (
        f"lineage {name}: {spent} at delta = {round_up_short(lineage['delta'])}, "
        + (
            f"lifetime limit {round_up_short(limit)}"
            if limit is not None
            else "no lifetime limit declared"
        )
    )
    if by_user:
        for user, epsilon in lineage["users"].items():
            yield f"  {user:<24} epsilon by itself {round_up(epsilon)}"
        return
    for item in lineage["items"]:
        yield (
            f"  {item['state']:<10} {item['job']:<48} epsilon by itself {round_up(item['epsilon'])}"
        )


def verify(results: Sequence[Path]) -> bool:
    """Print what is wrong with the ledgers of this home.

    Each entry's chain and seal are checked. Results of runs say how far a ledger had come, which
    shows one that was put back in time.

    Args:
        results: results folders of finished runs; none checks the ledgers by themselves.

    Returns:
        Whether nothing is wrong.

    Raises:
        BadInput: a folder holds no statement.
    """
    home = open_home(create=False)
    anchors = [anchor for folder in results for anchor in _anchors(folder)]
    names = dict.fromkeys(ledgers.lineages(home))
    problems = [
        f"lineage {name}: {problem}"
        for name in names
        for problem in dict.fromkeys(ledgers.verify(Ledger(home, name), anchors))
    ]
    problems += [
        f"lineage {name}: {home.path} has no ledger of it. Set DPLADDER_HOME to the home that made "
        "these results, or compare them with their records alone: dpladder verify"
        for name in dict.fromkeys(anchor.lineage for anchor in anchors)
        if name not in names
    ]
    fine = "every entry is as it was written in the ledgers of" if names else NO_LEDGER
    return report(problems, f"{fine} {', '.join(names) or home.path}")


def _anchors(results: Path) -> list[Anchor]:
    """Where the ledgers stood by these results. A folder that says nothing of that is refused."""
    anchors = anchors_in(results)
    if not anchors:
        read_statement(results)  # which says what is missing
    return anchors


def verify_statement(results: Path) -> bool:
    """Print what a finished run's statement gets wrong.

    With a ledger of one of its lineages in home, the seal and the ledger are checked too. Elsewhere
    the statement is compared with records and files alone (contract: signed-bytes).

    Args:
        results: a results folder.

    Returns:
        Whether it is right.

    Raises:
        BadInput: the folder holds no statement, or one that cannot be read.
    """
    statement = read_statement(results)
    stated = parse_statement(statement)
    home = open_home(create=False)
    known, anchors = set(ledgers.lineages(home)), anchors_in(results)
    problems = check(statement, results, key_of_seal(results))
    for lineage in dict.fromkeys(anchor.lineage for anchor in anchors):
        if lineage in known:
            problems += [
                f"ledger of {lineage}: {p}" for p in ledgers.verify(Ledger(home, lineage), anchors)
            ]
        else:
            print(
                f"lineage {printable(lineage)} has no ledger in {home.path}: checked against the "
                "records alone"
            )
    for path in unchecked_files(stated, results):
        print(f"{printable(path)}: not checked, for nothing vouches for it")
    if lacks_report(stated.files, results):
        print(
            f"{results / REPORT} is not there: no report, summary, table or figure was checked; "
            "dpladder run makes them again, free"
        )
    totals = [
        f"{lineage} epsilon = {round_up(dataset.lifetime_spent)} at delta = "
        f"{round_up_short(dataset.delta)}"
        for lineage, dataset in stated.datasets.items()
    ]
    return report(problems, f"the statement follows from the records: {'; '.join(totals)}")
