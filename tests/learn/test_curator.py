"""The curator: a method is told public inputs and answers, and holds nothing else."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import Silent

from dpladder.config.model import Resources
from dpladder.errors import Refused
from dpladder.learn import curator, moments
from dpladder.learn.curator import Curator, PublicInputs
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.queries import RecordSum, WeighedSums

ONE = Resources(threads=1, mem_mb=50)
LEARN = Path(curator.__file__).parent
METHODS = sorted([*LEARN.parents[1].glob("*/methods/*/*.py"), LEARN / "descent.py"])


def answer_without_noise(query: Any, data: Data, constants: Constants) -> Any:
    silent: Any = Silent()
    return Curator(data, constants, ONE).ask(query.at(), silent)


@pytest.mark.parametrize("path", METHODS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_method_imports_records_or_the_meter(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    names = {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    held = {"Data", "Records", "Meter", "Curator", "load"}
    assert not {name for name in names if name.rpartition(".")[2] in held}
    assert not any("release.meter" in name or "release.noise" in name for name in names)


def test_a_method_is_told_public_inputs_alone() -> None:
    """A new field is public, or was released before: say here which."""
    assert {field.name for field in fields(PublicInputs)} == {
        "device",
        "threads",
        "number",
        "start",  # a public head, or one that was bought
        "claim",  # of the public head, about public records
        "worth",  # released before
        "units",  # of the public sample
        "directions",  # of the public sample
    }


def test_a_plug_ins_function_never_meets_a_record() -> None:
    """It is traced on zeros: what it keeps, and what it decides, it does of zeros."""
    kept = []

    def peeking(x: Any, label: Any) -> Any:
        kept.append((x, label))
        return x * 2.0

    data = Data(np.full((3, 2), 7.0, np.float32), np.array([0, 1, 1]))
    query = RecordSum(name="sums", multiplier=1.0, of=peeking, of_shape=(2,), clip=100.0)
    found = answer_without_noise(query, data, Constants(3, 2, 2))
    assert found.numpy() == pytest.approx([42.0, 42.0], rel=1e-3)
    assert not any("7." in str(value) for values in kept for value in values)


def test_a_plug_ins_function_that_mixes_records_is_refused() -> None:
    data = Data(np.ones((3, 2), np.float32), np.zeros(3, np.int64))

    def branching(x: Any, label: Any) -> Any:
        return x if float(x.sum()) > 1 else -x

    query = RecordSum(name="sums", multiplier=1.0, of=branching, of_shape=(2,))
    with pytest.raises(RuntimeError):
        answer_without_noise(query, data, Constants(3, 2, 2))


def test_any_function_is_summed_and_cut_record_by_record() -> None:
    random = np.random.default_rng(0)
    data = Data(random.normal(size=(40, 3)).astype(np.float32), random.integers(-1, 2, 40))

    def outer(x: Any, label: Any) -> Any:
        return x.outer(x) + label + 1.0

    query = RecordSum(name="sums", multiplier=1.0, of=outer, of_shape=(3, 3), clip=2.0)
    expected = np.zeros((3, 3))
    for row, label in zip(data.features.astype(np.float64), data.labels, strict=True):
        if label >= 0:
            one = np.outer(row, row) + label + 1.0
            expected += one * min(1.0, 2.0 * (1 - 2.0**-10) / np.linalg.norm(one))
    assert answer_without_noise(query, data, Constants(40, 2, 3)).numpy() == pytest.approx(
        expected, rel=1e-5
    )


@pytest.mark.parametrize("written", ["rows by a matrix", "a matrix by rows", "a layer"])
def test_a_record_that_joins_turns_no_other_by_a_plug_ins_product(written: str) -> None:
    """A library rounds every fourth row of a product in another way. Records that tie by the last
    bit would all turn once one more moves them by a place."""
    width, random = 33, np.random.default_rng(0)
    matrix = torch.from_numpy(random.normal(size=(3, width)).astype(np.float32))
    tie = np.random.default_rng(1).normal(size=width).astype(np.float32)
    torch.set_num_threads(1)
    rounded = (torch.from_numpy(tie).repeat(64, 1) @ matrix.T)[:, 0]
    threshold = rounded[0].item()
    products: dict[str, Any] = {
        "rows by a matrix": lambda x: x @ matrix.T,
        "a matrix by rows": lambda x: matrix @ x,
        "a layer": lambda x: torch.nn.functional.linear(x, matrix, torch.zeros(3)),
    }

    def side(x: Any, label: Any) -> Any:
        return torch.where(products[written](x)[0] == threshold, 1.0, -1.0) * (label == 0)

    query = RecordSum(name="sums", multiplier=1.0, of=side, of_shape=(), clip=1.0)
    labels = (rounded == threshold).long().numpy()
    before, after = (
        Data(np.tile(tie, (64, 1)), labels_in_place)
        for labels_in_place in (labels, np.roll(labels, 1))  # the last one comes to the front
    )
    moved = [answer_without_noise(query, data, Constants(64, 2, width)) for data in (before, after)]
    assert abs(float(moved[1] - moved[0])) <= 2.0


def test_a_plug_ins_function_that_rounds_by_places_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def last_rows_otherwise(left: Any, right: Any) -> Any:
        found = (left[:, :, None] * right[None]).sum(1)
        return torch.cat([found[:-8], found[-8:] * (1 + 1e-6)])

    products = {torch.ops.aten.mm.default: last_rows_otherwise}
    monkeypatch.setattr(moments, "_products_of_rows", lambda: products)
    query = RecordSum(
        name="sums", multiplier=1.0, of=lambda x, _: x @ torch.ones(3, 2), of_shape=(2,)
    )
    data = Data(np.ones((4, 3), np.float32), np.zeros(4, np.int64))
    with pytest.raises(Refused, match="by its place among others"):
        answer_without_noise(query, data, Constants(4, 2, 3))


TABLE = torch.arange(8.0)
RAISING: dict[str, Any] = {
    "an index": lambda x, _: TABLE[x[0].long()],
    "an inverse": lambda x, _: torch.linalg.inv((x[0] - 50.0) * torch.eye(2)).sum(),
    "a quotient": lambda x, _: 8 // (x[0].long() - 50) * 1.0,
}


@pytest.mark.parametrize("of", RAISING.values(), ids=RAISING)
@pytest.mark.parametrize("count", [1, 5, 130])
def test_a_record_for_which_a_plug_ins_function_raises_counts_as_nothing(
    of: Any, count: int
) -> None:
    features = np.random.default_rng(0).uniform(1.0, 7.9, (count, 2)).astype(np.float32)
    query = RecordSum(name="sums", multiplier=1.0, of=of, of_shape=(), clip=100.0)
    constants = Constants(count, 2, 2)
    labels = np.zeros(count + 2, np.int64)
    expected = answer_without_noise(query, Data(features, labels[:count]), constants)
    for place in (0, count // 2, count):
        bad = np.insert(features, [place, count], [[50.0, 0.0]] * 2, axis=0)
        found = answer_without_noise(query, Data(bad, labels), constants)
        assert float(found) == pytest.approx(float(expected), rel=1e-12)


def test_weights_for_which_a_plug_in_raises_count_as_nothing() -> None:
    def weigh(x: Any, _: Any) -> Any:
        return TABLE[(100.0 * x[0]).long()][None] / 8.0

    query = WeighedSums(name="sums", multiplier=1.0, radius=1.0, by=weigh, sums=1)
    good, bad = [[0.05, 0.5]], [[0.05, 0.5], [0.9, 0.1]]
    answers = [
        answer_without_noise(
            query, Data(np.array(rows, np.float32), np.zeros(len(rows), int)), size
        )
        for rows, size in ((good, Constants(2, 2, 2)), (bad, Constants(2, 2, 2)))
    ]
    assert torch.equal(*answers)


def test_weights_of_a_plug_in_are_cut_to_length_one_together() -> None:
    random = np.random.default_rng(0)
    data = Data(random.normal(size=(40, 3)).astype(np.float32), random.integers(0, 2, 40))

    def weigh(x: Any, label: Any) -> Any:
        return torch.stack([label + 0.5, 2.0 * label]).to(x)

    query = WeighedSums(name="sums", multiplier=1.0, radius=2.0, by=weigh, sums=2, constant=1.0)
    expected = np.zeros((2, 4))
    for row, label in zip(data.features.astype(np.float64), data.labels, strict=True):
        weights = np.array([label + 0.5, 2.0 * label])
        inside = row * min(1.0, 2.0 * (1 - 2.0**-10) / np.linalg.norm(row))
        padded = np.append(inside, 2.0 * (1 - 2.0**-10))
        expected += np.outer(weights / max(1.0, np.linalg.norm(weights)), padded)
    found = answer_without_noise(query, data, Constants(40, 2, 3)).numpy()
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
