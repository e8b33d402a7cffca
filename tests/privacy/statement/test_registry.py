"""What an officer files beside the statement: an entry as the registry wants it, and every hazard
answered."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import UndefinedError, meta
from statements import CHANGES, DEPLOYED, UNLIMITED, Finished

from dpladder.cli import main
from dpladder.commands.register import HAZARDS
from dpladder.config.load import overlay
from dpladder.config.model import Deployment
from dpladder.privacy.accounting.rounding import round_up, round_up_short
from dpladder.privacy.statement import registry
from dpladder.privacy.statement.build import seal
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import lineage_facts
from dpladder.privacy.statement.page import page
from dpladder.privacy.statement.registry import entry_slug, facts_of, fill_text, required_keys
from dpladder.privacy.statement.templates import environment
from dpladder.section import from_document

FIELDS = {
    "basic": "name data_curators intended_use data_product_type data_product_region description "
    "publication_date data_product_sector",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": (
        "model_name model_name_details actors release_type release_type_details data_source_type "
        "data_source_type_details access_type access_type_details"
    ),
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
"""Every field of the registry's three tiers, by its schema of July 2026."""
FILED = CHANGES | {"deployment": DEPLOYED}


def registered(run: Finished, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    run.state()
    assert main(["register", str(run.results), "--folder", str(run.folder / "filed")]) == 0, (
        capsys.readouterr()
    )
    [path] = (run.folder / "filed").glob("*.yaml")
    assert re.fullmatch(r"[a-z0-9_]+\.yaml", path.name)
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def test_every_field_of_every_tier_is_filled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = registered(Finished(tmp_path, FILED), capsys)
    assert list(found) == ["url_slug", "status", "tier", "deployment"]
    assert {part: " ".join(found["deployment"][part]) for part in found["deployment"]} == FIELDS
    values = [value for part in found["deployment"].values() for value in part.values()]
    assert all(values)
    assert found["url_slug"] == "retina-a-hospital-2026"
    # YAML would make a date of it
    assert isinstance(found["deployment"]["basic"]["publication_date"], str)


def test_the_entry_states_the_guarantee_and_nothing_stronger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The limit for life, not what is spent so far."""
    run = Finished(tmp_path, FILED)
    loss = registered(run, capsys)["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 8.0, "delta": 1e-5}
    assert run.state()["datasets"]["mnist5k"]["lifetime_spent"] < 8.0
    assert "one record more" in loss["privacy_unit_details"]


def test_no_more_than_eight_things_are_typed() -> None:
    assert len([*required_keys(Deployment)]) <= 8


def test_a_slug_is_the_registrys_own() -> None:
    told = from_document(
        Deployment, DEPLOYED | {"name": "Eyes_of (2024)", "curators": ["A & B", "C"]}
    )
    assert entry_slug(told, "2026-01-31") == "eyes-of-2024--a-b-c-2026"


def test_each_hazard_is_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    registered(Finished(tmp_path, FILED), capsys)
    text = (tmp_path / "filed" / "nist-sp-800-226.md").read_text()
    rows = [line for line in text.splitlines() if re.match(r"\| [234]", line)]
    assert len(rows) == 21
    assert {row.split(" | ")[0].strip("| ")[0] for row in rows} == {"2", "3", "4"}
    assert "A person with two bears epsilon" in text
    [privacy] = [line for line in text.splitlines() if line.startswith("| privacy |")]
    assert "epsilon = 8.0000 at delta = 1e-05 for each record. It is for life" in privacy
    assert "| utility |" in text
    assert "| trusted parties |" in text


def test_the_assessment_has_the_four_parts_of_the_law_and_room_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Finished(tmp_path, FILED)
    registered(run, capsys)
    statement = run.state()
    path = tmp_path / f"filed/dpia-{statement['id'][:8]}.md"
    text, page = path.read_text(), path.with_suffix(".html").read_text()
    for letter in "abcd":
        assert re.search(rf"^## .*\({letter}\)$", text, re.MULTILINE), letter
    asked = re.findall(r"^\d\. \*\*(.*)\*\*\n\n   > $", text, re.MULTILINE)
    assert len(asked) > 20
    assert page.count('<div class="answer"></div>') == len(asked)
    assert "guaranteed is epsilon = 8.0000" in text  # the limit for life, as the entry has it
    assert "guaranteed is epsilon = 8.0000" in page
    for said in (statement["id"], statement["config"], "Photographs of eyes, taken in 2024"):
        assert said in text
        assert said in page
    assert "@page { size: A4" in page
    assert not re.search(r"https?://", page)  # nothing is fetched


def test_answers_in_an_assessment_are_never_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Finished(tmp_path, FILED)
    registered(run, capsys)
    [path] = (tmp_path / "filed").glob("dpia-*.md")
    path.write_text("our answers")
    capsys.readouterr()
    assert main(["register", str(run.results), "--folder", str(tmp_path / "filed")]) == 0
    assert f"kept {path}, which may hold your answers" in capsys.readouterr().out
    assert path.read_text() == "our answers"


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        (CHANGES, "says nothing of who publishes"),
        (FILED | {"mode": "research", "dataset": {"declared_public": True}}, "no release"),
    ],
)
def test_what_is_not_to_be_registered_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], wrong: str
) -> None:
    run = Finished(tmp_path, changes)
    run.state()
    assert main(["register", str(run.results), "--folder", str(tmp_path / "filed")]) == 2
    assert wrong in capsys.readouterr().err
    assert not (tmp_path / "filed").exists()


OTHER = {
    "dataset": {"lineage": "other", "source": "digits", "nominal_size": 900},
    "privacy": {"epsilon": 1.0, "lifetime": {"epsilon": 2.0}},
}


def test_two_lineages_with_models_have_no_entry_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = FILED | {"sweep": {"rungs": []}, "experiments": {"own": OTHER}}
    run = Finished(tmp_path, changes)
    run.state()
    assert main(["register", str(run.results), "--folder", str(tmp_path / "filed")]) == 2
    assert "models of 2 lineages, mnist5k, other" in capsys.readouterr().err
    assert not (tmp_path / "filed").exists()


def test_an_odometer_is_not_registered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Finished(tmp_path, FILED | UNLIMITED)
    run.run_again(FILED | UNLIMITED | {"experiments": {"try": {"learner": {"momentum": 0.1}}}})
    run.state()
    assert main(["register", str(run.results), "--folder", str(tmp_path / "filed")]) == 1
    assert "no figure is a guarantee" in capsys.readouterr().err


def test_an_edited_statement_is_not_registered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Finished(tmp_path, FILED)
    run.write("results/privacy.json", run.state() | {"delta": 1e-9})
    assert main(["register", str(run.results), "--folder", str(tmp_path / "filed")]) == 1
    assert not (tmp_path / "filed").exists()


def test_home_registers_no_statement_that_somebody_else_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Finished(tmp_path, FILED)
    forged = seal(run.state(), b"no key of this home's")
    run.write("results/privacy.json", forged)
    (run.results / "privacy.md").write_text(page(from_document(SealedStatement, forged)), "utf-8")
    filed = ["register", str(run.results), "--folder", str(tmp_path / "filed")]
    monkeypatch.setenv("DPLADDER_HOME", str(run.home.path))
    assert main(filed) == 1
    assert not (tmp_path / "filed").exists()
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "elsewhere"))
    assert main(filed) == 0
    assert "its seal was not checked" in capsys.readouterr().out


def test_what_people_say_of_a_deployment_stands_on_no_page_as_html(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = DEPLOYED | {
        "name": "retina <script>x</script>",
        "data": "![a|b](http://x) <img onerror=x>",
    }
    run = Finished(tmp_path, CHANGES | {"deployment": said})
    registered(run, capsys)
    statement = from_document(SealedStatement, run.state())
    [assessment] = (run.folder / "filed").glob("dpia-*.md")
    shown = assessment.with_suffix(".html").read_text("utf-8")
    assert "retina &lt;script&gt;" in shown
    assert not [word for word in ("<script", "<img") if word in shown]
    for told in (
        page(statement),
        *(path.read_text("utf-8") for path in (run.folder / "filed" / HAZARDS, assessment)),
    ):
        assert "retina &lt;script&gt;" in told
        assert "![a\\|b]\\(http://x) &lt;img onerror=x&gt;" in told
        assert not [word for word in ("<script", "<img", "](http://x") if word in told]


ANSWERED = {"by construction", "by the config", "for people to judge", "does not arise"}
TEXTS = sorted((Path(registry.__file__).parent / "texts").glob("*.yaml"))


def facts_of_run(run: Finished) -> dict[str, Any]:
    statement = from_document(SealedStatement, run.state())
    [lineage] = lineage_facts(statement)
    return facts_of(lineage, from_document(Deployment, statement.deployment))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        UNLIMITED | {"dataset": {"unit": {"by": "user"}}, "learner": {"sampling_rate": 0.1}},
        {
            "dataset": {"unit": {"by": "user", "cap": 3}},
            "privacy": {"relation": "replace_one"},
            "deployment": {"dynamic": True},
        },
    ],
)
def test_a_text_needs_no_other_facts_than_there_are(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    """Whatever they are; and one that nobody knows is refused."""
    facts = facts_of_run(Finished(tmp_path, overlay(FILED, changes)))
    for path in TEXTS:
        words = str(fill_text(path.stem, facts))
        assert not {"{{", "{%"} & {words[at : at + 2] for at in range(len(words))}
        assert "epsilon = " in words
        with pytest.raises(UndefinedError, match="'stated' is undefined"):
            fill_text(path.stem, {key: fact for key, fact in facts.items() if key != "stated"})
    assert {one["answered"] for one in fill_text("hazards", facts)["hazards"]} <= ANSWERED


def test_each_model_is_told_with_its_interval_beside_its_price(tmp_path: Path) -> None:
    statement = from_document(SealedStatement, Finished(tmp_path, FILED).state())
    [lineage] = lineage_facts(statement)
    path, model = next(iter(lineage.stated.artifacts.items()))
    declared = from_document(Deployment, statement.deployment)
    told = "RMSE 648 euro (95 % interval 608 to 691)"
    facts = facts_of(lineage, declared, {path: told})
    words = (
        f"main at a total of epsilon = {round_up_short(model.target_epsilon)}, "
        f"whose price is epsilon = {round_up(model.epsilon)}: {told}"
    )
    assert words in fill_text("registry", facts)["basic"]["description"]
    assert any(words in str(one) for one in fill_text("hazards", facts).values())
    assert "beside its price" not in str(fill_text("registry", facts_of(lineage, declared)))


def test_every_fact_is_named_by_a_text(tmp_path: Path) -> None:
    words = [
        line
        for path in TEXTS
        for line in path.read_text("utf-8").splitlines()
        if not line.startswith("#")
    ]
    named = meta.find_undeclared_variables(environment().parse("\n".join(words)))
    assert named == facts_of_run(Finished(tmp_path, FILED)).keys()
