"""Releases that are kept: which the ledgers hold just as a config asks for them, what no edit may
pay for again unsaid, and what is told of them: older versions of their mechanisms, other code, a
wrong price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from dpladder.config import Project
from dpladder.config.load import Kept, Wildcards
from dpladder.errors import Refused
from dpladder.plan import dag, mechanisms, stages
from dpladder.plan.plan import USED, Plan
from dpladder.privacy.accounting.events import Job
from dpladder.privacy.ledger.book import Held, State
from dpladder.privacy.ledger.book import name as name_of


def assign(project: Project, states: Mapping[str, State]) -> Project:
    """The project with what decides who owns what its experiments share: who has paid for it, and
    who came first. Neither changes while a run goes on: each job is paid for by its owner, and
    newcomers are noted in the order that they had.

    What is kept is kept whatever versions its mechanisms have today; the last release of a job
    counts."""
    used = [
        held for state in states.values() for held in state.items.values() if held.status in USED
    ]
    current = [held for held in used if _is_current(project, held)]
    kept = {
        held.job: Kept(held.versions, held.static)
        for held in current
        if not renews(project, held.job)
    }
    if len(project.experiments) == 1:
        return replace(project, kept=kept)
    paid: dict[tuple[str, Wildcards], list[str]] = {}
    for held in sorted(current, key=lambda held: USED.index(held.status)):
        paid.setdefault((held.job.rule, held.job.wildcards), []).append(held.job.experiment)
    noted = [
        name
        for state in states.values()
        for name in state.experiments
        if name in project.experiments
    ]
    elders = tuple(dict.fromkeys([*noted, *project.experiments]))
    return replace(project, kept=kept, paid=paid, elders=elders)


def _is_current(project: Project, held: Held) -> bool:
    """Whether a job of the ledger is one that its experiment still asks for, just so."""
    rule, wildcards = held.job.rule, dict(held.job.wildcards)
    config = project.experiments.get(held.job.experiment)
    if config is None or rule not in stages.STAGES or not stages.has(config, rule, wildcards):
        return False
    of = dag.modelled(project, config)
    return dag.static(config, rule, wildcards, of, held.versions) == held.static


def renews(project: Project, job: Job) -> bool:
    """Whether the config asks for a job anew, if something about it is new: all of them, or by the
    name of the experiment, the rule, the learner or the search."""
    asked = project.main.respend
    if isinstance(asked, bool):
        return asked
    config = project.experiments.get(job.experiment)
    behind = () if config is None else stages.versions_of(config, job.rule)
    return bool({job.experiment, job.rule, *behind} & set(asked))


def paid_again(project: Project, jobs: Iterable[Job]) -> frozenset[Job]:
    """The jobs that may be paid for once more: those that the config asks for anew; in research
    all, for it has no budget."""
    free = project.main.mode == "research"
    return frozenset(job for job in jobs if free or renews(project, job))


def refuse_replaced(project: Project, states: Mapping[str, State]) -> None:
    """A total that takes a finished model's place is paid for beside it: that is to be said, not to
    happen by an edit."""
    if project.main.mode == "research":
        return
    for name, config in project.experiments.items():
        if not stages.has_models(config):
            continue
        state, rule = states[config.dataset.lineage], stages.final_rule(config)
        done = {
            dict(held.job.wildcards)["target"]
            for held in state.items.values()
            if held.status == "DONE" and (held.job.experiment, held.job.rule) == (name, rule)
        }
        asked = {stages.target_name(target) for target in stages.targets(config)}
        if not done or done & asked or renews(project, dag.job(name, rule, {"target": min(asked)})):
            continue
        both = ", ".join(sorted(done | asked, key=float))
        raise Refused(
            f"experiment {name} has a finished model of total "
            f"{', '.join(sorted(done, key=float))}, and the config asks for "
            f"{', '.join(sorted(asked, key=float))} in its place, which is paid for beside it. To "
            f"keep both, say final.targets: [{both}]; to "
            "replace it, respend: true; to keep what is there, go back to its total."
        )


def refuse_renamed(plan: Plan, project: Project, states: Mapping[str, State]) -> None:
    """A job that an experiment did which no longer asks for it, or under a name that is gone, would
    be paid for again, also where its mechanisms have other versions by now."""
    if project.main.mode == "research":
        return
    done: dict[tuple[str, Wildcards], list[Held]] = {}
    for held in (held for state in states.values() for held in state.items.values()):
        if held.status == "DONE" and held.job not in plan.items:
            done.setdefault((held.job.rule, held.job.wildcards), []).append(held)
    known = {(held.job, held.static) for state in states.values() for held in state.items.values()}
    for job, item in plan.items.items():
        if (job, item.static) in known or renews(project, job):
            continue
        for held in done.get((job.rule, job.wildcards), ()):
            if _would_answer(project, job.experiment, held) and _of_the_same_records(
                project, job, held.job
            ):
                raise Refused(
                    f"{name_of(job)} is what experiment {held.job.experiment} released, which "
                    f"{_called_back(project, held)}, and its "
                    "release is read from there, free; or pay for another one with respend: true."
                )


def _would_answer(project: Project, experiment: str, held: Held) -> bool:
    """Whether an experiment's own job of this kind would be the very same question."""
    config, job = project.experiments[experiment], held.job
    of = dag.modelled(project, config)
    return dag.static(config, job.rule, dict(job.wildcards), of, held.versions) == held.static


def _of_the_same_records(project: Project, job: Job, other: Job) -> bool:
    """An experiment that is gone is taken to have read the same sources."""
    names = [one.experiment for one in (job, other) if one.experiment in project.experiments]
    behind = [
        dag.sources_behind(project.experiments[name], job.rule, dict(job.wildcards))
        for name in names
    ]
    return behind[0] == behind[-1]


def _called_back(project: Project, held: Held) -> str:
    """Why a release is not read where it lies, and how it is."""
    name, target = held.job.experiment, dict(held.job.wildcards).get("target")
    if name not in project.experiments:
        return f"the config no longer has. Call the experiment {name} again, or put {name} back beside it"
    if target is not None and _would_answer(project, name, held):
        return f"no longer asks for it. Give {name} its total of {target} again"
    return f"no longer asks for it. Undo the change of {name}"


def told_of_kept(
    project: Project, states: Mapping[str, State], jobs: Collection[Job]
) -> tuple[str, ...]:
    """Of these jobs' releases, each thing once, with how many releases it is about."""
    found: Counter[str] = Counter()
    for held in (held for state in states.values() for held in state.items.values()):
        kept = project.kept.get(held.job)
        if (
            kept is None
            or held.job not in jobs
            or held.status != "DONE"
            or held.static != kept.static
        ):
            continue
        job, config = held.job, project.experiments[held.job.experiment]
        for told in _told(held, stages.versions_of(config, job.rule)):
            found[f"{job.experiment}: {told}"] += 1
    return tuple(f"{told} ({count} released)" for told, count in found.items())


def _told(held: Held, names: Iterable[str]) -> Iterator[str]:
    names = list(names)
    risen = dict(_risen(held, names))
    for name, told in risen.items():
        yield f"{told}. Kept, and asked anew by respend: [{name}]"
    if not risen and _differs(held, names):
        yield (
            f"by other code of {held.job.rule}, whose versions are the same. Kept; where what it "
            "computes was changed on purpose, "
            "raise its version in plan/mechanisms.py"
        )
    if held.unsound:
        yield f"{held.unsound}. Charged at what they cost"


def made_by(held: Held, names: Iterable[str]) -> str:
    """How a release was made, where this dpladder would make it otherwise: by older versions of the
    mechanisms of these names, or by other code at the same versions; else empty."""
    names = list(names)
    if risen := dict(_risen(held, names)):
        return ", ".join(risen.values())
    if _differs(held, names):
        return f"by other code of {held.job.rule} than this dpladder's, at the same versions"
    return ""


def _risen(held: Held, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        then, now = held.versions.get(name, 1), mechanisms.VERSIONS.get(name, 1)
        if then < now:
            yield name, f"by {name} {then}; this dpladder has {name} {now}"


def _differs(held: Held, names: Collection[str]) -> bool:
    """What was released before ledgers held codes has none to compare."""
    return bool(held.code) and held.code != stages.code_behind(held.job.rule, names)
