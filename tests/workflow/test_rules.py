"""What holds for every rule of the parsed workflow."""

from __future__ import annotations

from pathlib import Path

import pytest
from snakemake.exceptions import WorkflowError

ROOT = Path(__file__).parents[2]
COMPOSER = "compose_privacy"  # it writes the statement itself, from all the records


@pytest.fixture
def rules(parse):
    def parsed(snakefile: Path = ROOT / "Snakefile"):
        return [rule for rule in parse(snakefile=snakefile)[0] if not rule.norun]

    return parsed


def without_record(rules) -> set[str]:
    """A rung's rule has one for each of its trials."""
    return {
        rule.name
        for rule in rules
        if not any(name.startswith("privacy") for name in list(rule.output.keys()))
    }


def test_every_rule_writes_a_privacy_record(project, rules):
    found = rules()
    assert len(found) > 12
    assert without_record(found) == {COMPOSER}
    (composer,) = (rule for rule in found if rule.name == COMPOSER)
    assert [str(path) for path in composer.output] == ["results/privacy.json", "results/privacy.md"]


def test_a_rule_without_a_privacy_record_is_found(project, rules):
    planted = project.folder / "Snakefile"
    planted.write_text(
        f'include: "{ROOT / "Snakefile"}"\nrule leak:\n    output: "results/leak.txt"\n    shell: '
        '"touch {output}"\n'
    )
    assert without_record(rules(planted)) == {COMPOSER, "leak"}


def test_every_rule_has_a_log_an_environment_and_a_script(project, rules):
    for rule in rules():
        assert rule.log, rule.name
        assert rule.conda_env, rule.name
        assert rule.script, rule.name


def test_snakemake_times_no_rule(project, rules):
    """What reads private data must not be timed in public, and the others' worker has the memory of
    many jobs."""
    assert not [rule.name for rule in rules() if rule.benchmark]


def test_a_rule_is_told_one_dict_and_one_digest_and_nothing_else(project, rules):
    for rule in rules():
        assert set(rule.params.keys()) == {"cfg", "code"}, rule.name


def test_a_rule_is_spread_over_the_wildcards_that_the_table_says(project, rules):
    from dpladder.plan.rules import RULES

    found = {rule.name: set(rule.wildcard_names) for rule in rules() if rule.name in RULES}
    spread = {
        name: {"experiment", *spec.per} for name, spec in RULES.items() if spec.per is not None
    }
    assert {name: found[name] for name in spread} == spread


def test_a_rule_reads_what_its_row_says(project, parse):
    """Of other jobs' outputs, no file but those that its row names: questions follow from it."""
    from dpladder.config.load import load
    from dpladder.plan.dag import build_dag
    from dpladder.plan.resolve import resolve_defaults
    from dpladder.plan.rules import RULES

    dag = build_dag(resolve_defaults(load(["config.yaml"])))
    due = [job for job in parse()[1] if job.rule.name != "all"]
    makers = {str(path): named(job) for job in due for path in job.output}
    for job in due:
        rule = named(job)
        if not RULES[rule].stated:
            continue
        wildcards = dict(job.wildcards.items()) or {"experiment": "main", "rung": "0", "trial": "0"}
        node = dag.find(rule, wildcards)
        stands_on = {one.rule for nodes in node.inputs.values() for one in nodes}
        assert {makers[str(path)] for path in job.input} == stands_on, rule


def named(job) -> str:
    """A rung's job is its trials'."""
    return "run_trial" if job.rule.name.startswith("run_rung") else job.rule.name


def test_a_job_that_the_config_does_not_ask_for_is_named(project, parse):
    with pytest.raises(
        WorkflowError, match="the config asks for no train_final of experiment main, target 7"
    ):
        parse("results/main/final/7/weights.safetensors")
