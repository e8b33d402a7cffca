"""The rules that ask private data something, each attacked as it stands in the workflow.

Units of two records are replaced, so that a sensitivity which forgets the relation or the cap does
not pass. Units of one record are added and removed.

An attack is a function from a folder for scenes and a relation to a `Mechanism`. Its name in the
audit is the rule's and the relation's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
from safetensors.numpy import load_file, save_file

from dpladder.config.features_sections import Features
from dpladder.config.label_sets import MANY, PRESENT, TARGET_STEPS, number_of_findings
from dpladder.config.learner_sections import SumsShared
from dpladder.config.load import overlay
from dpladder.jobs.release import release_once
from dpladder.jobs.task import read_json
from dpladder.jobs.train_final import release_of as release_of_final
from dpladder.learn import weights
from dpladder.learn.interface import Constants
from dpladder.methods.dp_finetune import FineTune
from dpladder.privacy.accounting import booking
from dpladder.privacy.accounting.composition import entry_of
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.store import Question
from dpladder.search.first_head import head_of, training_of_head
from dpladder_audit.engine.findings import LeftOut
from dpladder_audit.engine.mechanism import Mechanism, neighbours
from dpladder_audit.scene import (
    CLASSES,
    ETA,
    N0,
    NO_INPUTS,
    Rule,
    Scene,
    SceneFolder,
    Unit,
    Units,
    job_environment,
)

EPSILON = 9.0  # of each mechanism alone: strong enough for an attack to reach half of it
RADIUS = 2.0
FAR = 1e6  # how much longer records are made, so that scores lie far apart
Pairs = tuple[tuple[Units, Units], ...]
Kind = Literal["add_remove", "replace_one"]
KINDS: tuple[Kind, ...] = ("add_remove", "replace_one")
CAPS = {"add_remove": 1, "replace_one": 2}
FINDINGS = {"dataset": {"labels": MANY}, "learner": {"link": "sigmoid"}}
NUMBERS = {
    "dataset": {"classes": None, "target": {"range": [0.0, 1.0], "error": 0.5}},
    "learner": {"name": "dp_ridge"},
}
LOOKED_AT = overlay(NUMBERS, {"dataset": {"target": {"error": None}}})
ALL_PRESENT = number_of_findings([PRESENT] * CLASSES)


def counting(scenes: SceneFolder, kind: Kind, findings: bool = False) -> Mechanism:
    """Units by class; of findings, those that have none, some and all. Some canary moves as many
    counts as any unit can."""
    census = {"dataset": {"census": {"epsilon": EPSILON}}}
    scene = scenes.scene(terms(kind, 40.0), census, FINDINGS if findings else {})
    read = lambda folder: np.array(read_json(folder / "census.json")["counts"])  # noqa: E731
    rule = Rule(scene, "count_units", read)
    suffix = " of findings" if findings else ""
    canaries = [_unit((1.0, 0.0, 0.0), label, CAPS[kind]) for label in (-1, 0, 2, ALL_PRESENT)]
    units = neighbours(_base(CAPS[kind]), canaries, kind)
    name = f"rule count_units{suffix} {kind}"
    return rule.mechanism(name, lambda question: _scale(question, "units"), units, not findings)


def counting_findings(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """Units with no finding, some and all."""
    return counting(scenes, kind, findings=True)


def mean(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """The noised mean, under each relation by another way of bounding records.

    Records are scaled into a ball, or, where there is none, all to the public length.
    """
    ball = {"mean": {"epsilon": EPSILON} | ({"radius": RADIUS} if kind == "add_remove" else {})}
    scene = scenes.scene(terms(kind, 40.0), {"features": ball | {"length": RADIUS}})
    rule = Rule(
        scene, "estimate_mean", lambda folder: load_file(folder / "mean.safetensors")["mean"]
    )
    return rule.mechanism(
        f"rule estimate_mean {kind}",
        lambda question: _scale(question, "mean") / N0,
        pairs(kind),
        True,
    )


def shared_sums(scenes: SceneFolder, kind: Kind, which: SumsShared = "covariance") -> Mechanism:
    """The sums that all trainings of dp_ls share.

    Args:
        scenes: a folder for scenes.
        kind: the relation.
        which: the covariance alone, or all of them.
    """
    keys = {"name": "dp_ls", "radius": RADIUS, "shared": {"epsilon": EPSILON, "sums": which}}
    names = ("covariance", "moments", "targets")[: 1 if which == "covariance" else None]

    def read(folder: Path) -> Floats:
        with h5py.File(folder / "sums.h5") as file:
            return np.concatenate([np.ravel(file[name][()]).astype(np.float64) for name in names])

    rule = Rule(_scene_of_learner(scenes, kind, keys), "estimate_sums", read)

    def scale(question: Question) -> Floats:
        sizes = {draw.name: int(np.prod(draw.shape)) * draw.count for draw in question.draws}
        return np.concatenate([np.full(sizes[name], _scale(question, name)) for name in names])

    # All of them are not tight: a replaced unit moves targets the furthest where it does not move
    # the moments at all.
    tight, effort = (True, 0.8) if which == "covariance" else (False, 0.2)
    title = f"rule estimate_sums {which} {kind}"
    return rule.mechanism(title, scale, pairs(kind), tight, effort=effort)


def all_shared_sums(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """The covariance, each class's moments, and the targets, in one release."""
    return shared_sums(scenes, kind, "all")


def head(scenes: SceneFolder, kind: Kind, guides: Mapping[str, Any] | None = None) -> Mechanism:
    """A first head on public features, trained by several steps with momentum.

    It stands on features that are the network's last already: what lies between them and a cut is a
    map of each record.

    Args:
        scenes: a folder for scenes.
        kind: the relation.
        guides: keys of a config by which public records guide each step.
    """
    cut = {
        "features": {"model": "efficientnet_lite0", "weights": "random", "until": "blocks.5"},
        "learner": {"name": "dp_finetune", "head": {"epsilon": EPSILON}},
    }
    scene = scenes.scene(terms(kind, 40.0), cut, guides or {})
    rule = Rule(
        scene, "estimate_head", lambda folder: load_file(folder / "head.safetensors")["head"]
    )
    if guides:
        rule.inputs = {**rule.inputs, "start": _public_start(scenes)}

    def scale(question: Question) -> float:
        length, learner = Features().typical, head_of(False, "softmax", 1)
        constants = Constants(N0, CLASSES, 3, kind, cap=CAPS[kind], length=length)
        spent = booking.total(map(entry_of, question.spends))
        training = training_of_head(learner, spent, constants)
        noise = _scale(question, "noise") / N0
        return (
            noise
            * training.hyper.eta
            * math.hypot(*_momentum_weights(learner, training.hyper.steps))
        )

    suffix = " guided" if guides else ""
    return rule.mechanism(f"rule estimate_head{suffix} {kind}", scale, pairs(kind), effort=0.5)


def _momentum_weights(learner: FineTune, steps: int) -> list[float]:
    """How far each step's gradient moves the last weights: momentum carries a step on, and the free
    step once more."""
    m, moved = learner.momentum, 0.0
    each = []
    for later in range(steps):
        moved = 1.0 + m * moved
        each.append(moved + m**later)
    return each


def guided_head(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """From a public head, beside public records of which no neighbour has others. They are so few
    that they are next to nothing beside the noise that a step is told by."""
    return head(scenes, kind, _guides(scenes))


def _guides(scenes: SceneFolder) -> dict[str, Any]:
    """Keys of a config by which public records guide each step, and none is looked at first."""
    return {
        "dataset": {"public_sample": f"npz:{scenes.folder}/public.npz"},
        "learner": {"public": "gradient", "look": 0.0},
    }


def _public_start(scenes: SceneFolder) -> str:
    """A head of zeros in a file, as a job that trains on public data would leave it."""
    path = scenes.folder / "start.safetensors"
    save_file({"head": np.zeros((CLASSES, 3), np.float32)}, path)
    return str(path)


def trial(
    scenes: SceneFolder,
    kind: Kind,
    further: Mapping[str, Any] | None = None,
    suffix: str = "",
    number: int = 0,
) -> Mechanism:
    """A trial's weights and score, both in units of their noise.

    It takes one gradient step, so that what is published is linear in what was noised.

    Args:
        scenes: a folder for scenes.
        kind: the relation.
        further: keys of a config.
        suffix: of the attack's name.
        number: of the trial in its rung.
    """
    sweep = {"rungs": [{"epsilon": EPSILON, "trials": number + 1}], "select": {"share": 0.3}}

    def read(folder: Path) -> Floats:
        score = read_json(folder / "score.json")["trial"]["score"]
        return np.append(released_weights(folder), score)

    changes = overlay({"sweep": sweep}, further or {})
    of = {"rung": "0", "trial": str(number)}
    rule = Rule(scenes.scene(terms(kind, 40.0), changes), "run_trial", read, of)

    def scale(question: Question) -> Floats:
        step = np.full(_numbers(question, "noise"), ETA * _scale(question, "noise") / N0)
        return np.append(step, _scale(question, "score"))

    return rule.mechanism(f"rule run_trial{suffix} {kind}", scale, pairs(kind))


def trial_of_findings(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """The labels of `pairs` are numbers of findings too: none, one of them, one unknown."""
    return trial(scenes, kind, FINDINGS, " findings")


def final(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """The final training: one step at all of a total."""
    return _final(scenes, kind).mechanism(
        f"rule train_final {kind}",
        lambda question: ETA * _scale(question, "noise") / N0,
        pairs(kind),
    )


def calibrated_final(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """One step, whose margins are put right by a histogram of the same records."""
    return _final(scenes, kind, {"final": {"calibrate": {"share": 0.3}}}).mechanism(
        f"rule train_final calibrated {kind}",
        lambda question: ETA * _scale(question, "noise") / N0,
        pairs(kind),
    )


def guided_final(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """One step from a public head, beside public records of which no neighbour has others."""
    rule = _final(scenes, kind, _guides(scenes) | {"features": {"centre": "none"}})
    rule.inputs = {**rule.inputs, "start": _public_start(scenes)}
    return rule.mechanism(
        f"rule train_final guided {kind}",
        lambda question: ETA * _scale(question, "noise") / N0,
        pairs(kind),
    )


def evaluation(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """The counts of right and wrong answers of a released model."""
    return _evaluation(scenes, kind, "accuracy")


def evaluation_by_class(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """The evaluation of a model by the record's class."""
    return _evaluation(scenes, kind, "classes")


def evaluation_of_answers(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """A table of the record's class and the model's answer."""
    return _evaluation(scenes, kind, "confusion")


def evaluation_of_scores(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """A look at the scores of each of two classes, and where they stand by it."""
    return _evaluation(scenes, kind, "auc")


def evaluation_of_findings(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """The evaluation of a model of findings."""
    return _evaluation(scenes, kind, "auc", FINDINGS)


def evaluation_of_findings_by_group(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """Findings, by the record's declared group."""
    return _evaluation(scenes, kind, "groups", FINDINGS, {"column": "place", "names": ["a", "b"]})


def evaluation_of_confidence(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """Right answers by how sure the model is."""
    return _evaluation(scenes, kind, "calibration")


def evaluation_of_confidence_in_findings(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """The evaluation of a model's confidence in findings."""
    return _evaluation(scenes, kind, "calibration", FINDINGS)


def evaluation_of_decisions(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """Right and wrong of each class by who acts at a threshold."""
    return _evaluation(scenes, kind, "decision")


def evaluation_of_decisions_on_findings(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """Right and wrong of each finding by who acts at a threshold."""
    return _evaluation(scenes, kind, "decision", FINDINGS)


def evaluation_by_group(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """Right and wrong answers by the record's declared group."""
    return _evaluation(scenes, kind, "groups", grouped={"column": "place", "names": ["a", "b"]})


def evaluation_of_numbers(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """Absolute errors of numbers, and squares of errors and of the numbers themselves."""
    return _evaluation(scenes, kind, ("mae", "r2"), NUMBERS)


def evaluation_of_numbers_at_a_look(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """Squared errors of numbers, in units of what a first look says."""
    return _evaluation(scenes, kind, "rmse", LOOKED_AT)


def evaluation_of_several(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """Scores of two classes and right answers by group, at one price."""
    return _evaluation(
        scenes, kind, ("auc", "groups"), grouped={"column": "place", "names": ["a", "b"]}
    )


def further_evaluation(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """The evaluation on the test part's images, corrupted: images alone can be."""
    dim = {"name": "dim", "of": "test", "corruption": "blur", "severities": [3], "epsilon": 8.0}
    further = {
        "features": {"model": "efficientnet_lite0", "centre": "none"},
        "evaluate": {"epsilon": 1.0, "also": [dim]},
    }
    return _evaluation(
        scenes, kind, "accuracy", further, which="evaluate_also", of={"test": "dim-3"}
    )


def further_evaluation_of_a_group(scenes: SceneFolder, kind: Kind) -> Mechanism:
    """The evaluation on records of a group which was not trained on. Two labels of the test part
    are of it, one is not."""
    some = {"name": "dim-3", "of": "test", "groups": ["a"], "epsilon": 8.0}
    further = {"evaluate": {"epsilon": 1.0, "also": [some]}}
    grouped = {"column": "place", "names": ["a", "b"], "train": ["b"]}
    return _evaluation(
        scenes, kind, "accuracy", further, grouped, "evaluate_also", {"test": "dim-3"}
    )


def _evaluation(
    scenes: SceneFolder,
    kind: Kind,
    measures: str | Sequence[str],
    further: Mapping[str, Any] | None = None,
    grouped: Mapping[str, Any] | None = None,
    which: str = "evaluate",
    of: Mapping[str, str] | None = None,
) -> Mechanism:
    """The counts of one test, on a model that the final training's rule really released, through
    the ledger.

    Args:
        scenes: a folder for scenes.
        kind: the relation of the records that are counted.
        measures: what is counted, as `evaluate.measures` has it.
        further: keys of a config.
        grouped: the config's `dataset.group`.
        which: the rule.
        of: wildcards of its job.
    """
    findings, numbers = further == FINDINGS, further in (NUMBERS, LOOKED_AT)
    measures = [measures] if isinstance(measures, str) else measures
    classes = 2 if {"auc", "decision"} & {*measures} and not findings else CLASSES
    data: dict[str, Any] = {"classes": classes, "group": grouped}
    changes: dict[str, Any] = {"dataset": data, "evaluate": {"measures": [*measures]}}
    if "decision" in measures:
        changes["evaluate"]["threshold"] = 0.3
    # Where a look comes first, all scores lie beyond its grid, and all numbers that are said at an
    # end. So what a record adds to a later table does not hang on the look's noise, which alone
    # would make that another mechanism each time. For any look: tests/learn.
    far = 1.0
    if "auc" in measures or further is LOOKED_AT:
        far, changes["features"] = FAR, {"length": "as_is"}
    trained = _final(scenes, kind, overlay(changes, further or {}))
    task = trained.scene.task("train_final", trained.wildcards, _base(CAPS[kind]))
    with job_environment(trained.scene.folder, trained.scene.home):
        release_once(release_of_final(task))

    def read(folder: Path) -> Floats:
        tables = read_json(folder / "metrics.json")["tables"]
        return np.concatenate([np.ravel(table["cells"]) for table in tables.values()])

    rule = Rule(
        trained.scene,
        which,
        read,
        {**trained.wildcards, **(of or {})},
        {**NO_INPUTS, "weights": str(task.output["weights"])},
    )
    # One of the labels is the model's, whatever it learnt. Turned round, a record scores on the
    # other side, and is of another class. That matters where one group alone counts: a record of
    # the first one's class may not be of it.
    some = which == "evaluate_also" and grouped is not None
    turned = classes == 2 or some or findings or numbers
    labels: Sequence[int] = (-1, 0, 2, ALL_PRESENT) if findings else range(-1, classes)
    inner = () if further is LOOKED_AT else (TARGET_STEPS // 3,)
    labels = (-1, 0, *inner, TARGET_STEPS) if numbers else labels
    some_record = (far, 0.5 * far, -far)
    turned_round = (-far, -0.5 * far, far)
    canaries = [
        _unit(features, label, CAPS[kind])
        for label in labels
        for features in (some_record, turned_round)[: 1 + turned]
    ]
    # So many known records, half of them right, that neither count comes near zero, where a file
    # would cut it off.
    base = tuple(_unit(some_record, number % classes, 1) for number in range(120))

    def scale(question: Question) -> Floats:
        return np.concatenate(
            [np.full(int(np.prod(draw.shape)), draw.scale) for draw in question.draws]
        )

    suffix = "" if measures == ["accuracy"] else f" {' '.join(measures)}"
    suffix += " of findings" if findings else " of numbers" if numbers else ""
    suffix += " at a look" if further is LOOKED_AT else ""
    if some:
        suffix += " of a group"
    # A share is whole only where probabilities are 0 or 1, which no canary makes them; nor does one
    # make the model say a number at one end exactly, from which it could be replaced.
    whole = not findings or not {"auc", "decision"}.isdisjoint(measures)
    tight = "calibration" not in measures and whole
    tight = tight and not (numbers and kind == "replace_one")
    pairs = neighbours(base, canaries, kind)
    return rule.mechanism(f"rule {which}{suffix} {kind}", scale, pairs, tight, effort=0.8)


Attack = Callable[[SceneFolder, Kind], Mechanism]
ATTACKED: dict[str, tuple[Attack, ...]] = {
    "count_units": (counting, counting_findings),
    "estimate_mean": (mean,),
    "estimate_sums": (shared_sums, all_shared_sums),
    "estimate_head": (head, guided_head),
    "run_trial": (trial, trial_of_findings),
    "train_final": (final, calibrated_final, guided_final),
    "evaluate": (
        evaluation,
        evaluation_by_class,
        evaluation_of_answers,
        evaluation_of_scores,
        evaluation_of_findings,
        evaluation_of_findings_by_group,
        evaluation_of_decisions,
        evaluation_of_decisions_on_findings,
        evaluation_by_group,
        evaluation_of_confidence,
        evaluation_of_confidence_in_findings,
        evaluation_of_several,
        evaluation_of_numbers,
        evaluation_of_numbers_at_a_look,
    ),
    "evaluate_also": (further_evaluation, further_evaluation_of_a_group),
}
"""Every rule that asks private data something, but for the searches, by all that its config may
have it ask."""


def attacks(scenes: SceneFolder, rule: str) -> Iterator[Mechanism]:
    """All attacks on a rule, under both relations."""
    return (attack(scenes, kind) for kind in KINDS for attack in ATTACKED[rule])


def skipped_combinations(rule: str) -> Iterator[LeftOut]:
    """What is not run of a rule: kinds of queries are attacked with all caps."""
    for kind, cap in CAPS.items():
        why = f"rules under {kind} run with cap {cap}, and kinds of queries with both"
        yield LeftOut(f"rule {rule} {kind} cap {3 - cap}", why)


def _final(scenes: SceneFolder, kind: Kind, changes: Mapping[str, Any] | None = None) -> Rule:
    """The final training's rule, in a scene of its own."""
    total = {
        "privacy": {"epsilon": EPSILON},
        "evaluate": {"epsilon": EPSILON},
    }
    if kind == "replace_one":  # there the parts add, and the count is paid for out of the total
        total["privacy"]["epsilon"] = 24.0
    scene = scenes.scene(terms(kind), total, changes or {})
    return Rule(
        scene,
        "train_final",
        released_weights,
        {"target": f"{scene.project.main.privacy.epsilon:g}"},
    )


def _scene_of_learner(scenes: SceneFolder, kind: Kind, learner: Mapping[str, Any]) -> Scene:
    """A scene with this learner, and room in the lineage's total for more than the attacked
    rule."""
    return scenes.scene(terms(kind, 40.0), {"learner": learner})


def terms(kind: Kind, epsilon: float = EPSILON) -> dict[str, Any]:
    """The keys that say what is protected, and for how much.

    Args:
        kind: the relation.
        epsilon: of the lineage's total.
    """
    unit = {"by": "record", "cap": 1} if CAPS[kind] == 1 else {"by": "user", "cap": CAPS[kind]}
    return {"dataset": {"unit": unit}, "privacy": {"relation": kind, "epsilon": epsilon}}


def _unit(features: tuple[float, ...], label: int, rows: int) -> Unit:
    """A unit of so many records, all alike: nothing pulls a sum further."""
    return ((features, label),) * rows


def _base(rows: int) -> Units:
    """Two units that contribute nothing: their features are zero."""
    return (_unit((0.0, 0.0, 0.0), 0, rows),) * 2


def pairs(kind: Kind) -> Pairs:
    """Units that contribute nothing, and canaries that tempt a clip: far away in opposite
    directions, and across."""
    rows = CAPS[kind]
    far = (
        (1e6, 0.0, 0.0),
        (-1e6, 0.0, 0.0),
        (1e6, 1e6, 0.0),
        (1e18, -1e18, 0.0),
        (1e-30, 0.0, 0.0),
    )
    labels = (0, 0, 1, 2, 1)
    canaries = [_unit(features, label, rows) for features, label in zip(far, labels, strict=True)]
    nothing = _unit((0.0, 0.0, 0.0), 0, rows)
    unknown = _unit((1.0, 2.0, 3.0), -1, rows)
    return neighbours(_base(rows), [nothing, *canaries, unknown], kind)


def _scale(question: Question, name: str) -> float:
    """The scale of the noise of a draw, as the rule declares it."""
    return next(draw.scale for draw in question.draws if draw.name == name)


def _numbers(question: Question, name: str) -> int:
    """How many numbers one draw has."""
    return int(np.prod(next(draw.shape for draw in question.draws if draw.name == name)))


def released_weights(folder: Path) -> Floats:
    """All weights in a folder that a job wrote, in a row, as they were trained: a final model's
    margins were turned by a public slope."""
    layers, metadata = weights.load(folder / "weights.safetensors")
    slope = metadata.get("calibration", {}).get("slope", 1.0)
    return np.concatenate([np.ravel(layer).astype(np.float64) for layer in layers]) / slope
