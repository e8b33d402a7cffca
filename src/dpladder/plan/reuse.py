"""Releases that are kept: which of them the ledgers hold just as a config asks, and what no edit
may pay for again unsaid. Of them is told what is an older version of a mechanism, or a wrong price.

A question that the ledger has an answer to is restored, free, whoever asked it and under which
version (docs/design.md, line 7). What `respend` names is asked anew instead, and pays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from dpladder.config import Config, Project
from dpladder.config.wording import did_you_mean, value_as_text
from dpladder.errors import BadInput
from dpladder.plan import job_identity, mechanisms, rule_specs
from dpladder.plan.mechanisms import BROUGHT, WORD
from dpladder.plan.plan import terms_of_project
from dpladder.privacy.accounting.events import Job
from dpladder.privacy.ledger.state import Item, LedgerCharge, State


def with_answers(project: Project, states: Mapping[str, State]) -> tuple[Project, dict[str, State]]:
    """The project with what the ledgers hold an answer to, whoever asked, and what respend asks
    anew. Beside it the ledgers, as a run under the config's terms finds them.

    Args:
        project: all experiments, with nothing left to choose.
        states: what the ledgers hold, by lineage.

    Returns:
        The project with `reused_versions`, the versions of each answer by question, and `anew`,
        questions to ask once more. Beside it the states.
    """
    terms = terms_of_project(project, states)
    states = {lineage: state.as_under(terms[lineage]) for lineage, state in states.items()}
    questions = [
        (question, config.dataset.lineage, _renews(config, job))
        for name, config in project.experiments.items()
        for job, question in job_identity.questions(project, name)
    ]
    anew = frozenset(question for question, _, renewed in questions if renewed)
    answers = {
        question: answer.versions
        for question, lineage, _ in questions
        if question not in anew
        if (answer := states.get(lineage, State()).answer(question)) is not None
    }
    return replace(project, reused_versions=answers, anew=anew), states


def check_names(project: Project) -> None:
    """Refuse a `respend` that names nothing that can be asked anew.

    Raises:
        BadInput: a name is neither an experiment, a rule that releases, a method nor the guide.
    """
    rules = [rule for rule in rule_specs.RULE_SPECS if rule_specs.is_mechanism(rule)]
    known = {*project.experiments, *rules, *mechanisms.METHODS, mechanisms.GUIDE}
    configs = project.experiments.values()
    names = [name for one in configs if isinstance(one.respend, tuple) for name in one.respend]
    if wrong := [name for name in dict.fromkeys(names) if name not in known]:
        behind = {name for one in configs for name in rule_specs.versions_of(one, "evaluate")}
        raise BadInput(
            f"config: respend names {', '.join(map(value_as_text, wrong))}; "
            f"{did_you_mean(wrong[0], known)}allowed: true, false, {{up_to: epsilon}}, or names of "
            f"experiments ({', '.join(project.experiments)}) and of what is behind their models "
            f"({', '.join(sorted(behind))})"
        )


def _renews(config: Config, job: Job) -> bool:
    """Whether an experiment asks for a job anew, if something about it is new. It asks for all of
    them, or by the name of the experiment, the rule, the learner or the search."""
    if not isinstance(config.respend, tuple):
        return config.respend is True
    return bool(
        {job.experiment, job.rule, *rule_specs.versions_of(config, job.rule)} & {*config.respend}
    )


def questions_to_repeat(project: Project, items: Iterable[Item]) -> frozenset[str]:
    """The questions that may be paid for once more: those that are asked anew; in research all, for
    it has no budget.

    Args:
        project: all experiments, with `anew`.
        items: the jobs of this run, on one lineage.
    """
    if project.main.mode == "research":
        return frozenset(item.question for item in items)
    return project.anew


def notes_on_kept_releases(
    project: Project, states: Mapping[str, State], jobs: Iterable[Job]
) -> tuple[str, ...]:
    """What is to be told of releases that older versions made: each thing once, with how many
    releases it is about.

    Args:
        project: all experiments.
        states: what the ledgers hold, by lineage.
        jobs: whose releases are looked at.

    Returns:
        Lines of text, each for one experiment. Releases of today's versions and prices are not
        mentioned.
    """
    notes: Counter[str] = Counter()
    for job in jobs:
        config, question = project.experiments[job.experiment], job_identity.question(project, job)
        charge = states.get(config.dataset.lineage, State()).answer(question)
        if charge is not None and charge.status == "DONE" and question in project.reused_versions:
            for note in _notes_on_release(job, charge, rule_specs.versions_of(config, job.rule)):
                notes[f"{job.experiment}: {note}"] += 1
    return tuple(f"{note} ({count} released)" for note, count in notes.items())


def _notes_on_release(job: Job, charge: LedgerCharge, names: Iterable[str]) -> Iterator[str]:
    """A mechanism that has a later version now, and a price that was mended since."""
    names = list(names)
    risen = dict(_raised_versions(charge, names))
    for name, version in risen.items():
        yield f"{version}. Kept, and asked anew by respend: [{name}]"
    if charge.unsound:
        yield f"{charge.unsound}. Charged at what they cost"


def mechanisms_text(charge: LedgerCharge, names: Iterable[str]) -> str:
    """How a release was made, where that is to be told. It is told of mechanisms of other packages,
    and of older versions of the mechanisms of these names; else empty.

    Args:
        charge: the release, with the versions that made it.
        names: of the mechanisms that stand behind it today.
    """
    names = list(names)
    parts = [f"by {name} of {BROUGHT[name].package}: {WORD}" for name in names if name in BROUGHT]
    parts += dict(_raised_versions(charge, names)).values()
    return ", ".join(parts)


def _raised_versions(charge: LedgerCharge, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Of these mechanisms those whose version rose since the charge, each with what is said of
    that."""
    for name in names:
        then, now = charge.versions.get(name, 1), mechanisms.VERSIONS.get(name, 1)
        if then < now:
            yield name, f"by {name} {then}; this dpladder has {name} {now}"
