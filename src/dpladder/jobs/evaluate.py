"""How good the final model is on the test part: noised counts on private data, exact ones on a
declared-public source."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpladder.config.dataset_sections import TrainedGroup
from dpladder.config.evaluate_sections import BY_CLASS, Measures
from dpladder.config.shift import FurtherTest
from dpladder.config.telling import BINS, MORE
from dpladder.jobs.private import (
    Part,
    Release,
    constants_of,
    part_of,
    read,
    release_once,
    reserved,
    shared,
    single,
)
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task, write_json
from dpladder.learn import measures, score, weights
from dpladder.learn.interface import (
    Constants,
    Data,
    Logits,
    LogOdds,
    Losses,
    Rights,
    Weights,
    plain,
)
from dpladder.learn.queries import Cells
from dpladder.learn.registry import method
from dpladder.plan.reads import EvaluateAlso, EvaluateOf, EvaluateTest
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import Draw
from dpladder.privacy.accounting.events import Counted, Gaussian
from dpladder.privacy.accounting.shown import Shown
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.statement.records import file_digest
from dpladder.report.summary import (
    ClassTested,
    Confusion,
    FindingTested,
    GroupTested,
    Perplexity,
    Tested,
    WorstTested,
)

Counts = NDArray[np.float64]
SURE = 1.96  # deviations either way, which hold 95 % of a Gaussian


@dataclass(frozen=True)
class Groups:
    """The groups of a test, by the config. `names`: all of its records'; `counted`: those whose
    records are in a count, each in one of its own where `apart`; `summed`: of these, those that the
    accuracy is of. `trained`: those that were trained on."""

    names: tuple[str, ...]
    counted: tuple[str, ...]
    summed: tuple[str, ...]
    trained: tuple[str, ...]
    apart: bool = False

    def kept(self, data: Data) -> Data:
        """With the records of other groups as if they had no label, and groups numbered as they are
        counted."""
        if data.groups is None:
            return data
        places = np.full(len(self.names) + 1, -1, np.int64)  # the last is for a group that is none
        for place, name in enumerate(self.counted):
            places[self.names.index(name)] = place
        groups = places[data.groups]
        return replace(data, labels=np.where(groups >= 0, data.labels, -1), groups=groups)


NO_GROUPS = Groups((), (), (), ())


def groups_of(
    group: TrainedGroup | None, measured: Measures, also: FurtherTest | None = None
) -> Groups:
    """Of the test part, where groups are declared: those that were trained on, or each by itself;
    of a further test, those that it names, or the same; of another source, all."""
    apart = measured == "groups"
    trained = () if group is None else group.trained
    if also is not None and (also.groups or also.records != "test"):
        counted = also.groups or also.named
        own = trained if also.records == "test" else ()
        return Groups(also.named, counted, counted, own, apart and bool(counted))
    if group is None:
        return NO_GROUPS
    return Groups(group.names, group.names if apart else trained, trained, trained, apart)


@dataclass(frozen=True, eq=False)
class Test:
    """What is counted on the test part, by the config."""

    model: Weights
    own: Logits | None
    constants: Constants
    names: tuple[str, ...]
    measures: Measures
    # of a model that names no class, or of findings
    losses: Losses | Rights | LogOdds | None = None
    groups: Groups = NO_GROUPS

    @property
    def rows(self) -> int | None:
        """How many counts of right and wrong there are; none where there is but one."""
        if self.groups.apart:
            return len(self.groups.counted)
        return self.constants.classes if self.measures in BY_CLASS else None

    @property
    def by_finding(self) -> bool:
        """Whether each finding is counted by itself."""
        return isinstance(self.losses, LogOdds) and self.measures in BY_CLASS

    def counts(self, data: Data) -> Counts:
        """Right and wrong, in all, or class by class, or group by group. Private until noise is
        added."""
        if self.rows is None:
            return score.right_and_wrong(
                self.model, data.features, data.labels, self.losses or self.own
            )
        if self.by_finding:
            return measures.by_finding(self._logits(data), data.labels)
        if isinstance(self.losses, LogOdds):
            assert data.groups is not None, "prepared with the groups that the config declares"
            known = (data.labels >= 0) & (data.groups >= 0)
            shares = score.shares_of_findings(self._logits(data), data.labels)[known]
            return measures.in_groups(shares, data.groups[known], self.rows, score.FULL)
        predicted = score.predict(self.model, data.features, self.own)
        classes = self.constants.classes
        if not self.groups.apart:
            return measures.by_class(predicted, data.labels, classes)
        assert data.groups is not None, "prepared with the groups that the config declares"
        return measures.by_group(predicted, data.labels, data.groups, classes, self.rows)

    def more(self, data: Data) -> Counts | None:
        """What is counted beside right and wrong: bins of scores, class by class, or what each
        class is taken for. Private until noise is added."""
        if self.measures == "confusion":
            predicted = score.predict(self.model, data.features, self.own)
            return measures.by_answer(predicted, data.labels, self.constants.classes)
        return self._scores(data) if self.measures == "auc" else None

    def _scores(self, data: Data) -> Counts:
        if isinstance(self.losses, LogOdds):
            bins = measures.edges_of_each(self.model, self.constants, self.losses)
            return measures.by_logit(self._logits(data), data.labels, bins)
        edges = measures.edges(self.model, self.constants, self.own)
        starts = range(0, len(data.features), score.CHUNK)
        parts = (plain(data.features, slice(start, start + score.CHUNK)) for start in starts)
        found = [measures.margin(self.model, part, self.own) for part in parts]
        return measures.by_score(np.concatenate([np.empty(0), *found]), data.labels, edges)

    def _logits(self, data: Data) -> NDArray[np.float64]:
        assert isinstance(self.losses, LogOdds), "of findings alone"
        return score.each_logit(self.losses, self.model, data.features)

    def told(
        self, counts: Counts, sd: float, more: Counts | None = None, sd_more: float = 0.0
    ) -> Tested:
        """What follows from noised counts; and of a language model, what it is known by."""
        if self.groups.apart:
            found = by_groups(self.groups, counts, sd)
            return replace(found, brier=isinstance(self.losses, LogOdds))
        if self.by_finding:
            return by_findings(self.names, counts, sd, more, sd_more)
        if more is not None and self.measures == "confusion":
            found = metrics(self.names, counts, sd)
            return replace(found, confusion=Confusion(more.tolist(), sd_more))
        found = metrics(self.names, counts, sd, more, sd_more)
        if isinstance(self.losses, LogOdds):
            return replace(found, brier=True)
        if not isinstance(self.losses, Losses):
            return found
        return replace(
            found, perplexity=perplexity(found.accuracy, found.accuracy_sd, self.losses.most)
        )

    def sigmas(self, mu: float) -> tuple[float, ...]:
        """Of each set of counts, the noise in units of what one unit moves it by."""
        shares = (1.0 - MORE, MORE) if self.measures in ("auc", "confusion") else (1.0,)
        return tuple(gdp.sigma(mu * math.sqrt(share), 1) for share in shares)

    def draws(self, mu: float) -> tuple[Draw, ...]:
        """A record is in one of the counts, and in one of the bins or cells; replaced, it may move
        from one to another. Of findings it is in one of each class."""
        counts: tuple[int, ...] = (2,) if self.rows is None else (self.rows, 2)
        bins: tuple[int, ...] = (2, BINS)
        each = 1
        if self.by_finding:
            assert self.rows is not None, "one for each finding"
            counts, bins = (self.rows, 2, 2), (self.rows, *bins)
            each = self.rows
        cells = ("cells", (self.constants.classes, self.constants.classes))
        wanted = (("counts", counts), cells if self.measures == "confusion" else ("scores", bins))
        sigmas = self.sigmas(mu)
        return tuple(
            Cells(name=name, multiplier=sigma, cells=shape, each=each).draw(self.constants)
            for (name, shape), sigma in zip(wanted, sigmas, strict=False)
        )


def evaluate(task: Task[EvaluateTest]) -> None:
    if task.reads.public_parts:
        part = _part(task)
        test = _test(task, part)
        data = test.groups.kept(read(task, part))
        found = test.told(test.counts(data), 0.0, test.more(data))
        write_json(task.output["metrics"], found.document)
        write_record(task, free="the test source is declared public, and the model is a release")
        return
    release_once(release_of(task))


def _part(task: Task[EvaluateTest]) -> Part:
    """The one that it reads: the test part, or that of a further test."""
    [name] = task.reads.places.features
    return part_of(task, name)


def release_of(task: Task[EvaluateTest]) -> Release:
    held, part = reserved(task), _part(task)
    test = _test(task, part)
    mu = held.mu("test score")
    draws = test.draws(mu)

    def produce(meter: Meter, folder: Path) -> None:
        data = test.groups.kept(read(task, part))
        found, more = meter.publish("counts", test.counts(data)), test.more(data)
        if more is not None:
            more = meter.publish(draws[-1].name, more)
        told = test.told(found, draws[0].scale, more, draws[-1].scale)
        write_json(folder / "metrics.json", told.document)

    spends = held.concrete("test score", [Counted(Gaussian(sigma)) for sigma in test.sigmas(mu)])
    inputs = {
        "test": part.map_name,
        **shared(task),
        "weights": file_digest(Path(task.input["weights"])),
    }
    return single(task, held, spends, draws, inputs, ("metrics",), produce)


def _test(task: Task[EvaluateTest], part: Part) -> Test:
    model, _ = weights.load(Path(task.input["weights"]))
    reads, constants = task.reads, constants_of(task, part)
    names = class_names(reads.classes, constants)
    own = method(reads.learner.name).logits(reads.learner, constants)
    judge = method(reads.learner.name).judge(reads.learner, constants)
    losses = judge if isinstance(judge, Losses | Rights | LogOdds) else None
    also = reads.also if isinstance(reads, EvaluateAlso) else None
    groups = groups_of(reads.group, reads.measures, also)
    if isinstance(reads, EvaluateOf):  # of other people, none of whom was trained on
        groups = replace(groups, trained=())
    return Test(model, own, constants, names, reads.measures, losses, groups)


def class_names(classes: int | tuple[str, ...] | None, constants: Constants) -> tuple[str, ...]:
    """The classes by name, or else by number."""
    return classes if isinstance(classes, tuple) else tuple(map(str, range(constants.classes)))


def perplexity(share: float, sd: float, most: float) -> Perplexity:
    """Of the mean of clipped losses, which is `most` less the share of it that records count: its
    exponential, and where that lies with probability 0.95 over the noise alone."""
    loss, spread = most * (1.0 - share), most * sd
    low, high = (math.exp(min(max(loss + side * SURE * spread, 0.0), most)) for side in (-1, 1))
    return Perplexity(math.exp(loss), low, high, loss, spread, most)


def metrics(
    names: tuple[str, ...],
    counts: Counts,
    sd: float,
    scores: Counts | None = None,
    sd_scores: float = 0.0,
) -> Tested:
    """From noised counts, post-processing alone: with both of them, the part's true size is needed
    nowhere."""
    rows = counts.reshape(-1, 2)
    correct, wrong = (float(count) for count in rows.sum(axis=0))
    total, summed = max(correct + wrong, 1.0), sd * math.sqrt(len(rows))
    accuracy = measures.share_of(correct, total, summed)
    return Tested(
        accuracy.value,
        accuracy.sd,
        correct,
        total,
        summed,
        noised=sd > 0,
        classes=None if counts.ndim == 1 else _of_classes(names, rows, sd),
        balanced=None if counts.ndim == 1 else measures.balanced(_shares(rows, sd)),
        auc=None if scores is None else measures.auc(scores, sd_scores),
        scores=None if scores is None else scores.tolist(),
    )


def by_groups(groups: Groups, counts: Counts, sd: float) -> Tested:
    """From noised counts of each group: the accuracy over those that were trained on, over all
    others, and of each."""
    summed = [name in groups.summed for name in groups.counted]
    rows = _of_classes(groups.counted, counts, sd)
    found = metrics((), counts[summed].sum(axis=0), sd * math.sqrt(sum(summed)))
    shares = dict(zip(groups.counted, _shares(counts, sd), strict=True))
    worst, others = measures.worst(shares), counts[[not one for one in summed]]
    right, wrong = (float(count) for count in others.sum(axis=0))
    return replace(
        found,
        groups=tuple(
            GroupTested(**asdict(row), trained=row.name in groups.trained) for row in rows
        ),
        worst=None if worst is None else WorstTested(worst[0], **asdict(worst[1])),
        elsewhere=measures.share(right, wrong, sd * math.sqrt(len(others)))
        if len(others)
        else None,
    )


def by_findings(
    names: tuple[str, ...],
    counts: Counts,
    sd: float,
    scores: Counts | None = None,
    sd_scores: float = 0.0,
) -> Tested:
    """From noised counts of each finding, (classes, lacking and having it, right and wrong). A
    record weighs as much in the accuracy as if it were one."""
    ranked = scores if scores is not None else [None] * len(names)
    each = [
        _finding(name, own, sd, bins, sd_scores)
        for name, own, bins in zip(names, counts, ranked, strict=True)
    ]
    classes = len(names)
    found = metrics((), counts.sum(axis=(0, 1)) / classes, sd * math.sqrt(2.0 / classes))
    return replace(
        found,
        findings=tuple(each),
        balanced=measures.balanced([one.balanced for one in each]),
        auc=measures.balanced([one.auc for one in each]),
    )


def _finding(
    name: str, counts: Counts, sd: float, bins: Counts | None, sd_bins: float
) -> FindingTested:
    absent, present = _shares(counts, sd)
    right, wrong = (float(count) for count in counts.sum(axis=0))
    return FindingTested(
        name,
        measures.share(right, wrong, sd * math.sqrt(2.0)),
        present,
        absent,
        measures.balanced([absent, present]),
        None if bins is None else measures.auc(bins, sd_bins),
        counts.tolist(),
        sd,
        None if bins is None else bins.tolist(),
    )


def _shares(rows: Counts, sd: float) -> list[Shown | None]:
    return [measures.share(float(right), float(wrong), sd) for right, wrong in rows]


def _of_classes(names: tuple[str, ...], rows: Counts, sd: float) -> tuple[ClassTested, ...]:
    found = zip(names, _shares(rows, sd), rows, strict=True)
    return tuple(
        ClassTested(
            name,
            None if one is None else one.value,
            None if one is None else one.sd,
            float(right),
            float(wrong),
            sd,
        )
        for name, one, (right, wrong) in found
    )
