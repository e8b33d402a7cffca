"""What one experiment found, in one file: the ladder, the fit, the final models, what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpladder.config.learners import Learner, learner_of
from dpladder.config.model import Search
from dpladder.job import Task, read_json, section, write_json
from dpladder.learn import weights
from dpladder.privacy import gdp
from dpladder.report.tables import summary_table, write_table
from dpladder.rules.record import write_record
from dpladder.rules.training import chosen, hyper_of, of_trial
from dpladder.search.space import bounds


def summarise(task: Task) -> None:
    cfg, search = task.cfg, section(task, "sweep.search", Search)
    learner = learner_of(cfg["learner"])
    summary = {
        "experiment": task.experiment,
        "mode": cfg["mode"],
        "lineage": cfg["dataset.lineage"],
        "relation": cfg["privacy"]["relation"],
        "delta": cfg["privacy"]["delta"],
        "nominal_size": cfg["dataset.nominal_size"],
        "learner": learner.name,
        "searches": learner.searches,
        "r_range": bounds(search),
        "rungs": [_rung(read_json(path), learner, search) for path in task.input["rungs"]],
        "targets": _targets(task),
    }
    write_json(task.output["summary"], summary)
    write_table(summary_table(summary), task.output["table"])
    write_record(task, free="computed from releases alone")


def _rung(found: dict[str, Any], learner: Learner, search: Search) -> dict[str, Any]:
    trials = []
    for trial in found["trials"]:
        own = of_trial(learner, trial["trial"])
        choice = chosen(own, hyper_of(learner, search, trial["r"], trial["mu"]))
        facts = {key: trial[key] for key in ("trial", "r", "score", "counted")}
        trials.append(facts | choice | {"score_sd": trial["sd"]})
    first, best = found["trials"][0], found["best"]
    return {
        "epsilon": first["epsilon"],
        "mu": first["mu"],
        "trials": trials,
        "best": {"trial": best["trial"], "r": best["r"]},
    }


def _targets(task: Task) -> list[dict[str, Any]]:
    statement = read_json(task.input["statement"])
    artifacts = statement["datasets"][task.cfg["dataset.lineage"]]["artifacts"]
    own = [artifact for artifact in artifacts.values() if artifact["experiment"] == task.experiment]
    fits = [read_json(path) for path in task.input["fits"]] or [None] * len(own)
    targets = []
    for artifact, fit, final, metrics in zip(
        own, fits, task.input["finals"], task.input["metrics"], strict=True
    ):
        _, facts = weights.load(Path(final))
        choice: dict[str, Any] = {
            name: facts[name] for name in ("eta", "ridge", "alpha", "steps") if name in facts
        }
        targets.append(
            {
                "target_epsilon": artifact["target_epsilon"],
                "epsilon": artifact["epsilon"],
                "mu": artifact["mu"],
                "mu_final": facts["mu"],
                "epsilon_final": gdp.epsilon(facts["mu"], task.cfg["privacy"]["delta"]),
                "fit": fit,
                "r_star": facts.get("r"),
                **choice,
                "sigma": facts["sigma"],
                "test": read_json(metrics),
                "search_share": artifact["search_share"],
            }
        )
    return targets
