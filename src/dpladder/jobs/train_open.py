"""Research alone: the same learner without noise, for the gap to privacy. What it makes is no release and protects nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from dpladder.compare.contest import GRID, Arena, PublicMeter
from dpladder.config.shift import FurtherTest
from dpladder.errors import Refused
from dpladder.jobs.arena import arena_of
from dpladder.jobs.evaluate import Test, class_names, groups_of
from dpladder.jobs.private import part_of, read
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task, write_json
from dpladder.learn.registry import method
from dpladder.plan.reads import TrainOpen
from dpladder.privacy.release.meter import Draw, Meter
from dpladder.report.summary import OpenFound, Tested
from dpladder.search.asking import Answer, Ask
from dpladder.search.bench import Bench, NamedAsk, answers
from dpladder.search.space import Space

OPEN = 1e6  # mu in place of infinity: noise of a millionth of what one record may move
HELD_OUT = 5  # one record in so many chooses r


def train_open(task: Task[TrainOpen]) -> None:
    if not task.reads.without_noise:
        raise Refused("nothing is trained without noise unless final.without_noise asks for it.")
    arena, learner = arena_of(task), task.reads.learner
    r = _best(arena, task) if learner.searches is not None else None
    [answer] = _answers(arena, task, [Ask(r or 1.0, OPEN)])
    names = class_names(task.reads.classes, arena.constants)
    own = method(learner.name).logits(learner, arena.constants)
    measured = task.reads.measures

    def tested(part: str, also: FurtherTest | None = None) -> Tested:
        groups = groups_of(task.reads.group, measured, also)
        test = Test(answer.weights, own, arena.constants, names, measured, groups=groups)
        data = groups.kept(read(task, part_of(task, part)))
        scores = test.scores(data) if measured == "auc" else None
        return test.told(test.counts(data), 0.0, scores)

    also = {one.name: tested(one.part, one) for one in task.reads.further}
    write_json(task.output["metrics"], asdict(OpenFound(r, tested("test"), also)))
    write_record(task, free="research on data declared public: trained without noise, and no release")


def _best(arena: Arena, task: Task[TrainOpen]) -> float:
    """The r, of a grid over all that the search may reach, that does best on records held out of the training part."""
    space = Space(task.reads.search, task.reads.learner, arena.constants)
    rows = np.arange(len(arena.train.labels))  # in the order of keyed ids, so every fifth is any fifth
    held = rows % HELD_OUT == 0
    grid = [space.clamp(r) for r in np.geomspace(*space.reach(), GRID).tolist()]
    asks = [Ask(r, OPEN, ~held, held, 1.0 - 1.0 / HELD_OUT) for r in grid]
    counts = [answer.correct for answer in _answers(arena, task, asks)]
    return grid[int(np.argmax(counts))]


def _answers(arena: Arena, task: Task[TrainOpen], asks: Sequence[Ask]) -> list[Answer]:
    def meter(training: NamedAsk, draws: Sequence[Draw]) -> Meter:
        return PublicMeter(draws, arena, training.name)

    bench = Bench(arena.train, arena.constants, arena.resources, meter)
    reads = task.reads
    named = [NamedAsk(f"open {place}", ask, reads.learner, reads.search) for place, ask in enumerate(asks)]
    found, _ = answers(bench, named)
    return found
