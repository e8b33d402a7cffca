"""What others script against: the documents of a finished run fit the schemas that are
committed."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support import ROOT, Workspace

from dpladder.cli import main
from dpladder.report.schemas import DOCUMENTS, generated_files
from dpladder.section import from_document


def test_the_schemas_are_those_of_the_classes() -> None:
    for path, text in generated_files().items():
        assert (ROOT / path).read_text("utf-8") == text, f"{path}: run `make docs`"


def test_every_document_of_a_finished_run_is_what_its_schema_says(
    finished: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("privacy", "plan", "main/summary"):
        check(name.rpartition("/")[2], json.loads(Path(f"results/{name}.json").read_text("utf-8")))
    assert main(["plan", "--json", "config.yaml"]) == 0
    check("plan", json.loads(capsys.readouterr().out))


def check(name: str, document: dict[str, Any]) -> None:
    """Nothing is missing, nothing is of another type, and there is nothing beside it."""
    schema = json.loads((ROOT / f"workflow/schemas/{name}.schema.json").read_text("utf-8"))
    jsonschema.validate(document, schema)
    assert json.loads(json.dumps(asdict(from_document(DOCUMENTS[name], document)))) == document


@pytest.mark.parametrize("key", ["target_epsilon", "datasets", "seal"])
def test_a_statement_that_lacks_something_does_not_fit(key: str, finished: Workspace) -> None:
    document = json.loads(Path("results/privacy.json").read_text("utf-8"))
    del document[key]
    with pytest.raises(jsonschema.ValidationError, match=key):
        check("privacy", document)
