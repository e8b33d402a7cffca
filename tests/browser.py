"""A real browser, for tests of pages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
browsed = pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt-get install chromium")


def browse(folder: Path, *options: str) -> str:
    fixed = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}")
    ended = subprocess.run(
        [BROWSER, *fixed, *options], capture_output=True, text=True, timeout=120, check=True
    )
    return ended.stdout
