"""Private selection on a random subset, the final training on the rest or on everything (Koskela & Kulkarni 2023).

Assumes add_remove, that the subset stays secret, and what private selection assumes. The best r grows in proportion to
the number of records, as a sum's signal does beside its noise, so the winner's r is scaled by the ratio of sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpladder.config.searches import KoskelaKulkarni
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.spend import Counted, SubsetSelect
from dpladder.search.hpo import Ask, Asking, Declared, Found, Setting, Units, events_of, mu_of, spread
from dpladder.search.repeat import best, budget, draws, toss
from dpladder.search.space import clamp


@dataclass(frozen=True)
class SubsetRuns:
    """`apart`: the final training sees the rest alone (variant 1), else everything (variant 2)."""

    section: KoskelaKulkarni

    def declare(self, setting: Setting) -> Declared:
        events = events_of(self.section, setting)
        plan = budget(_selected(events).tuning, setting)
        return Declared(events, (Draw("subset", "mask", self.section.share), *draws(plan)))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        selected = _selected(self.declare(setting).events)
        plan, mu, share = budget(selected.tuning, setting), mu_of(selected.final), selected.probability
        subset = meter.mask("subset", share, units)
        chance = toss(selected.tuning, plan, self.section.padded, meter)
        rest = 1 - share if selected.apart else 1.0
        finals = [spread(place, setting.search) for place in chance.places]
        smaller = [clamp(r * share / rest, setting.search) for r in finals]
        asks = [Ask(r, plan.weights, subset, subset, share) for r in smaller]
        answers = (yield asks) if asks else []
        won = best([replace(ask, r=r) for ask, r in zip(asks, finals, strict=True)], answers, chance, setting)
        [answer] = yield [Ask(won.r, mu, ~subset if selected.apart else None, None, rest)]
        return Found(won.r, mu, answer.weights)


def _selected(events: tuple[Counted, ...]) -> SubsetSelect:
    [selected] = events
    assert isinstance(selected.event, SubsetSelect)
    return selected.event
