"""Which cases of a test run where, which texts are approved, and the environment of every test."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import approval
import hypothesis
import pytest

# what collecting tests makes stays: to look through it for garbage takes a fifth of that time
gc.set_threshold(50_000)
# no test fails for the time that it takes, which hangs on what else the machine does
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

MACHINE = ("PATH", "TMPDIR", "CI", "LD_LIBRARY_PATH")
"""Variables that say where tests run, and nothing of who runs them. Tests keep these."""
MACHINE_GROUPS = (
    "CUDA_",
    "MKL_",
    "NVIDIA_",
    "OMP_",
    "OPENBLAS_",
    "PIP_",
    "PYTEST_",
    "PYTHON",
    "UV_",
)
UMASK = 0o022
FOLDER, USERS = pytest.StashKey[Path](), count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--approve", action="store_true", help="renew tests/approved, and run no more")


def pytest_configure(config: pytest.Config) -> None:
    """Take the user's environment away before any fixture reads it, and what nohup has ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    folder = config.stash[FOLDER] = Path(tempfile.mkdtemp(prefix="dpladder-tests-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in MACHINE or name.startswith(MACHINE_GROUPS)
    }
    os.environ.clear()
    os.environ.update(kept | user_environment(folder))
    # Public figures and fonts that take seconds to make: once for all tests of this process.
    os.environ.update(XDG_CACHE_HOME=str(folder / "cache"), MPLCONFIGDIR=str(folder / "matplotlib"))
    time.tzset()
    os.umask(UMASK)


def user_environment(folder: Path) -> dict[str, str]:
    """Variables of a user who has nothing but an empty home in `folder`."""
    home = folder / "user"
    return {
        "HOME": str(home),
        "DPLADDER_HOME": str(home / ".dpladder"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_SYSTEM": os.devnull,
        "SHELL": "/bin/sh",
        "TERM": "xterm",
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "COLUMNS": "80",
        "LINES": "24",
    }


@pytest.fixture(autouse=True)
def _own_user(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A home of its own for each test and for what it starts, which makes it where it needs one."""
    folder = request.config.stash[FOLDER] / f"user-{next(USERS)}"
    for name, value in user_environment(folder).items():
        monkeypatch.setenv(name, value)
    os.umask(UMASK)
    yield
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(name="approved")
def _approved(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., None]:
    """Compares a text with the approved one of this case, of its folder's file by default."""
    room = Path(request.node.path).relative_to(Path(__file__).parent)
    name = room.parts[0].removesuffix(".py")

    def compare(text: str, file: str = name, heading: str = request.node.name) -> None:
        text = text.replace(str(tmp_path), "<folder>")
        approval.compare(file, heading, text, request.config.getoption("approve"))

    return compare


def pytest_collection_finish() -> None:
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # for libraries that count at their end what is left


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test marked `few(n)`, leave all cases but the first n to the night. With `--approve`
    run nothing but what compares texts."""
    if config.getoption("approve"):
        items[:] = [item for item in items if "approved" in getattr(item, "fixturenames", ())]
    seen: dict[str, int] = {}
    for item in items:
        if few := item.get_closest_marker("few"):
            test = item.nodeid.partition("[")[0]
            seen[test] = seen.get(test, 0) + 1
            if seen[test] > few.args[0]:
                item.own_markers = [mark for mark in item.own_markers if mark.name != "ci"]
                item.add_marker(pytest.mark.long)
