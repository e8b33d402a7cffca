"""Searches against each other on public data: any ways to search, with any learners, at any totals, side by side.

Each entry pays inside its total for all that it needs: its trials, their scores, its final training. Noise is seeded and
accounted as in a release; nothing here is one.
"""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpladder.config.learners import Learner
from dpladder.config.model import Resources
from dpladder.errors import Refused
from dpladder.job import Task
from dpladder.learn import score
from dpladder.learn.interface import Constants, Data, Hyper, Weights
from dpladder.learn.registry import method
from dpladder.privacy import gdp
from dpladder.privacy.ledger import Terms
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.noise import Floats, ResearchNoise, Shape
from dpladder.privacy.spend import Counted, Gaussian, Job
from dpladder.rules.private import constants_of, part_of, read_raw
from dpladder.rules.training import hyper_of
from dpladder.search.hpo import Answer, Ask, Asking, Declared, Found, Mask, Setting, Units
from dpladder.search.hpo import Method as Searching
from dpladder.search.space import bounds

WIDE = 32  # trainings that share a pass
GRID, GRID_REPEATS = 13, 8


@dataclass(frozen=True)
class Arena:
    """Public data, cut once into what is trained on and what is tested on."""

    train: Data
    test: Data
    constants: Constants
    terms: Terms
    resources: Resources
    seed: int


@dataclass(frozen=True)
class Entry:
    """A way to search, what it is told, and what it trains."""

    name: str
    search: Searching
    setting: Setting
    learner: Learner


@dataclass(frozen=True)
class Row:
    """Test accuracy of what an entry puts out, and what a repeat takes."""

    name: str
    epsilon: float
    mean: float
    sd: float
    p10: float
    repeats: int
    trainings: float  # one on a part of the data counts by the part's size
    seconds: float  # of one core: a training has its share, by steps, of the time of those that it shared passes with
    search: float  # share of mu^2 that did not go into the weights that were put out


@dataclass(frozen=True)
class Straight:
    """No search: the whole total on one training."""

    def declare(self, setting: Setting) -> Declared:
        return Declared((Counted(Gaussian(gdp.sigma(setting.mu, 1))),))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        [answer] = yield [Ask(1.0, setting.mu)]
        return Found(1.0, setting.mu, answer.weights)


@dataclass(frozen=True, eq=False)
class Training:
    name: str
    ask: Ask
    entry: Entry

    @property
    def hyper(self) -> Hyper:
        learner = self.entry.learner
        r = None if learner.searches is None else self.ask.r
        return hyper_of(learner, self.entry.setting.search, r, self.ask.mu)


@dataclass
class Run:
    """One search under way: what it asks for next, and what it has used so far."""

    name: str
    entry: Entry
    asking: Asking
    meter: Meter
    asks: list[Ask] = field(default_factory=list)
    found: Found | None = None
    trainings: float = 0.0
    seconds: float = 0.0

    def step(self, answers: list[Answer] | None = None) -> None:
        try:
            self.asks = next(self.asking) if answers is None else self.asking.send(answers)
        except StopIteration as done:
            self.asks, self.found = [], done.value
            self.meter.close()


@dataclass(frozen=True)
class Below:
    """The streams below one stream: a hash for each."""

    stem: bytes

    def stream(self, name: str, index: int) -> bytes:
        return hmac.digest(self.stem, f"{name} {index}".encode(), "sha256")


class PublicMeter(Meter):
    """Quick draws for public data, the only data that ResearchNoise is for. Hardened normals would be half of the time."""

    def __init__(self, draws: Sequence[Draw], source: ResearchNoise) -> None:
        super().__init__(draws, Below(source.stream("contest", 0)))

    def gaussian(self, name: str, scale: float, shape: Shape) -> Floats:
        seed = np.frombuffer(self._take(name, "gaussian", scale, shape), np.uint32)
        return np.random.Generator(np.random.SFC64(seed)).normal(0.0, scale, shape)


def arena_of(task: Task) -> Arena:
    cfg, unit = task.cfg, task.cfg["dataset.unit"]
    if cfg["mode"] != "research":
        raise Refused(
            f"{task.rule} trains and tests as often as it likes, which only data declared public allows. Compare on such "
            "data with mode: research; on private data, give each way an experiment and its own budget."
        )
    terms = Terms(
        cfg["dataset.lineage"],
        cfg["privacy.relation"],
        unit["by"],
        unit["cap"],
        cfg["privacy.delta"],
        cfg["dataset.split"]["rule"],
        mode=cfg["mode"],
    )
    train, test = part_of(task, "train"), part_of(task, "test")
    seed = cfg["research"]["seed"]
    return Arena(read_raw(train), read_raw(test), constants_of(task, train), terms, task.resources, seed)


def contest(arena: Arena, entries: Sequence[Entry], repeats: int) -> list[Row]:
    """Every entry's search `repeats` times, all of them side by side. Repeats differ in public draws and in noise."""
    runs = [started(arena, entry, repeat) for entry in entries for repeat in range(repeats)]
    while pending := [run for run in runs if run.asks]:
        answer(arena, pending)
    by_entry = [runs[first : first + repeats] for first in range(0, len(runs), repeats)]
    return [summary(arena, entry, own) for entry, own in zip(entries, by_entry, strict=True)]


def oracle(arena: Arena, setting: Setting, learner: Learner) -> float:
    """The best mean test accuracy over a grid of r, each training with the whole total: what no private search knows."""
    entry = Entry("oracle", Straight(), setting, learner)
    trainings = [
        Training(f"oracle {setting.epsilon} {r} {again}", Ask(r, setting.mu), entry)
        for r in np.geomspace(*bounds(setting.search), GRID).tolist()
        for again in range(GRID_REPEATS)
    ]
    answers, _ = trained(arena, trainings)
    right = correct([answer.weights for answer in answers], arena.test)
    return float(right.reshape(GRID, GRID_REPEATS).mean(axis=1).max()) / len(arena.test.labels)


def started(arena: Arena, entry: Entry, repeat: int) -> Run:
    """A search with public draws and secrets of its own."""
    search = entry.setting.search.model_copy(update={"seed": repeat})
    entry = replace(entry, setting=replace(entry.setting, search=search))
    name = f"{entry.name} {entry.setting.epsilon} {repeat}"
    meter = PublicMeter(entry.search.declare(entry.setting).draws, _noise(arena, name))
    run = Run(name, entry, entry.search.run(entry.setting, meter, _units(arena.train)), meter)
    run.step()
    return run


def answer(arena: Arena, pending: Sequence[Run]) -> None:
    """Trains what all searches ask for, and takes each one to its next wish."""
    trainings = [
        Training(f"{run.name} {run.trainings} {place}", ask, run.entry)
        for run in pending
        for place, ask in enumerate(run.asks)
    ]
    answers, seconds = trained(arena, trainings)
    first = 0
    for run in pending:
        own = slice(first, first := first + len(run.asks))
        run.trainings += sum(ask.share for ask in run.asks)
        run.seconds += sum(seconds[own])
        run.step(answers[own])


def trained(arena: Arena, trainings: Sequence[Training]) -> tuple[list[Answer], Floats]:
    """Each one's weights and score, and its share of the time. Every core has a batch of its own."""
    batches = [*_batches(trainings, arena.resources.threads)]
    answers: dict[int, Answer] = {}
    seconds = np.empty(len(trainings))
    with ThreadPoolExecutor(arena.resources.threads) as pool:
        together = pool.map(partial(_together, arena), ([trainings[i] for i in batch] for batch in batches))
        for batch, (own, spent) in zip(batches, together, strict=True):
            answers |= zip(batch, own, strict=True)
            steps = np.array([trainings[i].hyper.steps for i in batch])
            seconds[batch] = spent * steps / steps.sum()
    return [answers[i] for i in range(len(trainings))], seconds


def correct(heads: Sequence[Weights], data: Data) -> NDArray[np.int64]:
    """How many predictions of each head are right. Linear ones are told in one pass."""
    features, labels = data.features, data.labels
    if any(len(head) > 1 for head in heads):
        return np.array([score.correct_count(head, features, labels) for head in heads])
    found = np.zeros(len(heads), np.int64)
    for place in range(0, len(heads), WIDE):
        layers = [layer for (layer,) in heads[place : place + WIDE]]
        for start in range(0, len(labels), score.CHUNK):
            part = slice(start, start + score.CHUNK)
            logits = score.logits((np.concatenate(layers),), features[part])
            chosen = logits.reshape(len(logits), len(layers), -1).argmax(axis=2)
            found[place : place + WIDE] += (chosen == labels[part, None]).sum(axis=0)
    return found


def summary(arena: Arena, entry: Entry, runs: Sequence[Run]) -> Row:
    found = [run.found for run in runs if run.found]
    heads = [one.weights for one in found if one.weights is not None]
    accuracy = np.full(len(runs), 1.0 / arena.constants.classes)  # without weights there is a guess
    if heads:
        able = [one.weights is not None for one in found]
        accuracy[able] = correct(heads, arena.test) / len(arena.test.labels)
    return Row(
        name=entry.name,
        epsilon=entry.setting.epsilon,
        mean=float(accuracy.mean()),
        sd=float(accuracy.std(ddof=1)) if len(runs) > 1 else 0.0,
        p10=float(np.percentile(accuracy, 10)),
        repeats=len(runs),
        trainings=float(np.mean([run.trainings for run in runs])),
        seconds=float(np.mean([run.seconds for run in runs])),
        search=1.0 - float(np.mean([one.mu**2 for one in found])) / entry.setting.mu**2,
    )


def _batches(trainings: Sequence[Training], cores: int) -> Iterator[list[int]]:
    """Places of those that read the same records. A batch is as long as its longest, so like lengths go together; the
    longest first, so that cores end together."""
    wide = min(WIDE, math.ceil(len(trainings) / cores))
    groups: dict[Hashable, list[int]] = {}
    for place, training in enumerate(trainings):
        ask = training.ask
        groups.setdefault((id(ask.trained), id(ask.counted), training.entry.learner), []).append(place)
    for group in groups.values():
        group.sort(key=lambda place: -trainings[place].hyper.steps)
        yield from (group[start : start + wide] for start in range(0, len(group), wide))


def _together(arena: Arena, trainings: Sequence[Training]) -> tuple[list[Answer], float]:
    """Trained as a release would be, each with the noise that it declares, and on one core."""
    began = time.perf_counter()
    ask, learner = trainings[0].ask, trainings[0].entry.learner
    module, hypers = method(learner.name), [training.hyper for training in trainings]
    constants = replace(arena.constants, n0=round(ask.share * arena.constants.n0))
    data, resources = _some(arena.train, ask.trained), arena.resources.model_copy(update={"threads": 1})
    meters = [
        PublicMeter(module.declare(learner, hyper, constants).draws, _noise(arena, training.name))
        for hyper, training in zip(hypers, trainings, strict=True)
    ]
    heads: list[Weights]
    if hasattr(module, "train_many"):
        many = module.train_many(data, hypers, learner, constants, meters, resources)
        heads = [(head.copy(),) for head in many]  # whoever keeps one must not keep all
    else:
        heads = [
            module.train(data, hyper, learner, constants, meter, resources)
            for hyper, meter in zip(hypers, meters, strict=True)
        ]
    for meter in meters:
        meter.close()
    counts = correct(heads, _some(arena.train, ask.counted))
    answers = [Answer(head, int(count)) for head, count in zip(heads, counts, strict=True)]
    return answers, time.perf_counter() - began


def _some(data: Data, mask: Mask | None) -> Data:
    if mask is None:
        return data
    units = None if data.units is None else data.units[mask]
    return replace(data, features=data.features[mask], labels=data.labels[mask], units=units)


def _units(data: Data) -> Units:
    """Whose each record is; in public data without units, its own number."""
    if data.units is not None:
        return data.units
    numbers = np.arange(len(data.labels), dtype=np.uint64)
    return np.stack([numbers, numbers], axis=1).view(np.uint8)


def _noise(arena: Arena, name: str) -> ResearchNoise:
    return ResearchNoise(arena.terms, Job("contest", "search", (("name", name),)), arena.seed)
