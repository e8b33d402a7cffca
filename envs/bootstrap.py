"""Make `.venv` hold exactly what envs/requirements.lock names, and do nothing when it already does.

Runs on a bare Python: standard library only. uv installs the lock in seconds; plain pip is the
fallback.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "envs" / "requirements.lock"
VENV = ROOT / ".venv"
STAMP = VENV / ".dpladder-ready"
PYTHON = VENV / "bin" / "python"
MINIMUM, BELOW = (3, 11), (3, 14)
NEEDED_GB = 8.0


def main() -> int:
    wanted = fingerprint()
    if STAMP.is_file() and STAMP.read_text() == wanted and PYTHON.exists():
        return 0
    check_python()
    check_disk()
    print(
        "Setting up .venv (about 6.5 GB, most of it PyTorch; a minute or more, once) ...",
        flush=True,
    )
    STAMP.unlink(missing_ok=True)
    if not healthy_venv():
        step(
            "create a virtual environment",
            [sys.executable, "-m", "venv", "--clear", str(VENV)],
            VENV_HELP,
        )
    install()
    step(
        "install dpladder itself",
        [
            str(PYTHON),
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "-e",
            str(ROOT),
        ],
        NETWORK_HELP,
    )
    STAMP.write_text(wanted)
    return 0


VENV_HELP = "Debian and Ubuntu ship it apart: apt-get install python3-venv"
NETWORK_HELP = (
    "Check that PyPI (or the index that pip is configured for) can be reached, that a proxy is set "
    "where one is needed, and free disk space; then run the same command again."
)


def fingerprint() -> str:
    """What the environment depends on: the lock, the packaging file, this Python, this place."""
    inputs = [
        LOCK.read_bytes(),
        (ROOT / "pyproject.toml").read_bytes(),
        sys.version.encode(),
        str(ROOT).encode(),
    ]
    return hashlib.sha256(b"\0".join(inputs)).hexdigest()


def check_python() -> None:
    if not MINIMUM <= sys.version_info[:2] < BELOW:
        stop(
            f"python3 is {sys.version.split()[0]}; dpladder needs {MINIMUM[0]}.{MINIMUM[1]} or "
            f"newer, below {BELOW[0]}.{BELOW[1]}. "
            "Name another one with `make PYTHON3=/path/to/python3.12 ...`."
        )


def check_disk() -> None:
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < NEEDED_GB and not PYTHON.exists():
        stop(
            f"{free:.1f} GB free under {ROOT}; the environment needs about {NEEDED_GB:.0f} GB. "
            "Free some space or clone elsewhere."
        )


def healthy_venv() -> bool:
    """A half-made or moved environment, or one of another Python, is made anew."""
    if not PYTHON.exists():
        return False
    probe = subprocess.run(
        [PYTHON, "-c", "import pip, sys; print(sys.version)"],
        capture_output=True,
        text=True,
        check=False,
    )
    return probe.returncode == 0 and probe.stdout.strip() == sys.version.strip()


def install() -> None:
    """uv, pinned by the same lock, then everything else; pip alone where uv cannot run."""
    version = next(
        line.split("==")[1].split()[0]
        for line in LOCK.read_text().splitlines()
        if line.startswith("uv==")
    )
    pip = [str(PYTHON), "-m", "pip", "install", "-q"]
    got_uv = subprocess.run([*pip, f"uv=={version}"], check=False).returncode == 0
    if got_uv:
        sync = [
            str(PYTHON),
            "-m",
            "uv",
            "pip",
            "sync",
            "-q",
            "--require-hashes",
            "--python",
            str(PYTHON),
            str(LOCK),
        ]
        if (
            subprocess.run(
                sync, check=False, env=os.environ | {"UV_HTTP_TIMEOUT": "180"}
            ).returncode
            == 0
        ):
            return
        print("uv could not install the lock; trying pip, which takes some minutes ...", flush=True)
    step(
        "install the locked dependencies", [*pip, "--require-hashes", "-r", str(LOCK)], NETWORK_HELP
    )


def step(what: str, command: list[str], remedy: str) -> None:
    if subprocess.run(command, check=False).returncode != 0:
        stop(f"could not {what}. {remedy}")


def stop(message: str) -> None:
    print(f"setup: {message}", file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    raise SystemExit(main())
