"""Private selection on a random subset, the final training on the rest or on everything (Koskela & Kulkarni 2023).

Assumes add_remove, that the subset stays secret, and what private selection assumes. The best r grows in proportion to
the number of records, as a sum's signal does beside its noise, so the winner's r is scaled by the ratio of sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from dpladder.errors import Refused
from dpladder.learn import score
from dpladder.learn.interface import Constants
from dpladder.privacy import gdp, selection
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.selection import Runs
from dpladder.search.hpo import Ask, Asking, Declared, Found, Setting, Units, split, spread
from dpladder.search.repeat import Budget, best, draws, toss
from dpladder.search.space import clamp


@dataclass(frozen=True)
class SubsetRuns:
    """`apart`: the final training sees the rest alone (variant 1), else everything (variant 2). Every run of the
    selection costs as much as the final training: the same noise, relative to its own sum."""

    runs: Runs
    share: float = 0.2  # of the units, that selects
    apart: bool = True

    def declare(self, setting: Setting) -> Declared:
        plan, _ = _budget(self, setting.epsilon, setting.constants)
        return Declared(plan.epsilon, (Draw("subset", "mask", self.share), *draws(plan)))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        plan, mu = _budget(self, setting.epsilon, setting.constants)
        subset = meter.mask("subset", self.share, units)
        chance = toss(self.runs, plan, meter)
        rest = 1 - self.share if self.apart else 1.0
        finals = [spread(place, setting.search) for place in chance.places]
        smaller = [clamp(r * self.share / rest, setting.search) for r in finals]
        asks = [Ask(r, plan.weights, subset, subset, self.share) for r in smaller]
        answers = (yield asks) if asks else []
        won = best([replace(ask, r=r) for ask, r in zip(asks, finals, strict=True)], answers, chance, setting)
        [answer] = yield [Ask(won.r, mu, ~subset if self.apart else None, None, rest)]
        return Found(won.r, mu, answer.weights)


@cache
def _budget(method: SubsetRuns, epsilon: float, constants: Constants) -> tuple[Budget, float]:
    """The selection's budget, with the whole method's epsilon, and the final training's mu."""
    if constants.relation != "add_remove":
        raise Refused(
            "tuning on a random subset is bounded under add_remove alone, and the lineage's relation is "
            f"{constants.relation}. Choose another method."
        )
    delta = constants.delta * (1 - selection.TAIL)

    def cost(mu: float) -> float:
        return selection.subset_epsilon(mu, mu, method.share, method.runs, delta, method.apart)

    mu = selection.largest(cost, epsilon, gdp.mu(epsilon, delta))
    weights, counted = split(mu)
    limit = selection.most(method.runs, epsilon, constants.delta)
    return Budget(cost(mu), weights, score.noise_scale(counted, constants), limit), mu
