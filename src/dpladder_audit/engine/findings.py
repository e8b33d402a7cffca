"""What an audit found, and how it is told. Nothing here is private: attacks run on made-up data."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

FAMILY_ERROR = 1e-6


@dataclass(frozen=True)
class LeftOut:
    """What an audit does not run, by name, and the reason."""

    what: str
    why: str


@dataclass(frozen=True)
class Finding:
    """One check of one mechanism. It fails where what was measured lies outside `low` to `high`, or
    is no number.

    Attributes:
        mechanism, check: what was looked at.
        claimed: what the declaration says.
        measured: what the runs show.
        low, high: within which that may lie, false alarms allowed for.
        note: more, for people.
    """

    mechanism: str
    check: str
    claimed: float
    measured: float
    low: float
    high: float
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.low <= self.measured <= self.high  # false for NaN


@dataclass(frozen=True)
class Report:
    """All findings of an audit.

    Attributes:
        delta: that bounds on epsilon are computed at.
        findings: of every check.
        left_out: what was not run, and why.
    """

    delta: float
    findings: tuple[Finding, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return all(finding.ok for finding in self.findings)


def to_json(report: Report) -> dict[str, Any]:
    """The report as plain JSON values; a figure that is no number is null."""

    def plain(finding: Finding) -> dict[str, Any]:
        measured = finding.measured if math.isfinite(finding.measured) else None
        return {**dataclasses.asdict(finding), "measured": measured, "ok": finding.ok}

    return {
        "ok": report.ok,
        "delta": report.delta,
        "family_error": FAMILY_ERROR,
        "findings": [plain(finding) for finding in report.findings],
        "left_out": [dataclasses.asdict(one) for one in report.left_out],
    }


def table(report: Report) -> str:
    """The report for a reader: one line per finding, and one per reason to leave something out."""
    lines = [f"{'':6} {'mechanism':24} {'check':36} {'claimed':>9} {'measured':>9}  allowed"]
    for finding in report.findings:
        lines.append(
            f"{'ok' if finding.ok else 'FAILED':6} {finding.mechanism:24} {finding.check:36} "
            f"{finding.claimed:9.4g} {finding.measured:9.4g}  {finding.low:.4g} to "
            f"{finding.high:.4g} {finding.note}".rstrip()
        )
    for why, number in Counter(one.why for one in report.left_out).items():
        lines.append(f"left out: {number} x {why}")
    failed = sum(not finding.ok for finding in report.findings)
    lines.append(
        f"{failed} of {len(report.findings)} checks failed. Bounds on epsilon are at delta "
        f"{report.delta:g}; an honest suite fails with probability at most {FAMILY_ERROR:g}."
    )
    return "\n".join(lines)
