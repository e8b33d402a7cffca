"""The shipped profiles agree with each other and with the rules."""

from __future__ import annotations

from typing import Any

import yaml
from support import ROOT

from dpladder.plan import stages


def profile(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text("utf-8"))


def test_the_slurm_profile_keeps_what_the_default_one_promises():
    """Given as the workflow's profile it takes the place of the default one, which keeps hashes out
    of the metadata."""
    promises = profile("default")
    del promises["cores"]  # a limit there on the threads of one job
    assert promises.items() <= profile("slurm").items()


def test_groups_are_made_of_rules_that_leave_the_machine(project, parse):
    named, local = rules_of(parse)
    assert {entry.partition("=")[0] for entry in profile("slurm")["groups"]} <= named - local


def test_a_rule_goes_to_the_cluster_exactly_if_it_reads_private_data(project, parse):
    named, local = rules_of(parse)
    assert named - local == {
        rule for rule in named if rule in stages.STAGES and stages.STAGES[rule].private
    }


def rules_of(parse) -> tuple[set[str], set[str]]:
    """The rules that do something, and those that are never submitted."""
    rules, _ = parse()
    named = {rule.name for rule in rules if not rule.norun}
    return {"run_trial" if stages.rung_of(name) else name for name in named}, set(
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
