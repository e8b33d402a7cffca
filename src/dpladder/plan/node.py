"""One job as a node of the DAG: what it stands on, what Snakemake compares of it, and what the
ledger charges it for. And what its rule says of it (`RuleSpec`).

Three notions of "the same job" are attributes of a node:

- **params**: what Snakemake compares in this folder. Another value runs the job again.
- **content**: what its output is made from. Experiments whose jobs are equal in it share one node,
  of the first of them in the config: its folder holds the outputs.
- **question**: what the ledger charges for. Another one is paid for.

Each follows from what the rule reads (plan/reads.py) and from the nodes before it, and from nothing
else. Whatever enters one of them is public, for each is written where everybody may look
(contract: no-tell, write-ahead).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import Any, ClassVar, Protocol, dataclass_transform, get_type_hints

from pydantic import ConfigDict, Field

from dpladder.config import Config, Project
from dpladder.plan.follows import Keys, digest, plain_values
from dpladder.plan.mechanisms import GUIDE
from dpladder.plan.retired import NEVER, with_retired, without_retired
from dpladder.privacy.accounting.events import Job

Wildcards = Mapping[str, str]

# --- what a rule reads: keys and facts ---


@dataclass(frozen=True)
class Fact:
    """Beside a field's type: how a job's value is found, where it is no key of the config.

    Attributes:
        of: Finds it, from the job; None: the plan says it (plan/startup.py).
        affects_output: Whether the job's output depends on it. If not, it is no part of a query.
        in_question: Whether the ledger's question includes it. A source's path is the exception: it
            affects the output, yet moving files must not be charged again.
    """

    of: Callable[[Node], Any] | None
    affects_output: bool = True
    in_question: bool = True


def key(name: str) -> Any:
    """Marks a field that is a key of the config.

    Args:
        name: the key's full name, such as `dataset.columns`.
    """
    return Field(alias=name)


def fact(of: Callable[[Node], Any]) -> Fact:
    """Marks a field that the job's output depends on, and that no key says."""
    return Fact(of)


def aside(of: Callable[[Node], Any]) -> Fact:
    """Marks a field that changes no output: where private files lie, and what is looked at before a
    charge."""
    return Fact(of, affects_output=False, in_question=False)


FROM_PLAN = Fact(None, affects_output=False, in_question=False)


def find_facts(node: Node, kind: Any, wanted: Callable[[Fact], bool] = lambda mark: True) -> Keys:
    """The facts of a job that a class has fields for, as plain values.

    Args:
        node: the job.
        kind: a subclass of `Reads`.
        wanted: which facts to find; the plan's own are left out, and those that are `NEVER`.
    """
    marks = facts_of(kind).items()
    facts = {name: mark.of(node) for name, mark in marks if mark.of and wanted(mark)}
    return {name: value for name, value in facts.items() if value is not NEVER}


@cache
def marks_of(kind: Any) -> dict[str, str | Fact]:
    """Where the value of each field comes from; fields of parent classes are among them.

    Returns:
        By field, the key that it is, or its fact.
    """
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: _mark_in(hints[field.name]) for field in fields(kind)}


def _mark_in(hint: Any) -> str | Fact:
    """The one mark among a field's annotations that says where its value comes from."""
    marks = [
        mark if isinstance(mark, Fact) else mark.alias
        for mark in hint.__metadata__
        if isinstance(mark, Fact) or getattr(mark, "alias", None) is not None
    ]
    return marks[0]


def keys_of(kind: Any) -> tuple[str, ...]:
    """The keys of the config among the fields of a class.

    Args:
        kind: a subclass of `Reads`.

    Returns:
        Full names, in the order of the fields.
    """
    return tuple(mark for mark in marks_of(kind).values() if isinstance(mark, str))


def facts_of(kind: Any) -> dict[str, Fact]:
    """The fields that no key of the config says.

    Args:
        kind: a subclass of `Reads`.
    """
    return {field: mark for field, mark in marks_of(kind).items() if isinstance(mark, Fact)}


def what_counts(kind: Any, params: Mapping[str, Any]) -> Keys:
    """The params of a job that its output depends on. A query and its question both name these, so
    what changes a query changes the question.

    Args:
        kind: the class of its rule.
        params: all of the job's, by their names.
    """
    left_out = {field for field, mark in facts_of(kind).items() if not mark.affects_output}
    return with_retired({name: value for name, value in params.items() if name not in left_out})


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True)
class Reads:
    """By itself: a rule that reads its input files alone. Every subclass is a frozen dataclass,
    whose fields are told by their names.

    Unknown fields are refused, and values must have the very types of the class: a workflow and a
    job of two versions must not understand each other half.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")
    private: ClassVar[bool] = False  # whether a job of the rule opens private files
    releases: ClassVar[bool] = False  # whether what it makes comes from records, and leaves
    trains: ClassVar[bool] = False  # whether its learner's own code is behind it
    runs_search: ClassVar[bool] = False  # whether a search other than the ladder is behind it
    descends: ClassVar[bool] = False  # whether public gradients may guide what it does

    # Made here, so that no subclass can forget to be frozen.
    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


# --- what a rule is ---


@dataclass(frozen=True)
class Input:
    """What a rule reads of other jobs, under one name.

    Attributes:
        output: The name that the output has in their rules.
        find: The jobs, from the one that reads.
        tells_apart: Whether readers of other such jobs are other jobs. If not, it only comes
            before, or all that the reader makes of it follows from the reader's own keys.
        several: Whether it is a list of paths. If not, it is one path; where the config has none of
            the jobs, it is an empty list.
    """

    output: str
    find: Callable[[Node], Iterable[Node]]
    tells_apart: bool = True
    several: bool = False


def _train_part(config: Config, wildcards: Wildcards) -> tuple[str, ...]:
    return ("train",)


@dataclass(frozen=True)
class RuleSpec:
    """One rule.

    Args:
        reads: What the rule's output depends on.
        inputs: What it reads of other jobs, by name.
        parts: Whose private files the rule opens.
        when: Which configs have the rule.
        per: The wildcards that an experiment's jobs are spread over; None: the whole project has
            one job of it.
        stated: Whether it is behind the statement.
        buys: The key of the config that asks for what the rule releases once for all trainings of
            an experiment. Empty: it releases nothing of that kind.
        label: What a plan calls that release.
        free: Whether it reads as trainings do, and asks private records nothing.
        steers: Whether releases stand on what it makes, though it opens no private file.
        module: The module of `jobs`, where it has not the rule's name; with dots, one elsewhere.
        figures: Figures that the page shows once they are there, and the package whose captions/
            has theirs. They are no part of the DAG behind the report.
    """

    reads: type[Any]
    inputs: Mapping[str, Input] = field(default_factory=dict)
    parts: Callable[[Config, Wildcards], tuple[str, ...]] = _train_part
    when: Callable[[Config], bool] = lambda config: True
    per: tuple[str, ...] | None = ()
    stated: bool = True
    buys: str = ""
    label: str = ""
    free: bool = False
    steers: bool = False
    module: str = ""
    figures: Mapping[str, str] = field(default_factory=dict)

    def _has(self, trait: str) -> bool:
        """Whether what it reads gives it a trait of `Reads`; documents have none."""
        return getattr(self.reads, trait, False)

    @property
    def private(self) -> bool:
        """Whether it opens private files."""
        return self._has("private")

    @property
    def asks(self) -> bool:
        """Whether it asks private records something, which the ledger is charged for."""
        return self.stated and self._has("releases") and not self.free

    @property
    def is_mechanism(self) -> bool:
        """Whether its jobs are known by its name: releases, and what they stand on. Figures and
        documents are free, and known by their code."""
        return self.private or self.steers

    def mechanisms(self, rule: str, config: Config) -> tuple[str, ...]:
        """What a job is known by in place of its code: its rule, and where it has one its learner,
        its search and what guides it."""
        learner = config.learner
        return (
            rule,
            *([learner.name] if self._has("trains") else []),
            *([config.hpo.name] if self._has("runs_search") else []),
            *([GUIDE] if self._has("descends") and learner.uses_public_gradient else []),
        )


# --- a job ---


# wildcards that tell apart jobs of one content: shares of a part, repeats of a question
NOT_IN_CONTENT = ("shards", "shard", "trial")


class AllJobs(Protocol):
    """What a node asks of the DAG that it is of (plan/dag.py)."""

    project: Project

    @property
    def rules(self) -> Mapping[str, RuleSpec]:
        """The table."""

    def jobs(self, experiment: str, rule: str, **fixed: str) -> list[Node]:
        """An experiment's jobs of a rule."""


@dataclass(frozen=True, eq=False)
class Node:
    """One job.

    Attributes:
        dag: that it is a node of.
        experiment: whose folder holds its outputs; the first that has the job.
        rule, row: its rule's name, and what the table says of it.
        wildcards: its own, without the experiment's name.
        first: the first job of its rung, or of its part, which has the same params and inputs;
            None: it is that one.
    """

    dag: AllJobs
    experiment: str
    rule: str
    row: RuleSpec
    wildcards: Wildcards
    first: Node | None = None

    @property
    def project(self) -> Project:
        """All experiments."""
        return self.dag.project

    @property
    def config(self) -> Config:
        """Its experiment's."""
        return self.project.experiments[self.experiment]

    @cached_property
    def job(self) -> Job:
        """Its label."""
        return Job.of(self.experiment, self.rule, self.wildcards)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Parts of the data that it opens, the main one first: `train`, `test`, `validation`,
        `sample`, `unlabelled`, or a further test by its name."""
        return self.row.parts(self.config, self.wildcards)

    def jobs(self, rule: str, **fixed: str) -> list[Node]:
        """Its experiment's jobs of a rule; none where the config has not the rule."""
        return self.dag.jobs(self.experiment, rule, **fixed)

    @cached_property
    def inputs(self) -> Mapping[str, tuple[Node, ...]]:
        """The jobs that it reads outputs of, by the names that its row gives them."""
        if self.first is not None:
            return self.first.inputs
        return {name: tuple(one.find(self)) for name, one in self.row.inputs.items()}

    @cached_property
    def params(self) -> Keys:
        """What Snakemake compares: the keys that it reads, and the facts that are known without a
        plan. Plain values, as JSON has them, by the names of its class (plan/reads.py)."""
        if self.first is not None:
            return self.first.params
        return self._keys | find_facts(self, self.row.reads)

    @cached_property
    def content(self) -> str:
        """A digest of all that its output is made from, with the content of what it stands on."""
        if self.first is not None:
            return self.first.content
        facts = find_facts(self, self.row.reads, lambda mark: mark.affects_output)
        behind = {
            # in order, for a list of paths is read by place
            name: [*dict.fromkeys(node.content for node in self.inputs[name])]
            for name, one in self.row.inputs.items()
            if one.tells_apart
        }
        wildcards = {
            name: value for name, value in self.wildcards.items() if name not in NOT_IN_CONTENT
        }
        return digest(self.rule, wildcards, with_retired(self._keys), facts, behind)

    @cached_property
    def question_id(self) -> str:
        """What it asks of private records, with all that it stands on, and no name, path or code:
        a copy of an experiment, or another clone, asks the same. The trials of a rung have one."""
        if self.first is not None:
            return self.first.question_id
        return digest(
            self.row.mechanisms(self.rule, self.config), self._asked_values, self._upstream_question
        )

    @cached_property
    def question(self) -> str:
        """What the ledger knows it by."""
        return question_of(self.question_id, self.job)

    @cached_property
    def keys_behind(self) -> Keys:
        """The config's values by the keys behind its output, where an edit may cost."""
        behind: Keys = {}
        for node in self._representative_inputs:
            behind |= node.keys_behind
        return behind | with_retired(self._keys)

    @cached_property
    def mechanisms_behind(self) -> tuple[str, ...]:
        """The mechanisms that it stands on, its own included, in alphabetical order."""
        mechanisms = self.row.mechanisms(self.rule, self.config) if self.row.is_mechanism else ()
        names = {*mechanisms}.union(
            *(node.mechanisms_behind for node in self._representative_inputs)
        )
        return tuple(sorted(names))

    @cached_property
    def _keys(self) -> Keys:
        """The config's values by the keys that its rule reads; those at their neutral defaults are
        left out."""
        values = plain_values(self.config)
        return without_retired(
            {key: value_at(values, key) for key in keys_of(self.row.reads) if _has_key(values, key)}
        )

    @cached_property
    def _asked_values(self) -> Keys:
        """What a query names of its own params."""
        facts = find_facts(self, self.row.reads, lambda mark: mark.in_question)
        return with_retired(self._keys | facts)

    @cached_property
    def _upstream_question(self) -> list[str]:
        """What the inputs add to this job's question. A job that is charged adds its own question;
        trials differ, so each counts. A free job adds its values and what it inherited, but not its
        rule's name: so to insert a free rule changes nothing."""
        charged = {node.question for node in self._inputs_that_tell_apart if node.row.asks}
        free = [node for node in self._representative_inputs if not node.row.asks]
        inherited = {text for node in free for text in node._upstream_question}
        values = {
            json.dumps([name, value], sort_keys=True)
            for node in free
            for name, value in node._asked_values.items()
        }
        return sorted(charged | inherited | values)

    @cached_property
    def _inputs_that_tell_apart(self) -> tuple[Node, ...]:
        """The jobs behind it that its content and question name."""
        inputs = self.row.inputs.items()
        return tuple(node for name, one in inputs if one.tells_apart for node in self.inputs[name])

    @cached_property
    def _representative_inputs(self) -> tuple[Node, ...]:
        """Of these, one of each group with equal params, such as the trials of a rung."""
        return tuple(dict.fromkeys(node.first or node for node in self._inputs_that_tell_apart))


def question_of(question_id: str, job: Job) -> str:
    """What the ledger knows a private job by. It names no experiment, path or code.

    Args:
        question_id: of its node, as its params have it.
        job: whose rule and wildcards are a part of it.
    """
    return digest(question_id, job.rule, job.wildcards)


def _has_key(values: Any, key: str) -> bool:
    """Whether a path leads to a key that stands there; neutral values are left out of `values`."""
    section, _, name = key.rpartition(".")
    if section and not _has_key(values, section):
        return False
    within = value_at(values, section) if section else values
    return isinstance(within, dict) and name in within


def value_at(values: Any, key: str) -> Any:
    """A config's value by a key's full name."""
    for part in key.split("."):
        values = values[part]
    return values
