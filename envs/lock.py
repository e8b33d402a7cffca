"""The exact lock of every dependency: versions and hashes, for all platforms, without addresses.

`make lock` compiles it with uv and pins the conda environment alike; `python envs/lock.py --check`
says, offline, whether both still belong to pyproject.toml.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "envs" / "requirements.lock"
CONDA = ROOT / "envs" / "dpladder.yaml"
CONDA_PYTHON = "3.11"
SITE = ROOT / "docs" / "requirements.lock"
COMPILE = "pip compile --universal --generate-hashes --no-annotate --no-header --quiet"


def header() -> str:
    """A digest of what the lock was compiled from, so that a changed pyproject.toml is noticed
    offline."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [
        project["project"]["requires-python"],
        sorted(project["project"]["dependencies"]),
        sorted(itertools.chain(*project["project"]["optional-dependencies"].values())),
        sorted(project["dependency-groups"]["dev"]),
    ]
    digest = hashlib.sha256(json.dumps(wanted).encode()).hexdigest()
    return f"# Made by `make lock` from pyproject.toml, inputs {digest[:16]}. Do not edit.\n"


def conda() -> str:
    """The rules' conda environment: the direct dependencies, pinned as the lock pins them for its
    Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = [re.split(r"[<>=!~ ]", dependency)[0] for dependency in project["dependencies"]]
    lines = [
        "# Made by `make lock` from envs/requirements.lock. Do not edit.",
        "channels: [conda-forge, nodefaults]",
        "dependencies:",
        f"  - python={CONDA_PYTHON}",
        "  - pip",
        "  - pip:",
        *(f"      - {name}=={locked_version(name)}" for name in names),
    ]
    return "\n".join(lines) + "\n"


def locked_version(name: str) -> str:
    """The lock may pin one version per Python; the lowest Python's line stands first."""
    pin = re.search(rf"^{re.escape(name)}==(\S+)", LOCK.read_text("utf-8"), re.MULTILINE)
    if pin is None:
        raise SystemExit(f"{name} is not in envs/requirements.lock; run `make lock`")
    return pin.group(1)


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        current = (
            LOCK.is_file()
            and LOCK.read_text("utf-8").startswith(header())
            and CONDA.read_text("utf-8") == conda()
        )
        if not current:
            print(
                "the lock or envs/dpladder.yaml does not belong to this pyproject.toml; run `make "
                "lock`",
                file=sys.stderr,
            )
        return 0 if current else 1
    LOCK.write_text(
        header() + compiled("pyproject.toml", "--all-extras", "--group", "dev"), "utf-8"
    )
    CONDA.write_text(conda(), "utf-8")
    SITE.write_text(
        "# Made by `make lock` from docs/requirements.in. Do not "
        "edit.\n" + compiled("docs/requirements.in"),
        "utf-8",
    )
    print(f"wrote {', '.join(str(made.relative_to(ROOT)) for made in (LOCK, CONDA, SITE))}")
    return 0


def compiled(*what: str) -> str:
    command = [sys.executable, "-m", "uv", *COMPILE.split(), *what]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
