"""The code of docs/ledger.md in its order, beside what a reader has: Opacus, a table, a round."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documented import BLOCK, ROOT

PAGE = (ROOT / "docs" / "ledger.md").read_text("utf-8")


def readers_values() -> dict[str, Any]:
    """What the page takes for granted."""
    import torch
    from opacus import PrivacyEngine

    random = np.random.default_rng(0)

    def train(engine: PrivacyEngine) -> None:
        model = torch.nn.Linear(4, 2)
        data = torch.utils.data.TensorDataset(torch.randn(1000, 4), torch.randint(0, 2, (1000,)))
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(data, batch_size=10),
            noise_multiplier=1.1,
            max_grad_norm=1.0,
        )
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()

    return {
        "engine": PrivacyEngine(accountant="rdp"),
        "train": train,
        "correct": 800,
        "best_ward": "north",
        "ages": random.uniform(20, 90, 2000),
        "sexes": random.choice(["f", "m"], 2000),
        "visits": random.integers(0, 20, 2000),
        "number": 1,
        "clipped_sum": random.normal(size=8),
        "clip": 1.0,
    }


@pytest.mark.ci
def test_the_code_of_the_page_runs_in_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    names, cells = readers_values(), [code for kind, code in BLOCK.findall(PAGE) if kind]
    patients, event, statistics, rounds = cells
    exec(patients, names)
    assert abs(names["score"] - 800) < 200
    assert "trial-1" in Path("results/privacy.md").read_text("utf-8")

    exec(event, names)
    assert names["wards"].spent == pytest.approx(0.5)

    released = {}
    for line in statistics.splitlines():  # what each call of the page buys
        name = re.findall(r'"([\w-]+)"', line)[0]
        released[name] = eval(line, names)
    assert abs(released["patients"] - 2000) < 200
    assert abs(released["age"] - 55) < 10
    assert all(abs(np.subtract(released["age-quartiles"], [37.5, 55, 72.5])) < 10)
    assert {*released["sex"]} == {"f", "m"}
    assert released["visits"] > 0
    assert names["ledger"].left > 0

    exec(rounds, names)
    assert names["noised"].shape == (8,)
    assert names["ledger"].spent > 0
