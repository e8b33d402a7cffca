"""`dpladder plan`: what a config would spend, before anything is read.

Config and ledgers are all that is read (contract: refuse-first), so it may be run anywhere that
home is. Nothing is reserved and nothing written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dpladder.errors import Refused
from dpladder.plan import edits
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.reuse import under_terms
from dpladder.plan.startup import open_resolved, refuse_new_charges, states_here
from dpladder.plan.table import plan_document, plan_table


def plan(configs: Sequence[Path], as_json: bool) -> bool:
    """Print the price, and whether a run may start.

    Args:
        configs: config files of the project.
        as_json: for programs: a `PlanDocument`, or `feasible` and `problems` where it is refused
            early.

    Returns:
        Whether a run may start. A total that would be exceeded is printed all the same, as a
        problem.

    Raises:
        Refused: a total leaves nothing for a model, or what is new has no room in a lifetime.
    """
    try:
        project = open_resolved(configs)
        dag, states = build_dag(project), under_terms(project, states_here(project))
        with edits.name_edits_in_refusals(dag, states):
            planned = make_plan(dag, states)
            document = plan_document(planned, states, dag)
            refuse_new_charges(planned, states, dag)
    except Refused as refused:
        if as_json:
            # A script that reads stdout gets a document in every case; the message goes to stderr
            # as well.
            print(json.dumps({"feasible": False, "problems": [str(refused)]}, indent=2))
        raise
    print(json.dumps(asdict(document), indent=2) if as_json else plan_table(document))
    return document.feasible
