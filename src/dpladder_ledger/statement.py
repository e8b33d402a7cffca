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

from dpladder.errors import Refused
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import OWN_CODE, Ledger
from dpladder.privacy.ledger.home import replace, subkey
from dpladder.privacy.ledger.journal import unwritable_error
from dpladder.privacy.ledger.state import LedgerCharge, State
from dpladder.privacy.statement.build import build_own, seal
from dpladder.privacy.statement.check import stated_anchors
from dpladder.privacy.statement.documents import Origin, SealedStatement
from dpladder.privacy.statement.page import page
from dpladder.privacy.statement.records import record_of
from dpladder.public_files import file_digest
from dpladder.section import from_document

PACKAGES = ("dpladder", "dp-accounting")
RECORDS = "own"


def write_statement(ledger: Ledger, results: Path) -> str:
    """Write each spend's record, privacy.json and privacy.md into `results`.

    Args:
        ledger: of the lineage.
        results: a public folder, of this lineage alone.

    Returns:
        The page.

    Raises:
        Refused: the folder holds another lineage's statement, or a run's.
    """
    state = book.load(ledger)
    _check_folder(ledger, results)
    try:
        charges = _records(state, results / RECORDS)
        (results / RECORDS).mkdir(parents=True, exist_ok=True)
        records = {
            path: record_of(charge.job.rule, {}, charge.spends, charge.question)
            for path, charge in charges.items()
        }
        for path, charge in charges.items():
            _write(path, records[path] | {"released": charge.output})
        statement = build_own(
            state,
            [*records.values()],
            {f"results/{path.relative_to(results)}": file_digest(path) for path in charges},
            book.head(ledger),
            Origin(
                datetime.now(UTC).date().isoformat(),
                None,
                {name: version(name) for name in PACKAGES},
            ),
        )
        sealed = seal(dataclasses.asdict(statement), subkey(ledger.home, "ledger"))
        _write(results / "privacy.json", sealed)
        text = page(from_document(SealedStatement, sealed))
        replace(results / "privacy.md", text.encode(), mode=0o666)
    except OSError as error:
        raise unwritable_error(results, error) from None
    return text


def _records(state: State, folder: Path) -> dict[Path, LedgerCharge]:
    """What each name released last, by the place of its record."""
    done = [
        charge
        for charge in state.charges.values()
        if charge.status == "DONE" and charge.job.experiment == OWN_CODE
    ]
    return {folder / f"{charge.job.rule}.privacy.json": charge for charge in done}


def _check_folder(ledger: Ledger, results: Path) -> None:
    """One statement a folder: another lineage's, or a workflow run's, is not written over."""
    other_lineages = {anchor.lineage for anchor in stated_anchors(results)} - {ledger.lineage}
    if other_lineages or (results / "plan.json").exists():
        raise Refused(
            f"{results} holds the results of "
            f"{', '.join(sorted(other_lineages)) or 'a run of the workflow'}. Give this Ledger a "
            "folder of its own: Ledger(..., results=...)."
        )


def _write(path: Path, document: Mapping[str, Any]) -> None:
    """Write a public document, whole or not at all."""
    replace(path, (json.dumps(document, indent=2, allow_nan=False) + "\n").encode(), mode=0o666)
