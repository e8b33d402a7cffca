"""How HyFreeDP's learning rate and losses move over its steps, and how its noise is split. Public
data, seeded.

python tools/dynamics.py [mnist5k] [--epsilons 0.5 1 4] [--cache FOLDER] [--figure dynamics.svg]

What is shown are the releases that the learner itself steers by: noised losses, and the rate that
follows from them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from arena import DATA, DELTA, load
from torch import Tensor

from dpladder.config.learner_sections import Steering
from dpladder.config.sweep_sections import Search
from dpladder.learn.scorers import ClassScorer
from dpladder.methods.hyfree_dp import train as own
from dpladder.methods.hyfree_dp.queries import Multipliers, split
from dpladder.methods.hyfree_dp.section import HyperparameterFree
from dpladder.methods.hyfree_dp.train import Rate
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.report.style import CYCLE, canvas, log_axis
from dpladder.research.contest import Arena, PublicMeter
from dpladder.search.space import Space
from dpladder.search.training import training_of

GAMMAS = (1.005, 1.01, 1.05, 1.2)


@dataclass(frozen=True)
class Look:
    """After a look at losses: the noised loss where the weights stand, and the rate from there
    on."""

    step: int
    loss: float
    eta: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problem", nargs="?", default="mnist5k", choices=DATA)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    parser.add_argument("--figure", type=Path, help="where a picture goes")
    asked = parser.parse_args()
    arena, learner = load(asked.problem, asked.cache, asked.threads, 0), HyperparameterFree()
    seen = {epsilon: looked(arena, learner, epsilon) for epsilon in asked.epsilons}
    print("| ε | test accuracy | step | noised loss | learning rate |\n|---|---|---|---|---|")
    for epsilon, (accuracy, looks) in seen.items():
        for look in few(looks):
            print(
                f"| {epsilon:g} | {accuracy:.3f} | {look.step} | {look.loss:.3f} | {look.eta:.3g} |"
            )
    print(
        "\n| γ | noise multiplier of gradients at ε = 1 | of each loss | losses' share of μ² "
        "|\n|---|---|---|---|"
    )
    for gamma in GAMMAS:
        steered = learner.model_copy(update={"gamma": gamma})
        found = noise_of(arena, steered, 1.0)
        share = steered.points * found.looks / found.loss**2 / gdp.mu_from_epsilon(1.0, DELTA) ** 2
        print(f"| {gamma:g} | {found.gradient:.1f} | {found.loss:.1f} | {share:.1%} |")
    if asked.figure:
        draw({epsilon: looks for epsilon, (_, looks) in seen.items()}, asked.figure)


def noise_of(arena: Arena, learner: HyperparameterFree, epsilon: float) -> Multipliers:
    training = training_of(
        Space(Search(), learner, arena.constants), None, Entry(gdp.mu_from_epsilon(epsilon, DELTA))
    )
    return split(learner, training.hyper)


def looked(arena: Arena, learner: HyperparameterFree, epsilon: float) -> tuple[float, list[Look]]:
    training = training_of(
        Space(Search(), learner, arena.constants), None, Entry(gdp.mu_from_epsilon(epsilon, DELTA))
    )
    with watched(learner.every) as looks:
        weights = training.run(
            arena.train,
            PublicMeter(training.declared.draws, arena, f"dynamics {epsilon}"),
            arena.resources,
        )
    right = ClassScorer().count(weights, arena.test.features, arena.test.labels)
    return right / len(arena.test.labels), looks


@contextmanager
def watched(every: int) -> Iterator[list[Look]]:
    """What the learner's own rule is told and answers."""
    looks: list[Look] = []
    learned = own.fit_rate

    def telling(
        rate: Rate, losses: Tensor, deviation: Tensor, unit: float, steering: Steering = "guarded"
    ) -> Rate:
        found = learned(rate, losses, deviation, unit, steering)
        looks.append(Look(len(looks) * every, float(losses[len(losses) // 2]), float(found.eta)))
        return found

    own.fit_rate = telling
    try:
        yield looks
    finally:
        own.fit_rate = learned


def few(looks: Sequence[Look], count: int = 6) -> list[Look]:
    """The first, the last, and some between."""
    last = len(looks) - 1
    return [
        looks[place]
        for place in sorted({round(last * part / (count - 1)) for part in range(count)})
    ]


def draw(seen: dict[float, list[Look]], path: Path) -> None:
    with canvas(path, height=3.6, width=9.0) as figure:
        losses, rates = figure.subplots(1, 2)
        for colour, (epsilon, looks) in zip(CYCLE, seen.items(), strict=False):
            steps = [look.step for look in looks]
            losses.plot(
                steps, [look.loss for look in looks], color=colour, label=f"ε = {epsilon:g}"
            )
            rates.plot(steps, [look.eta for look in looks], color=colour)
        losses.set(xlabel="step", ylabel="noised mean loss")
        rates.set(xlabel="step", ylabel="learning rate")
        log_axis(rates, "y")
        losses.legend()


if __name__ == "__main__":
    main()
