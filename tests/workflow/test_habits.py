"""Homes, locales, clocks, umasks and terminals change neither what a run does nor who reads it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

TURKISH = next(
    (
        name
        for name in subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
        if name.lower().startswith("tr_tr.utf")
    ),
    "C",
)
CONFIG = """\
dataset:
  lineage: ward
  source: csv:visits.csv
  nominal_size: 400
  label: "İyi mi"
  classes: [hayır, evet]
  columns: [{name: yaş, range: [0, 100]}, {name: I, levels: [i, ı]}]
features: {model: none}
privacy: {epsilon: 2.0, delta: 1.0e-6}
resources: {threads: 1}
"""


def output_of(folder: Path, environment: Mapping[str, str], *arguments: str) -> str:
    """What a command that ends well writes to its user."""
    ended = subprocess.run(
        [sys.executable, "-m", "dpladder", *arguments],
        cwd=folder,
        env=os.environ | environment,
        umask=int(environment.get("UMASK", "022"), 8),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.ci
def test_a_user_of_other_habits_gets_the_same_plan_and_model_and_keeps_others_out(
    tmp_path: Path,
) -> None:
    folder, home = tmp_path / "proje ı", tmp_path / "ev İ"
    folder.mkdir()
    home.mkdir()
    (home / ".gitconfig").write_text("[commit]\ngpgsign = true\n", "utf-8")
    random = np.random.default_rng(0)
    rows = [
        f"{age:.0f},{'iı'[sex]},{('hayır', 'evet')[int(age + 20 * sex > 60)]}"
        for age, sex in zip(random.uniform(0, 100, 500), random.integers(0, 2, 500), strict=True)
    ]
    (folder / "visits.csv").write_text("\n".join(["yaş,I,İyi mi", *rows]) + "\n", "utf-8")
    (folder / "config.yaml").write_text(CONFIG, "utf-8")
    plain = {"DPLADDER_HOME": str(home / ".dpladder")}
    other = plain | {
        "HOME": str(home),
        "UMASK": "000",
        "TZ": "Pacific/Kiritimati",
        "LANG": TURKISH,
        "LC_ALL": TURKISH,
        "COLUMNS": "20",
        "TERM": "dumb",
    }
    assert output_of(folder, other, "check") == output_of(folder, plain, "check")
    output_of(folder, other, "run")
    for kept in (home / ".dpladder", folder / "private"):
        assert kept.stat().st_mode & 0o077 == 0
    for command in (("verify", "results"), ("ledger", "show")):
        assert output_of(folder, other, *command) == output_of(folder, plain, *command)
    (model,) = folder.glob("results/main/final/*/weights.safetensors")
    answers = []
    for environment in (other, plain):
        command = ("predict", str(model), "visits.csv", "--output", "told.csv")
        output_of(folder, environment, *command)
        answers.append((folder / "told.csv").read_bytes())
    assert answers[0] == answers[1]
    shutil.rmtree(folder / "results")  # what was paid for is restored, whoever asks
    spent = output_of(folder, plain, "ledger", "show")
    output_of(folder, plain, "run")
    assert output_of(folder, plain, "ledger", "show") == spent
