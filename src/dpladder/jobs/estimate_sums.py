"""Noised sums that trainings share: released once, and answered from afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpladder.jobs.release import Release, single
from dpladder.jobs.reservation import find_reservation
from dpladder.jobs.seen import seen_part
from dpladder.jobs.task import Task
from dpladder.learn.curator import Curator, PublicInputs, Training
from dpladder.learn.interface import Constants
from dpladder.learn.queries import Query, QueryCall, declared
from dpladder.learn.second_order import class_by_class, shared_queries
from dpladder.learn.shared_sums import Keep, create
from dpladder.plan.reads import EstimateSums
from dpladder.privacy.release.meter import Meter


def release_of(task: Task[EstimateSums]) -> Release:
    """Noised second moments and class sums, as the learner names them.

    Guarantee: mu-GDP for what was reserved. Trainings that solve them cost nothing more.
    """
    reservation, train = find_reservation(task), seen_part(task, "train")
    constants, reads = train.constants, task.reads
    queries = shared_queries(reads.sums, reservation.mu("sums"), reads.radius, constants)
    costs = declared(queries, constants)

    def produce(meter: Meter, folder: Path) -> None:
        curator = Curator(train.read(), constants, task.resources)
        # Answers go to the file as they come, so the sums of many classes never stand in memory
        # together.
        with create(folder / "sums.h5", queries, constants) as keep:
            curator.run(
                lambda inputs, asks: release_sums(inputs, asks, constants, keep), [queries], [meter]
            )

    spends = reservation.actual_spends("sums", costs.events)
    return single(reservation, spends, costs.draws, train.inputs("train"), ("sums",), produce)


def release_sums(
    inputs: PublicInputs, queries: Sequence[Query], constants: Constants, keep: Keep
) -> Training[None]:
    """Ask each query once, and keep every answer as soon as it is there: all of them together may
    not fit into memory.

    Guarantee: that of the declared draws.

    Args:
        inputs: public inputs.
        queries: that are asked; some come class by class.
        constants: number of classes.
        keep: writes a query's answer of one class, or the whole of it as class 0.
    """
    of_classes = []
    for query in queries:
        if query.parts(constants) > 1:
            of_classes.append(query)
        else:
            keep(query, 0, (yield query.at()).cpu().numpy())

    def ask(label: int) -> list[QueryCall]:
        return [query.at(label) for query in of_classes]

    def keep_class(label: int, sums: list[Any]) -> None:
        for query, total in zip(of_classes, sums, strict=True):
            keep(query, label, total.cpu().numpy())

    if of_classes:
        yield from class_by_class(inputs, constants, ask, keep_class)
