"""DP-HyPO (Wang et al. 2023, Framework 1 and Algorithm 3): private selection whose runs look where
earlier runs did well.

A Gaussian process proposes the next r. Its density over the uniform prior is kept within public
bounds. That bounds the cost: (2 + shape) log(high/low) of epsilon for runs of pure DP (Theorem 2
there). Assumes what private selection assumes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpladder.privacy.accounting.events import Counted, Relation
from dpladder.privacy.accounting.selection import Lean
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter
from dpladder.search.protocol import Answer, Ask, Asking, Setting, Units, spread_r
from dpladder_papers.searches import secret_runs
from dpladder_papers.searches.dp_hypo import DpHypo
from dpladder_papers.searches.secret_runs import (
    Chance,
    best,
    budget,
    draw_run_count,
    selection_event,
)
from dpladder_papers.searches.selection_cost import SHAPES, event_of_repeats


def price(search: DpHypo, epsilon: float, delta: float, relation: Relation) -> tuple[Counted, ...]:
    """One event: the whole selection, its winner's weights included. Under either relation.

    Args:
        search: its section in the config.
        epsilon: the total, final weights included.
        delta: the lineage's.
        relation: what neighbours are.

    Returns:
        The dearest selection that costs no more than the total.
    """
    return (Counted(event_of_repeats(search, epsilon, delta, lean_bounds(search, epsilon))),)


def lean_bounds(search: DpHypo, epsilon: float) -> Lean:
    """How far proposals may lean for their share of epsilon: (2 + shape) log(high/low) of it (Wang
    et al. 2023, Theorem 2).

    Args:
        search: its section, with the share.
        epsilon: the total.

    Returns:
        low = 1/high, the bounds on a proposal's density over the uniform prior.
    """
    half = search.adapting * epsilon / (2 + SHAPES[search.law]) / 2
    return Lean(math.exp(-half), math.exp(half))


CELLS = 48  # places in log r between which a proposal chooses
LENGTH = 0.15  # over which scores are alike, as a share of the range
SHARPNESS = (
    # of the wish to look where the process believes scores to be high, in their standard deviations
    3.0
)


@dataclass(frozen=True)
class Searcher(secret_runs.Searcher):
    """Secret runs whose places lean towards good scores. It declares what all secret runs do, for
    where a run looks follows from earlier runs and a uniform.

    Guarantee: that of `RepeatAndSelect` with `low` and `high`, which `proposal` keeps densities
    within. A small total hardly lets a proposal lean at all.
    """

    section: DpHypo

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        """Run by run: propose a cell, train there, and look at the score before the next one. Runs
        cannot be trained side by side here."""
        event = selection_event(self.section, setting)
        plan, lean = budget(event, setting), Lean(event.low, event.high)
        chance = draw_run_count(plan, self.section.padded, meter)
        cells: list[int] = []
        asks: list[Ask] = []
        answers: list[Answer] = []
        for place in chance.places:
            density = proposal(upper_bounds(cells, answers, chance, plan.score.scale), lean)
            cells.append(
                int(np.searchsorted(np.cumsum(density) / density.sum(), place * (1 - 1e-12)))
            )
            r = spread_r((cells[-1] + 0.5) / CELLS, setting.space, plan.weights)
            asks.append(Ask(r, plan.weights))
            answers += yield asks[-1:]
        return best(asks, answers, chance, setting)


def upper_bounds(
    cells: Sequence[int], answers: Sequence[Answer], chance: Chance, scale: float
) -> Floats:
    """Upper confidence bounds of the scores in each cell, in standard deviations of those seen:
    (CELLS,).

    They are secret: they follow from losers' scores.

    Args:
        cells: where the runs so far trained.
        answers: theirs.
        chance: noise of their scores.
        scale: sd of that noise.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    if len(answers) < 2:
        return np.zeros(CELLS)
    scores = chance.scores(answers)
    sd = float(scores.std()) or scale  # two noised counts may be equal on their grid
    process = GaussianProcessRegressor(RBF(LENGTH), alpha=(scale / sd) ** 2 + 1e-6, optimizer=None)
    process.fit(np.divide(cells, CELLS)[:, None], (scores - scores.mean()) / sd)
    mean, spread_out = process.predict(np.arange(CELLS)[:, None] / CELLS, return_std=True)
    bounds: Floats = mean + spread_out
    return bounds


def proposal(wished: Floats, lean: Lean) -> Floats:
    """Densities over the uniform prior, of mean 1 and within the bounds, higher where more is
    wished for (Wang et al. 2023, section 3.2).

    Guarantee: every density lies in [low, high], whatever was wished for. The price rests on that.

    Args:
        wished: for each cell.
        lean: the bounds.

    Returns:
        float64 (cells,), a density for each.
    """
    weights = np.exp(SHARPNESS * (wished - wished.max()))
    low, high = lean.low - weights.max(), lean.high
    while True:  # the shift at which the clipped densities have mean 1
        shift = (low + high) / 2
        densities: Floats = np.clip(weights + shift, lean.low, lean.high)
        if not low < shift < high or abs(densities.mean() - 1) < 1e-12:
            return densities
        low, high = (low, shift) if densities.mean() > 1 else (shift, high)
