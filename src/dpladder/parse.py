"""What the Snakefile does before any job exists: read the config, price the plan, refuse what may not run.

Runs at every parse, dry runs included, so it imports nothing heavy and writes nothing. Reserving happens once per real
run, when Snakemake knows which jobs are due.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from dpladder import stages
from dpladder.config import Project, from_command_line, load
from dpladder.errors import DpladderError, Refused
from dpladder.privacy import ledger as ledgers
from dpladder.privacy.home import open_home
from dpladder.privacy.ledger import Item, Ledger, State
from dpladder.privacy.plan import Plan, make_plan
from dpladder.privacy.show import plan_document, plan_table
from dpladder.privacy.spend import mu

Result = TypeVar("Result")


@dataclass(frozen=True)
class Parsed:
    project: Project
    plan: Plan
    document: Mapping[str, Any]

    def params(self, rule: str, wildcards: Mapping[str, str]) -> dict[str, Any]:
        """What Snakemake compares for a job. A fit also depends on what the plan leaves to the final training."""
        params = stages.params(self.project, rule, wildcards)
        if rule == "fit_radius":
            final = stages.owned_job(
                self.project, wildcards["experiment"], "train_final", target=wildcards["target"]
            )
            (weights,) = self.plan.items[final].spends
            params["final.mu"] = mu(weights.event, weights.count)
        return params


def open_project(workflow: Any) -> Parsed:
    """The project as Snakemake was told it, priced. Ends the process with one message where something is wrong."""
    return _or_exit(lambda: _parse(workflow))


def reserve(parsed: Parsed, due: Iterable[tuple[str, Mapping[str, str]]]) -> None:
    """Charge exactly the private jobs that will run, lineage by lineage, before the first of them starts."""
    _or_exit(lambda: _reserve(parsed, due))


def known_states(project: Project) -> dict[str, State]:
    """The ledgers of a project's lineages, empty where nothing was ever spent; reading creates nothing."""
    home = open_home(create=False)
    names = sorted({config.dataset.lineage for config in project.experiments.values()})
    return {name: ledgers.load(Ledger(home, name)) for name in names}


def _parse(workflow: Any) -> Parsed:
    # Rules may run in environments of their own; what they import is this clone's package.
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)
    project = load(
        workflow.overwrite_configfiles or [Path(workflow.basedir) / "config" / "config.yaml"],
        from_command_line(workflow.config_settings.config),
    )
    states = known_states(project)
    plan = make_plan(project, states)
    document = plan_document(plan, states)
    if workflow.is_main_process:
        print(plan_table(document), file=sys.stderr)
        _refuse(plan, states, project, document)
    return Parsed(project, plan, document)


def _refuse(plan: Plan, states: Mapping[str, State], project: Project, document: Mapping[str, Any]) -> None:
    """Only new charges can be refused: a finished DAG at its limit may always be looked at."""
    for lineage, state in states.items():
        if state.terms is None:
            continue
        ledgers.check_terms(state.terms, plan.terms[lineage])
        known = {(held.job, held.static) for held in state.items.values()}
        new = [item for item in _of_lineage(plan, lineage) if (item.job, item.static) not in known]
        ledgers.admit(state.terms, state, new, project.main.respend)
    if not document["feasible"]:
        raise Refused("; ".join(document["problems"]) + ". Nothing was read or spent.")


def _reserve(parsed: Parsed, due: Iterable[tuple[str, Mapping[str, str]]]) -> None:
    jobs = {stages.job(wildcards.get("experiment", "-"), rule, wildcards) for rule, wildcards in due}
    home = open_home()
    for lineage, terms in parsed.plan.terms.items():
        ledger = ledgers.open_ledger(home, terms)
        items = [item for item in _of_lineage(parsed.plan, lineage) if item.job in jobs]
        ledgers.reserve(ledger, items, parsed.project.main.respend)
        ledgers.refund(ledger, _left_behind(ledgers.load(ledger), parsed))


def _left_behind(state: State, parsed: Parsed) -> list[str]:
    """Unused reservations of jobs that the plan no longer has."""
    return [
        held.token
        for held in state.items.values()
        if held.status == "RESERVED"
        and held.job.experiment in parsed.project.experiments
        and held.job not in parsed.plan.items
    ]


def _of_lineage(plan: Plan, lineage: str) -> Sequence[Item]:
    return [item for item in plan.items.values() if item.spends[0].lineage == lineage]


def _or_exit(action: Callable[[], Result]) -> Result:
    try:
        return action()
    except DpladderError as error:
        _exit(error)


def _exit(error: DpladderError) -> NoReturn:
    """stderr and sys.exit, never an exception: Snakemake would print a trace, and stdout belongs to --dag."""
    print(f"dpladder: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
