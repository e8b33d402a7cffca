"""What a lineage's ledger adds up to, read from its files and composed by dp-accounting: nothing
here is dpladder's own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

Name = tuple[str, str, tuple[tuple[str, str], ...]]


@dataclass
class Charge:
    """One job's place in the ledger. `at`: the entry that reserved it, or the last that took it up
    again."""

    job: Name
    question: str
    spends: list[dict[str, Any]]
    at: int
    status: str = "RESERVED"
    query: str = ""
    released: int | None = None


def charges(home: Path, lineage: str) -> dict[str, Charge]:
    """Everything that was reserved and not given back, by its token, oldest first."""
    found: dict[str, Charge] = {}
    for path in sorted((home / "ledger" / lineage).glob("*.json")):
        entry = json.loads(path.read_text())
        seq, kind, body = entry["seq"], entry["type"], entry["body"]
        if kind == "RESERVED":
            for token in body["replaces"]:
                del found[token]
            for token in body["continued"]:
                found[token].at = seq
            for item in body["items"]:
                job = item["job"]
                name = (
                    job["experiment"],
                    job["rule"],
                    tuple((key, value) for key, value in job["wildcards"]),
                )
                found[item["token"]] = Charge(name, item["question"], item["spends"], seq)
        elif kind == "COMMITTED":
            one = found[body["token"]]
            one.status, one.spends, one.query = kind, body["spends"], body["query"]
        elif kind == "DONE":
            found[body["token"]].status, found[body["token"]].released = kind, seq
        elif kind == "REFUNDED":
            for token in body["tokens"]:
                del found[token]
    return found


def epsilon(some: list[Charge], delta: float) -> float:
    """What these cost one record that is added or removed: it lies in one part of each version of
    the data."""
    squares: dict[str, dict[str, float]] = {}
    for spend in (spend for one in some for spend in one.spends):
        where, event = spend["partition"], spend["event"]
        assert event["type"] == "Gaussian", event
        (part,) = where["parts"]
        version = squares.setdefault(where["version"], {})
        version[part] = version.get(part, 0.0) + spend["count"] / event["sigma"] ** 2
    return _gaussian(sum(max(parts.values()) for parts in squares.values()) ** 0.5, delta)


@cache
def _gaussian(mu: float, delta: float) -> float:
    if not mu:
        return 0.0
    return from_gaussian_mechanism(
        1 / mu, value_discretization_interval=1e-3
    ).get_epsilon_for_delta(delta)
