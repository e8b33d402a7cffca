"""What the rules that train and count share: reservations, caches, and the one way to release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save

from dpladder.config.features_sections import Features
from dpladder.data import sealed
from dpladder.data.cache import map_of_cache, name_of, open_cache, public_network_of
from dpladder.data.centre import Map, Mapped, ball, shrink_mean
from dpladder.data.depths import Depths, Known, depths_by_name, depths_for, stored_depths
from dpladder.errors import Refused
from dpladder.jobs import places
from dpladder.jobs.places import job_home
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task
from dpladder.learn.data import Data
from dpladder.learn.interface import Claim, Constants
from dpladder.network.facts import Network
from dpladder.plan import job_identity, mechanisms, rule_specs
from dpladder.plan.outer import module_advice
from dpladder.plan.rule_params import (
    EvaluateOf,
    FindMean,
    HeadReads,
    ReleaseReads,
    SeenReads,
    StoredReads,
    TrainingReads,
)
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.composition import entry_of
from dpladder.privacy.accounting.events import Counted, Job, Spend, partition_version
from dpladder.privacy.ledger import anchors
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.features import first_found_value
from dpladder.privacy.ledger.home import subkey
from dpladder.privacy.ledger.state import LedgerCharge, job_label
from dpladder.privacy.ledger.units import units_of
from dpladder.privacy.release import store
from dpladder.privacy.release.meter import Draw, Meter
from dpladder.privacy.release.store import Produce, Question, Work, is_kept, query_digest
from dpladder.privacy.statement.records import file_digest

# the inputs that are releases themselves
RELEASES = ("mean", "covariance", "statistics", "start", "weights")

SAMPLE = "sample"  # the part that holds public records
LAYERS = "layers"  # beside a public sample's mean: the depths that it chose


@dataclass(frozen=True)
class Reserved:
    """A private job as the ledger knows it: what it may spend, by what the spend buys."""

    ledger: Ledger
    question: str
    spends: Mapping[str, Spend]

    def entry(self, label: str) -> Entry:
        """What may be spent on what a label names: a mu, and what it is booked at."""
        reserved_entry = entry_of(self.spends[label])
        assert reserved_entry.is_gaussian, (
            "plans reserve plain budgets; searches ask for their events"
        )
        return reserved_entry

    def mu(self, label: str) -> float:
        return self.entry(label).mu

    def actual_spends(self, label: str, events: Iterable[Counted]) -> list[Spend]:
        """The events that a mechanism really makes, in place of the declared one."""
        return [
            replace(self.spends[label], event=event.event, count=event.count) for event in events
        ]


def _check_releases(task: Task[ReleaseReads], ledger: Ledger) -> None:
    """A job that stood on an edited release would be paid for, and once more when the release is
    restored."""
    lineage = None if isinstance(task.reads, EvaluateOf) else ledger.lineage
    for name in RELEASES:
        path = task.input.get(name)
        if not isinstance(path, str) or not _is_release(task, name):
            continue  # found for nothing, and no release
        if not is_kept(ledger.home, Path(path), lineage):
            under = "another lineage" if lineage is None else f"lineage {lineage}"
            raise Refused(
                f"{path} is not what was released under {under}: it was edited, or made under "
                "another home. Nothing was charged for it. Delete it and run again: what the "
                "ledger holds as released is restored, free."
            )


def _is_release(task: Task[Any], name: str) -> bool:
    """Whether an input is a release: a mean that centres features, or a head to start from, may be
    found on public records."""
    if name == "mean":
        return task.reads.mean is not None
    if name != "start":
        return True
    # what a head that is bought starts from itself is public
    return not isinstance(task.reads, HeadReads) and task.reads.learner.starts_from_private_head


@dataclass(frozen=True)
class Part:
    """A part's feature cache. `seal` names its exact bytes without a private read; `name` its data
    and the map to its features, `map_name` this public map alone, whatever build or device made
    them. `dimension` is that of its rows as they are stored, and `depths` are what they hold of a
    network. `lineage`, `version` and `units`, a digest of all units, are those of private records,
    and empty of public ones."""

    path: Path
    seal: str
    name: str
    map_name: str
    classes: int
    dimension: int
    depths: Known = ()
    lineage: str = ""
    version: str = ""
    units: str = ""


def ledger_of(task: Task[ReleaseReads]) -> Ledger:
    return Ledger(job_home(), task.reads.lineage)


def find_reservation(task: Task[ReleaseReads], ledger: Ledger | None = None) -> Reserved:
    """What the head node reserved for this job. Jobs look in the ledger, never in a file. Jobs of
    one process share a `ledger`, which remembers what it has read."""
    stood = [
        anchor
        for anchor in anchors.read(rule_specs.RESULTS)
        if anchor.lineage == task.reads.lineage
    ]
    ledger = ledger or ledger_of(task)
    state = ledgers.load(ledger)
    anchors.check(ledger.home, stood, {ledger.lineage: state})
    _check_releases(task, ledger)
    question = job_identity.question_of(task.reads.static, task.rule, task.wildcards)
    charges = state.charges_for(question)
    if not charges and state.tokens.get(question):
        raise Refused(
            f"{job_label(_job(task))}: a later run in this home gave its reservation back, for it "
            f"has "
            f"an experiment {task.experiment} that does not ask this. Nothing was spent: start "
            "again, it reserves first. Where two projects share a home and a lineage, give their "
            "experiments names of their own."
        )
    if not charges:
        raise Refused(
            f"{job_label(_job(task))} finds no reservation in {ledger.folder}. On a cluster, check "
            "that DPLADDER_HOME is mounted on this node and is the head node's; otherwise start "
            f"the workflow again, it reserves first.{module_advice()}"
        )
    _check_code(task, charges)
    spends = {spend.label: spend for spend in charges[-1].declared}
    return Reserved(ledger, question, spends)


def _job(task: Task[ReleaseReads]) -> Job:
    """A job by its label."""
    return job_identity.job(task.experiment, task.rule, task.wildcards)


def _check_code(task: Task[ReleaseReads], charges: Sequence[LedgerCharge]) -> None:
    """A job runs the code that the head node reserved it for, also when files were edited since, or
    a node has others."""
    code = rule_specs.code_behind(task.rule, rule_specs.mechanisms_of(task.reads, task.rule))
    if any(one.status == "RESERVED" and one.code != code for one in charges):
        raise Refused(
            "the package's code changed after the workflow was started, or this node has another "
            "version of it. Nothing was read or spent: start the workflow again."
        )


def _check_versions(request: ReleaseRequest, question: Question) -> None:
    """Refuse to let new code answer a question that was reserved under older mechanisms.

    A finished answer is restored, whatever its version. Two cases are left: the job was cut off
    after COMMIT, and dpladder was upgraded since; or what it stands on changed after a release
    under an older version, which research alone pays for again unasked.
    """
    state, task = request.reservation.ledger.state, request.task
    if state.finished_charge(question.query) is not None:
        return
    names = rule_specs.mechanisms_of(task.reads, task.rule)
    for charge in state.charges_for(question.question):
        older = [n for n in names if charge.versions.get(n, 1) < mechanisms.VERSIONS.get(n, 1)]
        cut_off = charge.status == "COMMITTED" and charge.query == question.query
        if older and (cut_off or charge.status == "RESERVED"):
            then, now = charge.versions.get(older[0], 1), mechanisms.VERSIONS[older[0]]
            raise Refused(
                f"{job_label(question.job)} was {'cut off' if cut_off else 'released'} under "
                f"version {then} of {older[0]}, of which this dpladder has version {now}"
                + (
                    ". No more was read or spent. Finish it with the dpladder of then, which is "
                    "free"
                    if cut_off
                    else ", and what it stands on changed since. Nothing was read or spent. Undo "
                    "the change, and what was released is restored, free"
                )
                + f"; or ask anew with respend: true, or respend: [{older[0]}]."
            )


def part_of(task: Task[places.WithFeatures], part: str) -> Part:
    path = places.features(task, part)
    if not path.is_file():
        raise Refused(
            f"the features in {path} are gone. `dpladder run --forcerun prepare_dataset "
            "prepare_public` makes them again; what was released from them is restored, free."
        )
    attrs, seal = sealed.read_attrs(path)
    reads, private = task.reads, ("", "", "")
    if (
        isinstance(reads, ReleaseReads)
        and reads.mode == "release"
        and part not in reads.public_parts
    ):
        private = (reads.lineage, partition_version(reads.version), str(attrs["units"]))
    return Part(
        path,
        seal.hex(),
        name_of(attrs, subkey(job_home(), "cache")),
        map_of_cache(attrs),
        int(attrs["classes"]),
        int(attrs["width"]),
        stored_depths(attrs),
        *private,
    )


def read(task: Task[SeenReads], part: Part) -> Data:
    """The features as a training sees them: less a public or released mean, at the public length;
    beside them the released covariance or statistics, the public head to start from and the public
    records that guide steps, where there are any."""
    data = _mapped(task, part)
    if SAMPLE in task.reads.places.features:
        data = replace(data, sample=_mapped(task, part_of(task, SAMPLE)))
    if task.input.get("covariance"):
        data = replace(data, covariance=load_file(task.input["covariance"])["covariance"])
    if task.input.get("statistics"):
        data = replace(data, statistics=Path(task.input["statistics"]))
    if task.input.get("start"):
        start = load_file(task.input["start"])
        claim = Claim(*map(float, start["claim"])) if "claim" in start else None
        worth = float(start["worth"][0]) if "worth" in start else None
        data = replace(data, start=start["head"], claim=claim, worth=worth)
    return data


def _mapped(task: Task[SeenReads], part: Part) -> Data:
    data = read_raw(part)
    return replace(data, features=Mapped(data.features, map_of(task, part)))


def depths_of(task: Task[StoredReads | FindMean], part: Part) -> Depths | None:
    """The depths that are taken, of those that a part's features hold: those that a public sample
    chose, where one did."""
    reads = task.reads
    length = reads.typical if reads.length == "as_is" else reads.length
    mean = task.input.get("mean")
    if mean and LAYERS in (arrays := load_file(mean)):
        names = [part.depths[place][0] for place in arrays[LAYERS]]
        return depths_by_name(names, part.depths, length)
    takes = Features(model=reads.model).takes
    return depths_for(reads.layers, part.depths, length, takes, reads.model)


def map_of(task: Task[SeenReads], part: Part) -> Map:
    """From a part's stored rows to those that a training sees."""
    arrays = load_file(task.input["mean"]) if task.input.get("mean") else {}
    mean = arrays.get("mean")
    if mean is not None and "noise" in arrays:
        mean = shrink_mean(mean, float(arrays["noise"][0]))
    bought, length = task.reads.mean, task.reads.length
    radius, exact = (None, False) if bought is None or mean is None else ball(bought.radius, length)
    length_or_none = None if length == "as_is" else length
    return Map(mean, radius, length_or_none, task.reads.constant, exact, depths_of(task, part))


def read_nothing(task: Task[SeenReads], part: Part) -> Data:
    """What a training sees that stands on released statistics alone."""
    features = np.empty((0, map_of(task, part).width(part.dimension)), np.float32)
    return Data(features, np.empty(0, np.int64), statistics=Path(task.input["statistics"]))


def shared_inputs(task: Task[Any]) -> dict[str, str]:
    """What `read` uses beside the records, by its bytes; empty where the rule has none."""
    releases = {name: task.input.get(name) for name in RELEASES if name != "weights"}
    digests = {name: file_digest(Path(path)) if path else "" for name, path in releases.items()}
    guiding = SAMPLE in task.reads.places.features
    return digests | ({SAMPLE: part_of(task, SAMPLE).name} if guiding else {})


def save_found(task: Task[places.WithFeatures], name: str, arrays: Mapping[str, Any]) -> None:
    """Write what was found of a public sample: as it was found first, for another device or build
    may round it otherwise, and questions name it by its bytes."""
    mean = task.input.get("mean")
    under = query_digest(
        job=task.rule,
        code=task.code,
        cfg=task.public_cfg,
        sources=[part_of(task, part).name for part in task.reads.places.features],
        mean=file_digest(Path(mean)) if mean else "",
    )
    first = first_found_value(job_home(), under, save(dict(arrays)))
    task.output[name].write_bytes(first)


@cache
def _open_part(part: Part) -> Data:
    """The features themselves, mapped and every byte of them vouched for: before COMMIT, so that a
    file that is damaged, or another home's, costs nothing. What a row says is used after COMMIT
    alone."""
    opened = open_cache(part.path, subkey(job_home(), "cache"))
    if opened.digest != part.seal:
        raise Refused(f"{part.path} changed while the job started. Run it again.")
    return Data(opened.features, opened.labels, opened.units, groups=opened.groups)


def read_raw(part: Part) -> Data:
    """A part's records. Of private ones those alone count whose units were there when this version
    of the data was first asked: then none lies in another part than it did (data/prepare.py)."""
    data = _open_part(part)
    if not part.units:
        return data
    first = ledgers.load(Ledger(job_home(), part.lineage)).first_units.get(part.version)
    return data if first in (None, part.units) else _restrict_to_version(part, first)


@cache
def _restrict_to_version(part: Part, first: str) -> Data:
    data = _open_part(part)
    assert data.units is not None, "every cache has them"
    known = units_of(job_home(), part.lineage, first)
    there = np.fromiter((row.tobytes() in known for row in data.units), bool, len(data.units))
    return replace(data, labels=np.where(there, data.labels, -1))


def _before_commit(release: Release, questions: Sequence[Question]) -> None:
    """All that can refuse these questions before anything is charged."""
    task = release.requests[0].task
    for request, question in zip(release.requests, questions, strict=True):
        _check_versions(request, question)
    for part in task.reads.places.features:
        _open_part(part_of(task, part))
    if release.ready is not None:
        release.ready()


def constants_of(task: Task[SeenReads], part: Part) -> Constants:
    """The public facts of a training on records as it sees them."""
    length = task.reads.length
    return replace(
        stored_constants(task, part),
        dimension=map_of(task, part).width(part.dimension),
        length=task.reads.typical if length == "as_is" else length,
        network=network_of(task, part),
    )


def network_of(task: Task[SeenReads], part: Part) -> Network | None:
    """The public network, where features are activations at a cut in it."""
    attrs, _ = sealed.read_attrs(part.path)
    return public_network_of(attrs, task.reads.weights)


def stored_constants(task: Task[ReleaseReads], part: Part) -> Constants:
    """The same for records as they are stored."""
    return Constants(
        n0=task.reads.nominal_size,
        classes=part.classes,
        dimension=part.dimension,
        relation=task.reads.relation,
        delta=task.reads.delta,
        cap=task.reads.unit.cap,
        labels=task.reads.labels,
        seed=task.reads.search.seed if isinstance(task.reads, TrainingReads) else 0,
    )


@dataclass(frozen=True, eq=False)
class ReleaseRequest:
    """What a job asks, once ever. The query is every public input: the map to features, upstream
    releases, every constant, the versions of mechanisms, the question itself, in which the version
    of the data is a number. Of private records it says nothing: the same number is answered by what
    is kept, unread."""

    task: Task[ReleaseReads]
    reservation: Reserved
    spends: Sequence[Spend]
    draws: Iterable[Draw]
    inputs: Mapping[str, Any]
    outputs: Iterable[str]

    def question(self) -> Question:
        outputs = {self.task.output[name].name: self.task.output[name] for name in self.outputs}
        return Question(
            _job(self.task),
            self.reservation.question,
            self._query(),
            self.spends,
            tuple(self.draws),
            outputs,
            self._units(),
        )

    def _units(self) -> str:
        """Which units there are, of what is private."""
        parts = (part_of(self.task, name) for name in self.task.reads.places.features)
        return next((part.units for part in parts if part.units), "")

    def _query(self) -> str:
        """That of the versions which the job is known by; unless it was answered under others."""
        task, state = self.task, self.reservation.ledger.state
        known_by = self._query_of(task.code)
        older = (
            self._query_of(rule_specs.identity_of(task.reads, task.rule, charge.versions))
            for charge in reversed(state.charges_for(self.reservation.question))
            if charge.status == "DONE"
        )
        return next(
            (query for query in (known_by, *older) if state.finished_charge(query)), known_by
        )

    def _query_of(self, code: str) -> str:
        return query_digest(
            question=self.reservation.question,
            code=code,
            cfg=self.task.public_cfg,
            spends=repr(tuple(self.spends)),
            **self.inputs,
        )


@dataclass(frozen=True, eq=False)
class Release:
    """What a job is about to release: what it asks, and how that is answered. An audit answers it
    many times, with meters of its own and no ledger, and so attacks the very rule."""

    requests: Sequence[ReleaseRequest]
    produce: Produce
    ready: Callable[[], None] | None = None  # before COMMIT: what it refuses costs nothing


def single(
    task: Task[ReleaseReads],
    reservation: Reserved,
    spends: Sequence[Spend],
    draws: Iterable[Draw],
    inputs: Mapping[str, Any],
    outputs: Iterable[str],
    produce: Callable[[Meter, Path], None],
    ready: Callable[[], None] | None = None,
) -> Release:
    """The release of a job that asks one question."""

    def each(works: Sequence[Work]) -> None:
        for work in works:
            produce(work.meter, work.folder)

    return Release([ReleaseRequest(task, reservation, spends, draws, inputs, outputs)], each, ready)


def release_once(release: Release) -> None:
    """Answer these questions once, ever, and record what that cost."""
    task, ledger = release.requests[0].task, release.requests[0].reservation.ledger
    seed = task.reads.research.seed if task.reads.mode == "research" else None
    questions = [one.question() for one in release.requests]
    outcomes = store.release_together(
        ledger, questions, release.produce, seed, ready=partial(_before_commit, release, questions)
    )
    anchors.save_anchors(rule_specs.RESULTS, [ledgers.head(ledger)])
    for one, outcome in zip(release.requests, outcomes, strict=True):
        write_record(one.task, outcome.spends, one.reservation.question, outcome.versions)
