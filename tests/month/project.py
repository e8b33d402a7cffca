"""A project of a month: what its owner wants, the data as it is by now, its clones, and what its
questions are by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from support import mixture

from dpladder.config.load import overlay

LINEAGE, DELTA = "month", 1e-5
Rungs = tuple[tuple[float, int], ...]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Experiment:
    """What an experiment asks. Main's own is what all others begin from."""

    targets: tuple[float, ...] = (1.0,)
    rungs: Rungs = ((0.1, 1), (0.2, 2))
    clip: float = 1.0

    @property
    def values(self) -> dict[str, Any]:
        rungs = [{"epsilon": epsilon, "trials": trials} for epsilon, trials in self.rungs]
        return {
            "final": {"targets": [*self.targets]},
            "sweep": {"rungs": rungs},
            "learner": {"clip": self.clip},
        }


@dataclass(frozen=True)
class Wish:
    """A config, as its owner thinks of it. `inert`: keys that change no answer."""

    experiments: Mapping[str, Experiment]
    respend: bool | tuple[str, ...] = False
    mode: str = "release"
    lifetime: float = 8.0
    inert: Mapping[str, Any] = field(default_factory=dict)

    def config(self, data: Data) -> dict[str, Any]:
        main, *others = self.experiments.items()
        assert main[0] == "main"
        values: dict[str, Any] = {
            "mode": self.mode,
            "respend": self.respend if isinstance(self.respend, bool) else [*self.respend],
            "dataset": {
                "lineage": LINEAGE,
                "source": f"npz:{data.path}",
                "version": data.version or None,
                "census": None,
                "nominal_size": 100,
                "classes": 3,
                "declared_public": self.mode == "research",
            },
            "features": {"model": "none", "dtype": "float32"},
            "privacy": {"epsilon": 1.0, "delta": DELTA, "lifetime": {"epsilon": self.lifetime}},
            "sweep": {"search": {"steps": [1, 2]}},
            "fit": {"using": "best"},
            "resources": {"threads": 1},
            "experiments": {name: one.values for name, one in others},
        }
        return overlay(overlay(values, main[1].values), self.inert)

    def with_one(self, name: str, **changes: Any) -> Wish:
        return replace(
            self, experiments={**self.experiments, name: replace(self.experiments[name], **changes)}
        )


def questions(one: Experiment, data: int, mode: str) -> Iterator[tuple[str, dict[str, str], Key]]:
    """All that an experiment asks of the private data: rule, wildcards, and what decides the
    answer. Research counts its tests exactly, and asks nothing for them."""
    finals = ("train_final",) if mode == "research" else ("train_final", "evaluate")
    for rung, (epsilon, trials) in enumerate(one.rungs):
        for trial in range(trials):
            yield (
                "run_trial",
                {"rung": str(rung), "trial": str(trial)},
                ("run_trial", rung, trial, epsilon, one.clip, data),
            )
    for target in one.targets:
        for rule in finals:
            yield rule, {"target": f"{target:g}"}, (rule, target, one.rungs, one.clip, data)


class Data:
    """The records' file. Each version, by its number in the config, has more of them than the last;
    and so has each change that nobody gave a number."""

    def __init__(self, path: Path, ids: bool) -> None:
        self.path, self.ids, self.version, self.newest, self.unsaid = path, ids, 0, 0, 0
        self.write()

    def write(self) -> None:
        records = 140 + 7 * self.version + self.unsaid
        arrays = {name: values[:records] for name, values in mixture(records=400).items()}
        if self.ids:
            arrays["ids"] = np.arange(len(arrays["labels"]))
        np.savez(self.path, **arrays)

    def touch(self) -> None:
        os.utime(self.path)

    def change(self) -> None:
        self.unsaid += 1
        self.write()

    def append(self) -> None:
        self.newest = self.version = self.newest + 1
        self.write()

    def back(self, version: int) -> None:
        if version != self.version:
            self.version = version
            self.write()
