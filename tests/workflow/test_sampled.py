"""Trainings on Poisson samples, through the whole workflow: trials, several totals, the ledger,
resumption."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpladder.privacy.accounting import booking
from dpladder.privacy.accounting.events import Booked, Composed, Counted, Sampled, from_json
from dpladder.privacy.statement.check import check, read_statement

pytestmark = pytest.mark.long

SAMPLED = {
    "privacy": {"share": 0.1},
    "learner": {"sampling_rate": 0.2, "momentum": 0.5},
    "sweep": {"rungs": [{"epsilon": 0.2, "trials": 2}]},
    "final": {"targets": [1.0]},
    "experiments": {
        "free": {
            "learner": {
                "name": "hyfree_dp",
                "steps": 10,
                "sampling_rate": 0.5,
                "optimizer": "momentum",
            },
            "sweep": {"rungs": []},
            "final": {"targets": [1.0]},
        }
    },
}


def spends(statement) -> list:
    return [from_json(line["spend"]) for line in statement["datasets"]["tiny"]["spends"]]


def test_a_sampled_project_runs_from_data_to_statement_and_is_restored_for_nothing(project):
    project.configure(SAMPLED)
    project.finish()
    statement = read_statement(project.results)
    assert check(statement, project.results) == []
    tiny = statement["datasets"]["tiny"]
    assert tiny["accountant"] == "booked"
    for artifact in tiny["artifacts"].values():
        assert 0.95 * artifact["target_epsilon"] < artifact["epsilon"] <= artifact["target_epsilon"]

    trained = [spend for spend in spends(statement) if spend.label == "weights"]
    assert {type(spend.event) for spend in trained} == {Booked}
    assert {part.event.probability for spend in trained for part in spend.event.events} == {
        0.2,
        0.5,
    }
    stated = booking.total(booking.price(s.event, s.relation, s.count) for s in spends(statement))
    assert stated.delta0 <= 0.1 * 1e-5  # the share that the lineage declared

    # A sample hides so much that its noise alone would cost more.
    facts = json.loads(Path("results/main/summary.json").read_text())
    steps = facts["rungs"][0]["trials"][0]["steps"]
    weights = next(spend for spend in trained if spend.event.events[0].count == steps)
    (part,) = weights.event.events
    assert isinstance(part.event, Sampled)
    full = booking.price(Composed((Counted(part.event.event, part.count),)), "add_remove")
    booked = booking.price(weights.event, "add_remove")
    assert booked.mu < full.mu

    held = project.held()
    lost = [
        Path(f"results/main/{name}")
        for name in ("final/1/weights.safetensors", "rungs/0/trials/0/score.json")
    ]
    released = [path.read_bytes() for path in lost]
    for path in lost:
        path.unlink()
    project.finish(*map(str, lost))
    assert [path.read_bytes() for path in lost] == released
    assert project.held() == held
