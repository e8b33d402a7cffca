"""Every way to search hyperparameters at the same total: what does the ladder buy, and where does it lose?

python tests/benchmarks/compare_hpo.py [mnist5k] [--repeats 50] [--seed 0] [--cache FOLDER] [--out FOLDER]

Research on public data, seeded. All methods search the same range of r on the same features and pay for everything that
XX Writes tables and figures of the methods, and of the ladder's ablations.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quality_search import DELTA, GRID, LEARNER, WIDE, Problem, load

from dpladder.config.learners import HyperparameterFree, Learner
from dpladder.config.model import Fit, Resources, Search
from dpladder.learn.engine import train_many
from dpladder.learn.interface import Constants, Data, Hyper
from dpladder.learn.registry import method
from dpladder.privacy import gdp
from dpladder.privacy.ledger import Terms
from dpladder.privacy.meter import Meter
from dpladder.privacy.noise import ResearchNoise
from dpladder.privacy.spend import Job
from dpladder.report.style import CYCLE, GREY, canvas, percent_axis
from dpladder.rules.contest import Straight
from dpladder.rules.training import hyper_of
from dpladder.search.hpo import Answer, Ask, Asking, Found, Mask, Method, Setting
from dpladder.search.ladder import Ladder
from dpladder.search.registry import METHODS
from dpladder.search.space import bounds

Floats = NDArray[np.float64]
Weights = NDArray[np.float32]

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
ABLATED = 1.0  # the total at which the ladder's parts are varied
GRID_REPEATS = 8
FREE = "hyperparameter_free"  # HyFreeDP, a learner that searches nothing
CONTESTANTS: dict[str, Method] = {**METHODS, FREE: Straight()}
FLOORS = ("random_search", "random_search_uniform")


@dataclass(frozen=True)
class Entry:
    """One contestant: a method in a setting."""

    name: str
    method: Method
    setting: Setting
    learner: Learner = LEARNER


@dataclass
class Run:
    """One search under way: what it asks for next, and what it has used so far."""

    entry: Entry
    name: str
    asking: Asking
    meter: Meter
    asks: list[Ask] = field(default_factory=list)
    trainings: float = 0.0
    seconds: float = 0.0
    found: Found | None = None

    def step(self, answers: list[Answer] | None = None) -> None:
        try:
            self.asks = next(self.asking) if answers is None else self.asking.send(answers)
        except StopIteration as done:
            self.asks, self.found = [], done.value
            self.meter.close()


@dataclass(frozen=True, eq=False)
class Training:
    name: str
    ask: Ask
    search: Search
    learner: Learner = LEARNER

    @property
    def hyper(self) -> Hyper:
        return hyper_of(self.learner, self.search, self.ask.r if self.learner.searches else None, self.ask.mu)


@dataclass(frozen=True)
class Row:
    """A line of the tables. `runs` counts a training on a part of the data by the part's size, `search` is the share of
    mu^2 that did not go into the weights that were put out."""

    method: str
    epsilon: float
    mean: float
    sd: float
    p10: float
    runs: float
    seconds: float
    search: float


class PlainNoise:
    """A training's noise from numpy, for public data: the hardened kind would be half of the time."""

    def __init__(self, *name: int | str) -> None:
        self._random = np.random.default_rng(list(repr(name).encode()))

    def gaussian(self, name: str, scale: float, shape: tuple[int, ...]) -> Floats:
        return self._random.normal(0.0, scale, shape)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problem", nargs="?", default="mnist5k", choices=["mnist5k", "digits", "mixture"])
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--methods", nargs="+", default=[*CONTESTANTS], choices=[*CONTESTANTS])
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    parser.add_argument("--out", type=Path, default=Path("results/compare_hpo"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ablations", action=argparse.BooleanOptionalAction, default=True)
    asked = parser.parse_args()
    problem = replace(load(asked.problem, asked.cache), resources=Resources(threads=asked.threads))
    asked.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    about = f"{problem.name}, delta {DELTA:g}, {asked.repeats} repeats, seed {asked.seed}"
    rows: list[Row] = []
    tops, floors = {}, {}
    for epsilon in asked.epsilons:
        setting = Setting(epsilon, Search(), problem.constants)
        methods = [
            Entry(name, CONTESTANTS[name], setting, HyperparameterFree() if name == FREE else LEARNER)
            for name in asked.methods
        ]
        found = contest(problem, methods, asked.repeats, asked.seed)
        rows += found
        tops[epsilon] = oracle(problem, setting, asked.seed)
        floors[epsilon] = max((row.mean for row in found if row.method in FLOORS), default=0.0)
        publish(asked.out / "hpo", rows, floors, tops, about)
        print(f"epsilon {epsilon:g} after {time.perf_counter() - began:.0f} s", flush=True)
    if asked.ablations and ABLATED in tops:
        rows = contest(problem, ablations(problem), asked.repeats, asked.seed)
        publish(asked.out / "ablations", rows, floors, tops, about)
    print((asked.out / "hpo.md").read_text("utf-8"))
    print(f"{time.perf_counter() - began:.0f} s in all")


def ablations(problem: Problem) -> list[Entry]:
    """The ladder at one total, one part of it changed at a time."""
    best, pooled = Fit(using="best"), Fit(using="pooled")
    two, three = ((0.1, 3), (0.2, 3)), ((0.05, 2), (0.1, 2), (0.2, 2))
    ladders = {
        "line through 2": Ladder(two, fit=best),
        "line through 3": Ladder(three, fit=best),
        "parabola through 3": Ladder(three, fit=Fit(using="best", degree=2)),
        "pooled over 2": Ladder(two, fit=pooled),
        "pooled over 3": Ladder(three, fit=pooled),
        "pooled, against mu": Ladder(two, fit=Fit(using="pooled", against="mu")),
    }
    for cheap, dear in ((0.05, 0.1), (0.1, 0.3), (0.2, 0.3), (0.3, 0.4)):
        ladders[f"rungs at {cheap} and {dear} of the total"] = Ladder(((cheap, 3), (dear, 3)), fit=pooled)
    for trials in (1, 2, 5, 8):
        ladders[f"{trials} trials per rung"] = Ladder(((0.1, trials), (0.2, trials)), fit=pooled)
    searches = {
        "range 10 times narrower": Search(eta=(0.03, 1.5)),
        "range 10 times wider": Search(eta=(0.003, 15.0)),
        "range 100 times wider": Search(eta=(0.001, 50.0)),
        "eta first": Search(decompose="eta_first"),
        "steps first": Search(decompose="steps_first"),
    }
    plain = Setting(ABLATED, Search(), problem.constants)
    return [
        *(Entry(name, ladder, plain) for name, ladder in ladders.items()),
        *(Entry(name, METHODS["ladder"], replace(plain, search=search)) for name, search in searches.items()),
    ]


def oracle(problem: Problem, setting: Setting, seed: int) -> float:
    """The best mean test accuracy over a grid of r, each training with the whole budget: what no private method knows."""
    grid = np.geomspace(*bounds(setting.search), GRID)
    trainings = [
        Training(f"oracle {setting.epsilon} {r} {again}", Ask(float(r), setting.mu), setting.search)
        for r in grid
        for again in range(GRID_REPEATS)
    ]
    weights, _ = fit(problem, trainings, seed)
    right = correct(weights, problem.test).reshape(GRID, GRID_REPEATS).mean(axis=1)
    return float(right.max()) / len(problem.test.labels)


def contest(problem: Problem, entries: Sequence[Entry], repeats: int, seed: int) -> list[Row]:
    """Runs every search `repeats` times, all of them side by side, and says how good their models are."""
    runs = [start(problem, entry, repeat, seed) for entry in entries for repeat in range(repeats)]
    while pending := [run for run in runs if run.asks]:
        answers = iter(answer(problem, pending, seed))
        for run in pending:
            run.step([next(answers) for _ in run.asks])
    accuracy = (tested(problem, runs) / len(problem.test.labels)).reshape(len(entries), repeats)
    return [
        summary(entry, own, runs[first : first + repeats])
        for entry, own, first in zip(entries, accuracy, range(0, len(runs), repeats), strict=True)
    ]


def start(problem: Problem, entry: Entry, repeat: int, seed: int) -> Run:
    """A search with public draws and secrets of its own."""
    search = entry.setting.search.model_copy(update={"seed": repeat})
    setting = replace(entry.setting, search=search)
    name = f"{entry.name} {setting.epsilon} {repeat}"
    terms = Terms(problem.name, "add_remove", "record", 1, DELTA, "given", mode="research")
    source = ResearchNoise(terms, Job(problem.name, "private_search", (("name", name),)), seed)
    meter = Meter(entry.method.declare(setting).draws, source)
    run = Run(entry, name, entry.method.run(setting, meter, units(problem)), meter)
    run.step()
    return run


def summary(entry: Entry, accuracy: Floats, runs: Sequence[Run]) -> Row:
    put_out = np.mean([run.found.mu**2 for run in runs if run.found])
    return Row(
        method=entry.name,
        epsilon=entry.setting.epsilon,
        mean=float(accuracy.mean()),
        sd=float(accuracy.std(ddof=1)),
        p10=float(np.percentile(accuracy, 10)),
        runs=float(np.mean([run.trainings for run in runs])),
        seconds=float(np.mean([run.seconds for run in runs])),
        search=float(1 - put_out / entry.setting.mu**2),
    )


def answer(problem: Problem, pending: Sequence[Run], seed: int) -> list[Answer]:
    """Trains what all searches ask for, and counts where they ask to."""
    trainings = [
        Training(f"{run.name} {run.trainings} {place}", ask, run.entry.setting.search, run.entry.learner)
        for run in pending
        for place, ask in enumerate(run.asks)
    ]
    weights, seconds = fit(problem, trainings, seed)
    counts = np.empty(len(trainings), np.int64)
    for places in together([id(training.ask.counted) for training in trainings]):
        counted = some(problem.train, trainings[places[0]].ask.counted)
        counts[places] = correct(weights[places], counted)
    spent = iter(seconds)
    for run in pending:
        run.seconds += sum(next(spent) for _ in run.asks)
        run.trainings += sum(ask.share for ask in run.asks)
    return [Answer((head,), int(right)) for head, right in zip(weights, counts, strict=True)]


def fit(problem: Problem, trainings: Sequence[Training], seed: int) -> tuple[Weights, Floats]:
    """Each training's weights and its share of the time. Those on the same records, like lengths first, share passes."""
    constants = problem.constants
    weights = np.empty((len(trainings), constants.classes, constants.dimension), np.float32)
    seconds = np.empty(len(trainings))
    for group in together([(id(training.ask.trained), training.learner) for training in trainings]):
        ask, learner = trainings[group[0]].ask, trainings[group[0]].learner
        data, sized = some(problem.train, ask.trained), replace(constants, n0=round(ask.share * constants.n0))
        group.sort(key=lambda place: trainings[place].hyper.steps)
        for batch in (group[start : start + WIDE] for start in range(0, len(group), WIDE)):
            hypers = [trainings[place].hyper for place in batch]
            noises = [PlainNoise(seed, trainings[place].name) for place in batch]
            began = time.perf_counter()
            weights[batch] = heads(data, hypers, learner, sized, noises, problem.resources)
            steps = np.array([hyper.steps for hyper in hypers])
            seconds[batch] = (time.perf_counter() - began) * steps / steps.sum()
    return weights, seconds


def heads(
    data: Data,
    hypers: Sequence[Hyper],
    learner: Learner,
    constants: Constants,
    noises: Sequence[PlainNoise],
    resources: Resources,
) -> Weights:
    if learner == LEARNER:
        return train_many(data, hypers, learner, constants, noises, resources)
    train = method(learner.name).train
    pairs = zip(hypers, noises, strict=True)
    return np.stack([train(data, hyper, learner, constants, noise, resources)[0] for hyper, noise in pairs])


def tested(problem: Problem, runs: Sequence[Run]) -> Floats:
    """Correct predictions of what each search put out; without weights, as many as a guess."""
    right = np.full(len(runs), len(problem.test.labels) / problem.constants.classes)
    ended = [place for place, run in enumerate(runs) if run.found and run.found.weights is not None]
    if ended:
        right[ended] = correct(np.stack([runs[place].found.weights[0] for place in ended]), problem.test)
    return right


def correct(weights: Weights, data: Data) -> NDArray[np.int64]:
    """How many predictions of each head are right."""
    found = np.zeros(len(weights), np.int64)
    for start in range(0, len(weights), WIDE):
        heads = weights[start : start + WIDE]
        logits = data.features @ heads.reshape(-1, heads.shape[2]).T
        chosen = logits.reshape(len(logits), *heads.shape[:2]).argmax(axis=2)
        found[start : start + WIDE] = (chosen == data.labels[:, None]).sum(axis=0)
    return found


def together(keys: Sequence[Hashable]) -> Iterator[list[int]]:
    """The places of equal keys."""
    groups: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    yield from groups.values()


def some(data: Data, mask: Mask | None) -> Data:
    return data if mask is None else Data(data.features[mask], data.labels[mask])


def units(problem: Problem) -> NDArray[np.uint8]:
    """Public data: a record's id is its number."""
    numbers = np.arange(len(problem.train.labels), dtype=np.uint64)
    return np.stack([numbers, numbers], axis=1).view(np.uint8)


def publish(
    path: Path,
    rows: Sequence[Row],
    floors: Mapping[float, float],
    tops: Mapping[float, float],
    about: str,
) -> None:
    """A table for machines, one for people, and a figure."""
    closed = [(row.mean - floors[row.epsilon]) / (tops[row.epsilon] - floors[row.epsilon]) for row in rows]
    with path.with_suffix(".csv").open("w", newline="") as file:
        table = csv.DictWriter(file, [*asdict(rows[0]), "rerr", "oracle"], lineterminator="\n")
        table.writeheader()
        table.writerows(
            {**asdict(row), "rerr": rerr, "oracle": tops[row.epsilon]}
            for row, rerr in zip(rows, closed, strict=True)
        )
    path.with_suffix(".md").write_text(markdown(rows, closed, tops, about), "utf-8")
    chart(path.with_suffix(".svg"), rows, tops)


def markdown(rows: Sequence[Row], closed: Sequence[float], tops: Mapping[float, float], about: str) -> str:
    lines = [f"Test accuracy of what each search puts out: {about}."]
    for epsilon in dict.fromkeys(row.epsilon for row in rows):
        grid = gdp.epsilon(GRID**0.5 * gdp.mu(epsilon, DELTA), DELTA)
        lines += [
            "",
            f"Total epsilon {epsilon:g}. Oracle {tops[epsilon]:.3f}: a grid of {GRID}, which honestly costs epsilon "
            f"{grid:.3g}.",
            "",
            "| method | mean | sd | 10th percentile | RERR | runs | seconds | search's share of mu² |",
            "|---|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {row.method} | {row.mean:.3f} | {row.sd:.3f} | {row.p10:.3f} | {rerr:.0%} | {row.runs:.1f} "
            f"| {row.seconds:.2f} | {row.search:.0%} |"
            for row, rerr in sorted(zip(rows, closed, strict=True), key=lambda pair: -pair[0].mean)
            if row.epsilon == epsilon
        ]
    return "\n".join(lines) + "\n"


def chart(path: Path, rows: Sequence[Row], tops: Mapping[float, float]) -> None:
    """How far below the oracle each method's models are: the mean, and a thin line to the 10th percentile."""
    names = [*dict.fromkeys(row.method for row in rows)]
    epsilons = [*dict.fromkeys(row.epsilon for row in rows)]
    with canvas(path, height=1.2 + 0.36 * len(names)) as figure:
        axes = figure.subplots()
        for row in rows:
            number = epsilons.index(row.epsilon)
            place = names.index(row.method) + 0.12 * (number - (len(epsilons) - 1) / 2)
            top, color = tops[row.epsilon], CYCLE[number]
            axes.plot([top - row.mean, top - row.p10], [place, place], color=color, lw=1, alpha=0.5)
            label = f"total epsilon {row.epsilon:g}" if row.method == names[0] else None
            axes.plot(top - row.mean, place, "o", ms=4, color=color, label=label)
        axes.axvline(0, color=GREY, lw=0.8)
        axes.set(yticks=range(len(names)), yticklabels=names, xlabel="test accuracy below the oracle's")
        axes.invert_yaxis()
        percent_axis(axes.xaxis)
        axes.legend(loc="lower right")


if __name__ == "__main__":
    main()
