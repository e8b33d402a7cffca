"""How HyFreeDP's learning rate and losses move over its steps, and how its noise is split. Public
data, seeded.

python tools/dynamics.py [mnist5k] [--epsilons 0.5 1 4] [--cache FOLDER] [--figure dynamics.svg]

What is shown are the releases that the learner itself steers by: noised losses, and the rate that
follows from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from arena import DELTA, load
from terminal import print_head, print_row, read_options
from torch import Tensor
from trainings import accuracy, trained, training_for

from dpladder.config.learner_sections import Steering
from dpladder.config.sweep_sections import Search
from dpladder.methods.hyfree_dp import train as own
from dpladder.methods.hyfree_dp.queries import Multipliers, split
from dpladder.methods.hyfree_dp.section import HyperparameterFree
from dpladder.methods.hyfree_dp.train import Rate
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.report.style import CYCLE, canvas, log_axis
from dpladder.research.contest import Arena
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
    asked = read_options(
        __doc__, problem="mnist5k", epsilons=[0.5, 1.0, 4.0], threads=2, cache=Path, figure=Path
    )
    arena, learner = load(asked.problem, asked.cache, asked.threads, 0), HyperparameterFree()
    seen = {epsilon: looked(arena, learner, epsilon) for epsilon in asked.epsilons}
    print_head("ε", "test accuracy", "step", "noised loss", "learning rate")
    for epsilon, (right, looks) in seen.items():
        for look in few(looks):
            print_row(f"{epsilon:g}", right, look.step, look.loss, f"{look.eta:.3g}")
    print()
    print_head("γ", "noise multiplier of gradients at ε = 1", "of each loss", "losses' share of μ²")
    for gamma in GAMMAS:
        steered = learner.model_copy(update={"gamma": gamma})
        found = noise_of(arena, steered, 1.0)
        share = steered.points * found.looks / found.loss**2 / gdp.mu_from_epsilon(1.0, DELTA) ** 2
        print_row(f"{gamma:g}", f"{found.gradient:.1f}", f"{found.loss:.1f}", f"{share:.1%}")
    if asked.figure:
        draw({epsilon: looks for epsilon, (_, looks) in seen.items()}, asked.figure)


def noise_of(arena: Arena, learner: HyperparameterFree, epsilon: float) -> Multipliers:
    training = training_of(
        Space(Search(), learner, arena.constants), None, Entry(gdp.mu_from_epsilon(epsilon, DELTA))
    )
    return split(learner, training.hyper)


def looked(arena: Arena, learner: HyperparameterFree, epsilon: float) -> tuple[float, list[Look]]:
    training = training_for(arena, learner, epsilon)
    with watched(learner.every) as looks:
        weights = trained(arena, training, f"dynamics {epsilon}")
    return accuracy(arena, weights), looks


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
