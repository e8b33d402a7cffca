"""Tests see nothing of who runs them: no home, ledger, locale, time zone, umask or git config."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOOKS = """
import locale, os, stat, subprocess, sys, time
from pathlib import Path
from dpladder.privacy.ledger.home import open_home

LOOK = "import os, time, pathlib; print(pathlib.Path.home(), time.tzname, os.umask(0))"

def test_nothing_of_the_user_is_seen():
    assert "hostile" not in " ".join(os.environ.values())
    assert time.tzname == ("UTC", "UTC") and os.environ["COLUMNS"] == "80"
    assert not Path.home().exists()
    told = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True).stdout
    assert told == f"{Path.home()} ('UTC', 'UTC') {0o022}\\n"
    assert subprocess.run(["git", "config", "--get", "user.name"], cwd="/").returncode == 1
    open_home()

def test_nor_of_another_test():
    assert not Path(os.environ["DPLADDER_HOME"]).exists()
"""


def test_a_test_sees_no_user(tmp_path: Path) -> None:
    (tmp_path / "test_looks.py").write_text(LOOKS, "utf-8")
    home = tmp_path / "hostile"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\nname = hostile\n", "utf-8")
    names = ("HOME", "DPLADDER_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "SLURM_JOB_ID")
    hostile = dict.fromkeys(names, str(home)) | {
        "TZ": "Pacific/Kiritimati",
        "COLUMNS": "20",
        "PYTHONPATH": str(ROOT / "tests"),
        "LANG": "hostile",
    }
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", tmp_path],
        env=os.environ | hostile,
        cwd=tmp_path,
        umask=0,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
