"""The trials of a rung: draw r, train privately at the rung's budget, release the weights and a
score.

A rung's trials share one process, one pass over the features and the start of torch. Each is a job
of the ledger's own all the same. Where trials solve sums that were released before, a score is all
that a trial pays for.

Weights and scores are both released, for the choice of r may look at either (contract:
charged-selection). So a killed rung goes on with the trials that are missing, and finished ones are
restored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial

from dpladder.jobs.record import write_record
from dpladder.jobs.release import Release, make_question, release_once
from dpladder.jobs.reservation import Reservation, find_reservation, ledger_of
from dpladder.jobs.seen import SeenPart, seen_part
from dpladder.jobs.task import Task, read_json, write_json
from dpladder.learn import counts, score, weights
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Weights
from dpladder.learn.queries import RightCount, declared
from dpladder.learn.trainings import scorer_of, shares_a_pass, train_many, weights_of
from dpladder.plan.reads import RunTrial
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import NO_COST
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.store import Question, Work
from dpladder.search.space import Space, draw
from dpladder.search.training import Training, choice_as_text, learner_of_trial, training_of
from dpladder.search.trial import Trial


class Silence:
    """Behind the meter of a trial that is wholly free."""

    def stream(self, name: str, index: int) -> bytes:
        """Fails: a free trial solves released sums, and draws nothing.

        Raises:
            AssertionError: always.
        """
        raise AssertionError(f"{name} {index}: nothing is drawn in a free trial")


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """A trial before any private read: all of it is public.

    Attributes:
        task: the job of this trial.
        reservation: what it may spend; none of a trial that is free.
        train, scored: the parts that it is trained on, and that its score is counted on.
        training: what it does, costs and draws.
        counting: the query of its score; none on a source declared public.
        trial: what is known of it; its score is yet to come.
    """

    task: Task[RunTrial]
    reservation: Reservation | None
    train: SeenPart
    scored: SeenPart
    training: Training
    counting: RightCount | None
    trial: Trial

    @property
    def constants(self) -> Constants:
        """The public facts of the training, those of the training part."""
        return self.train.constants

    @property
    def solved(self) -> bool:
        """Whether trials are solved from shared sums, and pay for their scores alone."""
        return self.task.reads.learner.trials_are_solved

    def question(self) -> tuple[Question, Reservation]:
        """What the trial asks, its weights and its score, two spends of one job; and what was
        reserved for it."""
        assert self.reservation is not None, "only what costs something is asked for"
        spends = self.reservation.actual_spends("weights", self.training.declared.events)
        queries = [] if self.counting is None else [self.counting]
        counted = declared(queries, self.constants)
        spends += self.reservation.actual_spends("score", counted.events)
        scored = self.scored.part
        inputs = {
            **self.train.inputs("train"),
            # public records may be named by their bytes, and no edit of theirs has a number
            "scored": scored.name if self.counting is None else scored.map_name,
            "r": self.trial.r,
        }
        draws = (*self.training.declared.draws, *counted.draws)
        outputs = ("weights", "score")
        return make_question(self.reservation, spends, draws, inputs, outputs), self.reservation


def run_trial(task: Task[RunTrial]) -> None:
    """A trial, or every trial of a rung that is this experiment's own. What is DONE is restored;
    the others train together.

    Args:
        task: of one trial; or of a rung, whose `trials` are its own.
    """
    ledger = ledger_of(task)
    trials = [_task_of_trial(task, trial) for trial in task.trials] or [task]
    _run([_prepare_trial(one, ledger) for one in trials])


def release_of(task: Task[RunTrial]) -> Release:
    """One trial's weights and noised score.

    Guarantee: that of its training and of one count of right answers. Both are released, so the
    next rung may look at them.

    The audit calls this for one trial. `run_trial` asks several such questions in one release.
    """
    return _release([_prepare_trial(task)])


def _task_of_trial(task: Task[RunTrial], trial: str) -> Task[RunTrial]:
    """One trial of the rung's job, as the ledger and the records know it."""
    output = {
        name.removesuffix(f"_{trial}"): path
        for name, path in task.output.items()
        if name.endswith(f"_{trial}") and name.rpartition("_")[2] == trial
    }
    return dataclasses.replace(
        task,
        rule="run_trial",
        wildcards={**task.wildcards, "trial": trial},
        output=output,
        trials=(),
    )


def _run(trials: Sequence[Prepared]) -> None:
    """Release the trials; where they cost nothing, write them without a ledger, a charge or a
    draw."""
    if trials[0].reservation is None:
        works = [
            Work(one.task.job, Meter((), Silence()), one.task.output["score"].parent)
            for one in trials
        ]
        _produce(trials, works)
        for one in trials:
            write_record(
                one.task, free="solved from shared sums, scored on a source declared public"
            )
        return

    release_once(_release(trials))


def _release(trials: Sequence[Prepared]) -> Release:
    def ready() -> None:
        for one in trials:
            one.training.ready(one.task.resources, len(trials))

    return Release(dict(one.question() for one in trials), partial(_produce, trials), ready)


def _prepare_trial(task: Task[RunTrial], ledger: Ledger | None = None) -> Prepared:
    train, scored = seen_part(task, "train"), seen_part(task, task.reads.scored.part)
    constants = train.constants
    # What is free is so by the config: a plan that forgot a spend must fail.
    public, solved = _public(task), task.reads.learner.trials_are_solved
    reservation = None if public and solved else find_reservation(task, ledger)
    paid = (
        {}
        if reservation is None
        else {label: reservation.entry(label) for label in reservation.spends}
    )
    rung, number = int(task.wildcards["rung"]), int(task.wildcards["trial"])
    epsilon = task.reads.learner.purchases["shared"].epsilon if solved else task.reads.epsilon
    below = task.input["below"]
    # Only the rung just below: its best trial holds what the rungs before it said.
    before = Trial(**read_json(below[-1])["best"]) if below else None
    space = Space(task.reads.search, learner_of_trial(task.reads.learner, number), constants)
    mu = gdp.mu_from_epsilon(epsilon, constants.delta) if solved else paid["weights"].mu
    kappa, r = draw(space, mu, epsilon, rung, number, before)
    counting = None if public else score.count_at(paid["score"].mu)
    return Prepared(
        task,
        reservation,
        train,
        scored,
        training_of(space, r, NO_COST if solved else paid["weights"]),
        counting,
        Trial(
            rung,
            number,
            epsilon,
            mu,
            kappa,
            r,
            score=0.0,
            sd=0.0 if counting is None else counting.scale(constants),
            counted=0 if counting is None else task.reads.scored.nominal_size,
        ),
    )


def _produce(trials: Sequence[Prepared], works: Sequence[Work]) -> None:
    """Those that are left, over one read of the features."""
    of_job = {one.task.job: one for one in trials}
    left = [of_job[work.job] for work in works]
    first = left[0]
    data = first.train.read_nothing() if first.solved else first.train.read()
    # Where a trial is scored on what it was trained on, the features are opened once.
    same = first.scored.part == first.train.part and not first.solved
    counted = data if same else first.scored.read()
    for one, work, trained in zip(left, works, _train_trials(left, works, data), strict=True):
        _write(one, trained, counted, work)


def _train_trials(
    trials: Sequence[Prepared], works: Sequence[Work], data: Data
) -> Iterator[Weights]:
    """Together where the learner can and has the same section for all, else one after the other."""
    first = trials[0]
    learner, constants = first.training.learner, first.constants
    alike = all(one.training.learner == learner for one in trials)
    if not alike or not shares_a_pass(learner, first.training.hyper, constants):
        for one, work in zip(trials, works, strict=True):
            # Trials that cannot share passes follow each other, so that one model is in memory at a
            # time.
            yield one.training.run(data, work.meter, one.task.resources)
        return
    hypers, meters = [one.training.hyper for one in trials], [work.meter for work in works]
    yield from train_many(data, hypers, learner, constants, meters, first.task.resources)


def _write(one: Prepared, trained: Weights, counted: Data, work: Work) -> None:
    """Write a trial's two files: its weights and its score, with the choice that it stands for. The
    score is noised, unless its part is a source declared public."""
    learner, constants = one.training.learner, one.constants
    scorer = scorer_of(learner, constants)
    names = weights_of(learner).tensors(learner, constants)
    if one.counting is None:
        released = counts.right_counts(scorer, [trained], counted)[0]
        # Public records without a label are neither right nor wrong.
        size = max(int((counted.labels >= 0).sum()), 1)
    else:
        released = counts.ask(one.counting.at(trained, scorer), counted, constants, work.meter)
        size = one.trial.counted
    choice = choice_as_text(one.training.learner, one.training.hyper)
    facts = choice | {"learner": learner.model_dump(mode="json")}
    weights.save(work.folder / "weights.safetensors", trained, facts, names=names)
    trial = dataclasses.replace(one.trial, score=float(released), counted=size)
    learns = dataclasses.asdict(dataclasses.replace(constants, network=None))
    document = {"trial": dataclasses.asdict(trial), "learns": learns, **choice}
    write_json(work.folder / "score.json", document)


def _public(task: Task[RunTrial]) -> bool:
    return task.reads.select.by == "public"
