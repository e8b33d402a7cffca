"""The learners of a project's experiments against each other, on data declared public and the first experiment's
features."""

from __future__ import annotations

import dataclasses
import json

from dpladder.config.learners import learner_of
from dpladder.config.model import Fit, Sweep
from dpladder.errors import BadInput, Refused
from dpladder.job import Task
from dpladder.privacy.ledger import Terms
from dpladder.report.learners import plot_learners, write_csv, write_markdown
from dpladder.rules.contest import Arena, Contestant, contest
from dpladder.rules.private import constants_of, part_of, read_raw
from dpladder.rules.record import write_record


def compare_learners(task: Task) -> None:
    cfg = task.cfg
    if cfg["mode"] != "research":
        raise Refused(
            "compare_learners trains and tests as often as it likes, which only data declared public allows. Compare on "
            "such data with mode: research; on private data, give each learner an experiment and its own budget."
        )
    train = part_of(task, "train")
    arena = Arena(
        read_raw(train),
        read_raw(part_of(task, "test")),
        constants_of(task, train),
        _terms_of(task),
        task.resources,
        cfg["research"]["seed"],
    )
    repeats = cfg["repeats"]
    rows = [dataclasses.asdict(row) for row in contest(arena, _contestants_of(task), repeats)]
    about = f"{cfg['dataset.lineage']}, δ = {cfg['privacy.delta']:g}, {repeats} repeats, seed {arena.seed}"
    write_csv(rows, task.output["csv"])
    write_markdown(rows, about, task.output["table"])
    plot_learners(rows, about, task.output["figure"])
    write_record(task, free="research on data declared public; no model is released")


def _contestants_of(task: Task) -> list[Contestant]:
    """One for each experiment, called by its learner where that tells them apart."""
    entered = task.cfg["contestants"]
    if other := [entry["experiment"] for entry in entered if not entry["comparable"]]:
        raise BadInput(
            f"experiments {', '.join(other)} have other data or features than the first, or a noised mean or covariance, "
            "so their learners cannot be compared with the others. Leave them out of this config."
        )
    learners = [entry["learner"]["name"] for entry in entered]
    apart = len(set(learners)) == len(learners)
    return [
        Contestant(
            name=learner if apart else entry["experiment"],
            learner=learner_of(entry["learner"]),
            sweep=Sweep.model_validate_json(json.dumps(entry["sweep"])),
            fit=Fit.model_validate_json(json.dumps(entry["fit"])),
            total=entry["epsilon"],
        )
        for entry, learner in zip(entered, learners, strict=True)
    ]


def _terms_of(task: Task) -> Terms:
    cfg, unit = task.cfg, task.cfg["dataset.unit"]
    return Terms(
        cfg["dataset.lineage"],
        cfg["privacy.relation"],
        unit["by"],
        unit["cap"],
        cfg["privacy.delta"],
        cfg["dataset.split"]["rule"],
        mode=cfg["mode"],
    )
