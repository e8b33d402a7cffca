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
from dpladder.jobs.reservation import Reservation
from dpladder.plan.follows import RESULTS
from dpladder.privacy.accounting.events import Spend
from dpladder.privacy.ledger import anchors
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.release import store
from dpladder.privacy.release.meter import Draw, Meter
from dpladder.privacy.release.store import Produce, Question, Work, query_digest


@dataclass(frozen=True, eq=False)
class Release:
    """What a job is about to release: what it asks, and how that is answered. An audit answers it
    many times, with meters of its own and no ledger, and so attacks the very rule.

    Attributes:
        questions: each with what was reserved for it; a rung's job has several.
        produce: reads private data, and writes what leaves. All of its noise comes from the meters
            that it is given.
        ready: runs before COMMIT: what it refuses costs nothing.
    """

    questions: Mapping[Question, Reservation]
    produce: Produce
    ready: Callable[[], None] | None = None


def make_question(
    reservation: Reservation,
    spends: Sequence[Spend],
    draws: Iterable[Draw],
    inputs: Mapping[str, Any],
    outputs: Iterable[str],
) -> Question:
    """What a job asks, once ever.

    The query is every public input: the map to features, upstream releases, every constant, the
    versions of mechanisms, and the question itself. In the question the version of the data is a
    number. Of private records it says nothing: the same number is answered by what is kept, unread.

    Args:
        reservation: what the head node set aside for it.
        spends: the events that it really makes, at most what was reserved.
        draws: all its randomness.
        inputs: what else the answer follows from, by digests or in full.
        outputs: names of the files that are released.

    Raises:
        Refused: a feature cache is gone. Nothing was spent.
    """
    task, question = reservation.task, reservation.question
    cfg, priced = task.public_cfg, repr(tuple(spends))
    query = query_digest(question=question, cfg=cfg, spends=priced, **inputs)
    paths = {task.output[name].name: task.output[name] for name in outputs}
    parts = (part_of(task, name) for name in task.reads.places.features)
    units = next((part.units for part in parts if part.units), "")
    return Question(task.job, question, query, spends, tuple(draws), paths, units)


def single(
    reservation: Reservation,
    spends: Sequence[Spend],
    draws: Iterable[Draw],
    inputs: Mapping[str, Any],
    outputs: Iterable[str],
    produce: Callable[[Meter, Path], None],
    ready: Callable[[], None] | None = None,
) -> Release:
    """The release of a job that asks one question.

    Args:
        reservation, spends, draws, inputs, outputs: as `make_question` has them.
        produce: writes the outputs into a folder, all noise from a meter.
        ready: runs before COMMIT.

    Returns:
        A release whose `produce` writes the answer of that question into its folder.
    """

    def each(works: Sequence[Work]) -> None:
        for work in works:
            produce(work.meter, work.folder)

    question = make_question(reservation, spends, draws, inputs, outputs)
    return Release({question: reservation}, each, ready)


def release_once(release: Release) -> None:
    """Answer these questions once, ever, and record what that cost.

    Restored answers are recorded at what they cost when they were first given. Where the ledger
    stands now is noted beside the results, so that a home put back in time is found out.

    Args:
        release: of one lineage; its questions share the ledger of the first one.

    Raises:
        Refused: nothing was reserved, something that the answer stands on is damaged, or draws were
            not what was declared.
    """
    first = next(iter(release.questions.values()))
    reads, ledger = first.task.reads, first.ledger
    # A seed would let everybody subtract the noise, so only public lineages have one (line 4).
    seed = reads.research.seed if reads.mode == "research" else None
    ready = partial(_before_commit, release)
    charges = store.release_together(ledger, [*release.questions], release.produce, seed, ready)
    # Before the records: killed in between, a run still knows how far the ledger had gone.
    anchors.save_anchors(RESULTS, [ledgers.head(ledger)])
    for reservation, charge in zip(release.questions.values(), charges, strict=True):
        write_record(reservation.task, charge.spends, charge.question)


def _before_commit(release: Release) -> None:
    """All that can refuse these questions before anything is charged."""
    for task in (reservation.task for reservation in release.questions.values()):
        for part in task.reads.places.features:
            open_part(part_of(task, part))
    if release.ready is not None:
        release.ready()
