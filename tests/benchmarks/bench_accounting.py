"""How long accounting takes, and the same plan in dp_accounting's PLD, as ratios. Run: python
bench_accounting.py"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import loss_distribution
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.accounting.events import Counted, Gaussian, Partition, Spend

DELTA = 1e-5


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The fastest of several runs: the one that the machine disturbed least."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def demo_plan() -> list[Spend]:
    """Three trials at 0.1, three at 0.2, and a final run at 0.88, of 100 steps each."""
    return [
        Spend(
            lineage="demo",
            relation="add_remove",
            partition=Partition("hash", ("train",)),
            event=Gaussian(gdp.sigma(gdp.mu_from_epsilon(epsilon, DELTA), 100)),
            count=100,
        )
        for epsilon in [0.1] * 3 + [0.2] * 3 + [0.88]
    ]


def long_life(spends: int) -> list[Spend]:
    """A lineage's whole life: many small releases, all different."""
    first = demo_plan()[0]
    return [replace(first, event=Gaussian(5000.0 + i), count=1 + i % 100) for i in range(spends)]


def by_pld(spends: list[Spend]) -> float:
    """Each spend as a privacy loss distribution of its own, as accountants without a closed form
    compose them."""
    losses = loss_distribution(
        [Counted(spend.event, spend.count) for spend in spends], "add_remove"
    )
    return float(losses.get_epsilon_for_delta(DELTA))


def main() -> None:
    calibration = seconds(lambda: gdp.sigma(gdp.mu_from_epsilon(1.0, DELTA), 100), 1000)
    print(f"one calibration            {calibration * 1e6:10.1f} us")
    for name, spends, repeats, of_pld in [
        ("the demo's 7 spends", demo_plan(), 20, 7),
        ("10,000 spends", long_life(10_000), 3, 100),
    ]:
        ours = seconds(partial(compose, spends, DELTA), repeats)
        # PLD's time grows with the number of spends: a hundred of them tell what all would take.
        theirs = seconds(partial(by_pld, spends[:of_pld]), 3) * len(spends) / of_pld
        note = "" if of_pld == len(spends) else f" (from {of_pld})"
        print(
            f"{name:<24}{ours * 1e3:12.3f} ms   PLD {theirs * 1e3:12.1f} ms{note}   "
            f"{theirs / ours:8.0f} x"
        )


if __name__ == "__main__":
    main()
