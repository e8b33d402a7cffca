"""Bad configs through Snakemake: our loader's one message and exit code 2 wherever Snakemake lets
it speak."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpladder.config.load import load
from dpladder.errors import BadInput

ROOT = Path(__file__).parents[2]
GOOD = """\
dataset: {lineage: digits, source: digits, nominal_size: 1400}
privacy: {epsilon: 1.0, delta: 1.0e-5}
"""


def dry_run(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`snakemake -n` as a user types it, in an empty folder."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "snakemake",
            "-n",
            "-s",
            ROOT / "Snakefile",
            "--configfile",
            file,
            *options,
        ],
        cwd=file.parent,
        env=os.environ | {"DPLADDER_HOME": str(file.parent / "home")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("fit: {degre: 1}", marks=pytest.mark.long),
        pytest.param("fit: {degree: 1}\nfit: {degree: 2}", marks=pytest.mark.long),
        "features:\nexperiments: {logs: {}}",
    ],
    ids=["unknown key", "section twice", "two problems"],
)
def test_a_bad_config_stops_snakemake_with_our_message_and_exit_code_2(more, tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(f"{GOOD}{more}\n", "utf-8")
    with pytest.raises(BadInput) as caught:
        load([file])
    ended = dry_run(file)
    assert ended.returncode == 2
    assert f"dpladder: {caught.value}\n" in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout
    assert ended.stdout == ""
    assert not (tmp_path / "home").exists()


@pytest.mark.ci
def test_a_mistake_on_the_command_line_stops_snakemake_in_the_same_way(tmp_path):
    file = tmp_path / "good.yaml"
    file.write_text(GOOD, "utf-8")
    ended = dry_run(file, "--config", "privacy={epsilom: 2}")
    assert ended.returncode == 2
    assert "privacy.epsilom: given" in ended.stderr
    assert "did you mean epsilon?" in ended.stderr


@pytest.mark.long
@pytest.mark.parametrize("content", [None, b"mode: [\n"], ids=["missing", "syntax"])
def test_what_snakemake_cannot_parse_stops_it_before_our_loader_speaks(content, tmp_path):
    file = tmp_path / "bad.yaml"
    if content is not None:
        file.write_bytes(content)
    ended = dry_run(file)
    assert ended.returncode == 1
    assert ended.stderr.strip()


@pytest.mark.long
def test_weights_that_cannot_be_read_stop_a_run_before_it_reserves(project):
    Path("torn.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    network = {"model": "resnet18", "weights": "torn.safetensors", "image_size": 32}
    project.configure(
        {
            "dataset": {"source": "digits", "nominal_size": 1400, "classes": None},
            "features": network,
        }
    )
    ended = project.run()
    assert ended.returncode == 2
    assert ended.stderr.count("dpladder: ") == 1
    assert "features.weights" in ended.stderr
    assert "no whole checkpoint" in ended.stderr
    assert not project.home.exists()
