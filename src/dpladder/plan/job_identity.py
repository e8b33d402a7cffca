"""Jobs in plain data: what Snakemake compares of one, by which question the ledger knows it, and
which experiment owns it.

All three follow from the one table of rules (plan/rule_specs.py), so they cannot disagree.

Three notions of "the same job" stand here:

- **params**: what Snakemake compares in this folder. Another value runs the job again.
- **question_id** and **question**: what the ledger charges for. Another one is paid for.
- **owner**: which experiment's folder holds outputs that several experiments share.

Whatever enters one of them is public, for each is written where everybody may look (contract:
no-tell, write-ahead).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from dpladder.config import Config, Project
from dpladder.config.features_sections import Features
from dpladder.config.load import BASE
from dpladder.config.model import Research
from dpladder.config.section import Section, values_of
from dpladder.config.shift import ALSO, FurtherTest
from dpladder.config.sources import Takes, kind_of, paths_of
from dpladder.config.sweep_sections import Select
from dpladder.plan import rule_params
from dpladder.plan.about import about
from dpladder.plan.pictures import pictures_of, stale_pictures
from dpladder.plan.rule_params import Reads
from dpladder.plan.rule_specs import (
    RULE_SPECS,
    ancestry,
    cells,
    counts_exactly,
    further_test,
    further_tests,
    has_job,
    is_public,
    jobs,
    looks_back,
    mechanisms_of,
    nominal_size,
    reads_sample,
    records_of,
    source_of,
    trial_parts,
)
from dpladder.privacy.accounting.events import Job

Keys = dict[str, Any]
Wildcards = Mapping[str, str]


FOR_IMAGES = ("image_size", "largest_image")
FOR_TEXTS = ("tokens", "pooling")
UNREAD: Mapping[Takes, tuple[str, ...]] = {
    "features": ("weights", "batch_size", "until", *FOR_IMAGES, *FOR_TEXTS),
    "images": FOR_TEXTS,
    "texts": FOR_IMAGES,
}
"""By what is encoded, the keys of features that have no effect on it."""


@dataclass(frozen=True)
class JobRequest:
    """A job, as its facts are asked for.

    Attributes:
        config: its experiment's.
        rule: whose job it is.
        wildcards: its own; an experiment's name among them plays no part.
    """

    config: Config
    rule: str
    wildcards: Wildcards

    @property
    def parts(self) -> tuple[str, ...]:
        """Parts of the data that it reads, the main one first.

        A part is `train`, `test`, `validation`, `sample`, `unlabelled`, or a further test by its
        name.
        """
        return RULE_SPECS[self.rule].parts(self.config, self.wildcards)

    @property
    def source(self) -> str:
        """Where the records of its main part come from."""
        return source_of(self.config, self.parts[0])

    @property
    def private(self) -> Path:
        """The folder that nobody but the operator may read."""
        return Path(self.config.paths.private)

    @property
    def folder(self) -> Path:
        """The lineage's own folder among the private ones."""
        return self.private / self.config.dataset.lineage

    @property
    def further(self) -> FurtherTest | None:
        """The further test that it is for, if it is one's."""
        part = ALSO + self.wildcards["test"] if "test" in self.wildcards else ""
        return further_test(self.config, self.wildcards.get("part", part))


def params(project: Project, rule: str, wildcards: Wildcards) -> Keys:
    """What Snakemake compares for a job: the keys it reads, and the facts that are known without a
    plan. A job runs again when one of them changes, so nothing private may be among them: they lie
    in `.snakemake`, for everybody.

    Args:
        project: all experiments.
        rule: the job's.
        wildcards: the job's, its experiment's name among them.

    Returns:
        Plain values, as JSON has them, by the names of the fields of the rule's class
        (plan/rule_params.py).

    Raises:
        KeyError: there is no such experiment.
    """
    config, kind = project.experiments[wildcards.get("experiment", BASE)], RULE_SPECS[rule].reads
    facts = {name: find for name, find in OF_PROJECT.items() if name in rule_params.facts_of(kind)}
    of_project = {
        name: find(project, wildcards.get("experiment", BASE))
        for name, find in {**facts, **RULE_SPECS[rule].facts}.items()
    }
    request = JobRequest(config, rule, wildcards)
    return _keys(config, kind) | _facts(request, kind) | of_project


def _keys(config: Config, kind: type[Reads]) -> Keys:
    return _present_values(effective_values(config), rule_params.keys_of(kind))


def _facts(request: JobRequest, kind: type[Reads], among: Iterable[str] | None = None) -> Keys:
    """The facts of a job that its rule's class has fields for, or those `among` them that are
    named."""
    wanted = [
        name for name in rule_params.facts_of(kind) if name in (FACTS if among is None else among)
    ]
    return {name: FACTS[name](request) for name in wanted}


def _places(request: JobRequest) -> Keys:
    """Where the private files lie that a rule opens, by the public config that they follow from."""
    return _facts(request, get_type_hints(RULE_SPECS[request.rule].reads)["places"])


def _manifests(request: JobRequest) -> dict[str, str]:
    """Corrupted images are those of another part's records."""
    root, config = request.folder / "data", request.config
    records = {part: records_of(config, part) for part in request.parts}
    return {
        part: str(root / _version(config, "prepare_dataset", part_records))
        for part, part_records in records.items()
    }


def _features(request: JobRequest) -> dict[str, str]:
    """Where the features of each part lie. What names their folder are public config and source
    alone."""
    root = request.folder / "features"
    return {
        part: str(root / _version(request.config, "merge_features", part)) for part in request.parts
    }


def _to_plain(fact: Any) -> Keys | None:
    """A dataclass of plain values as JSON has it."""
    document: Keys | None = None if fact is None else json.loads(json.dumps(asdict(fact)))
    return document


def _different_rows(request: JobRequest) -> int:
    """How many rows a table without ids must be able to tell apart; 0 where equal rows are one
    record."""
    dataset = request.config.dataset
    return 0 if dataset.equal_rows == "one_record" else dataset.nominal_size


def _network(request: JobRequest) -> Keys:
    """The whole learner, for a job that buys its head looks at it before it is charged."""
    keys: Keys = effective_values(request.config)["learner"]
    return keys


def _scored_part(request: JobRequest) -> Keys:
    """The part that a trial's score is counted on, and how many units it has by declaration."""
    part = trial_parts(request.config)[-1]
    return {"part": part, "nominal_size": nominal_size(request.config, part)}


def _earlier_rungs(request: JobRequest) -> list[Keys]:
    """The rungs that a rung's draws look back on."""
    return (
        _all_rungs(request)[: int(request.wildcards["rung"])] if looks_back(request.config) else []
    )


def _epsilon(request: JobRequest) -> float:
    return request.config.sweep.ladder[int(request.wildcards["rung"])].epsilon


def _rungs(request: JobRequest) -> list[Keys]:
    """All below a total; of a rung, those that its draws look back on and itself."""
    rungs = _all_rungs(request)
    return (
        [*_earlier_rungs(request), rungs[int(request.wildcards["rung"])]]
        if "rung" in request.wildcards
        else rungs
    )


def _all_rungs(request: JobRequest) -> list[Keys]:
    return effective_values(request.config)["sweep"]["rungs"] or []


def _views(request: JobRequest) -> int:
    """The number of views of each record: several in the training part alone, and so behind all
    that stands on that."""
    elsewhere = RULE_SPECS[request.rule].prepares and "train" not in request.parts
    return 1 if elsewhere else request.config.learner.views


OF_VIEWS = ("views", "mirror")  # what tells apart the features of one network
# and the jobs of one rule and one config
OF_LADDER = ("below", "epsilon", "rungs", "target")
# read as trainings do, and ask private records nothing
FREE_RULES = (
    "find_start",
    "train_student",
)
FACTS: dict[str, Callable[[JobRequest], Any]] = {
    "places": _places,
    "diagnostics": lambda request: str(request.folder / "diagnostics"),
    "manifests": _manifests,
    "features": _features,
    "cache": lambda request: request.config.paths.cache or str(request.private / "cache"),
    "question_id": lambda request: question_id(request.config, request.rule, request.wildcards),
    "public_parts": lambda request: [
        part for part in request.parts if is_public(request.config, part)
    ],
    "exact": lambda request: all(counts_exactly(request.config, part) for part in request.parts),
    "source": lambda request: request.source,
    "fingerprint": lambda request: fingerprint(request.source),
    "stops": lambda request: request.config.dataset.stops,
    "different_rows": _different_rows,
    "spans": lambda request: _to_plain(request.config.spans),
    "network": _network,
    "scored": _scored_part,
    "below": _earlier_rungs,
    "epsilon": _epsilon,
    "rungs": _rungs,
    "target": lambda request: float(request.wildcards["target"]),
    "also": lambda request: _to_plain(request.further),
    "further": lambda request: [_to_plain(test) for test in further_tests(request.config).values()],
    "matched": lambda request: _to_plain(request.further and request.further.matched),
    "corruption": lambda request: _to_plain(request.further and request.further.corruption),
    "views": _views,
    "mirror": lambda request: request.config.features.mirror and _views(request) > 1,
}


def _version(config: Config, rule: str, part: str) -> str:
    """The name of a folder of private files: 12 hexadecimal digits of what they are made from.
    Another config of the data has another folder, so neither overwrites the other's."""
    declared = part if is_public(config, part) else None
    return digest(identity(config, rule, {"part": part}), source_of(config, part), declared)[:12]


def fingerprint(source: str) -> str:
    """Changes when a source's files do. One time only, the newest: a size, or a digest over
    guessable times, would tell how many records or folders there are. Adding or removing a file
    makes its folder the newest. A file of a folder that is overwritten in place goes unnoticed.

    Returns:
        16 hexadecimal digits; empty where the source is no private file, or is not there.
    """
    kind = kind_of(source)
    if kind is None or not kind.is_private_file:
        return ""
    times = [time for path in paths_of(source) for time in _modification_times(path)]
    return digest(max(times))[:16] if times else ""


def _modification_times(path: Path) -> Iterator[int]:
    """Modification times of a file, or of a folder and all folders in it, in nanoseconds. Files
    inside are left out: a folder's own time moves when one comes or goes."""
    if path.is_dir():
        yield from (os.stat(folder).st_mtime_ns for folder, _, _ in os.walk(path))
    elif path.is_file():
        yield path.stat().st_mtime_ns


def pictures(project: Project, experiment: str) -> list[Keys]:
    """All figures and tables of the project as plain values; `experiment` is unused."""
    return [asdict(picture) | {"shows": [*picture.shows]} for picture in pictures_of(project)]


def contests(project: Project, experiment: str) -> dict[str, str]:
    """Figures of comparisons, which are no part of the DAG: those that somebody asked for, each
    with the package that has its caption.

    A file that is not there yet is no part of the report, and one that comes later runs it again.
    """
    figures = ((path, one) for spec in RULE_SPECS.values() for path, one in spec.figures.items())
    return {path: package for path, package in figures if Path(path).is_file()}


OF_PROJECT: dict[str, Callable[[Project, str], Any]] = {
    "cells": cells,
    "pictures": pictures,
    "left_behind": lambda project, experiment: [*stale_pictures(project)],
    "about": about,
    "contests": contests,
}


def question_id(config: Config, rule: str, wildcards: Wildcards) -> str:
    """All that is known about a job before data is read, with no name: config keys and mechanisms,
    its ancestors' included.

    What two experiments ask alike is so one question, and is paid for once. A question that changes
    is a new one, and pays. Only mechanisms that ask are named, so that a rule that asks nothing
    comes and goes unnoticed. What prepares data is left out: it may well make the same bytes as
    before, and a query names those.

    Args:
        config: the experiment's.
        rule: the job's.
        wildcards: the job's. The trials of a rung have one id.
    """
    shared = {key: value for key, value in wildcards.items() if key != "trial"}
    return _question_id(config, rule, _sorted_wildcards(shared))


@cache
def _question_id(config: Config, rule: str, wildcards: tuple[tuple[str, str], ...]) -> str:
    values = dict(wildcards)
    asking = [
        name
        for name in ancestry(config, rule)
        if RULE_SPECS[name].releases and name not in FREE_RULES
    ]
    mechanisms = [mechanisms_of(config, name) for name in asking]
    return digest(identity(config, rule, values), mechanisms, _asked_params(config, rule, values))


def _asked_params(config: Config, rule: str, wildcards: Wildcards) -> Keys:
    """What a query names of a job's own params; nothing of a rule that asks nothing."""
    if not RULE_SPECS[rule].releases:
        return {}
    kind = RULE_SPECS[rule].reads
    facts = [name for name in FACTS if name not in rule_params.ASIDE]
    request = JobRequest(config, rule, wildcards)
    return rule_params.public_params(_keys(config, kind) | _facts(request, kind, facts))


def question_of(question_id: str, rule: str, wildcards: Wildcards) -> str:
    """What the ledger knows a private job by. It names no experiment, path or code, so that a copy
    of an experiment, or another clone, asks the same question.

    Args:
        question_id: the job's content, of the function of that name.
        rule: the job's.
        wildcards: the job's; an experiment's name among them is left out.
    """
    return digest(question_id, rule, _sorted_wildcards(wildcards))


def question(project: Project, job: Job) -> str:
    """The question that a job of the project asks.

    Args:
        project: all experiments.
        job: whose experiment may be any that has it; all of them ask the same question.
    """
    wildcards = dict(job.wildcards)
    known_by = question_id(project.experiments[job.experiment], job.rule, wildcards)
    return question_of(known_by, job.rule, wildcards)


def questions(project: Project, name: str) -> Iterator[tuple[Job, str]]:
    """All that an experiment may ask of private records, by the jobs that ask it.

    Jobs that ask nothing, such as what prepares data or is computed from releases, are left out.

    Args:
        project: all experiments.
        name: of the experiment.

    Returns:
        Pairs of a job under this experiment's own name and its question, in the order of the rules.
    """
    config = project.experiments[name]
    for rule, spec in RULE_SPECS.items():
        if spec.releases and rule not in FREE_RULES:
            for wildcards in jobs(config, rule):
                asked_job = job(name, rule, wildcards)
                yield asked_job, question(project, asked_job)


def identity(config: Config, rule: str, wildcards: Wildcards) -> Keys:
    """Everything in the config that a job's output depends on, its ancestors' keys included.

    Args:
        config: the experiment's.
        rule, wildcards: of the job.

    Returns:
        Plain values by key, without those that change no output at their defaults.
    """
    behind = ancestry(config, rule)
    values, request = effective_values(config), JobRequest(config, rule, wildcards)
    names = dict.fromkeys(key for name in behind for key in RULE_SPECS[name].keys)
    keys = _present_values(values, names)
    seen = {name: FACTS[name](request) for name in OF_VIEWS} if "extract_features" in behind else {}
    also: Keys = {} if request.further is None else {"also": _to_plain(request.further)}
    if config.dataset.spans:
        also["spans"] = _to_plain(request.config.spans)
    return keys | seen | also | _facts(request, RULE_SPECS[rule].reads, OF_LADDER)


def owner(project: Project, experiment: str, rule: str, wildcards: Wildcards) -> str:
    """The first experiment in the config with an identical job. It does the job, and its folder
    holds the outputs, which the others read.

    Args:
        project: all experiments.
        experiment: that asks.
        rule, wildcards: of the job.

    The answer is remembered in the project, for a plan asks it of each job many times.

    Returns:
        The name of an experiment; the one that asks where nobody else has the job.
    """
    own_wildcards = job(experiment, rule, wildcards).wildcards
    if (rule, own_wildcards) not in project.owners:
        firsts: dict[str, str] = {}
        for name, config in project.experiments.items():
            if has_job(config, rule, wildcards):
                firsts.setdefault(_content(config, rule, own_wildcards), name)
        project.owners[rule, own_wildcards] = firsts
    return project.owners[rule, own_wildcards].get(
        _content(project.experiments[experiment], rule, own_wildcards), experiment
    )


@cache
def _content(config: Config, rule: str, sorted_wildcards: tuple[tuple[str, str], ...]) -> str:
    """What experiments have in common whose job is the same one."""
    wildcards = dict(sorted_wildcards)
    return digest(identity(config, rule, wildcards), sources_behind(config, rule, wildcards))


def sources_behind(config: Config, rule: str, wildcards: Wildcards) -> list[str]:
    """The sources whose records reach a job. One that moves changes no release, so they are no part
    of its identity; experiments that read different ones share nothing.

    Args:
        config: the experiment's.
        rule: the job's, which says whose parts it reads.
        wildcards: the job's.

    Returns:
        Sources by their names in the config, in a fixed order; one may stand there twice.
    """
    swept = trial_parts(config) if "run_trial" in ancestry(config, rule) else ()
    sample = ("sample",) if not RULE_SPECS[rule].prepares and reads_sample(config) else ()
    return [
        source_of(config, part)
        for part in (*swept, *sample, *RULE_SPECS[rule].parts(config, wildcards))
    ]


def job_of_owner(project: Project, experiment: str, rule: str, **wildcards: object) -> Job:
    """The job that does `rule` for an experiment, under the name of the experiment that owns it:
    whose outputs to read.

    Args:
        project: all experiments.
        experiment: that needs the outputs.
        rule: that makes them.
        **wildcards: without the experiment's name. Numbers become the words that paths have.
    """
    values = {key: str(value) for key, value in wildcards.items()}
    return job(owner(project, experiment, rule, values), rule, values)


def job(experiment: str, rule: str, wildcards: Wildcards) -> Job:
    """A job by its label, with wildcards in one order.

    The experiment's own name among the wildcards is left out: the job has it already.
    """
    return Job(experiment, rule, _sorted_wildcards(wildcards))


def _sorted_wildcards(wildcards: Wildcards) -> tuple[tuple[str, str], ...]:
    """Wildcards but for the experiment's name."""
    return tuple(sorted((key, value) for key, value in wildcards.items() if key != "experiment"))


def trials_run_here(project: Project, experiment: str, rung: int) -> tuple[str, ...]:
    """The trials of a rung that are an experiment's own; the others are run by the first experiment
    that has them too.

    Args:
        project: all experiments.
        experiment: that asks.
        rung: its number, from 0.

    Returns:
        Trials by their numbers, as wildcards have them.
    """
    trials = map(str, range(project.experiments[experiment].sweep.ladder[rung].trials))
    return tuple(
        trial
        for trial in trials
        if owner(project, experiment, "run_trial", {"rung": str(rung), "trial": trial})
        == experiment
    )


def digest(*parts: object) -> str:
    """sha256 of plain values, floats at full precision (json writes the shortest exact form).

    Args:
        *parts: plain values, nested as JSON allows; the order of keys plays no part.

    Returns:
        64 hexadecimal digits.

    Raises:
        ValueError: a number is infinite or NaN.
    """
    return hashlib.sha256(json.dumps(parts, sort_keys=True, allow_nan=False).encode()).hexdigest()


@cache
def effective_values(config: Config) -> Keys:
    """The config as plain values, keys without effect at their defaults. Computed once for each
    config."""
    return values_of(_effective(config))


def _effective(config: Config) -> Config:
    """The config with every key that has no effect at its default: to change one runs nothing and
    costs nothing."""
    updates: dict[str, Section] = {}
    if config.mode == "release":
        updates["research"] = Research()
    unread = {key: Features.model_fields[key].default for key in UNREAD[config.features.takes]}
    if config.features.until is not None:  # the network goes on from activations as they are
        unread["length"] = "as_is"
    if config.features.until is not None or config.features.takes == "features":
        unread["layers"] = ()  # there are no depths to choose from
    updates["features"] = config.features.model_copy(update=unread)
    if config.sweep.select.by == "public":
        updates["sweep"] = config.sweep.model_copy(update={"select": Select(by="public")})
    return config.model_copy(update=updates)


def _present_values(values: Keys, keys: Iterable[str]) -> Keys:
    """What a config says by these paths, but for keys that are left out at their neutral values."""
    return {key: _value_at(values, key) for key in keys if _has_key(values, key)}


def _has_key(values: Any, key: str) -> bool:
    """Whether a path leads to a key that stands there; neutral values are left out of `values`."""
    section, _, name = key.rpartition(".")
    return name in (_value_at(values, section) if section else values)


def _value_at(values: Any, key: str) -> Any:
    for part in key.split("."):
        values = values[part]
    return values
