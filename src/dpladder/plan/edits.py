"""What was edited since the last plan was carried out in this folder. A refusal names it, and an
edit may not pay for it again unsaid.

results/plan.json is the memory of a folder: what the last run asked, by which keys. Where it is
lost or edited by hand, an edit may pay again unsaid: this guards a purse, and no privacy.
"""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dpladder import formats
from dpladder.config import Config, Project
from dpladder.config.model import Consent
from dpladder.errors import Refused
from dpladder.plan import job_identity, rule_specs
from dpladder.plan.plan import Plan
from dpladder.privacy.accounting.rounding import round_up
from dpladder.privacy.ledger.limits import lifetime_cost, lifetime_problem
from dpladder.privacy.ledger.state import Item, State, Terms, job_label
from dpladder.privacy.statement.documents import FINALS

PLAN = rule_specs.RESULTS / "plan.json"
ABSENT = "nothing"
COUNTS = "count_units"
LONGEST = 120  # characters of a value in a message


def keys_of(project: Project) -> dict[str, dict[str, Any]]:
    """All keys behind each experiment's results, where an edit may cost: sources are not among
    them. Research costs nothing.

    The keys of an experiment's last rule are those of everything behind it. The first total speaks
    for the others, which differ in their target alone.

    Returns:
        Plain values by experiment and key; empty in research.
    """
    if project.main.mode == "research":
        return {}
    return {
        name: job_identity.identity(
            config, "evaluate", {"experiment": name, "target": rule_specs.target_name(target)}
        )
        for name, config in project.experiments.items()
        for target in config.totals[:1]
    }


@contextlib.contextmanager
def name_edits_in_refusals(project: Project) -> Iterator[None]:
    """A refusal inside ends with the edits, where there are any and the plan before them is still
    there.

    Args:
        project: as it is configured now.

    Raises:
        Refused: what was refused inside, with each edited key, its old value and its new one.
    """
    before = _previous_plan().get("keys", {})
    try:
        yield
    except Refused as refused:
        now = json.loads(json.dumps(keys_of(project)))
        lines = [
            f"{name}: {edit}"
            for name in now
            if name in before
            for edit in _edits(before[name], now[name])
        ]
        raise Refused(
            f"{refused} Edited since {PLAN}: {'; '.join(lines)}." if lines else str(refused)
        ) from None


def refuse_unconfirmed_repeats(project: Project, plan: Plan, states: Mapping[str, State]) -> None:
    """Refuse an edit that pays again, unsaid, for what the last plan of this folder has finished.

    This guards a purse and no privacy: what is spent stands in every figure, and the lifetime holds
    it. So it knows experiments by their names, and sees nothing from another folder. Counts that
    stopped a run cost next to nothing, and call for an edit: they are counted anew unsaid.

    Args:
        project: as it is configured now.
        plan: of it.
        states: what the ledgers hold, by lineage.

    Raises:
        Refused: an edit would pay again, and `respend` does not accept that price.
    """
    if project.main.mode == "research":
        return
    before, planned = _finished_jobs(states), _previous_plan().get("keys", {})
    again: dict[str, dict[str, Item]] = defaultdict(dict)  # by lineage and question
    consents: dict[str, list[float]] = defaultdict(list)
    for artifact in plan.artifacts:
        state, name = states.get(artifact.lineage, State()), artifact.experiment
        version = project.experiments[name].dataset.version
        if version != planned.get(name, {}).get("dataset.version"):
            continue  # another number for the data says so
        respend = project.experiments[name].respend
        new = [
            plan.items[job]
            for job in artifact.jobs
            if job.rule != COUNTS
            and plan.items[job].question not in project.anew
            and state.answer(plan.items[job].question) is None
        ]
        paid = [item for item in new if (name, item.job.rule, item.job.wildcards) in before]
        # The final job of another total has another target, so no finished job is its own.
        if _replaces_total(project.experiments[name], name, new, before):
            if not isinstance(respend, Consent):
                raise _replaced_total_error(project.experiments[name], name, before)
            paid = new
        for item in paid:
            again[item.spends[0].lineage][item.question] = item
        if paid:
            consents[artifact.lineage].append(
                respend.up_to if isinstance(respend, Consent) else 0.0
            )
    for lineage, terms in plan.terms.items():
        if items := [*again[lineage].values()]:
            # Several experiments may pay on one lineage; the most careful of them decides.
            allowed = min(consents[lineage], default=0.0)
            _refuse_paying_again(terms, states.get(lineage, State()), items, allowed)


def _finished_jobs(states: Mapping[str, State]) -> Finished:
    """The jobs of the last plan of this folder that are done. Each stands by the name of every
    experiment whose models stand on it, its rule and its wildcards."""
    planned = _previous_plan()
    done = {
        charge.question
        for state in states.values()
        for charge in state.items.values()
        if charge.status == "DONE"
    }
    try:
        questions = {
            (spend["experiment"], spend["rule"], _pairs(spend)): spend["question"]
            for spend in planned.get("spends", ())
        }
        return {
            (artifact["experiment"], job["rule"], _pairs(job))
            for artifact in planned.get("artifacts", ())
            for job in artifact["jobs"]
            if questions.get((job["experiment"], job["rule"], _pairs(job))) in done
        }
    except (LookupError, TypeError, AttributeError):  # edited by hand
        return set()


def _pairs(job: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Wildcards in one order, as jobs have them."""
    return tuple(sorted(job["wildcards"].items()))


Finished = Collection[tuple[str, str, tuple[tuple[str, str], ...]]]


def _totals_of(name: str, before: Finished) -> set[str]:
    """The totals of an experiment's finished models."""
    return {
        dict(wildcards)["target"]
        for experiment, rule, wildcards in before
        if experiment == name and rule in FINALS
    }


def _replaces_total(config: Config, name: str, new: Sequence[Item], before: Finished) -> bool:
    """Whether a total takes a finished model's place, and is paid for beside it."""
    finished = _totals_of(name, before)
    wanted = {rule_specs.target_name(total) for total in config.totals}
    trains = any(item.job.rule in FINALS for item in new)
    return bool(finished) and not finished & wanted and trains


def _replaced_total_error(config: Config, name: str, before: Finished) -> Refused:
    """What to answer: both totals, the new one alone, or the old one."""
    finished = _totals_of(name, before)
    wanted = {rule_specs.target_name(total) for total in config.totals}
    both, there, other = (
        ", ".join(sorted(n, key=float)) for n in (finished | wanted, finished, wanted)
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
    paid, wanted = (
        state.charged_spends(*reserved),
        tuple(spend for item in items for spend in item.spends),
    )
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
        f"{job_label(items[0].job)} is done and paid for, and a changed config would pay again for "
        f"{len(items)} such job(s): lineage {terms.lineage} would go from epsilon = "
        f"{round_up(before)} to {round_up(after)}. Undo the change, and what was released is "
        f"restored, free; {accept}."
    )


def _previous_plan() -> Mapping[str, Any]:
    """The plan that the last run in this folder carried out; empty where there is nothing to
    read."""
    try:
        document = json.loads(PLAN.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(document, dict):
        return {}
    formats.check("plan", PLAN, document.get(formats.KEY))
    return document


def _edits(before: Mapping[str, Any], now: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Each key that differs, with what it was and is. Nested keys are named in full."""
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key, ABSENT), now.get(key, ABSENT)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _edits(old, new, f"{within}{key}.")
        elif old != new:
            yield f"{within}{key} was {_value_as_text(old)}, is {_value_as_text(new)}"


def _value_as_text(value: Any) -> str:
    """A value as JSON, or its beginning: a learner's whole section would fill a page."""
    text = ABSENT if value == ABSENT else json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
