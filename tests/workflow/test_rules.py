"""What holds for every rule of the parsed workflow."""

from __future__ import annotations

from pathlib import Path

import pytest

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
        if not any(name.startswith("privacy") for name in rule.output.keys())  # noqa: SIM118, not a mapping
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
        f'include: "{ROOT / "Snakefile"}"\nrule leak:\n    output: "results/leak.txt"\n    shell: "touch {{output}}"\n'
    )
    assert without_record(rules(planted)) == {COMPOSER, "leak"}


def test_every_rule_has_a_log_an_environment_and_a_script(project, rules):
    for rule in rules():
        assert rule.log, rule.name
        assert rule.conda_env, rule.name
        assert rule.script, rule.name


def test_only_rules_that_read_no_private_data_are_timed(project, rules):
    from dpladder.plan import stages

    private = {name for name, stage in stages.STAGES.items() if stage.private}
    assert not [rule.name for rule in rules() if rule.benchmark and rule.name in private]


def test_a_rule_is_told_one_dict_and_one_digest_and_nothing_else(project, rules):
    for rule in rules():
        assert set(rule.params.keys()) == {"cfg", "code"}, rule.name
