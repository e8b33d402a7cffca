"""What the Snakefile does before any job exists: read the config, price the plan, refuse what may
not run.

Runs at every parse, dry runs included, so it imports nothing heavy and writes nothing. Reserving
happens once per real run, when Snakemake knows which jobs are due.

Snakemake parses in its main process, and again in those of jobs. Only the main one prints the plan,
checks what is new and reserves.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpladder.config import Project
from dpladder.config.check import unit_keys
from dpladder.config.load import from_command_line, load
from dpladder.config.source_rules import sources_to_come
from dpladder.errors import BadInput, DpladderError, Refused
from dpladder.plan import edits, outer, package
from dpladder.plan.checked import unchecked_sources
from dpladder.plan.dag import Dag, build_dag
from dpladder.plan.follows import RESULTS, digest
from dpladder.plan.installation import DEMO, INSTALLED, SAY, SOURCE, STANDS
from dpladder.plan.node import FROM_PLAN, Node, facts_of
from dpladder.plan.plan import Plan, make_plan
from dpladder.plan.resolve import paid_choices, resolve_defaults, resolve_split
from dpladder.plan.reuse import check_names, questions_to_repeat, under_terms
from dpladder.plan.rules import code_of
from dpladder.plan.table import plan_document, plan_table, plan_without_ledger
from dpladder.privacy.accounting import booking
from dpladder.privacy.accounting.composition import entry_of
from dpladder.privacy.accounting.events import Job
from dpladder.privacy.ledger import anchors
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import State
from dpladder.privacy.statement.check import (
    anchors_in,
)
from dpladder.privacy.statement.documents import PlanDocument

# Taken out of the environment, so that no job inherits it: there another file may have that number.
PEOPLE = os.environ.pop(SAY, None)
STATEMENT = RESULTS / "privacy.json"
PLAN_RECORD = RESULTS / "plan.privacy.json"
PARSED = "dpladder_parsed"


@dataclass(frozen=True)
class Parsed:
    """What the Snakefile knows once it is parsed: from config and ledgers alone, no data.

    Attributes:
        dag: every job, with what the plan chose for its experiment.
        plan: what each job costs.
        document: the plan as others read it.

    One object is made at each parse, and everything that the .smk files ask goes through it.
    """

    dag: Dag
    plan: Plan
    document: PlanDocument

    @property
    def project(self) -> Project:
        """Every experiment."""
        return self.dag.project

    @property
    def declared_plan(self) -> dict[str, Any]:
        """What results/plan.json holds: nothing that changes while the plan is carried out."""
        return asdict(plan_without_ledger(self.document))

    def params(self, node: Node) -> dict[str, Any]:
        """What Snakemake compares for a job. A fit also depends on the mu that the final training
        stands on. That is what the plan leaves to it, and that of the sums which it solves.

        Returns:
            Plain, public values, which the job reads back as the rule's class.
        """
        planned = [name for name, mark in facts_of(node.row.reads).items() if mark is FROM_PLAN]
        return node.params | {name: self._final_mu(node) for name in planned}

    def _final_mu(self, fit: Node) -> float:
        nodes = self.dag.jobs(fit.experiment, "train_final", target=fit.wildcards["target"])
        if fit.config.learner.trials_are_solved:
            nodes += self.dag.jobs(fit.experiment, "estimate_sums")
        spends = self.plan.spends_of(one.job for one in nodes)
        stands_on = (spend for spend in spends if spend.label != "calibration")
        return booking.total(map(entry_of, stands_on)).mu


@contextlib.contextmanager
def exit_with_one_message() -> Iterator[None]:
    """End the process with one message where something is wrong: by stderr and sys.exit, never an
    exception. Snakemake would print a trace, and stdout belongs to --dag."""
    try:
        yield
    except DpladderError as error:
        say(f"dpladder: {error}")
        sys.exit(error.exit_code)


def need_submission(executor: str) -> None:
    """Without its program the executor would wait and try again for ever.

    Args:
        executor: Snakemake's name for where jobs go.

    Raises:
        BadInput: there is no sbatch for SLURM.
    """
    if executor == "slurm" and shutil.which("sbatch") is None:
        raise BadInput(
            "jobs are submitted to SLURM by sbatch, which is not on this machine's path. Start it "
            "on a login node of the cluster, or without the SLURM profile. Nothing was read or "
            "spent."
        )


def known_states(project: Project) -> dict[str, State]:
    """The ledgers of a project's lineages, empty where nothing was ever spent; reading creates
    nothing.

    Returns:
        A state for each lineage that the config names, by lineage.
    """
    home = open_home(create=False)
    names = sorted({config.dataset.lineage for config in project.experiments.values()})
    return {name: ledgers.load(Ledger(home, name)) for name in names}


def states_here(project: Project) -> dict[str, State]:
    """What the ledgers hold, refused where the results here were made under another home, a later
    state of this one, or by another project.

    Raises:
        Refused: the ledger is older than the results, or the results are another project's.
    """
    stood = anchors_in(RESULTS)  # before the ledgers, which only grow
    states = known_states(project)
    anchors.check(open_home(create=False), stood, states)
    _refuse_strangers({anchor.lineage for anchor in stood}, states.keys())
    return states


def open_resolved(
    paths: Sequence[Path | str], overrides: Mapping[str, Any] | None = None
) -> Project:
    """The project that these config files describe, with nothing left to choose.

    Args:
        paths: config files, later ones over earlier ones.
        overrides: values from the command line, over all files.

    Raises:
        BadInput: a config is wrong, or `respend` names nothing that there is.
    """
    project = load(paths, overrides)
    check_names(project)
    return resolve_defaults(*load_past_choices(project))


def load_past_choices(project: Project) -> tuple[Project, Mapping[str, Mapping[str, Any]]]:
    """A project split as its lineages were opened; and what was chosen for its experiments, and
    paid for, by the ledgers.

    Returns:
        The project with each split's test share filled in, and by experiment the choices that were
        paid for.
    """
    states = known_states(project)
    opened_under = {
        name: one.split_rule for name, state in states.items() if (one := state.binding)
    }
    project = resolve_split(project, opened_under)
    return project, paid_choices(project, states)


def import_path(users: str) -> str:
    """Rules may run in environments of their own: what they import is this clone's package, and
    whatever its user has beside it.

    Args:
        users: PYTHONPATH as the user has it; it may be empty.
    """
    other_paths = [path for path in users.split(os.pathsep) if path]
    return os.pathsep.join(dict.fromkeys([str(SOURCE), *other_paths]))


@exit_with_one_message()
def open_project(workflow: Any, config: Mapping[str, Any]) -> Parsed:
    """The project as Snakemake was told it, priced. `config` is read where this is a module of
    another workflow; elsewhere the files are, which know their lines.

    Args:
        workflow: Snakemake's own object.
        config: the module's config.

    Returns:
        What the .smk files ask of. The process ends with a message where something is refused.
    """
    if not INSTALLED:
        os.environ["PYTHONPATH"] = import_path(os.environ.get("PYTHONPATH", ""))
    module = outer.enter_module(workflow)
    if module and PARSED in vars(workflow):  # each `use rule` of the outer workflow parses again
        parsed_before: Parsed = vars(workflow)[PARSED]
        return parsed_before
    if module:
        overrides = workflow.config_settings.config
        with sources_to_come():
            project = open_resolved([], outer.config_of(config, overrides))
    else:
        project = open_resolved(
            workflow.overwrite_configfiles or [DEMO],
            from_command_line(workflow.config_settings.config),
        )
    dag = build_dag(project)
    states = (states_here if workflow.is_main_process else known_states)(project)
    states = under_terms(project, states)
    with edits.name_edits_in_refusals(dag, states):
        plan = make_plan(dag, states)
        document = plan_document(plan, states, dag)
        if workflow.is_main_process:
            say(plan_table(document))
            refuse_new_charges(plan, states, dag)
            if is_terminal():
                remind_of_check(plan, states, project)
            if not document.feasible:
                raise Refused(
                    f"{'; '.join(document.problems)}. Nothing was read or spent: ask for less; or "
                    "undo the change, and what was released is restored, free."
                )
    parsed = Parsed(dag, plan, document)
    if module:
        vars(workflow)[PARSED] = parsed
    if workflow.is_main_process and (changed := _changed_rules(parsed)):
        stands = f" {STANDS}." if "prepare_dataset" in changed else ""
        say(
            f"Changed since {STATEMENT} was written: {', '.join(changed)}.{stands} Snakemake "
            "runs them again, unless its folder .snakemake was lost; then: dpladder run --forcerun "
            f"{' '.join(changed)}",
        )
    return parsed


def _refuse_strangers(there: Collection[str], own_packages: Collection[str]) -> None:
    """A results folder is one project's: two would mix their files, and each would be told the
    other's guarantee."""
    if there and not set(there) & set(own_packages):
        raise Refused(
            f"{RESULTS.absolute()} holds the results of another project, about lineage "
            f"{', '.join(sorted(there))}; this config is about {', '.join(sorted(own_packages))}. "
            "Give it a folder of its own (dpladder init FOLDER, and the config in there), or move "
            f"{RESULTS} away first. Nothing was read or spent."
        )


def _changed_rules(parsed: Parsed) -> list[str]:
    """The rules whose config or code is no longer what the statement's records, and its plan's,
    were made from."""
    paths = [*_read_json(STATEMENT)["records"], PLAN_RECORD] if STATEMENT.is_file() else ()
    records = [_read_json(Path(path)) for path in paths if Path(path).is_file()]
    return sorted({record["rule"] for record in records if _is_stale(parsed, record)})


def _is_stale(parsed: Parsed, record: Mapping[str, Any]) -> bool:
    """Whether a record's output would be made from something else now. A record of no job of this
    DAG is not looked at."""
    rule, wildcards = record["rule"], record["wildcards"]
    if rule == "plan_spend":
        return bool(record["basis"] != digest(parsed.declared_plan, package.digest()))
    node = parsed.dag.find(rule, wildcards)
    return node is not None and record["basis"] != digest(parsed.params(node), code_of(rule))


def refuse_new_charges(plan: Plan, states: Mapping[str, State], dag: Dag) -> None:
    """Refuse a plan whose new charges have no room. Only new ones can be refused: a finished DAG at
    its limit may always be looked at.

    Args:
        plan: what each job costs.
        states: what the ledgers hold, by lineage.
        dag: all jobs.
    """
    edits.refuse_unrelated_table(dag, states)
    edits.refuse_unconfirmed_repeats(dag, plan, states)
    home = open_home(create=False)
    for lineage, state in states.items():
        new = [item for item in plan.items_of(lineage) if state.answer(item.question) is None]
        # A lineage that is yet to be opened has the terms that a run would open it under, for life.
        terms, units = plan.terms[lineage], _units_of(dag.project, lineage)
        admitted, replaced = ledgers.admit(terms, state, new, units=units)
        ledgers.check_user(Ledger(home, lineage), terms, state, admitted, replaced)
        if admitted:
            unused = [h.token for h in state.charges.values() if h.status == "RESERVED"]
            ledgers.check_units(Ledger(home, lineage), state, admitted, units, unused)


def remind_of_check(plan: Plan, states: Mapping[str, State], project: Project) -> None:
    """Name each lineage that is asked something new, and whose source `dpladder check` never looked
    at.

    Args:
        plan: what each job costs.
        states: what the ledgers hold, by lineage.
        project: all experiments.
    """
    for lineage, line in unchecked_sources(project):
        answers = (states[lineage].answer(item.question) for item in plan.items_of(lineage))
        if None in answers:
            say(line)


def _units_of(project: Project, lineage: str) -> dict[str, object] | None:
    """By what the units of a lineage are known; config/check.py has all its experiments agree."""
    keys = unit_keys(next(iter(project.of_lineage(lineage).values())))
    return {key: value for key, value in keys.items() if value is not None} if keys else None


@exit_with_one_message()
def reserve(
    parsed: Parsed, wanted_jobs: Iterable[tuple[str, Mapping[str, str]]], executor: str
) -> None:
    """Charge for all jobs that this run will start, in every lineage, before the first of them.
    Either the whole run fits, or nothing is spent.

    What was reserved by a run that ended is given back first where nobody asks for it any more. The
    plan was made before the ledgers were opened, so it is made once more with what they hold now.

    Args:
        parsed: what the Snakefile knows.
        wanted_jobs: rules with their wildcards; those that need no charge too.
        executor: that jobs are sent to.
    """
    need_submission(executor)
    jobs = {
        Job.of(wildcards.get("experiment", "-"), rule, wildcards) for rule, wildcards in wanted_jobs
    }
    home = open_home()
    opened = {
        lineage: ledgers.open_ledger(home, terms) for lineage, terms in parsed.plan.terms.items()
    }
    # Another clone may have spent since the parse: what was priced then must still be the price.
    fresh = make_plan(parsed.dag, {lineage: ledger.state for lineage, ledger in opened.items()})
    if fresh != parsed.plan:
        raise Refused(
            "the ledger moved since the plan was made, by another run. Nothing was spent: start "
            "again."
        )
    plans = {lineage: edits.plan_note(parsed.dag, lineage) for lineage in opened}
    for lineage, ledger in opened.items():
        items = [item for item in parsed.plan.items_of(lineage) if item.job in jobs]
        anew = questions_to_repeat(parsed.dag, items)
        ledgers.refund(ledger, _abandoned_reservations(ledger.state, parsed, anew))
        units = _units_of(parsed.project, lineage)
        ledgers.reserve(ledger, items, anew, units, plans[lineage])
    # Results say from now on how far the ledgers had come, so that a home put back in time is found
    # out.
    anchors.save_anchors(
        RESULTS,
        [ledgers.head(ledger) for ledger in opened.values()],
        {lineage: opened[lineage].state.entry_of(plan) for lineage, plan in plans.items()},
    )


def _abandoned_reservations(state: State, parsed: Parsed, anew: Collection[str]) -> list[str]:
    """Unused reservations of this project's experiments that the plan asks for no longer. They hold
    no question of others, and none that has its answer and is not asked anew. Labels tell whose
    they are, and may be of another clone that has an experiment of this name: it is told to start
    again."""
    wanted = {item.question for item in parsed.plan.items.values()}
    waiting = {
        question
        for question in wanted
        if question in anew
        or not any(charge.status == "DONE" for charge in state.charges_for(question))
    }
    return [
        charge.token
        for charge in state.charges.values()
        if charge.status == "RESERVED"
        and charge.question not in waiting
        and (charge.question in wanted or charge.job.experiment in parsed.project.experiments)
    ]


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def is_terminal() -> bool:
    """Whether `say` tells a person at a terminal."""
    return sys.stderr.isatty() if PEOPLE is None else os.isatty(int(PEOPLE))


def say(text: str) -> None:
    """Tell a person, where Snakemake's own words may go elsewhere.

    Args:
        text: one message, without a line break at its end. Nothing private may be in it.
    """
    print(text, file=sys.stderr)  # among Snakemake's words, which `reasons_in` reads
    if PEOPLE is not None:
        clear = "\r\033[K" if is_terminal() else ""  # the line that says how far the run is
        os.write(int(PEOPLE), f"{clear}{text}\n".encode())
