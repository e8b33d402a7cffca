"""What a mechanism costs: events, and the spend that pins an event to a lineage, a partition and a job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Relation = Literal["add_remove", "replace_one"]


@dataclass(frozen=True)
class Gaussian:
    """Gaussian mechanism. `sigma` is noise sd over the L2 sensitivity *under the lineage's own relation*,
    so one event is exactly 1/sigma-GDP whatever the relation is."""

    sigma: float


@dataclass(frozen=True)
class Laplace:
    """Laplace mechanism. `scale` is the noise scale over the L1 sensitivity under the lineage's relation."""

    scale: float


@dataclass(frozen=True)
class Sampled:
    """Poisson sampling: each unit enters independently with `probability`, then `event` sees the sample."""

    probability: float
    event: Event


@dataclass(frozen=True)
class Exponential:
    """Exponential mechanism, a pure epsilon-DP selection."""

    epsilon: float


@dataclass(frozen=True)
class ZCdp:
    """A mechanism known only to be rho-zCDP (Bun & Steinke 2016, Definition 1.1)."""

    rho: float


@dataclass(frozen=True)
class RepeatAndSelect:
    """Papernot & Steinke 2022: run `event` K times, K ~ TNB(shape, mean), publish the best run only.
    `shape` 1 is geometric, 0 logarithmic, inf Poisson."""

    event: Event
    mean: float
    shape: float


@dataclass(frozen=True)
class Composed:
    """Several events on the same data, in any order."""

    events: tuple[Counted, ...]


@dataclass(frozen=True)
class Counted:
    event: Event
    count: int = 1


@dataclass(frozen=True)
class Nothing:
    """No privacy cost, and why."""

    reason: str


Event = Gaussian | Laplace | Sampled | Exponential | ZCdp | RepeatAndSelect | Composed | Nothing


@dataclass(frozen=True)
class Partition:
    """The parts of a split rule that a mechanism reads. No parts named means every part."""

    split_rule: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """A job of the workflow: the same job in another clone, or run again, has the same identity."""

    experiment: str
    rule: str
    wildcards: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Spend:
    """One mechanism's event, `count` times, on one lineage, declared or made by one job."""

    lineage: str
    relation: Relation
    partition: Partition
    job: Job
    event: Event
    count: int = 1
    label: str = ""  # what it buys, for the reader: "weights", "score"
    query: str | None = field(default=None)  # known from COMMITTED on
