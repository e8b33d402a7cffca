"""Everything that can publish something, as `dpladder audit` attacks it: kinds of queries,
learners, rules and searches.

What has no attack is an error here, so that nothing new can be shipped without one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from dpladder.config.learners import METHODS
from dpladder.data.parallel import cores
from dpladder.errors import BadInput
from dpladder.jobs.run import module_of_rule
from dpladder.plan.rules import RULES
from dpladder_audit import kinds, learners, rules, searches
from dpladder_audit.engine.attack import DELTA, run_audit
from dpladder_audit.engine.findings import LeftOut, Report
from dpladder_audit.engine.mechanism import Mechanism
from dpladder_audit.scene import SceneFolder, scene_folder

KINDS: tuple[Any, ...] = (kinds, learners, rules, searches)
"""Modules that say alike what is attacked: `ATTACKED` by name, `attacks`, and
`skipped_combinations`."""


def audit(key: bytes, only: str | None = None) -> Report:
    """Attack everything, or one learner, on all cores.

    Each check gets the same share of the allowed error as if one process ran all of them.

    Args:
        key: home's subkey for audits.
        only: a learner; None for everything.

    Raises:
        BadInput: there is no such learner, or a rule asks something that no attack knows.
    """
    chosen = groups(only)
    with scene_folder(key) as folder:
        number = sum(len(mechanisms(group, folder)) for group in chosen)
    # Fresh processes: a fork would inherit torch's threads in whatever state they are.
    with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
        attacks = {pool.submit(_run_attack, key, number, group): group for group in chosen}
        _say_progress(0, len(chosen))
        for done, attack in enumerate(as_completed(attacks), 1):
            attack.result()
            _say_progress(done, len(chosen), attacks[attack])
    reports = [attack.result() for attack in attacks]
    findings = (finding for report in reports for finding in report.findings)
    return Report(DELTA, tuple(findings), skipped_combinations(chosen))


def _say_progress(done: int, groups: int, last: str | None = None) -> None:
    """Say on stderr how far an audit is. Its records are made up, so unlike other progress this may
    go into a file or a pipe."""
    name = f", the last: {last}" if last else ""
    print(f"audit: {done} of {groups} groups attacked{name}", file=sys.stderr, flush=True)


def groups(only: str | None = None) -> tuple[str, ...]:
    """What is attacked together: each kind of query, each learner, each rule and each search; of
    one learner, all kinds and itself."""
    if only is not None:
        if only not in METHODS:
            raise BadInput(f"--learner {only}: not a learner. Choose one of: {', '.join(METHODS)}.")
        return (*kinds.ATTACKED, only)
    refuse_unattacked()
    return tuple(name for kind in KINDS for name in kind.ATTACKED)


def mechanisms(group: str, folder: SceneFolder) -> tuple[Mechanism, ...]:
    """The attacks of one group.

    Args:
        group: one of `groups()`.
        folder: for scenes.
    """
    return tuple(_kind_of(group).attacks(folder, group))


def skipped_combinations(chosen: Sequence[str]) -> tuple[LeftOut, ...]:
    """The combinations that the audit does not run, each with its reason."""
    return tuple(one for group in chosen for one in _kind_of(group).skipped_combinations(group))


def _kind_of(group: str) -> Any:
    return next(kind for kind in KINDS if group in kind.ATTACKED)


def refuse_unattacked() -> None:
    """Refuse where a rule asks something that no attack knows."""
    # the searches of private_search are attacked one by one
    for name in sorted({*_private_rules()} - rules.ATTACKED.keys() - {"private_search"}):
        raise BadInput(f"rule {name} has no audit. Attack it before it is used: dpladder_audit.")


def _private_rules() -> Iterator[str]:
    """The rules that ask private data something: their modules in jobs/ have a `release_of`."""
    for rule, known in RULES.items():
        if known.private and hasattr(module_of_rule(rule), "release_of"):
            yield rule


def _run_attack(key: bytes, number: int, group: str) -> Report:
    """Attack one group, in a process of its own.

    Args:
        key: home's subkey for audits.
        number: mechanisms of all groups, which share the allowed error.
        group: which.
    """
    seen = tuple(learners.findings(group, key)) if group in learners.ATTACKED else ()
    with scene_folder(key) as folder:
        attacked = mechanisms(group, folder)
        report = run_audit(attacked, key, among=number) if attacked else Report(DELTA, ())
    return replace(report, findings=(*seen, *report.findings))
