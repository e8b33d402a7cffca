"""Releases that are kept: which the ledgers hold just as a config asks for them, what no edit may
pay for again unsaid, and what is told of them: older versions of their mechanisms, other code, a
wrong price."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from dpladder.config import Config, Project
from dpladder.config.load import Kept, Wildcards
from dpladder.config.model import Tester
from dpladder.config.wording import did_you_mean, shown
from dpladder.errors import BadInput, Refused
from dpladder.plan import dag, mechanisms, stages
from dpladder.plan.mechanisms import BROUGHT, WORD
from dpladder.plan.plan import terms_of_project
from dpladder.privacy.accounting.events import Job, of_total
from dpladder.privacy.ledger.state import Held, State


def assign(project: Project, states: Mapping[str, State]) -> tuple[Project, dict[str, State]]:
    """The project with what decides who owns what its experiments share: who has paid for it, and
    who came first. Neither changes while a run goes on: each job is paid for by its owner, and
    newcomers are noted in the order that they had. And the ledgers, by today's names.

    What is kept is kept whatever versions its mechanisms have today; the last release of a job
    counts. Once the former names of experiments are known, those that measure them are asked
    for by these."""
    terms = terms_of_project(project, states)
    states = {lineage: state.under(terms[lineage]) for lineage, state in states.items()}
    found, named = _assigned(project, states)
    before = dict(_as_known(found, named))
    known = replace(
        found,
        experiments={**found.experiments, **before},
        measured={name: found.modelled_by(name) for name in before},
    )
    return (found, named) if known == found else _assigned(known, states)


def _as_known(project: Project, states: Mapping[str, State]) -> Iterator[tuple[str, Tester]]:
    """The experiments that measure one that was renamed since, as the ledgers know them: their
    questions name it. They may have had other names themselves."""
    for name, config in project.testers.items():
        held_of = [
            (replace(job, experiment=name), held)
            for job, held in states[config.dataset.lineage].by_name()
            if held.used
        ]
        for old in project.former.get(config.tested, ()):
            evaluate = config.evaluate.model_copy(update={"of": old})
            before = config.model_copy(update={"evaluate": evaluate})
            as_before = replace(
                project,
                experiments={**project.experiments, name: before},
                measured={name: config.tested},
            )
            if any(dag.asks_for(as_before, job, held) for job, held in held_of):
                yield name, before


def _assigned(project: Project, states: Mapping[str, State]) -> tuple[Project, dict[str, State]]:
    """As `assign`, by the names that experiments are known by so far. Under `paid`, the first that
    is named is the owner: a release that is done comes before one that was only begun."""
    states = {
        lineage: state.named(names_today(project, lineage, state))
        for lineage, state in states.items()
    }
    used = [
        (job, held)
        for state in states.values()
        for job, held in state.by_name()
        if held.used and dag.asks_for(project, job, held)
    ]
    kept = {job: Kept(held.versions, held.static) for job, held in used if not renews(project, job)}
    families = {lineage: _families(project, lineage, state) for lineage, state in states.items()}
    project = replace(project, kept=kept, former=_former(project, states, used), families=families)
    if len(project.experiments) == 1:
        return project, states
    paid: dict[tuple[str, Wildcards], list[str]] = {}
    for job, _ in sorted(used, key=lambda one: one[1].status != "DONE"):
        paid.setdefault((job.rule, job.wildcards), []).append(job.experiment)
    noted = [
        name
        for state in states.values()
        for name in state.experiments
        if name in project.experiments
    ]
    elders = tuple(dict.fromkeys([*noted, *project.experiments]))
    return replace(project, paid=paid, elders=elders), states


def names_today(project: Project, lineage: str, state: State) -> dict[Job, list[str]]:
    """The jobs whose questions were answered under other names, with the answers' tokens, oldest
    first: an experiment that was renamed, or asks what another one no longer does."""
    answers: dict[tuple[str, Wildcards], list[Held]] = {}
    for held in state.items.values():
        if held.used:
            answers.setdefault((held.job.rule, held.job.wildcards), []).append(held)
    asked = [
        dag.job(name, rule, wildcards)
        for name, config in project.of_lineage(lineage).items()
        for rule in stages.STAGES
        if stages.STAGES[rule].releases
        for wildcards in stages.jobs(config, rule)
    ]
    found: dict[Job, list[str]] = {}
    for job in asked:
        others = answers.get((job.rule, job.wildcards), ())
        if any(held.used and dag.asks_for(project, job, held) for held in state.of(job)):
            continue
        same = [held.token for held in others if _takes_over(project, job, held)]
        if same:
            found[job] = same
    return found


def _takes_over(project: Project, job: Job, held: Held) -> bool:
    """Whether a job asks what another experiment's was answered, which asks it no longer. One that
    is gone is taken to have read the same sources: a query names the records themselves."""
    if held.job.experiment == job.experiment or not dag.asks_for(project, job, held):
        return False
    if _is_gone(project, job, held):
        return True
    before, now = (
        dag.sources_behind(project.experiments[one.experiment], one.rule, dict(one.wildcards))
        for one in (held.job, job)
    )
    return before == now and not dag.asks_for(project, held.job, held)


def _is_gone(project: Project, job: Job, held: Held) -> bool:
    """Whether the experiment that was answered is no more, or has gone to another lineage than that
    of a job that asks the same."""
    before, now = (project.experiments.get(one.experiment) for one in (held.job, job))
    return before is None or now is None or before.dataset.lineage != now.dataset.lineage


def _former(
    project: Project, states: Mapping[str, State], used: Iterable[tuple[Job, Held]]
) -> dict[str, tuple[str, ...]]:
    """The names that experiments had before: those whose final models they take over, now or in any
    run before."""
    found = {name: {*_formerly(states, name)} for name in project.experiments}
    for job, held in used:
        old = held.job.experiment
        if "target" in dict(job.wildcards) and old not in (job.experiment, *found[job.experiment]):
            found[job.experiment] |= {old, *_formerly(states, old)}
    return {name: tuple(sorted(names - {name})) for name, names in found.items() if names - {name}}


def _formerly(states: Mapping[str, State], name: str) -> Iterator[str]:
    for state in states.values():
        yield from state.formerly(name)


def _families(project: Project, lineage: str, state: State) -> dict[str, str]:
    """The family of each experiment: that of its final model. One that has none is of that which
    its name had, unless the last model under it goes elsewhere now: then it begins a family. A
    name that the config does not have stays as it is: another clone's experiment may have it."""
    finals = [(job, held) for job, held in state.by_name() if held.used and of_total(job)]
    finals.sort(key=lambda one: (one[1].family == state.family(one[0].experiment), one[1].reserved))
    last = {
        job.experiment: held for job, held in finals if held.family == state.family(job.experiment)
    }
    asked = [(job, held) for job, held in finals if dag.asks_for(project, job, held)]
    found = {job.experiment: held.family for job, held in asked}
    moved = {held.token for job, held in asked if held.family != state.family(job.experiment)}
    known = {*state.families.values(), *(held.family for held in state.items.values())}
    for name in project.of_lineage(lineage).keys() - found.keys():
        left = name in last and last[name].token in moved
        found[name] = _new_family(name, known) if left else state.family(name)
    return found


def _new_family(name: str, known: Collection[str]) -> str:
    """No experiment's name has a blank."""
    return next(new for n in itertools.count(2) if (new := f"{name} {n}") not in known)


def check_names(project: Project) -> None:
    """Refuse a `respend` that names nothing that can be asked anew."""
    rules = [rule for rule in stages.STAGES if stages.is_mechanism(rule)]
    known = {*project.experiments, *rules, *stages.LEARNERS, *stages.SEARCHED, mechanisms.GUIDE}
    configs = project.experiments.values()
    given = [name for one in configs if isinstance(one.respend, tuple) for name in one.respend]
    if wrong := [name for name in dict.fromkeys(given) if name not in known]:
        behind = {name for one in configs for name in stages.versions_of(one, _last_rule(one))}
        raise BadInput(
            f"config: respend names {', '.join(map(shown, wrong))}; "
            f"{did_you_mean(wrong[0], known)}allowed: true, false, or names of experiments "
            f"({', '.join(project.experiments)}) and of what is behind their models "
            f"({', '.join(sorted(behind))})"
        )


def _last_rule(config: Config) -> str:
    return "evaluate" if config.models == "own" else "evaluate_of"


def renews(project: Project, job: Job) -> bool:
    """Whether an experiment's config asks for a job anew, if something about it is new: all of
    them, or by the name of the experiment, the rule, the learner or the search."""
    config = project.experiments.get(job.experiment)
    asked = (config or project.main).respend
    if isinstance(asked, bool):
        return asked
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
    for name, config in project.modelled.items():
        state, rule = states[config.dataset.lineage], stages.final_rule(config)
        done = {
            dict(job.wildcards)["target"]
            for job, held in state.by_name()
            if held.status == "DONE" and (job.experiment, job.rule) == (name, rule)
        }
        asked = {stages.target_name(target) for target in config.totals}
        if not done or done & asked or renews(project, dag.job(name, rule, {"target": min(asked)})):
            continue
        both = ", ".join(sorted(done | asked, key=float))
        raise Refused(
            f"experiment {name} has a finished model of total "
            f"{', '.join(sorted(done, key=float))}, and the config asks for "
            f"{', '.join(sorted(asked, key=float))} in its place, which is paid for beside it. To "
            f"keep both, say final.targets: [{both}]; to replace it, respend: true; to keep what "
            "is there, go back to its total."
        )


def told_of_kept(
    project: Project, states: Mapping[str, State], jobs: Collection[Job]
) -> tuple[str, ...]:
    """Of these jobs' releases, each thing once, with how many releases it is about."""
    found: Counter[str] = Counter()
    for job, held in (one for state in states.values() for one in state.by_name()):
        kept = project.kept.get(job)
        if kept is None or job not in jobs or held.status != "DONE" or held.static != kept.static:
            continue
        config = project.experiments[job.experiment]
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
            "computes was changed on purpose, raise its version in plan/mechanisms.py"
        )
    if held.unsound:
        yield f"{held.unsound}. Charged at what they cost"


def made_by(held: Held, names: Iterable[str]) -> str:
    """How a release was made, where that is to be told: by mechanisms of other packages, by older
    versions of the mechanisms of these names, or by other code at the same versions; else empty."""
    names = list(names)
    made = [f"by {name} of {BROUGHT[name].package}: {WORD}" for name in names if name in BROUGHT]
    if risen := dict(_risen(held, names)):
        made += risen.values()
    elif _differs(held, names):
        made.append(f"by other code of {held.job.rule} than this dpladder's, at the same versions")
    return ", ".join(made)


def _risen(held: Held, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        then, now = held.versions.get(name, 1), mechanisms.VERSIONS.get(name, 1)
        if then < now:
            yield name, f"by {name} {then}; this dpladder has {name} {now}"


def _differs(held: Held, names: Collection[str]) -> bool:
    """What was released before ledgers held codes has none to compare."""
    return bool(held.code) and held.code != stages.code_behind(held.job.rule, names)
