"""How good the final model is on the test part: noised counts on private data, exact ones on
data declared public. The figures that follow from them are free (jobs/summarise.py).

A test part has a budget of its own, charged to the people whose records are counted. Where the test
part is hashed and neighbours differ by one record, it composes in parallel with the training
(contract: disjoint-parts, charged-tests).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from dpladder.config.dataset_sections import TrainedGroup
from dpladder.config.evaluate_sections import Measures
from dpladder.config.records import FurtherTest
from dpladder.jobs.record import write_record
from dpladder.jobs.release import Release, release_once, single
from dpladder.jobs.reservation import find_reservation
from dpladder.jobs.seen import SeenPart, seen_part
from dpladder.jobs.task import Task, write_json
from dpladder.learn import counts, weights
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.measures import tables
from dpladder.learn.measures.tables import MeasuredModel
from dpladder.learn.measures.tested import CountTable, GroupNames
from dpladder.learn.trainings import scorer_of
from dpladder.plan.reads import EvaluateAlso, EvaluateTest
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.statement.documents import TEST_SCORE
from dpladder.public_files import file_digest


@dataclass(frozen=True)
class Groups:
    """The groups of a test, by the config alone.

    Attributes:
        names: all of its records'.
        counted: those whose records are in a count, each in one of its own where `apart`.
        summed: of these, those that the accuracy is of.
        trained: those that were trained on.
        apart: whether each is counted by itself.
    """

    names: tuple[str, ...]
    counted: tuple[str, ...]
    summed: tuple[str, ...]
    trained: tuple[str, ...]
    apart: bool = False

    def restrict(self, data: Data) -> Data:
        """With the records of other groups as if they had no label, and groups numbered as they are
        counted.

        Args:
            data: a test part, whose `groups` are numbers of `names`, and -1 where a record is of
                none of them.

        Returns:
            The same records in the same order. None is taken out: how many count is private.
        """
        if data.groups is None:
            return data
        places = np.full(len(self.names) + 1, -1, np.int64)  # the last is for a group that is none
        for place, name in enumerate(self.counted):
            places[self.names.index(name)] = place
        groups = places[data.groups]
        return replace(data, labels=np.where(groups >= 0, data.labels, -1), groups=groups)

    @property
    def released(self) -> GroupNames | None:
        """What the release says of them, where each is counted by itself."""
        return GroupNames(self.counted, self.summed, self.trained) if self.apart else None


NO_GROUPS = Groups((), (), (), ())


def groups_of(
    group: TrainedGroup | None, measured: Measures, also: FurtherTest | None = None
) -> Groups:
    """Groups to count, where some are declared. Of the test part these are those that were trained
    on, or each by itself. Of a further test they are those that it names, or the same; of another
    source, all.

    Args:
        group: `dataset.group`; None where no groups are declared.
        measured: `evaluate.measures`. With `groups` among them, each group is counted by itself.
        also: the further test that is counted; None for the test part.
    """
    apart = "groups" in measured
    trained = () if group is None else group.trained
    if also is not None and (also.groups or also.records != "test"):
        counted = also.groups or also.named
        names = trained if also.records == "test" else ()
        return Groups(also.named, counted, counted, names, apart and bool(counted))
    if group is None:
        return NO_GROUPS
    return Groups(group.names, group.names if apart else trained, trained, trained, apart)


def evaluate(task: Task[EvaluateTest]) -> None:
    """Count how a model does on a test: exactly where its source is declared public, which costs
    nothing; else under noise.

    Raises:
        Refused: the count was not reserved, or the model's file is not what was released.
    """
    if task.reads.exact:
        test = _test_of(task)
        model, groups = _model(task, test.constants)
        data = groups.restrict(test.read())
        write_json(task.output["metrics"], asdict(tables.exact(task.reads.measures, model, data)))
        write_record(task, free="counted on data declared public")
        return
    release_once(release_of(task))


def _test_of(task: Task[EvaluateTest]) -> SeenPart:
    """The one part that it reads: the test part, or that of a further test."""
    # Fails where a rule reads more parts than the one that it counts.
    [name] = task.reads.places.features
    return seen_part(task, name)


def release_of(task: Task[EvaluateTest]) -> Release:
    """The noised tables of counts that the measures buy (learn/measures/tables.py).

    Guarantee: mu-GDP for what was reserved, all tables together, towards the people whose records
    are counted. The model is released already. What a table asks may follow from the noised answers
    before it; its bound and its noise are declared beforehand, and do not.
    """
    reservation, test = find_reservation(task), _test_of(task)
    model, groups = _model(task, test.constants)
    wanted = tables.tables_of(task.reads.measures, model)
    prices = tables.prices_of(wanted, reservation.mu(TEST_SCORE))
    queries = [table.query(model, mu) for table, mu in zip(wanted, prices, strict=True)]
    draws = [query.draw(model.constants) for query in queries]

    def produce(meter: Meter, folder: Path) -> None:
        data = groups.restrict(test.read())
        bought: dict[str, tuple[Floats, float]] = {}
        for table, mu, query in zip(wanted, prices, queries, strict=True):
            noised = counts.ask(table.question(model, mu, bought), data, model.constants, meter)
            bought[table.holds] = noised, query.scale(model.constants)
        cells = {holds: CountTable(noised.tolist(), sd) for holds, (noised, sd) in bought.items()}
        write_json(folder / "metrics.json", asdict(tables.released(model, cells)))

    spends = reservation.actual_spends(TEST_SCORE, [query.events() for query in queries])
    if len(wanted) > 1:
        names = (table.holds.replace("_", " ") for table in wanted)
        spends = [
            replace(spend, label=f"{TEST_SCORE}, {name}")
            for spend, name in zip(spends, names, strict=True)
        ]
    inputs = {**test.inputs("test"), "weights": file_digest(Path(task.input["weights"]))}
    return single(reservation, spends, draws, inputs, ("metrics",), produce)


def _model(task: Task[EvaluateTest], constants: Constants) -> tuple[MeasuredModel, Groups]:
    model_weights, _ = weights.load(Path(task.input["weights"]))
    reads = task.reads
    scorer = scorer_of(reads.learner, constants)
    also = reads.also if isinstance(reads, EvaluateAlso) else None
    groups = groups_of(reads.group, reads.measures, also)
    names = class_names(reads.classes, constants)
    measured = MeasuredModel(
        model_weights,
        scorer,
        constants,
        names,
        groups.released,
        reads.predicts,
        reads.error,
        reads.threshold,
    )
    return measured, groups


def class_names(classes: int | tuple[str, ...] | None, constants: Constants) -> tuple[str, ...]:
    """The classes by name, or else by number."""
    return classes if isinstance(classes, tuple) else tuple(map(str, range(constants.classes)))
