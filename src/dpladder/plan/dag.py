"""Jobs in plain data: what Snakemake compares of one, by which question the ledger knows it, and
which experiment owns it.

All three follow from the one table of rules (plan/stages.py), so they cannot disagree.
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
from dpladder.config.search_sections import Ladder
from dpladder.config.section import Section, values_of
from dpladder.config.shift import ALSO, FurtherTest
from dpladder.config.sources import Takes, kind_of, paths_of
from dpladder.config.sweep_sections import Select
from dpladder.plan import reads
from dpladder.plan.about import about
from dpladder.plan.mechanisms import Versions, raised
from dpladder.plan.pictures import left_over, pictures_of
from dpladder.plan.reads import Reads
from dpladder.plan.stages import (
    STAGES,
    ancestry,
    cells,
    final_rule,
    further,
    further_test,
    has,
    identity_of,
    is_mechanism,
    is_public,
    jobs,
    looks_back,
    measured_by,
    mechanisms_of,
    nominal_size,
    reads_sample,
    records_of,
    source_of,
    trial_parts,
    versions_of,
)
from dpladder.privacy.accounting.events import Job

Keys = dict[str, Any]
Wildcards = Mapping[str, str]


AUTO: Keys = {"rungs": None}
FOR_IMAGES = ("image_size", "largest_image")
FOR_TEXTS = ("tokens", "pooling")
UNREAD: Mapping[Takes, tuple[str, ...]] = {
    "features": ("weights", "batch_size", "until", *FOR_IMAGES, *FOR_TEXTS),
    "images": FOR_TEXTS,
    "texts": FOR_IMAGES,
}
"""By what is encoded, the keys of features that have no effect on it."""


@dataclass(frozen=True)
class JobAsked:
    """A job, as its facts are asked for. `of`: the experiment whose models it measures, if they are
    another's."""

    config: Config
    rule: str
    wildcards: Wildcards
    of: Config | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        return STAGES[self.rule].parts(self.config, self.wildcards)

    @property
    def source(self) -> str:
        return source_of(self.config, self.parts[0])

    @property
    def private(self) -> Path:
        return Path(self.config.paths.private)

    @property
    def folder(self) -> Path:
        """The lineage's own folder among the private ones."""
        return self.private / self.config.dataset.lineage

    @property
    def further(self) -> FurtherTest | None:
        """The further test that it is for, if it is one's."""
        named = ALSO + self.wildcards["test"] if "test" in self.wildcards else ""
        return further_test(self.config, self.wildcards.get("part", named))


def params(project: Project, rule: str, wildcards: Wildcards) -> Keys:
    """What Snakemake compares for a job: the keys it reads, and the facts that are known without a
    plan."""
    config, kind = project.experiments[wildcards.get("experiment", BASE)], STAGES[rule].reads
    told = {name: find for name, find in OF_PROJECT.items() if name in reads.facts_of(kind)}
    of_project = {
        name: find(project, wildcards.get("experiment", BASE)) for name, find in told.items()
    }
    of = modelled(project, wildcards.get("experiment", BASE))
    asked = JobAsked(config, rule, wildcards, of)
    return _keys(config, kind) | _facts(asked, kind) | of_project


def _keys(config: Config, kind: type[Reads]) -> Keys:
    return _present(_values(config), reads.keys_of(kind))


def _facts(asked: JobAsked, kind: type[Reads], among: Iterable[str] | None = None) -> Keys:
    wanted = [name for name in reads.facts_of(kind) if name in (FACTS if among is None else among)]
    return {name: FACTS[name](asked) for name in wanted}


def _places(asked: JobAsked) -> Keys:
    """Where the private files lie that a rule opens, by the public config that they follow from."""
    return _facts(asked, get_type_hints(STAGES[asked.rule].reads)["places"])


def _manifests(asked: JobAsked) -> dict[str, str]:
    """Corrupted images are those of another part's records."""
    root, config = asked.folder / "data", asked.config
    records = {part: records_of(config, part) for part in asked.parts}
    return {
        part: str(root / _version(config, "prepare_dataset", own)) for part, own in records.items()
    }


def _features(asked: JobAsked) -> dict[str, str]:
    root = asked.folder / "features"
    return {
        part: str(root / _version(asked.config, "merge_features", part)) for part in asked.parts
    }


def _plain(fact: Any) -> Keys | None:
    """A dataclass of plain values as JSON has it."""
    found: Keys | None = None if fact is None else json.loads(json.dumps(asdict(fact)))
    return found


def _different_rows(asked: JobAsked) -> int:
    dataset = asked.config.dataset
    return 0 if dataset.equal_rows == "one_record" else dataset.nominal_size


def _network(asked: JobAsked) -> Keys:
    found: Keys = _values(asked.config)["learner"]
    return found


def _scored(asked: JobAsked) -> Keys:
    part = trial_parts(asked.config)[-1]
    return {"part": part, "nominal_size": nominal_size(asked.config, part)}


def _below(asked: JobAsked) -> list[Keys]:
    """The rungs that a rung's draws look back on."""
    return _all_rungs(asked)[: int(asked.wildcards["rung"])] if looks_back(asked.config) else []


def _epsilon(asked: JobAsked) -> float:
    return asked.config.sweep.ladder[int(asked.wildcards["rung"])].epsilon


def _rungs(asked: JobAsked) -> list[Keys]:
    """All below a total; of a rung, those that its draws look back on and itself."""
    rungs = _all_rungs(asked)
    return (
        [*_below(asked), rungs[int(asked.wildcards["rung"])]]
        if "rung" in asked.wildcards
        else rungs
    )


def _all_rungs(asked: JobAsked) -> list[Keys]:
    return _values(asked.config)["sweep"]["rungs"] or []


def _total(asked: JobAsked) -> float | None:
    """Its own, which another experiment's target does not say."""
    return asked.config.privacy.epsilon if asked.config.evaluate.epsilon is None else None


def _views(asked: JobAsked) -> int:
    """Of each record: several in the training part alone, and so behind all that stands on that."""
    elsewhere = STAGES[asked.rule].prepares and "train" not in asked.parts
    return 1 if elsewhere else asked.config.learner.views


OF_VIEWS = ("views", "mirror")  # what tells apart the features of one network
# and the jobs of one rule and one config
OF_LADDER = ("below", "epsilon", "rungs", "target", "total")
# read as trainings do, and ask private records nothing
FREE = (
    "find_start",
    "train_student",
    "evaluate_head",
)
FACTS: dict[str, Callable[[JobAsked], Any]] = {
    "places": _places,
    "diagnostics": lambda asked: str(asked.folder / "diagnostics"),
    "manifests": _manifests,
    "features": _features,
    "cache": lambda asked: asked.config.paths.cache or str(asked.private / "cache"),
    "static": lambda asked: static(asked.config, asked.rule, asked.wildcards, asked.of),
    "public_parts": lambda asked: [part for part in asked.parts if is_public(asked.config, part)],
    "source": lambda asked: asked.source,
    "fingerprint": lambda asked: fingerprint(asked.source),
    "stops": lambda asked: asked.config.dataset.stops,
    "different_rows": _different_rows,
    "spans": lambda asked: _plain(asked.config.spans),
    "network": _network,
    "scored": _scored,
    "below": _below,
    "epsilon": _epsilon,
    "rungs": _rungs,
    "target": lambda asked: float(asked.wildcards["target"]),
    "total": _total,
    "totals": lambda asked: sorted({*asked.config.totals, asked.config.privacy.epsilon}),
    "ablated": lambda asked: asked.config.privacy.epsilon,
    "searches": lambda asked: [*asked.config.research.searches],
    "also": lambda asked: _plain(asked.further),
    "further": lambda asked: [_plain(test) for test in further(asked.config).values()],
    "matched": lambda asked: _plain(asked.further and asked.further.matched),
    "corruption": lambda asked: _plain(asked.further and asked.further.corruption),
    "views": _views,
    "mirror": lambda asked: asked.config.features.mirror and _views(asked) > 1,
}


def _version(config: Config, rule: str, part: str) -> str:
    declared = part if is_public(config, part) else None
    return digest(identity(config, rule, {"part": part}), source_of(config, part), declared)[:12]


def fingerprint(source: str) -> str:
    """Changes when a source's files do. One time only, the newest: a size, or a digest over
    guessable times, would tell how many records or folders there are. Adding or removing a file
    makes its folder the newest."""
    kind = kind_of(source)
    if kind is None or not kind.own:
        return ""
    times = [time for path in paths_of(source) for time in _times(path)]
    return digest(max(times))[:16] if times else ""


def _times(path: Path) -> Iterator[int]:
    if path.is_dir():
        yield from (os.stat(folder).st_mtime_ns for folder, _, _ in os.walk(path))
    elif path.is_file():
        yield path.stat().st_mtime_ns


def contestants(project: Project, experiment: str) -> list[Keys]:
    """What compare_learners is told of each experiment, which it repeats itself: how it learns and
    searches, and whether it is comparable."""

    def basis(config: Config) -> tuple[object, ...]:
        part = {"part": "train"}
        return identity(config, "merge_features", part), sources_behind(
            config, "merge_features", part
        )

    return [
        {
            "experiment": name,
            "learner": _values(config)["learner"],
            "sweep": _values(config)["sweep"] | (AUTO if name in project.choices else {}),
            "fit": _values(config)["fit"],
            "epsilon": config.privacy.epsilon,
            "comparable": basis(config) == basis(project.main)
            and config.features.until is None
            and config.features.mean is None
            and not config.learner.purchases
            and config.learner.guided <= project.main.learner.guided
            and isinstance(config.hpo, Ladder),
        }
        for name, config in project.modelled.items()
        if name in project.repeats
    ]


def pictures(project: Project, experiment: str) -> list[Keys]:
    return [asdict(picture) | {"shows": [*picture.shows]} for picture in pictures_of(project)]


def contests(project: Project, experiment: str) -> list[str]:
    """Figures of comparisons, which are no part of the DAG: those that somebody asked for."""
    paths = (Path("results/comparison", f"{name}.svg") for name in ("learners", "hpo", "ablations"))
    return [str(path) for path in paths if path.is_file()]


OF_PROJECT: dict[str, Callable[[Project, str], Any]] = {
    "contestants": contestants,
    "measured_by": measured_by,
    "repeats": lambda project, experiment: 1 + len(project.repeats[BASE]),
    "cells": cells,
    "pictures": pictures,
    "left_behind": lambda project, experiment: [*left_over(project)],
    "about": about,
    "contests": contests,
}


def modelled(project: Project, experiment: str) -> Config | None:
    """The config of the experiment whose models this one measures, where they are not its own."""
    name = project.modelled_by(experiment)
    return None if name == experiment else project.experiments[name]


def static(config: Config, rule: str, wildcards: Wildcards, of: Config | None = None) -> str:
    """All that is known about a job before data is read, with no name and no version: config keys
    and mechanisms, its ancestors' included, and those of the model that it measures, which may be
    `of` another experiment. The trials of a rung have one.

    Only mechanisms that ask are named, so that a rule that asks nothing comes and goes unnoticed.
    What prepares data is left out: it may well make the same bytes as before, and a query names
    those.
    """
    shared = {key: value for key, value in wildcards.items() if key != "trial"}
    return _static(config, rule, _sorted(shared), of)


@cache
def _static(
    config: Config, rule: str, wildcards: tuple[tuple[str, str], ...], of: Config | None
) -> str:
    given = dict(wildcards)
    asking = [name for name in ancestry(config, rule) if STAGES[name].releases and name not in FREE]
    measured = of is not None and rule == "evaluate_of"
    return digest(
        identity(config, rule, given),
        [mechanisms_of(config, name) for name in asking],
        static(of, final_rule(of), given) if of is not None and measured else "",
    )


def question_of(static: str, rule: str, wildcards: Wildcards) -> str:
    """What the ledger knows a private job by: its content, and its place among the like."""
    return digest(static, rule, _sorted(wildcards))


def question(project: Project, job: Job) -> str:
    """The same of a job of the project."""
    of = modelled(project, job.experiment)
    wildcards = dict(job.wildcards)
    known_by = static(project.experiments[job.experiment], job.rule, wildcards, of)
    return question_of(known_by, job.rule, wildcards)


def questions(project: Project, name: str) -> Iterator[tuple[Job, str]]:
    """All that an experiment may ask of private records, by the jobs that ask it."""
    config = project.experiments[name]
    for rule, stage in STAGES.items():
        if stage.releases and rule not in FREE:
            for wildcards in jobs(config, rule):
                asked = job(name, rule, wildcards)
                yield asked, question(project, asked)


def code(project: Project, rule: str, wildcards: Wildcards) -> str:
    """What Snakemake compares of a job beside its config: its mechanisms at the versions that it is
    known by, or the code of what is free."""
    config = project.experiments[wildcards.get("experiment", BASE)]
    return identity_of(config, rule, versions(project, rule, wildcards))


def versions(project: Project, rule: str, wildcards: Wildcards) -> Versions:
    """The versions of the mechanisms behind a job: of a release that is kept those that made it,
    and of a free job those of a release that stands on it; else today's."""
    own = job(wildcards.get("experiment", BASE), rule, wildcards)
    config = project.experiments[own.experiment]
    if project.kept and is_mechanism(rule):
        if STAGES[rule].releases and rule not in FREE:
            behind = [question(project, own)]
        else:
            behind = [
                asked
                for other, asked in questions(project, own.experiment)
                if rule in ancestry(config, other.rule)
                and all(
                    dict(other.wildcards).get(key, value) == value for key, value in own.wildcards
                )
            ]
        found = next((project.kept[one] for one in behind if one in project.kept), None)
        if found is not None:
            return found
    return versions_of(config, rule)


def identity(config: Config, rule: str, wildcards: Wildcards) -> Keys:
    """Everything in the config that a job's output depends on, its ancestors' keys included."""
    values = _values(config)
    behind, asked = ancestry(config, rule), JobAsked(config, rule, wildcards)
    keys = _present(values, (key for name in behind for key in STAGES[name].keys))
    seen = {name: FACTS[name](asked) for name in OF_VIEWS} if "extract_features" in behind else {}
    also: Keys = {} if asked.further is None else {"also": _plain(asked.further)}
    if config.dataset.spans:
        also["spans"] = _plain(asked.config.spans)
    return keys | seen | also | _facts(asked, STAGES[rule].reads, OF_LADDER)


def owner(project: Project, experiment: str, rule: str, wildcards: Wildcards) -> str:
    """Of all experiments with an identical job the first in the config, whose outputs the others
    read."""
    asked = job(experiment, rule, wildcards).wildcards
    if (rule, asked) not in project.owners:
        firsts: dict[str, str] = {}
        for name, config in project.experiments.items():
            if has(config, rule, wildcards):
                firsts.setdefault(_shared_by(project, name, rule, asked), name)
        project.owners[rule, asked] = firsts
    return project.owners[rule, asked].get(_shared_by(project, experiment, rule, asked), experiment)


def _shared_by(project: Project, name: str, rule: str, asked: tuple[tuple[str, str], ...]) -> str:
    """What experiments have in common whose job is the same one."""
    of = modelled(project, name) if rule == "evaluate_of" else None
    return _content(project.experiments[name], rule, asked, of)


@cache
def _content(
    config: Config, rule: str, asked: tuple[tuple[str, str], ...], of: Config | None
) -> str:
    wildcards = dict(asked)
    known_by = (
        identity(config, rule, wildcards) if of is None else static(config, rule, wildcards, of)
    )
    return digest(known_by, sources_behind(config, rule, wildcards))


def sources_behind(config: Config, rule: str, wildcards: Wildcards) -> list[str]:
    """The sources whose records reach a job. One that moves changes no release, so they are no part
    of its identity; experiments that read different ones share nothing."""
    swept = trial_parts(config) if "run_trial" in ancestry(config, rule) else ()
    sample = ("sample",) if not STAGES[rule].prepares and reads_sample(config) else ()
    return [
        source_of(config, part)
        for part in (*swept, *sample, *STAGES[rule].parts(config, wildcards))
    ]


def owned_job(project: Project, experiment: str, rule: str, **wildcards: object) -> Job:
    """The job that does `rule` for an experiment, under the name of the experiment that owns it."""
    values = {key: str(value) for key, value in wildcards.items()}
    return job(owner(project, experiment, rule, values), rule, values)


def job(experiment: str, rule: str, wildcards: Wildcards) -> Job:
    return Job(experiment, rule, _sorted(wildcards))


def _sorted(wildcards: Wildcards) -> tuple[tuple[str, str], ...]:
    """Wildcards but for the experiment's name."""
    return tuple(sorted((key, value) for key, value in wildcards.items() if key != "experiment"))


def own_trials(project: Project, experiment: str, rung: int) -> tuple[str, ...]:
    """The trials of a rung that are an experiment's own; the others are the first experiment's that
    has them too."""
    trials = map(str, range(project.experiments[experiment].sweep.ladder[rung].trials))
    return tuple(
        trial
        for trial in trials
        if owner(project, experiment, "run_trial", {"rung": str(rung), "trial": trial})
        == experiment
    )


def trials_by_versions(project: Project, experiment: str, rung: int) -> list[tuple[str, ...]]:
    """The same, those apart that are known by other versions of their mechanisms."""
    groups: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for trial in own_trials(project, experiment, rung):
        own = {"experiment": experiment, "rung": str(rung), "trial": trial}
        at = versions(project, "run_trial", own)
        groups.setdefault(tuple(raised(at, at).items()), []).append(trial)
    return [tuple(trials) for trials in groups.values()]


def digest(*parts: object) -> str:
    """sha256 of plain values, floats at full precision (json writes the shortest exact form)."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, allow_nan=False).encode()).hexdigest()


@cache
def _values(config: Config) -> Keys:
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


def _present(values: Keys, keys: Iterable[str]) -> Keys:
    """What a config says by these paths, but for keys that are left out at their neutral values."""
    return {key: _at(values, key) for key in keys if _has(values, key)}


def _has(values: Any, key: str) -> bool:
    section, _, name = key.rpartition(".")
    return name in (_at(values, section) if section else values)


def _at(values: Any, key: str) -> Any:
    for part in key.split("."):
        values = values[part]
    return values
