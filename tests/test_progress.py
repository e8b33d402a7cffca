"""Progress shows at a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

WORK = """
from dpladder.progress import progress
with progress("training", 40, "steps", after={after}) as advance:
    for _ in range(40):
        advance(1)
"""


@pytest.mark.parametrize(("after", "shown"), [(0.0, True), (60.0, False)])
def test_a_terminal_shows_long_work_and_leaves_short_work_alone(after: float, shown: bool) -> None:
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", WORK.format(after=after)], stderr=theirs, check=True)
    os.close(theirs)
    said = b""
    try:
        while more := os.read(ours, 65_536):
            said += more
    except OSError:  # what Linux says at the end of a terminal that nobody holds any more
        pass
    os.close(ours)
    assert (b"training" in said and b"40/40" in said) == shown


def test_what_is_not_a_terminal_gets_nothing() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WORK.format(after=0.0)],
        capture_output=True,
        check=True,
        start_new_session=True,
    )
    assert ended.stdout + ended.stderr == b""
