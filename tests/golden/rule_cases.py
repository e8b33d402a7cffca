"""What the golden test records of whole rules: in the audits' scene, on public units, charged as
the ledger charges them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import h5py
import numpy as np
import torch
from golden.case import KEY, Case, Found, PlainMeter, drawn, order
from numpy.typing import NDArray
from safetensors import safe_open

from dpladder.config.label_sets import TARGET_STEPS
from dpladder.jobs import reservation
from dpladder.jobs.task import read_json
from dpladder.learn import weights
from dpladder.learn.interface import Constants
from dpladder.learn.moments import to_coordinates
from dpladder.learn.second_order import shared_queries
from dpladder.learn.shared_sums import create
from dpladder.privacy.release.noise import DerivedNoise
from dpladder_audit import rules, searches
from dpladder_audit.engine.mechanism import Mechanism
from dpladder_audit.scene import (
    CLASSES,
    N0,
    NO_INPUTS,
    Rule,
    Scene,
    SceneFolder,
    Units,
    scene_folder,
)

KIND: rules.Kind = "replace_one"
UNITS = 60
CLASSES_OF = {  # where they are not CLASSES
    rules.evaluation_of_scores: 2,
    rules.evaluation_of_several: 2,
    rules.evaluation_of_numbers: 1,
    rules.evaluation_of_numbers_at_a_look: 1,
}
SLOW = ("dp_hypo", "koskela_kulkarni", "propose_test")  # they import much, or solve for their noise
WIDE = {"eta": [0.1, 1.0], "steps": [1, 4]}  # the audits' own search has one place alone
SOLVED = {
    "learner": {
        "name": "dp_ls",
        "radius": 2.0,
        "shared": {"epsilon": 9.0, "sums": "all", "alpha": [0.1, 1.0]},
    }
}
# What says where and by which build something was made, in a document of a release. Later builds
# may say more.
ASIDE = ("statement", "config", "inference", "experiment", "learner", "learns", "format")


@dataclasses.dataclass(frozen=True)
class WideSceneFolder(SceneFolder):
    further: Mapping[str, Any]

    def scene(self, *changes: Mapping[str, Any]) -> Scene:
        return super().scene(*changes, {"sweep": {"search": WIDE}}, self.further)


def units(classes: int = CLASSES) -> Units:
    """Two records a unit, some far away, zero, or without a label. Of one class, numbers all over
    their range."""
    random = np.random.default_rng(29)
    features = random.normal(size=(2 * UNITS, 3)).round(3)
    features[0], features[1], features[2] = 1e6, 0.0, [1e-30, 0, 0]
    places = np.arange(2 * UNITS)
    labels = places % classes if classes > 1 else places * (TARGET_STEPS // len(places))
    labels[5:8] = -1
    rows = [
        (tuple(map(float, row)), int(label)) for row, label in zip(features, labels, strict=True)
    ]
    return tuple((rows[place], rows[place + 1]) for place in range(0, len(rows), 2))


def whole(
    attack: Callable[[SceneFolder], Mechanism],
    classes: int = CLASSES,
    further: Mapping[str, Any] = MappingProxyType({}),
) -> Found:
    """A rule's question and its release."""
    with scene_folder(KEY) as made, patch.object(reservation, "is_kept", lambda *_: True):
        folder = WideSceneFolder(made.folder, made.key, further)
        rule: Rule = attack(folder).run.func.__self__  # type: ignore[attr-defined]
        if "weights" in rule.inputs:
            _plain_model(Path(rule.inputs["weights"]), classes)
        answer = dataclasses.replace(rule, read=released, _releases={})
        asked = answer.question(units(classes))
        meter = PlainMeter(asked.draws, DerivedNoise(KEY))
        found: Any = answer.run(units(classes), meter, asked)
    meter.close()
    spends = [repr((spend.label, spend.event, spend.count)) for spend in asked.spends]
    return {"spends": spends, "draws": drawn(asked.draws), "order of draws": order(meter)} | found


def trial_on_public_records(scenes: SceneFolder, kind: rules.Kind) -> Mechanism:
    """Its score is exact and free: all that it pays for are its weights."""
    data = {"dataset": {"public_validation": f"npz:{scenes.folder}/public.npz"}}
    return _trial(scenes, kind, data | {"sweep": {"select": {"by": "public"}}})


def trial_from_shared_sums(scenes: SceneFolder, kind: rules.Kind) -> Mechanism:
    """It solves released sums: all that it pays for is its score."""
    return _trial(scenes, kind, SOLVED, {"sums": str(_plain_sums(scenes.folder))})


def _trial(
    scenes: SceneFolder,
    kind: rules.Kind,
    changes: Mapping[str, Any],
    inputs: Mapping[str, Any] = MappingProxyType({}),
) -> Mechanism:
    rungs = {"sweep": {"rungs": [{"epsilon": rules.EPSILON, "trials": 2}]}}
    scene = scenes.scene(rules.terms(kind, 40.0), rungs, changes)
    rule = Rule(
        scene,
        "run_trial",
        rules.released_weights,
        {"rung": "0", "trial": "1"},
        {**NO_INPUTS, **inputs},
    )
    return rule.mechanism(f"rule run_trial {kind}", lambda asked: 1.0, rules.pairs(kind))


def _plain_sums(folder: Path) -> Path:
    """In place of released ones, whose noise hangs on the job that released them."""
    path, random = folder / "sums.h5", np.random.default_rng(31)
    rows = random.normal(size=(CLASSES, 40, 3)).round(3)
    constants = Constants(N0, CLASSES, 3)
    queries = shared_queries("all", 2.0, 2.0, constants)
    covariance, moments, targets = queries
    with create(path, queries, constants) as keep:
        keep(covariance, 0, _second_moment(rows.reshape(-1, 3)))
        for label, of_class in enumerate(rows):
            keep(moments, label, _second_moment(of_class))
            keep(targets, label, of_class.sum(axis=0))
    return path


def _second_moment(rows: NDArray[Any]) -> NDArray[Any]:
    """As the learner keeps a symmetric matrix."""
    return to_coordinates(torch.from_numpy(rows.T @ rows)).numpy()


def _plain_model(path: Path, classes: int) -> None:
    """In place of the released one, whose noise hangs on the job that released it."""
    head = np.array([[1.0, -0.5, 0.25], [-0.5, 1.0, 0.1], [0.2, 0.3, -1.0]], np.float32)[:classes]
    weights.save(path, (head,), {})


def released(folder: Path) -> Found:
    """All that a rule wrote: numbers as they are, documents as text."""
    found: Found = {}
    for path in sorted(folder.iterdir()):
        for name, value in READERS[path.suffix](path).items():
            found[f"{path.name} {name}"] = value
    return found


def _tensors(path: Path) -> Found:
    with safe_open(path, "numpy") as file:
        names, facts = file.keys(), file.metadata() or {}
        found = {name: np.ravel(file.get_tensor(name)).tolist() for name in names}
    return found | {"facts": _told(json.loads(facts.get("dpladder", "{}")))}


def _sums(path: Path) -> Found:
    with h5py.File(path) as file:
        return {name: np.ravel(file[name][()]).tolist() for name in file}


def _document(path: Path) -> Found:
    return {"document": _told(read_json(path))}


def _told(document: Mapping[str, Any]) -> str:
    return json.dumps(_said({key: value for key, value in document.items() if key not in ASIDE}))


def _said(value: Any) -> Any:
    """Without what a document leaves open."""
    if isinstance(value, dict):
        return {key: _said(one) for key, one in sorted(value.items()) if one is not None}
    return list(map(_said, value)) if isinstance(value, list) else value


READERS: Mapping[str, Callable[[Path], Found]] = {
    ".safetensors": _tensors,
    ".h5": _sums,
    ".json": _document,
}


def of_rules() -> list[Case]:
    found = []
    for rule, attacks in rules.ATTACKED.items():
        for attack in attacks:
            classes = CLASSES_OF.get(attack, CLASSES)
            compute = partial(whole, partial(attack, kind=KIND), classes)
            found.append(Case(f"rule {rule} {attack.__name__}", (rule,), compute))
    for attack, learner in ((trial_on_public_records, "dp_gd"), (trial_from_shared_sums, "dp_ls")):
        compute = partial(whole, partial(attack, kind=KIND))
        found.append(Case(f"rule run_trial {attack.__name__}", ("run_trial",), compute, (learner,)))
    ball = partial(whole, partial(rules.mean, kind="add_remove"))
    return [*found, Case("rule estimate_mean in a ball", ("estimate_mean",), ball)]


def of_searches() -> list[Case]:
    found = [_searched(name) for name in searches.ATTACKED]
    more = _searched("papernot_steinke", {"hpo": {"mean": 8.0}})  # the first has but one run
    return [*found, dataclasses.replace(more, name="search papernot_steinke, more runs")]


def _searched(name: str, further: Mapping[str, Any] = MappingProxyType({})) -> Case:
    compute = partial(whole, partial(searches.search, name=name), further=further)
    return Case(f"search {name}", (name,), compute, long=name in SLOW)
