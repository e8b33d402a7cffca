"""Make the archives of today's format: python tests/formats/make.py. Once a version was tagged, its
archives never change: a new format gets archives of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from support import Workspace  # noqa: E402

from dpladder.formats import FORMATS  # noqa: E402

PROJECTS: dict[str, dict[str, Any]] = {
    "ladder": {
        "sweep": {"rungs": [{"epsilon": epsilon, "trials": 2} for epsilon in (0.1, 0.2, 0.3)]},
        "final": {"targets": [1.0]},
    },
    "auto": {
        "dataset": {"lineage": "auto"},
        "features": {"centre": "noised"},
        "privacy": {"epsilon": 2.0},
        "sweep": "auto",
        "fit": {},
    },
}


def make(name: str, base: dict[str, Any], folder: Path) -> None:
    made = Workspace(folder / name / "project", folder / name / "home", base)
    made.create()
    made.finish()
    for left in ("logs", ".snakemake/log", ".snakemake/conda", ".snakemake/incomplete"):
        shutil.rmtree(made.folder / left, ignore_errors=True)
    archive = HERE / f"{FORMATS['ledger']}-{name}.tar.xz"
    # Python's own tarfile rounds times, and a source is known by the nanosecond that it changed at.
    command = ["tar", "--format=posix", "-cJf", str(archive), "-C", str(folder), name]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for project, base in PROJECTS.items():
            make(project, base, Path(folder))
