"""What a private job asks: every file that its answer hangs on is a part of the question."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import noise_for

from dpladder.config.learner_sections import Head
from dpladder.data import sealed
from dpladder.errors import Refused
from dpladder.jobs import features, reservation, seen
from dpladder.methods.dp_finetune import FineTune
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ids import id_set
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.home import Home, open_home, subkey
from dpladder.privacy.ledger.state import Item, Terms
from dpladder.privacy.ledger.units import Known, remember_units


def job(given: dict[str, str], features: dict[str, str] | None = None) -> Any:
    places = SimpleNamespace(features=features or {})
    return SimpleNamespace(input=given, reads=SimpleNamespace(places=places))


@pytest.mark.parametrize("name", ["mean", "sums", "start"])
def test_another_file_behind_a_training_is_another_question(name: str, tmp_path: Path) -> None:
    """Asked alike, the two trainings would have the same noise, and their difference none."""
    path = tmp_path / f"{name}.safetensors"
    task = job({name: str(path)})
    found = []
    for content in (b"one", b"another"):
        path.write_bytes(content)
        found.append(seen.inputs_beside_records(task))
    assert found[0] != found[1]
    assert seen.inputs_beside_records(job({})) not in found


def test_a_sample_that_guides_is_a_part_of_the_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that the same noise is never drawn beside other public records."""
    names = iter(("one", "another"))
    monkeypatch.setattr(seen, "part_of", lambda task, part: SimpleNamespace(name=next(names)))
    found = [seen.inputs_beside_records(job({}, {"train": "t", "sample": "s"})) for _ in range(2)]
    assert found[0] != found[1]
    assert "sample" not in seen.inputs_beside_records(job({}, {"train": "t"}))


def test_a_head_that_was_bought_must_be_the_one_that_was_released(tmp_path: Path) -> None:
    """One that public records trained for nothing is known by its bytes alone (`shared`)."""
    ledger: Any = SimpleNamespace(home=Home(tmp_path), lineage="tiny")
    head = tmp_path / "head.safetensors"
    head.write_bytes(b"another")
    task = job({"start": str(head)})
    task.reads.mean, task.reads.learner = None, FineTune(init="public")
    reservation._check_releases(task, ledger)
    task.reads.learner = FineTune(head=Head(epsilon=1.0))
    with pytest.raises(Refused, match="is not what was released under lineage tiny"):
        reservation._check_releases(task, ledger)


def test_of_a_version_those_alone_count_who_were_there_when_it_was_first_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an edited record, which may lie in another part, would bear what two parts spend."""
    home = open_home(tmp_path / "home")
    monkeypatch.setenv("DPLADDER_HOME", str(home.path))
    units = np.arange(64, dtype=np.uint8).reshape(4, 16)
    remember_units(home, "toy", "first", Known(id_set(units[1:])))
    ledger = book.open_ledger(home, Terms("toy", "add_remove", "record", 1, 1e-5, "hash"))
    spend = Spend("toy", "add_remove", Partition("hash", ("train",)), Gaussian(50.0))
    [held] = book.reserve(ledger, [Item(Job("main", "toy", ()), "toy", (spend,))])
    arrays: dict[str, Any] = {"features": np.ones((4, 2)), "labels": np.array([2, -1, 0, 1])}
    ids = {"record_ids": units, "units": units, "checks": np.zeros(4, np.uint8)}
    sealed.write(tmp_path / "c.h5", arrays | ids, {"kind": "features"}, subkey(home, "cache"))
    _, seal = sealed.read_attrs(tmp_path / "c.h5")

    def labels(version: str, now: str) -> list[int]:
        part = features.Part(
            tmp_path / "c.h5", seal.hex(), "", "", 3, 2, (), "toy" if now else "", version, now
        )
        return [*map(int, features.read_raw(part).labels)]

    assert labels("", "second") == [2, -1, 0, 1]  # nobody asked yet
    book.commit(ledger, held.token, "query", [spend], noise_for([spend]), units="first")
    assert labels("", "second") == [-1, -1, 0, 1]
    assert labels("", "first") == [2, -1, 0, 1]
    assert labels("2", "second") == [2, -1, 0, 1]
    assert labels("", "") == [2, -1, 0, 1]  # declared public
