"""What a reader should know of releases that are kept: older versions of their mechanisms, other code, a wrong price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from dpladder.config import Project
from dpladder.plan import mechanisms, stages
from dpladder.privacy.accounting.events import Job
from dpladder.privacy.ledger.book import Held, State


def told_of_kept(project: Project, states: Mapping[str, State], jobs: Collection[Job]) -> tuple[str, ...]:
    """Of these jobs' releases, each thing once, with how many releases it is about."""
    found: Counter[str] = Counter()
    for held in (held for state in states.values() for held in state.items.values()):
        kept = project.kept.get(held.job)
        if kept is None or held.job not in jobs or held.status != "DONE" or held.static != kept.static:
            continue
        job, config = held.job, project.experiments[held.job.experiment]
        for told in _told(held, stages.versions_of(config, job.rule)):
            found[f"{job.experiment}: {told}"] += 1
    return tuple(f"{told} ({count} released)" for told, count in found.items())


def _told(held: Held, names: Iterable[str]) -> Iterator[str]:
    names = list(names)
    risen = dict(_risen(held, names))
    for name, told in risen.items():
        yield f"{told}. Kept, and asked anew by respend: [{name}]"
    if not risen and _differs(held, names):
        yield (
            f"by other code of {held.job.rule}, whose versions are the same. Kept; where what it computes was changed on purpose, "
            "raise its version in plan/mechanisms.py"
        )
    if held.unsound:
        yield f"{held.unsound}. Charged at what they cost"


def made_by(held: Held, names: Iterable[str]) -> str:
    """How a release was made, where this dpladder would make it otherwise: by older versions of the mechanisms of these names,
    or by other code at the same versions; else empty."""
    names = list(names)
    if risen := dict(_risen(held, names)):
        return ", ".join(risen.values())
    if _differs(held, names):
        return f"by other code of {held.job.rule} than this dpladder's, at the same versions"
    return ""


def _risen(held: Held, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        then, now = held.versions.get(name, 1), mechanisms.VERSIONS.get(name, 1)
        if then < now:
            yield name, f"by {name} {then}; this dpladder has {name} {now}"


def _differs(held: Held, names: Collection[str]) -> bool:
    """What was released before ledgers held codes has none to compare."""
    return bool(held.code) and held.code != stages.code_behind(held.job.rule, names)
