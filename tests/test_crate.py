"""A finished run as an RO-Crate: everything that lies there is named, with its digest, and every
name leads somewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statements import CHANGES, DEPLOYED, Finished

from dpladder.cli import main
from dpladder.commands.crate import METADATA
from dpladder.commands.croissant import CONFORMS
from dpladder.learn.weights import save
from dpladder.privacy.statement.records import file_digest

LICENCE = "https://spdx.org/licenses/CC-BY-4.0"


def described(run: Finished, *arguments: str) -> dict[str, dict[str, Any]]:
    run.state()
    assert main(["crate", str(run.results), *arguments]) == 0
    graph = json.loads((run.results / METADATA).read_text("utf-8"))["@graph"]
    found = {entity["@id"]: entity for entity in graph}
    assert len(found) == len(graph)
    return found


def references(value: Any) -> list[str]:
    if isinstance(value, dict) and set(value) == {"@id"}:
        return [value["@id"]]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [name for part in inside for name in references(part)]


@pytest.mark.parametrize("told", [{}, {"deployment": DEPLOYED}])
def test_all_that_lies_there_is_named_and_every_name_leads_somewhere(
    tmp_path: Path, told: dict[str, Any]
) -> None:
    run = Finished(tmp_path, CHANGES | told)
    found = described(run, "--license", LICENCE)
    files = {
        path.relative_to(run.results).as_posix(): path
        for path in run.results.rglob("*")
        if path.is_file()
    }
    del files[METADATA]
    assert files
    for name, path in files.items():
        assert found[name]["sha256"] == file_digest(path)
    root = found["./"]
    assert {part["@id"] for part in root["hasPart"]} == set(files)
    elsewhere = {found[METADATA]["conformsTo"]["@id"]}
    for entity in found.values():
        assert {*references([*entity.values()])} - elsewhere <= set(found)
    assert "for each record" in root["description"]
    assert "differentially private" in root["description"]
    assert root["license"] == {"@id": LICENCE}
    assert found["#publisher"]["name"] == (
        ", ".join(DEPLOYED["curators"]) if told else "whoever published these results"
    )


def test_a_second_writing_changes_nothing(tmp_path: Path) -> None:
    run = Finished(tmp_path, CHANGES)
    assert described(run) == described(run)


def test_results_that_were_changed_are_not_described(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Finished(tmp_path, CHANGES)
    statement = run.state() | {"delta": 1e-9}
    (run.results / "privacy.json").write_text(json.dumps(statement), "utf-8")
    assert main(["crate", str(run.results)]) == 1
    assert "Nothing was written" in capsys.readouterr().err
    assert not (run.results / METADATA).exists()


def test_descriptions_of_public_inputs_and_networks_are_what_the_run_was_given(
    tmp_path: Path,
) -> None:
    run = Finished(tmp_path, CHANGES)
    run.write("results/croissant/stl10.json", {"@type": "sc:Dataset"})
    network = {"model": "efficientnet_lite0", "weights": "bundled", "weights_sha256": "ab" * 32}
    for place, facts in enumerate([network, network, {"model": "none"}]):
        final = run.results / "main" / "final" / str(place)
        final.mkdir(parents=True, exist_ok=True)
        save(final / "weights.safetensors", (np.zeros((1, 1)),), {"inference": {"network": facts}})
    found = described(run)
    assert [given["@id"] for given in found["#run"]["object"]] == [
        "croissant/stl10.json",
        "#network-abababababababab",
    ]
    assert {"@id": "croissant/stl10.json"} not in found["#run"]["result"]
    assert found["croissant/stl10.json"]["conformsTo"] == {"@id": CONFORMS}
    assert CONFORMS in found
