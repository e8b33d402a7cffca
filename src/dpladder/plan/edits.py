"""What was edited since the last run in this folder. A refusal names it, and an edit may not pay
again unsaid.

The ledger has what each run planned, written with what it reserved, and results/ledger.json names
the entry of the last run here. Without that file an edit may pay again unsaid: this guards a purse,
and no privacy.
"""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from dpladder.config import Config
from dpladder.config.model import Consent
from dpladder.errors import Refused
from dpladder.plan import follows
from dpladder.plan.dag import Dag
from dpladder.plan.node import value_at
from dpladder.plan.plan import Plan
from dpladder.plan.reuse import asked_anew
from dpladder.privacy.accounting.rounding import round_up
from dpladder.privacy.ledger import anchors
from dpladder.privacy.ledger.limits import lifetime_cost, lifetime_problem
from dpladder.privacy.ledger.state import Item, PlanNote, State, Terms
from dpladder.privacy.statement.documents import FINALS

ABSENT = "nothing"
COUNTS, VERSION = "count_units", "dataset.version"
LONGEST = 120  # characters of a value in a message
# keys that jobs read as facts; a note from before they were noted says nothing of them
KEYS_OF_FACTS = (
    "privacy.epsilon",
    "final.targets",
    "sweep.rungs",
    "features.mirror",
    "dataset.spans",
)
NO_CHOICE: Mapping[str, Any] = {"inputs": [], "chosen": {}}


def plan_note(dag: Dag, lineage: str) -> PlanNote:
    """What the ledger of a lineage notes of a plan, with what it reserves.

    Args:
        dag: all jobs, with nothing left to choose.
        lineage: whose experiments are meant.

    Returns:
        By experiment plain values, none of them private.
    """
    return {
        name: {
            "keys": _keys_behind(dag, name),
            "questions": [node.question for node in dag.asking_jobs(name)],
            **dag.project.resolved_choices.get(name, NO_CHOICE),
        }
        for name in dag.project.of_lineage(lineage)
    }


def _keys_behind(dag: Dag, name: str) -> dict[str, Any]:
    """All keys behind an experiment's results, where an edit may cost: sources are not among them.

    The first total's test speaks for all. Jobs read some keys as facts, one by one: totals, rungs,
    mirroring, spans.
    """
    config = dag.project.experiments[name]
    test, *_ = dag.jobs(name, "evaluate", target=follows.target_name(config.totals[0]))
    values = follows.plain_values(config)
    read_as_facts = {key: value_at(values, key) for key in KEYS_OF_FACTS}
    keys: dict[str, Any] = json.loads(json.dumps(test.keys_behind | read_as_facts))
    return keys


@contextlib.contextmanager
def name_edits_in_refusals(dag: Dag, states: Mapping[str, State]) -> Iterator[None]:
    """A refusal inside ends with the edits since the last run in this folder, where there are any.

    Args:
        dag: all jobs, as they are configured now.
        states: what the ledgers hold, by lineage.

    Raises:
        Refused: what was refused inside, with each edited key, its old value and its new one.
    """
    try:
        yield
    except Refused as refused:
        before = _last_plan(states)
        lines = [
            f"{name}: {edit}"
            for name in dag.project.experiments
            if name in before
            for now in [_keys_behind(dag, name)]
            for edit in _edits({key: now[key] for key in KEYS_OF_FACTS} | before[name]["keys"], now)
        ]
        raise Refused(
            f"{refused} Edited since the last run here: {'; '.join(lines)}."
            if lines
            else str(refused)
        ) from None


def _last_plan(states: Mapping[str, State]) -> PlanNote:
    """What the last run in this folder planned, by experiment; empty where none ran."""
    entries = anchors.last_plans(follows.RESULTS)
    return {
        name: note
        for lineage, state in states.items()
        for name, note in state.plans.get(entries.get(lineage, 0), {}).items()
    }


def refuse_unrelated_table(dag: Dag, states: Mapping[str, State]) -> None:
    """Refuse a table that a new folder brings to a lineage where every table had other columns.

    It would pay for counts of nobody: whoever was not there when the version was first asked counts
    as nothing. Configs and the ledger decide, no record. This guards a purse, as below.

    Args:
        dag: all jobs.
        states: what the ledgers hold, by lineage.

    Raises:
        Refused: no column in common, and `respend` does not accept to pay.
    """
    planned_here = anchors.last_plans(follows.RESULTS)
    for name, config in dag.project.experiments.items():
        lineage, keys = config.dataset.lineage, _keys_behind(dag, name)
        state, now, version = states.get(lineage, State()), _columns(keys), config.dataset.version
        notes = [note["keys"] for plan in state.plans.values() for note in plan.values()]
        known = {*chain(*(_columns(one) for one in notes if one.get(VERSION) == version))}
        accepted = lineage in planned_here or config.respend or config.mode == "research"
        if known and now and not known & now and state.binding and not accepted:
            raise Refused(
                f"lineage {lineage} holds a table with columns {_value_as_text(sorted(known))}, "
                f"and this config has {_value_as_text(sorted(now))}: none in common. Nothing was "
                "read or spent. Give other people's data a name of its own, dataset.lineage; for "
                "other columns about the same people, set respend: true."
            )


def _columns(keys: Mapping[str, Any]) -> set[str]:
    """The names of the columns that a config's keys declare as features."""
    return {c if isinstance(c, str) else c["name"] for c in keys.get("dataset.columns", ())}


def refuse_unconfirmed_repeats(dag: Dag, plan: Plan, states: Mapping[str, State]) -> None:
    """Refuse an edit that pays again, unsaid, for what the last run in this folder has finished.

    This guards a purse and no privacy: what is spent stands in every figure, and the lifetime holds
    it. So it knows experiments by their names, and sees nothing from another folder. Counts that
    stopped a run cost next to nothing, and call for an edit: they are counted anew unsaid.

    Args:
        dag: all jobs, as they are configured now.
        plan: of them.
        states: what the ledgers hold, by lineage.

    Raises:
        Refused: an edit would pay again, and `respend` does not accept that price.
    """
    project = dag.project
    if project.main.mode == "research":
        return
    before, anew = _last_plan(states), asked_anew(dag)
    # A question names the rule and the wildcards, so they are the same under every name.
    done = {
        charge.question: (charge.job.rule, charge.job.wildcards)
        for state in states.values()
        for charge in state.charges.values()
        if charge.status == "DONE"
    }
    again: dict[str, dict[str, Item]] = defaultdict(dict)  # by lineage and question
    consents: dict[str, list[float]] = defaultdict(list)
    for artifact in plan.artifacts:
        name, config = artifact.experiment, project.experiments[artifact.experiment]
        state, note = states.get(artifact.lineage, State()), before.get(name)
        if note is None or config.dataset.version != note["keys"].get(VERSION):
            continue  # another number for the data says so
        finished = {done[question] for question in note["questions"] if question in done}
        new = [
            item
            for item in (plan.items[one.job] for one in artifact.jobs)
            if item.job.rule != COUNTS
            and item.question not in anew
            and state.answer(item.question) is None
        ]
        paid = [item for item in new if (item.job.rule, item.job.wildcards) in finished]
        # The final job of another total has another target, so no finished job is its own.
        totals = {dict(wildcards)["target"] for rule, wildcards in finished if rule in FINALS}
        trains = any(item.job.rule in FINALS for item in new)
        if trains and totals and totals.isdisjoint(map(follows.target_name, config.totals)):
            if not isinstance(config.respend, Consent):
                raise _replaced_total_error(config, name, totals)
            paid = new
        for item in paid:
            again[item.spends[0].lineage][item.question] = item
        if paid:
            consents[artifact.lineage].append(
                config.respend.up_to if isinstance(config.respend, Consent) else 0.0
            )
    for lineage, terms in plan.terms.items():
        if items := [*again[lineage].values()]:
            # Several experiments may pay on one lineage; the most careful of them decides.
            allowed = min(consents[lineage], default=0.0)
            _refuse_paying_again(terms, states.get(lineage, State()), items, allowed)


def _replaced_total_error(config: Config, name: str, finished: Collection[str]) -> Refused:
    """What to answer: both totals, the new one alone, or the old one."""
    wanted = {follows.target_name(total) for total in config.totals}
    both, there, other = (
        ", ".join(sorted(n, key=float)) for n in ({*finished, *wanted}, finished, wanted)
    )
    return Refused(
        f"experiment {name} has a finished model of total {there}, and the config asks for "
        f"{other} in its place, which is paid for beside it. To keep both, say final.targets: "
        f"[{both}]; to replace it, respend: true; to keep what is there, go back to its total."
    )


def _refuse_paying_again(terms: Terms, state: State, items: Sequence[Item], allowed: float) -> None:
    """Refuse what an edit would pay again, unless the lineage comes to no more than the epsilon
    that was allowed. The message has the price, and whether the lifetime has room for it."""
    reserved = [
        charge.token
        for item in items
        for charge in state.charges_for(item.question)
        if charge.status == "RESERVED"  # by a run that was cut off, of these very items
    ]
    paid = state.charged_spends(*reserved)
    wanted = tuple(spend for item in items for spend in item.spends)
    before, after = lifetime_cost(terms, paid).epsilon, lifetime_cost(terms, paid + wanted).epsilon
    if after <= allowed:
        return
    accept = (
        f"or accept this price, and no other, with respend: {{up_to: {round_up(after)}}} (respend: "
        "true accepts every later one as well)"
    )
    if over := lifetime_problem(terms, paid, wanted):
        accept = f"respend: true is no way out here, for {over}"
    raise Refused(
        f"{items[0].job} is done and paid for, and a changed config would pay again for "
        f"{len(items)} such job(s): lineage {terms.lineage} would go from epsilon = "
        f"{round_up(before)} to {round_up(after)}. Undo the change, and what was released is "
        f"restored, free; {accept}."
    )


def _edits(before: Mapping[str, Any], now: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Each key that differs, with what it was and is. Nested keys are named in full."""
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key, ABSENT), now.get(key, ABSENT)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _edits(old, new, f"{within}{key}.")
        elif _are_sections(old) and _are_sections(new) and len(old) == len(new):
            for place, sections in enumerate(zip(old, new, strict=True)):
                yield from _edits(*sections, f"{within}{key}[{place}].")
        elif old != new:
            yield f"{within}{key} was {_value_as_text(old)}, is {_value_as_text(new)}"


def _are_sections(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _value_as_text(value: Any) -> str:
    """A value as JSON, or its beginning: a learner's whole section would fill a page."""
    text = ABSENT if value == ABSENT else json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
