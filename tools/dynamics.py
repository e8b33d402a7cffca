"""How HyFreeDP's learning rate and losses move over its steps, and how its noise is split. Public
data, seeded.

python tools/dynamics.py [mnist5k] [--epsilons 0.5 1 4] [--cache FOLDER] [--figure dynamics.svg]

What is shown are the releases that the learner itself steers by: noised losses, and the rate that
follows from them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from arena import DELTA, load
from terminal import plot_lines, print_head, print_row, read_options
from trainings import accuracy, ask_for, trained, training_for

from dpladder.privacy.accounting import gdp
from dpladder.report.style import canvas
from dpladder.research.arena import Arena
from dpladder_papers.methods.hyfree_dp import HyperparameterFree
from dpladder_papers.methods.hyfree_dp import train as hyfree
from dpladder_papers.methods.hyfree_dp.train import split

GAMMAS = (1.005, 1.01, 1.05, 1.2)
LINES = 6  # of the table, for each total
Look = tuple[int, float, float]
"""A step, the noised loss where the weights stand, and the rate from there on."""


def main() -> None:
    options = read_options(
        __doc__, problem="mnist5k", epsilons=[0.5, 1.0, 4.0], cache=Path, figure=Path
    )
    arena = load(options.problem, options.cache)
    losses, rates = {}, {}
    print_head("ε", "test accuracy", "step", "noised loss", "learning rate")
    for epsilon in options.epsilons:
        right, looks = watched(arena, epsilon)
        for place in np.unique(np.linspace(0, len(looks) - 1, LINES).round().astype(int)):
            step, loss, eta = looks[place]
            print_row(f"{epsilon:g}", right, step, loss, f"{eta:.3g}")
        steps, over_loss, over_eta = zip(*looks, strict=True)
        losses[f"ε = {epsilon:g}"] = (steps, over_loss, "-")
        rates[f"ε = {epsilon:g}"] = (steps, over_eta, "-")
    print()
    print_head("γ", "noise multiplier of gradients at ε = 1", "of each loss", "losses' share of μ²")
    for gamma in GAMMAS:
        learner = HyperparameterFree(gamma=gamma)
        noise = split(learner, training_for(arena, ask_for("", arena, learner, 1.0)).hyper)
        share = learner.points * noise.looks / noise.loss**2 / gdp.mu_from_epsilon(1.0, DELTA) ** 2
        print_row(f"{gamma:g}", f"{noise.gradient:.1f}", f"{noise.loss:.1f}", f"{share:.1%}")
    if options.figure:
        with canvas(options.figure, height=3.6, width=9.0) as figure:
            left, right = figure.subplots(1, 2)
            plot_lines(left, losses, "step", "noised mean loss", "")
            plot_lines(right, rates, "step", "learning rate", "y", legend=False)


def watched(arena: Arena, epsilon: float) -> tuple[float, list[Look]]:
    """Test accuracy, and what the learner's own rule was given and answered."""
    learner, looks, rule = HyperparameterFree(), list[Look](), hyfree.fit_rate

    def watch(rate: Any, losses: Any, *more: Any) -> Any:
        after = rule(rate, losses, *more)
        loss = float(losses[len(losses) // 2])
        looks.append((len(looks) * learner.every, loss, float(after.eta)))
        return after

    ask = ask_for(f"dynamics {epsilon}", arena, learner, epsilon)
    with patch.object(hyfree, "fit_rate", watch):
        weights = trained(arena, training_for(arena, ask), ask.name)
    return accuracy(arena, weights), looks


if __name__ == "__main__":
    main()
