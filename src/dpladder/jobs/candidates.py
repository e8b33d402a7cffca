"""Which candidate of `sweep.choose` a job is of, and the job as that candidate has it.

Which candidate goes on follows from released scores alone, so a job's choice costs nothing
(docs/design.md, line 2). A candidate may change the learner, the depths and the network; the query
of a job names what it has in place of the config's keys.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from dpladder.jobs.task import Task, read_json
from dpladder.learn import weights
from dpladder.plan.rule_params import RunTrial, SeenReads
from dpladder.search.trial import Trial, by_score

Seen = TypeVar("Seen", bound=SeenReads)


def of_candidate(task: Task[Seen], number: int | None) -> Task[Seen]:
    """The job with the keys of this candidate in place of the config's own, and with its network's
    features and mean.

    Args:
        task: the job, as the config has it.
        number: the candidate's place in the config's order. None is allowed only where nothing is
            chosen.

    Returns:
        A job whose `reads` are the candidate's; the same job where nothing is chosen.
    """
    if not task.reads.candidates:
        return task
    assert number is not None, "a choice among candidates comes first"
    candidates, places = task.reads.candidates, task.reads.network_places
    if not places:
        return replace(task, of_candidate=candidates[number])
    # Candidates stand network by network, equally many for each (SeenReads).
    network, inputs = number * len(places) // len(candidates), task.input
    if inputs["mean"]:  # one for each network
        inputs = inputs | {"mean": inputs["mean"][network]}
    keys = {**candidates[number], "places": places[network]}
    return replace(task, of_candidate=keys, input=inputs)


def of_chosen_candidate(task: Task[Seen]) -> Task[Seen]:
    """The job with the keys of the candidate that its input's final model is of."""
    if not task.reads.candidates:
        return task
    _, facts = weights.load(Path(task.input["weights"]))
    return of_candidate(task, facts["candidate"])


def candidate_of_trial(task: Task[RunTrial]) -> int | None:
    """The candidate that a trial trains, where candidates are tried: each one on the first rung;
    after it those with the highest noised scores on the rung below.

    Below means the rung before. On a later rung, trial k takes the candidate with the k-th best
    score, so a rung of n trials keeps the n best.
    """
    number = int(task.wildcards["trial"])
    if not task.reads.candidates:
        return None
    if not task.input["below"]:
        return number
    below = [Trial(**trial) for trial in read_json(task.input["below"][-1])["trials"]]
    return by_score(below)[number].candidate
