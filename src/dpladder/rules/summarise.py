"""What one experiment found, in one file: the ladder, the fit, the final models, what they cost."""

from __future__ import annotations

from typing import Any

from dpladder.config.model import Search
from dpladder.job import Task, read_json, section, write_json
from dpladder.report.tables import summary_table, write_table
from dpladder.rules.record import write_record
from dpladder.search.space import bounds, decompose


def summarise(task: Task) -> None:
    cfg, search = task.cfg, section(task, "sweep.search", Search)
    summary = {
        "experiment": task.experiment,
        "mode": cfg["mode"],
        "lineage": cfg["dataset.lineage"],
        "relation": cfg["privacy"]["relation"],
        "delta": cfg["privacy"]["delta"],
        "nominal_size": cfg["dataset.nominal_size"],
        "r_range": bounds(search),
        "rungs": [_rung(read_json(path), search) for path in task.input["rungs"]],
        "targets": _targets(task),
    }
    write_json(task.output["summary"], summary)
    write_table(summary_table(summary), task.output["table"])
    write_record(task, free="computed from releases alone")


def _rung(found: dict[str, Any], search: Search) -> dict[str, Any]:
    trials = []
    for trial in found["trials"]:
        eta, steps = decompose(trial["r"], search)
        facts = {key: trial[key] for key in ("trial", "r", "score", "counted")}
        trials.append(facts | {"eta": eta, "steps": steps, "score_sd": trial["sd"]})
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
    targets = []
    for artifact, fit_path, metrics_path in zip(own, task.input["fits"], task.input["metrics"], strict=True):
        fit, metrics = read_json(fit_path), read_json(metrics_path)
        targets.append(
            {
                "target_epsilon": artifact["target_epsilon"],
                "epsilon": artifact["epsilon"],
                "mu": artifact["mu"],
                "mu_final": fit["mu"],
                "epsilon_final": fit["epsilon"],
                "fit": fit,
                "r_star": fit["r_star"],
                "eta": fit["eta"],
                "steps": fit["steps"],
                "sigma": fit["steps"] ** 0.5 / fit["mu"],
                "test": metrics,
                "search_share": artifact["search_share"],
            }
        )
    return targets
