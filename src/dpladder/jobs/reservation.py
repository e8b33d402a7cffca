"""What the head node reserved for a job: what it may spend, and what it may stand on.

Only the head node reserves, when it knows the whole run. A job that finds nothing reserved stops,
and never reserves for itself: so a run that does not fit its limits spends nothing at all
(contract: write-ahead, refuse-first).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpladder.errors import Refused
from dpladder.jobs.places import job_home
from dpladder.jobs.task import Task
from dpladder.plan import package
from dpladder.plan.follows import RESULTS
from dpladder.plan.node import question_of
from dpladder.plan.outer import module_advice
from dpladder.plan.reads import (
    EstimateHead,
    ReleaseReads,
)
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.composition import entry_of
from dpladder.privacy.accounting.events import Counted, Spend
from dpladder.privacy.ledger import anchors
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.state import LedgerCharge
from dpladder.privacy.release.store import is_kept

# the inputs that are releases themselves
RELEASES = ("mean", "sums", "start", "weights")


@dataclass(frozen=True, eq=False)
class Reservation:
    """What the head node set aside for a private job.

    Attributes:
        task: the job.
        ledger: of its lineage.
        question: what the ledger reserved it under.
        spends: what it may spend, by what the spend buys.
    """

    task: Task[ReleaseReads]
    ledger: Ledger
    question: str
    spends: Mapping[str, Spend]

    def entry(self, label: str) -> Entry:
        """What may be spent on what a label names: a mu, and what it is booked at.

        Args:
            label: such as `weights`, `score` or `test score`, as the plan has it (plan/cost.py).

        Raises:
            KeyError: the plan reserved nothing by this label.
        """
        reserved_entry = entry_of(self.spends[label])
        assert reserved_entry.is_gaussian, (
            "plans reserve plain budgets; searches ask for their events"
        )
        return reserved_entry

    def mu(self, label: str) -> float:
        """The mu that may be spent on what a label names."""
        return self.entry(label).mu

    def actual_spends(self, label: str, events: Iterable[Counted]) -> list[Spend]:
        """The events that a mechanism really makes, in place of the declared one: on the same
        lineage and part. COMMIT refuses them where they cost more than was reserved."""
        return [
            replace(self.spends[label], event=event.event, count=event.count) for event in events
        ]


def find_reservation(task: Task[ReleaseReads], ledger: Ledger | None = None) -> Reservation:
    """What the head node reserved for this job. Jobs look in the ledger, never in a file: whoever
    can write files cannot raise a budget.

    Args:
        task: the job.
        ledger: that jobs of one process share, which remembers what it has read.

    Raises:
        Refused: nothing was reserved, the ledger was put back in time, or an upstream release was
            edited. Or the package's code is not what the head node reserved for. Nothing was read.

    Returns:
        The latest reservation for the job's question, whether it was answered already or not.
    """
    ledger = ledger or ledger_of(task)
    question = question_of(task.reads.question_id, task.job)
    stood = [  # read before the ledger, which only grows
        anchor for anchor in anchors.read(RESULTS) if anchor.lineage == task.reads.lineage
    ]
    state = ledgers.load(ledger)
    anchors.check(ledger.home, stood, {ledger.lineage: state})
    charges = state.charges_for(question)
    _check_releases(task, ledger)
    if not charges and state.tokens.get(question):
        raise Refused(
            f"{task.job}: a later run in this home gave its reservation back, for "
            f"it has an experiment {task.experiment} that does not ask this. Nothing was spent: "
            "start again, it reserves first. Where two projects share a home and a lineage, give "
            "their experiments names of their own."
        )
    if not charges:
        raise Refused(
            f"{task.job} finds no reservation in {ledger.folder}. On a cluster, "
            "check that DPLADDER_HOME is mounted on this node and is the head node's; otherwise "
            f"start the workflow again, it reserves first.{module_advice()}"
        )
    _check_code(task, charges)
    # A question that was asked anew has several charges; the last is what this run reserved.
    spends = {spend.label: spend for spend in charges[-1].declared}
    return Reservation(task, ledger, question, spends)


def ledger_of(task: Task[ReleaseReads]) -> Ledger:
    """The ledger of the lineage whose records a job reads. Nothing of it is read yet."""
    return Ledger(job_home(), task.reads.lineage)


def _check_releases(task: Task[ReleaseReads], ledger: Ledger) -> None:
    """A job that stood on an edited release would be paid for, and once more when the release is
    restored."""
    paths = [
        path
        for name in RELEASES
        if task.input.get(name) and _is_release(task, name)
        for path in ([task.input[name]] if isinstance(task.input[name], str) else task.input[name])
    ]
    for path in paths:
        if not is_kept(ledger.home, Path(path), ledger.lineage):
            raise Refused(
                f"{path} is not what was released under lineage {ledger.lineage}: it was edited, "
                "or made under another home. Nothing was charged for it. Delete it and run again: "
                "what the ledger holds as released is restored, free."
            )


def _is_release(task: Task[Any], name: str) -> bool:
    """Whether an input is a release: a mean that centres features, or a head to start from, may be
    found on public records."""
    if name == "mean":
        return task.reads.mean is not None
    if name != "start":
        return True
    # what a head that is bought starts from itself is public
    return not isinstance(task.reads, EstimateHead) and task.reads.learner.starts_from_private_head


def _check_code(task: Task[ReleaseReads], charges: Sequence[LedgerCharge]) -> None:
    """A job runs the code that the head node reserved it for, also when files were edited since, or
    a node has others."""
    if any(one.status == "RESERVED" and one.code != package.digest() for one in charges):
        raise Refused(
            "the package's code changed after the workflow was started, or this node has another "
            "version of it. Nothing was read or spent: start the workflow again."
        )
