"""A place for attacks on the rules themselves: a real config, plan, ledger and feature caches, and
made-up records in them.

A rule asks and answers here as it does in a run. What is charged, drawn and published is its own.
The audit only holds the meter, so that it can answer thousands of times without the ledger's syncs.
"""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config import Project
from dpladder.config.dataset_sections import Group
from dpladder.config.load import overlay, resolve
from dpladder.config.model import Resources
from dpladder.data import cache, sealed
from dpladder.errors import Refused
from dpladder.jobs.release import Release
from dpladder.jobs.run import module_of_rule
from dpladder.jobs.task import Task
from dpladder.plan.dag import Dag, build_dag
from dpladder.plan.follows import digest
from dpladder.plan.plan import make_plan
from dpladder.plan.resolve import resolve_defaults
from dpladder.privacy.accounting.draws import check_charge_matches_noise
from dpladder.privacy.accounting.events import Composed, Counted, Event
from dpladder.privacy.arrays import Floats
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.home import VARIABLE, Home, open_home, subkey
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.store import Question, Work
from dpladder_audit.engine.mechanism import Mechanism

LINEAGE = "dpladder-audit"
N0, CLASSES = 50, 3
ETA = 0.5
BASE: dict[str, Any] = {
    "dataset": {"lineage": LINEAGE, "nominal_size": N0, "classes": CLASSES, "census": None},
    "features": {"model": "none", "dtype": "float32"},
    "privacy": {"epsilon": 9.0, "delta": 1e-5},
    # One step of a known size, so that what is published is a known multiple of its noise.
    "learner": {"name": "dp_gd", "momentum": 0.0, "free_step": False},
    "sweep": {"rungs": [], "search": {"eta": [ETA, ETA], "steps": [1, 1]}},
    "resources": {"threads": 1},
}

Labelled = tuple[tuple[float, ...], int]  # features and label
Unit = tuple[Labelled, ...]
Units = tuple[Unit, ...]
Inputs = Mapping[str, Any]
SAMPLE: Units = tuple(
    ((features, label),) for label, features in enumerate(((1.0, 2.0, 3.0), (0.5, -1.0, 0.0)))
)
NO_INPUTS: Inputs = {"fit": [], "below": []}


@dataclass(frozen=True)
class Scene:
    """One config's jobs, reserved in the ledger of a home of their own.

    Attributes:
        folder: where it all lies.
        project: the config, with every default decided.
    """

    folder: Path
    project: Project

    @property
    def home(self) -> Home:
        """The scene's own home, never the auditor's."""
        return Home(self.folder / "home")

    @cached_property
    def dag(self) -> Dag:
        """Its jobs."""
        return build_dag(self.project)

    @property
    def classes(self) -> int:
        """How many classes the config declares."""
        declared = self.project.main.dataset.classes
        return len(declared) if isinstance(declared, tuple) else declared or CLASSES

    def task(
        self, rule: str, wildcards: Mapping[str, str], units: Units, inputs: Inputs = NO_INPUTS
    ) -> Task[Any]:
        """A rule's job: its own params, and caches of these units behind every private part that it
        reads.

        Args:
            rule: of the workflow.
            wildcards: of the job.
            units: the private data.
            inputs: further files that the job reads.
        """
        labels = {"experiment": "main", **wildcards}
        node = self.dag.find(rule, labels)
        assert node is not None, "the scene's config has the job"
        cfg = copy.deepcopy(node.params)
        group = self.project.experiments[labels["experiment"]].dataset.group
        folder = self.folder / "features" / digest(units, labels["experiment"])[:16]
        for part in cfg["places"]["features"]:
            cfg["places"]["features"][part] = str(folder)
            records = SAMPLE if part == "sample" else units  # public records are no neighbour's
            self._cache(folder / f"{part}.h5", part, records, group)
        outputs = (
            "mean.safetensors",
            "sums.h5",
            "head.safetensors",
            "weights.safetensors",
        )
        files = (*outputs, "census.json", "score.json", "metrics.json", "privacy.json")
        output = {name.split(".")[0]: self.folder / "results" / rule / name for name in files}
        return Task(rule, labels, cfg, "", dict(inputs), output, Resources(threads=1))

    def _cache(self, path: Path, part: str, units: Units, group: Group | None) -> None:
        """Write a feature cache of these units, as extract_features would have left it."""
        if path.is_file():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [row for unit in units for row in unit]
        features = np.array([row[0] for row in rows], np.float32)
        owners = np.array([place for place, unit in enumerate(units) for _ in unit], np.uint64)
        arrays: dict[str, NDArray[Any] | sealed.Blocks] = {
            "features": features,
            "labels": np.array([row[1] for row in rows], np.int64),
            "units": np.stack([owners, owners], axis=1).view(np.uint8),
            "record_ids": np.arange(2 * len(rows), dtype=np.uint64).view(np.uint8).reshape(-1, 16),
            "checks": np.zeros((len(rows), 16), np.uint8),
        }
        if group is not None:  # by label, and one that is not known is of the first
            arrays["groups"] = np.array(
                [max(row[1], 0) % len(group.names) for row in rows], np.int64
            )
        facts = cache.claims(self.project.main.features, commitment="", part=part)
        attrs = {
            **facts,
            "until": "",  # rows are what a head sees, also where a network is cut
            "units": "",
            "classes": self.classes,
            "width": features.shape[1],
        }
        sealed.write(path, arrays, attrs, subkey(self.home, "cache"))


@dataclass(frozen=True)
class SceneFolder:
    """A folder for scenes, which is gone when it is left.

    Attributes:
        folder: where scenes lie.
        key: makes their homes' keys, so that an audit repeats.
    """

    folder: Path
    key: bytes

    def scene(self, *changes: Mapping[str, Any]) -> Scene:
        """A scene of a config: made and reserved once, and found again after that.

        Args:
            changes: parts of a config, laid over BASE one after the other.
        """
        # a config's sources must be there; nobody opens them
        for source in ("none.npz", "public.npz"):
            (self.folder / source).touch()
        values = overlay(BASE, {"dataset": {"source": f"npz:{self.folder}/none.npz"}})
        for change in changes:
            values = overlay(values, change)
        folder = self.folder / digest(values)[:16]
        opened = Scene(folder, resolve_defaults(resolve(values)))
        if not folder.is_dir():
            opened.home.path.mkdir(mode=0o700, parents=True)
            opened.home.key.touch(mode=0o600)
            opened.home.key.write_bytes(self.key)
            plan = make_plan(opened.dag, {})
            for lineage, known in plan.terms.items():
                ledger = ledgers.open_ledger(open_home(opened.home.path), known)
                ledgers.reserve(ledger, plan.items_of(lineage))
        return opened


@contextlib.contextmanager
def scene_folder(key: bytes) -> Iterator[SceneFolder]:
    """A folder for scenes, for the time of a block."""
    with tempfile.TemporaryDirectory(prefix="dpladder-audit-") as folder:
        yield SceneFolder(Path(folder), key)


@contextlib.contextmanager
def job_environment(folder: Path, home: Home) -> Iterator[None]:
    """As a job of the workflow starts: in its working directory, with the head node's home."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(home.path)
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


Read = Callable[[Path], Floats]
"""All the numbers that a job published, from the folder that it wrote."""


@dataclass
class Rule:
    """One of the workflow's rules in a scene, ready to answer for any units.

    Attributes:
        scene: the config, plan and ledger.
        rule: its name.
        read: from the folder that a job wrote to all the numbers in it.
        wildcards: of the job.
        inputs: further files that it reads.
    """

    scene: Scene
    rule: str
    read: Read
    wildcards: Mapping[str, str] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=lambda: NO_INPUTS)
    _releases: dict[Units, Release] = field(default_factory=dict)

    def question(self, units: Units) -> Question:
        """The rule's one question about these units, whose charge must be what its noise costs.

        Raises:
            Refused: noise and charge do not match (contract: one-door).
        """
        if units not in self._releases:
            module = module_of_rule(self.rule)
            task = self.scene.task(self.rule, self.wildcards, units, self.inputs)
            with job_environment(self.scene.folder, self.scene.home):
                self._releases[units] = module.release_of(task)
        [question] = self._releases[units].questions
        charged = [Counted(spend.event, spend.count) for spend in question.spends]
        check_charge_matches_noise(charged, tuple(question.draws), question.spends[0].relation)
        return question

    def run(self, units: Units, meter: Meter, as_asked: Question) -> Floats:
        """What the rule publishes on these units, by its own code, with a meter of the auditor's.

        Args:
            units: the data.
            meter: all its noise.
            as_asked: what it asked on other data.

        Raises:
            Refused: it charges or draws by its data. Then the charge itself would tell of a record.
        """
        question = self.question(units)
        if (list(question.spends), tuple(question.draws)) != (
            list(as_asked.spends),
            tuple(as_asked.draws),
        ):
            raise Refused(
                f"{self.rule} charges, or draws, by its data. Make both of public figures alone."
            )
        published = self.scene.folder / "published"
        published.mkdir(exist_ok=True)
        with job_environment(self.scene.folder, self.scene.home):
            self._releases[units].produce([Work(question.job, meter, published)])
            released = self.read(published)
        # Emptied, and used again: a folder for each of thousands of runs takes longer than its
        # work.
        for path in published.iterdir():
            path.unlink()
        return released

    def mechanism(
        self,
        name: str,
        scale: Callable[[Question], float | Floats],
        neighbours: Sequence[tuple[Units, Units]],
        tight: bool = False,
        winner: Event | None = None,
        effort: float = 0.5,
    ) -> Mechanism:
        """As its auditor sees it: the events are those that the ledger would be charged.

        Args:
            name: of the attack.
            scale: the scale of each published number's noise, by what the rule asks.
            neighbours, tight, winner, effort: as a `Mechanism` has them.
        """
        question = self.question(neighbours[0][0])
        events = tuple(Counted(spend.event, spend.count) for spend in question.spends)
        return Mechanism(
            name=name,
            event=Composed(events),
            draws=tuple(question.draws),
            scale=scale(question),
            run=partial(self.run, as_asked=question),
            neighbours=tuple(neighbours),
            relation=question.spends[0].relation,
            tight=tight,
            winner=winner,
            effort=effort,
        )
