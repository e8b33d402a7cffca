"""`dpladder audit`: the noise that is really drawn, and bounds on epsilon from below by attack.

An audit reads no private data: its records are made up. It draws with a key of its own purpose,
derived from home's, so it shares no noise with a run.
"""

from __future__ import annotations

import json

from dpladder.privacy.ledger.home import open_home, subkey
from dpladder_audit import canaries as one_run
from dpladder_audit.engine.findings import table, to_json
from dpladder_audit.every import audit as attack_everything


def audit(learner: str | None, canaries: bool, as_json: bool) -> bool:
    """Print what an audit found.

    Args:
        learner: one alone; None attacks everything.
        canaries: whether one real training with canaries in it is attacked instead.
        as_json: for programs; else a table.

    Returns:
        Whether no check failed, which the exit code says too.
    """
    key = subkey(open_home(), "audit")
    if canaries:
        bound = one_run.audit(key)
        print(one_run.to_json(bound) if as_json else one_run.sentence(bound))
        return bound.ok
    report = attack_everything(key, learner)
    print(json.dumps(to_json(report), indent=2) if as_json else table(report))
    return report.ok
