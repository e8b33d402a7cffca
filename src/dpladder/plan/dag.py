"""Jobs in plain data: what Snakemake compares of one, how the ledger knows it, and which experiment
owns it.

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
from dpladder.config.learner_sections import guided, shares_releases
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
    looks_back,
    measured_by,
    nominal_size,
    reads_sample,
    records_of,
    source_of,
    trial_parts,
    versions_of,
)
from dpladder.privacy.accounting.events import Job
from dpladder.privacy.ledger.state import Held

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
    another's. `at`: the versions that it is known by, where a release of it is kept; else today's.
    """

    config: Config
    rule: str
    wildcards: Wildcards
    of: Config | None = None
    at: Versions | None = None

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
    at = kept(project, rule, wildcards)
    of = modelled(project, wildcards.get("experiment", BASE))
    asked = JobAsked(config, rule, wildcards, of, at)
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


def _few_usable(asked: JobAsked) -> bool | str:
    dataset = asked.config.dataset
    return dataset.few_usable or ("lopsided" if dataset.lopsided else False)


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
    return 1 if elsewhere else getattr(asked.config.learner, "augment", 1)


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
    "static": lambda asked: static(asked.config, asked.rule, asked.wildcards, asked.of, asked.at),
    "public_parts": lambda asked: [part for part in asked.parts if is_public(asked.config, part)],
    "source": lambda asked: asked.source,
    "fingerprint": lambda asked: fingerprint(asked.source),
    "few_usable": _few_usable,
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
            and not shares_releases(config.learner)
            and guided(config.learner) <= guided(project.main.learner)
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


def static(
    config: Config,
    rule: str,
    wildcards: Wildcards,
    of: Config | None = None,
    at: Versions | None = None,
) -> str:
    """All that is known about a job before data is read: config keys and mechanisms, its ancestors'
    included, and those of the model that it measures, which may be `of` another experiment. `at`:
    the versions of mechanisms; else today's.

    What prepares data is left out: it may well make the same bytes as before, and a query names
    those.
    """
    versions = versions_of(config, rule) if at is None else at
    model = (
        [static(of, final_rule(of), wildcards, at=at)]
        if of is not None and rule == "evaluate_of"
        else []
    )
    return digest(
        identity(config, rule, wildcards),
        [
            identity_of(config, name, versions)
            for name in ancestry(config, rule)
            if not STAGES[name].prepares
        ],
        *model,
    )


def asks_for(project: Project, own: Job, held: Held) -> bool:
    """Whether an experiment asks, as this job of its own, what the ledger holds an answer to."""
    config = project.experiments.get(own.experiment)
    return config is not None and asks(config, own, held, modelled(project, own.experiment))


def asks(config: Config, own: Job, held: Held, of: Config | None = None) -> bool:
    """The same of an experiment that is so configured, and measures the models of another one."""
    rule, wildcards = own.rule, dict(own.wildcards)
    if rule not in STAGES or not has(config, rule, wildcards):
        return False
    return static(config, rule, wildcards, of, held.versions) == held.static


def code(project: Project, rule: str, wildcards: Wildcards) -> str:
    """What Snakemake compares of a job beside its config: its mechanisms at the versions that it is
    known by, or the code of what is free."""
    config = project.experiments[wildcards.get("experiment", BASE)]
    at = kept(project, rule, wildcards)
    return identity_of(config, rule, versions_of(config, rule) if at is None else at)


def kept(project: Project, rule: str, wildcards: Wildcards) -> Versions | None:
    """The versions under which the ledger keeps a job's release; of a free job, those of a release
    that stands on it."""
    own = job(wildcards.get("experiment", BASE), rule, wildcards)
    if own in project.kept or not is_mechanism(rule):
        return project.kept[own].versions if own in project.kept else None
    if issubclass(STAGES[rule].reads, reads.ReleaseReads) and rule not in FREE:
        return None
    config = project.experiments[own.experiment]
    return next(
        (
            kept.versions
            for other, kept in project.kept.items()
            if other.experiment == own.experiment
            and rule in ancestry(config, other.rule)
            and all(dict(other.wildcards).get(key, value) == value for key, value in own.wildcards)
        ),
        None,
    )


def identity(config: Config, rule: str, wildcards: Wildcards) -> Keys:
    """Everything in the config that a job's output depends on, its ancestors' keys included."""
    values = _values(config)
    behind, asked = ancestry(config, rule), JobAsked(config, rule, wildcards)
    keys = _present(values, (key for name in behind for key in STAGES[name].keys))
    seen = {name: FACTS[name](asked) for name in OF_VIEWS} if "extract_features" in behind else {}
    also = {} if asked.further is None else {"also": _plain(asked.further)}
    spans = {} if not config.dataset.spans else {"spans": _plain(asked.config.spans)}
    return keys | seen | also | spans | _facts(asked, STAGES[rule].reads, OF_LADDER)


def owner(project: Project, experiment: str, rule: str, wildcards: Wildcards) -> str:
    """The experiment whose job is the same one, and whose outputs the others read: one that has
    paid for it, wherever it stands in the config; or for the trials below it; else the one that
    came first. Of a hundred experiments each is compared with all, so it is found once."""
    own = job(experiment, rule, wildcards)
    if own not in project.owners:
        project.owners[own] = _owner(project, experiment, rule, wildcards)
    return project.owners[own]


def _owner(project: Project, experiment: str, rule: str, wildcards: Wildcards) -> str:
    asked = job(experiment, rule, wildcards).wildcards
    wanted = _shared_by(project.experiments[experiment], rule, asked)
    paid = project.paid.get((rule, asked), ())
    for name in (
        *paid,
        *_owner_below(project, experiment, rule, wildcards),
        *(project.elders or project.experiments),
    ):
        config = project.experiments[name]
        if name == experiment or (
            has(config, rule, wildcards) and _shared_by(config, rule, asked) == wanted
        ):
            return name
    raise AssertionError("an experiment owns its own job at the latest")


@cache
def _shared_by(config: Config, rule: str, wildcards: tuple[tuple[str, str], ...]) -> str:
    """What two experiments have in common whose job is the same one. Each job of an experiment is
    compared with all others', so it is made out once."""
    asked = dict(wildcards)
    return digest(identity(config, rule, asked), sources_behind(config, rule, asked))


def _owner_below(
    project: Project, experiment: str, rule: str, wildcards: Wildcards
) -> Iterator[str]:
    """Who owns the trials that a job stands on."""
    config = project.experiments[experiment]
    if (
        project.paid
        and rule != "run_trial"
        and config.sweep.rungs
        and "run_trial" in ancestry(config, rule)
    ):
        yield owner(
            project, experiment, "run_trial", {"rung": wildcards.get("rung", "0"), "trial": "0"}
        )


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
    others = {key: value for key, value in wildcards.items() if key != "experiment"}
    return Job(experiment, rule, tuple(sorted(others.items())))


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
    now = versions_of(project.experiments[experiment], "run_trial")
    groups: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for trial in own_trials(project, experiment, rung):
        at = kept(
            project, "run_trial", {"experiment": experiment, "rung": str(rung), "trial": trial}
        )
        groups.setdefault(tuple(raised(now, now if at is None else at).items()), []).append(trial)
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
