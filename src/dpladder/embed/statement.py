"""The statement of mechanisms of one's own: the same page and document that a run of the workflow
ends with."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpladder.config.section import restored
from dpladder.errors import Refused
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import OWN, Ledger
from dpladder.privacy.ledger.home import replace, subkey
from dpladder.privacy.ledger.journal import unwritable
from dpladder.privacy.ledger.state import Held, State
from dpladder.privacy.statement.build import build_own, seal
from dpladder.privacy.statement.check import stated_anchors
from dpladder.privacy.statement.documents import Origin, SealedStatement
from dpladder.privacy.statement.page import page
from dpladder.privacy.statement.records import file_digest, record_of

PACKAGES = ("dpladder", "dp-accounting")
RECORDS = "own"


def write_statement(ledger: Ledger, results: Path) -> str:
    """Write each spend's record, privacy.json and privacy.md into `results`; return the page."""
    state = book.load(ledger)
    _check_folder(ledger, results)
    try:
        paths = _records(state, results / RECORDS)
        (results / RECORDS).mkdir(parents=True, exist_ok=True)
        records = {
            path: record_of(held.job.rule, {}, held.spends, held.question)
            for path, held in paths.items()
        }
        for path, held in paths.items():
            _write(path, records[path] | {"released": held.output})
        statement = build_own(
            state,
            [*records.values()],
            {str(path.relative_to(results.parent)): file_digest(path) for path in paths},
            book.head(ledger),
            Origin(
                datetime.now(UTC).date().isoformat(),
                None,
                {name: version(name) for name in PACKAGES},
            ),
        )
        sealed = seal(dataclasses.asdict(statement), subkey(ledger.home, "ledger"))
        _write(results / "privacy.json", sealed)
        text = page(restored(SealedStatement, sealed))
        replace(results / "privacy.md", text.encode(), mode=0o666)
    except OSError as error:
        raise unwritable(results, error) from None
    return text


def _records(state: State, folder: Path) -> dict[Path, Held]:
    """What each name released last, by the place of its record."""
    done = [
        held
        for held in state.items.values()
        if held.status == "DONE" and held.job.experiment == OWN
    ]
    return {folder / f"{held.job.rule}.privacy.json": held for held in done}


def _check_folder(ledger: Ledger, results: Path) -> None:
    """One statement a folder: another lineage's, or a workflow run's, is not written over."""
    others = {anchor.lineage for anchor in stated_anchors(results)} - {ledger.lineage}
    if others or (results / "plan.json").exists():
        raise Refused(
            f"{results} holds the results of "
            f"{', '.join(sorted(others)) or 'a run of the workflow'}. Give this Ledger a folder of "
            "its own: Ledger(..., results=...)."
        )


def _write(path: Path, document: Mapping[str, Any]) -> None:
    replace(path, (json.dumps(document, indent=2, allow_nan=False) + "\n").encode(), mode=0o666)
