"""The one way to release: what a job asks, once ever, and how that is answered.

A module of a private rule says what it releases in one function, `release_of`. It declares its
spends and its draws, and how private records are read once they are paid for. Nothing else in jobs/
may publish what follows from private records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpladder.jobs.features import open_part, part_of
from dpladder.jobs.record import write_record
from dpladder.jobs.reservation import Reserved, job_of
from dpladder.jobs.task import Task
from dpladder.plan.follows import RESULTS
from dpladder.plan.reads import (
    ReleaseReads,
)
from dpladder.privacy.accounting.events import Spend
from dpladder.privacy.ledger import anchors
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.release import store
from dpladder.privacy.release.meter import Draw, Meter
from dpladder.privacy.release.store import Produce, Question, Work, query_digest


@dataclass(frozen=True, eq=False)
class ReleaseRequest:
    """What a job asks, once ever.

    The query is every public input: the map to features, upstream releases, every constant, the
    versions of mechanisms, and the question itself. In the question the version of the data is a
    number. Of private records it says nothing: the same number is answered by what is kept, unread.

    Attributes:
        task: the job.
        reservation: what the head node set aside for it.
        spends: the events that it really makes, at most what was reserved.
        draws: all its randomness.
        inputs: what else the answer follows from, by digests or in full.
        outputs: names of the files that are released.
    """

    task: Task[ReleaseReads]
    reservation: Reserved
    spends: Sequence[Spend]
    draws: Iterable[Draw]
    inputs: Mapping[str, Any]
    outputs: Iterable[str]

    def question(self) -> Question:
        """What the store commits, answers and publishes (privacy/release/store.py).

        Raises:
            Refused: a feature cache is gone. Nothing was spent.
        """
        outputs = {self.task.output[name].name: self.task.output[name] for name in self.outputs}
        return Question(
            job_of(self.task),
            self.reservation.question,
            self._query(),
            self.spends,
            tuple(self.draws),
            outputs,
            self._units(),
        )

    def _units(self) -> str:
        """Which units there are, of what is private."""
        parts = (part_of(self.task, name) for name in self.task.reads.places.features)
        return next((part.units for part in parts if part.units), "")

    def _query(self) -> str:
        return query_digest(
            question=self.reservation.question,
            cfg=self.task.public_cfg,
            spends=repr(tuple(self.spends)),
            **self.inputs,
        )


@dataclass(frozen=True, eq=False)
class Release:
    """What a job is about to release: what it asks, and how that is answered. An audit answers it
    many times, with meters of its own and no ledger, and so attacks the very rule.

    Attributes:
        requests: one for each question; a rung's job has several.
        produce: reads private data, and writes what leaves. All of its noise comes from the meters
            that it is given.
        ready: runs before COMMIT: what it refuses costs nothing.
    """

    requests: Sequence[ReleaseRequest]
    produce: Produce
    ready: Callable[[], None] | None = None


def single(
    task: Task[ReleaseReads],
    reservation: Reserved,
    spends: Sequence[Spend],
    draws: Iterable[Draw],
    inputs: Mapping[str, Any],
    outputs: Iterable[str],
    produce: Callable[[Meter, Path], None],
    ready: Callable[[], None] | None = None,
) -> Release:
    """The release of a job that asks one question.

    Args:
        task, reservation, spends, draws, inputs, outputs: as a `ReleaseRequest` has them.
        produce: writes the outputs into a folder, all noise from a meter.
        ready: runs before COMMIT.

    Returns:
        A release whose `produce` writes the answer of that question into its folder.
    """

    def each(works: Sequence[Work]) -> None:
        for work in works:
            produce(work.meter, work.folder)

    return Release([ReleaseRequest(task, reservation, spends, draws, inputs, outputs)], each, ready)


def release_once(release: Release) -> None:
    """Answer these questions once, ever, and record what that cost.

    Restored answers are recorded at what they cost when they were first given. Where the ledger
    stands now is noted beside the results, so that a home put back in time is found out.

    Args:
        release: of one lineage; its requests share the ledger of the first one.

    Raises:
        Refused: nothing was reserved, something that the answer stands on is damaged, or draws were
            not what was declared.
    """
    task, ledger = release.requests[0].task, release.requests[0].reservation.ledger
    # A seed would let everybody subtract the noise, so only public lineages have one (line 4).
    seed = task.reads.research.seed if task.reads.mode == "research" else None
    questions = [one.question() for one in release.requests]
    outcomes = store.release_together(
        ledger, questions, release.produce, seed, ready=partial(_before_commit, release)
    )
    # Before the records: killed in between, a run still knows how far the ledger had gone.
    anchors.save_anchors(RESULTS, [ledgers.head(ledger)])
    for one, outcome in zip(release.requests, outcomes, strict=True):
        write_record(one.task, outcome.spends, one.reservation.question)


def _before_commit(release: Release) -> None:
    """All that can refuse these questions before anything is charged."""
    for request in release.requests:
        for part in request.task.reads.places.features:
            open_part(part_of(request.task, part))
    if release.ready is not None:
        release.ready()
