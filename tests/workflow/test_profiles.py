"""The shipped profiles agree with each other and with the rules."""

from __future__ import annotations

import ast
import re
from typing import Any

import yaml
from snakemake.settings.types import MaxJobsPerTimespan
from support import ROOT

from dpladder.plan.rules import RULES, rung_of


def profile(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text("utf-8"))


def test_the_slurm_profile_keeps_what_the_default_one_promises():
    """Given as the workflow's profile it takes the place of the default one, which keeps hashes out
    of the metadata."""
    promises = profile("default")
    del promises["cores"]  # a limit there on the threads of one job
    del promises["max-jobs-per-timespan"]  # a scheduler is asked no faster than it likes
    assert promises.items() <= profile("slurm").items()


def test_groups_are_made_of_rules_that_leave_the_machine(project, parse):
    named, local = rules_of(parse)
    assert {entry.partition("=")[0] for entry in profile("slurm")["groups"]} <= named - local


def test_a_rule_goes_to_the_cluster_exactly_if_it_reads_private_data(project, parse):
    named, local = rules_of(parse)
    assert named - local == {rule for rule in named if rule in RULES and RULES[rule].private}


def rules_of(parse) -> tuple[set[str], set[str]]:
    """The rules that do something, and those that are never submitted."""
    rules, _ = parse()
    named = {rule.name for rule in rules if not rule.norun}
    return {"run_trial" if rung_of(name) else name for name in named}, set(
        rules[0].workflow._localrules
    )


def test_no_rule_retries_by_itself(project, parse):
    """A rule's own retries are applied inside the job too, on top of the profile's."""
    assert {rule.restart_times for rule in parse()[0]} == {0}


def test_no_profile_lets_sizes_of_private_files_decide_which_job_starts():
    """Of what is ready, Snakemake would start the job whose input files are the largest: the log
    and the ledger's order would tell which of two private caches has more records."""
    told = {"scheduler": "greedy", "scheduler-greedy-omit-prioritize-by-temp-and-input": True}
    assert told.items() <= profile("default").items()


def test_a_run_here_does_not_wait_at_its_end_for_time_in_which_no_job_starts():
    limit = MaxJobsPerTimespan.parse_choice(profile("default")["max-jobs-per-timespan"])
    assert limit.timespan == 0


def test_an_option_that_a_profile_shows_stands_on_a_line_of_its_own():
    """A reflow joins it with prose, where nobody finds it and no comment can be taken away."""
    for path in sorted((ROOT / "profiles").glob("*/config.yaml")):
        for line in path.read_text("utf-8").splitlines():
            said = line.partition("#")[2].strip()
            options = re.findall(r"\bslurm[-_][a-z-_]+: ", said)
            assert not options or said.startswith(options[0]), (path, line)


COMMAND = re.compile(r"\b(pip (?:install|download)|python(?: -m)? \S|snakemake -|dpladder [a-z]+ )")


def test_a_command_of_a_docstring_is_one_line_that_begins_with_it():
    sources = [*(ROOT / "examples").rglob("*.py"), *(ROOT / "tools").glob("*.py")]
    for path in sources:
        said = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        for line in said.splitlines():
            if line.startswith("    "):
                found = [one.start() for one in COMMAND.finditer(line.strip())]
                assert len(found) <= 1 or " && " in line or "; " in line, (path, line)
                assert not line.strip().startswith("&&"), (path, line)
