"""Every job of a project as a node (plan/node.py), built once."""

from __future__ import annotations

from collections.abc import Iterator

from dpladder.config import Project
from dpladder.config.load import BASE
from dpladder.plan.node import Node, Wildcards
from dpladder.plan.rules import RULES, jobs


class Dag:
    """All jobs of a project.

    Attributes:
        project: all experiments, with nothing left to choose.
        rules: the table.
    """

    def __init__(self, project: Project) -> None:
        self.project, self.rules = project, RULES
        self._nodes: dict[tuple[str, str, tuple[tuple[str, str], ...]], Node] = {}
        self._owners: dict[tuple[str, tuple[tuple[str, str], ...], str], Node] = {}

    def find(self, rule: str, wildcards: Wildcards) -> Node | None:
        """The node of a job as Snakemake names it.

        Args:
            rule: of the table.
            wildcards: the job's, the experiment's name among them.

        Returns:
            The node, under the experiment that owns it; None where there is no such job.
        """
        name, per = wildcards.get("experiment", BASE), self.rules[rule].per or ()
        if name not in self.project.experiments:
            return None
        place = {key: wildcards[key] for key in per}
        known = self._nodes.get((name, rule, tuple(place.items())))
        return known or next(iter(self.jobs(name, rule, **place)), None)

    def jobs(self, experiment: str, rule: str, **fixed: str) -> list[Node]:
        """An experiment's jobs of a rule, each under the experiment that owns it.

        Args:
            experiment: that asks for them.
            rule: of the table.
            **fixed: values of wildcards; those that the rule has not play no part.
        """
        every = jobs(self.project.experiments[experiment], rule, **fixed)
        return [self._node(experiment, rule, wildcards) for wildcards in every]

    def behind_statement(self) -> Iterator[Node]:
        """Every job whose record and outputs the statement is about, each once."""
        nodes = (
            node
            for name in self.project.experiments
            for rule, row in self.rules.items()
            if row.stated
            for node in self.jobs(name, rule)
        )
        yield from dict.fromkeys(nodes)

    def asking_jobs(self, experiment: str) -> Iterator[Node]:
        """All that an experiment may ask of private records, in the order of the rules."""
        for rule, row in self.rules.items():
            if row.asks:
                yield from self.jobs(experiment, rule)

    def _node(self, experiment: str, rule: str, wildcards: Wildcards) -> Node:
        """A job's node; made when it is first asked for, its group's representative before it. Jobs
        with equal content share one node, owned by the first experiment that has it."""
        place = experiment, rule, tuple(wildcards.items())
        if place not in self._nodes:
            # `shards` is a number of jobs, and no place among them
            varying = [name for name in ("shard", "trial") if wildcards.get(name, "0") != "0"]
            representative = {**wildcards, **dict.fromkeys(varying, "0")}
            first = self._node(experiment, rule, representative) if varying else None
            node = Node(self, experiment, rule, self.rules[rule], wildcards, first)
            self._nodes[place] = self._owners.setdefault((*place[1:], node.content), node)
        return self._nodes[place]


def build_dag(project: Project) -> Dag:
    """All jobs of a project, experiments in order: the first that has a job owns it."""
    dag = Dag(project)
    for _ in dag.behind_statement():
        pass
    return dag
