"""What a run says at its end, and the hook that a config may have there.

All of it is of ledgers, released files and logs, so all of it is public.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from dpladder.config import Project
from dpladder.errors import os_error_text
from dpladder.plan.follows import RESULTS
from dpladder.plan.startup import STATEMENT, Parsed, exit_with_one_message, say
from dpladder.privacy.accounting.rounding import round_up_short
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.statement.check import (
    foreign_files,
    parse_statement,
    read_statement,
    stated_anchors,
    vouched_by_report,
)
from dpladder.privacy.statement.facts import closing_line

LOGS = Path("logs")
PAGE = RESULTS / "report.html"
PATIENCE = 60.0  # seconds that a hook may take


def logs() -> dict[Path, int]:
    """The jobs' logs, and when they were written.

    Returns:
        By path, the time in nanoseconds: two runs of one second differ too.
    """
    return {path: path.stat().st_mtime_ns for path in sorted(LOGS.rglob("*.log"))}


@exit_with_one_message()
def conclude(parsed: Parsed, before: Mapping[Path, int], failed: bool = False) -> None:
    """Say where the lineages stand, by their ledgers, what the models are worth, and last, where
    Snakemake's own words do not hide them, why jobs failed. Then call the hook.

    Args:
        parsed: what the Snakefile knows.
        before: `logs()` when the run began. A log that did not change is of an earlier run.
        failed: whether the run ended early.
    """
    closing = iter(()) if failed else _closing_lines(parsed)
    lines = []
    for line in chain(closing, (f"dpladder: {reason}" for reason in reasons(before))):
        say(line)
        lines.append(line)
    if command := parsed.project.main.on_end:
        _call_hook(
            command, {"outcome": "failed" if failed else "succeeded", "text": "\n".join(lines)}
        )


def reasons(before: Mapping[Path, int]) -> Iterator[str]:
    """Why jobs of this run failed, and what they could not draw: the last line of each log.

    Args:
        before: as `conclude` has it.
    """
    for path, written in logs().items():
        lines = (
            path.read_text("utf-8", "replace").splitlines() if written != before.get(path) else []
        )
        if lines and (reason := re.fullmatch(r"\w+ \([^)]*\): .*", lines[-1])):
            yield reason[0]


def _call_hook(command: str, message: Mapping[str, str]) -> None:
    """A hook that fails is a line, and fails no run."""
    try:
        subprocess.run(
            command,
            shell=True,
            input=json.dumps(message),
            encoding="utf-8",
            timeout=PATIENCE,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        say(f"on_end ended with {error.returncode}; nothing else follows from that: {command}")
    except subprocess.TimeoutExpired:
        say(f"on_end took more than {PATIENCE:g} s and was ended: {command}")
    except OSError as error:
        say(f"on_end could not start ({os_error_text(error)}): {command}")


def _closing_lines(parsed: Parsed) -> Iterator[str]:
    """The statement may be of an earlier run, or of another lineage."""
    home = open_home(create=False)
    stated, current = {anchor.lineage: anchor for anchor in stated_anchors(RESULTS)}, True
    for lineage, terms in parsed.plan.terms.items():
        ledger = Ledger(home, lineage)
        yield closing_line(terms, ledgers.load(ledger))
        if lineage not in stated:
            yield (
                f"{STATEMENT} says nothing of lineage {lineage}; to compose it: dpladder run "
                f"{STATEMENT}"
            )
        elif stated[lineage] != ledgers.head(ledger):
            yield f"{STATEMENT} is older than this; to compose it anew: dpladder run {STATEMENT}"
        current &= lineage in stated and stated[lineage] == ledgers.head(ledger)
    if current and PAGE.is_file():
        yield from _lines_of_models(parsed.project)
        stated_here = parse_statement(read_statement(RESULTS))
        if left := foreign_files(stated_here, RESULTS, vouched_by_report(RESULTS)):
            yield (
                f"{len(left)} files in {RESULTS} are not of this config, {left[0]} among them, and "
                "dpladder verify refuses them. Move or delete them: the ledger keeps their charges."
            )
        yield f"The whole report: {PAGE}"


def _lines_of_models(project: Project) -> Iterator[str]:
    """What the final models are worth, as far as summaries tell, and then all warnings."""
    paths = [RESULTS / name / "summary.json" for name in project.experiments]
    summaries = {path: json.loads(path.read_text("utf-8")) for path in paths if path.is_file()}
    for path, summary in summaries.items():
        for final in (one for one in summary["targets"] if "headline" in one):
            total = round_up_short(final["target_epsilon"])
            yield f"{path.parent.name}: {final['headline']} at a total of epsilon = {total}"
    for summary in summaries.values():
        yield from (f"Warning: {line}" for line in summary.get("warnings", ()))
