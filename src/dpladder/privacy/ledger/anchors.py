"""Anchors: results remember how far their ledgers were.

A home can be put back in time, by a backup or a journal cut short, and another home can take its
place. Either would answer anew what was answered before, and charge it once. So each run keeps
beside its results where the ledgers stood. That file is no rule's: a statement is deleted before it
is composed again, and some composing fails.

Beside each anchor stands which entry of the ledger says what the last run in this folder planned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from dpladder import formats
from dpladder.errors import BadInput, Refused
from dpladder.formats import FORMATS
from dpladder.privacy.ledger.book import Ledger, load, lost, was_truncated
from dpladder.privacy.ledger.home import Home, replace
from dpladder.privacy.ledger.journal import unwritable_error
from dpladder.privacy.ledger.state import Anchor, State
from dpladder.public_files import read_json

FILE = "ledger.json"
NO_STATES: Mapping[str, State] = {}


def read(results: Path) -> list[Anchor]:
    """The anchors that runs kept beside their results. Read them before the ledgers, which only
    grow.

    Raises:
        BadInput: they cannot be read.
        Newer: a later dpladder wrote them.
    """
    return [anchor for anchor, _ in _read(results).values()]


def last_plans(results: Path) -> dict[str, int]:
    """By lineage, the entry that says what the last run in this folder planned; 0 for none."""
    return {lineage: entry for lineage, (_, entry) in _read(results).items()}


def _read(results: Path) -> dict[str, tuple[Anchor, int]]:
    path = results / FILE
    try:
        document = read_json(path)
        for at in document.values():
            formats.check("results", path.parent, at.get(formats.KEY))
        return {
            lineage: (Anchor(lineage, int(at["seq"]), str(at["sha256"])), int(at["plan"]))
            for lineage, at in document.items()
        }
    except FileNotFoundError:
        return {}
    except (ValueError, LookupError, TypeError, AttributeError):
        raise BadInput(
            f"{path} cannot be read: it says how far the ledger was when these results were made. "
            "Restore it; without it a home put back in time would go unnoticed."
        ) from None


def save_anchors(
    results: Path, anchors: Iterable[Anchor], plans: Mapping[str, int] = MappingProxyType({})
) -> None:
    """Remember where these ledgers stand. Of two jobs at once the later one may be forgotten until
    the next.

    Args:
        results: the public folder.
        anchors: one for each lineage; an older one than is known is left out.
        plans: by lineage the entry that says what this run planned; else that of before stays.
    """
    known = _read(results)
    plans = {lineage: entry for lineage, (_, entry) in known.items()} | dict(plans)
    by_lineage = {lineage: anchor for lineage, (anchor, _) in known.items()}
    for anchor in anchors:
        if anchor.lineage not in by_lineage or by_lineage[anchor.lineage].seq < anchor.seq:
            by_lineage[anchor.lineage] = anchor
    header = {formats.KEY: FORMATS["results"]}
    document = {
        lineage: {"seq": a.seq, "sha256": a.sha256, "plan": plans.get(lineage, 0), **header}
        for lineage, a in sorted(by_lineage.items())
    }
    try:
        results.mkdir(parents=True, exist_ok=True)
        replace(results / FILE, (json.dumps(document, indent=2) + "\n").encode(), mode=0o666)
    except OSError as error:
        raise unwritable_error(results, error) from None


def check(home: Home, anchors: Iterable[Anchor], states: Mapping[str, State] = NO_STATES) -> None:
    """Refuse a home whose ledgers are not, or no longer, those that some results were made under.

    Args:
        home: that a run would charge.
        anchors: where the ledgers stood when results were made.
        states: of ledgers that were read already, by lineage.

    Raises:
        Refused: a ledger lacks what an anchor saw in it. Nothing was spent.
    """
    for anchor in anchors:
        ledger = Ledger(home, anchor.lineage)
        state = states.get(anchor.lineage) or load(ledger)
        if was_truncated(state.chain, anchor):
            raise Refused(
                f"lineage {anchor.lineage}: {lost(state.chain, anchor)}. Nothing was spent. "
                f"Restore {ledger.folder / f'{anchor.seq:08d}.json'} from a backup of "
                "DPLADDER_HOME, that file alone: the others are whole. Without a backup the count "
                "of what was spent is lost: keep the results, and run no more on this lineage."
            )
        if problem := lost(state.chain, anchor):
            raise Refused(
                f"lineage {anchor.lineage}: "
                f"{problem if ledger.folder.is_dir() else f'no ledger in {home.path}'}. The "
                "results in this folder were made under another home, or a later state of this "
                "one, which would charge and answer anew what was answered before. Nothing was "
                "spent. Set DPLADDER_HOME to the home that made them, as it was last, and on a "
                "cluster see that it is mounted on this node; other data needs a working directory "
                "of its own. If that home is lost, so is the count of what was spent: keep the "
                "results, and run no more on this lineage."
            )
