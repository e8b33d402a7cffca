"""Research alone: the same learner without noise, for the gap to privacy. What it makes is no
release and protects nobody."""

from __future__ import annotations

from dataclasses import asdict

from dpladder.config.records import FurtherTest
from dpladder.errors import Refused
from dpladder.jobs.arena import arena_of
from dpladder.jobs.evaluate import class_names, groups_of
from dpladder.jobs.record import write_record
from dpladder.jobs.seen import seen_part
from dpladder.jobs.task import Task, write_json
from dpladder.learn.measures import tables
from dpladder.learn.measures.tested import ReleasedCounts
from dpladder.learn.trainings import scorer_of
from dpladder.plan.reads import TrainOpen
from dpladder.report.summary import OpenCounts
from dpladder.research.arena import bench_of
from dpladder.research.without_noise import OPEN, best
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.protocol import Ask
from dpladder.search.space import Space


def train_open(task: Task[TrainOpen]) -> None:
    """Train without noise and count exactly, on data declared public.

    Raises:
        Refused: `final.without_noise` does not ask for it, or the run is not research.

    r is chosen on records held out of the training part, so the test stays unseen until the last
    count. The model itself is thrown away: only its counts are written.
    """
    if not task.reads.without_noise:
        raise Refused("nothing is trained without noise unless final.without_noise asks for it.")
    arena, learner = arena_of(task), task.reads.learner
    r, search = None, task.reads.search
    if learner.searches is not None:
        r, search = best(arena, Space(search, learner, arena.constants))
    training = NamedAsk("open", Ask(r or 1.0, OPEN), learner, search)
    [answer], _ = answers(bench_of(arena), [training])
    names = class_names(task.reads.classes, arena.constants)
    scorer = scorer_of(learner, arena.constants)

    def counts(part: str, also: FurtherTest | None = None) -> ReleasedCounts:
        groups = groups_of(task.reads.group, task.reads.measures, also)
        reads, facts = task.reads, (scorer, arena.constants, names, groups.released)
        model = tables.MeasuredModel(
            answer.weights, *facts, reads.predicts, reads.error, reads.threshold
        )
        data = groups.restrict(seen_part(task, part).read())
        return tables.exact(task.reads.measures, model, data)

    also = {one.name: counts(one.part, one) for one in task.reads.further}
    write_json(task.output["metrics"], asdict(OpenCounts(r, counts("test"), also)))
    write_record(
        task, free="research on data declared public: trained without noise, and no release"
    )
