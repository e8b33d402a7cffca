"""The commands that the documentation gives."""

from __future__ import annotations

import argparse
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "config" / "README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(start: str) -> list[str]:
    """Those that begin so: lines of blocks of code, without their comments, and what stands between
    backticks."""
    found: dict[str, None] = {}
    for page in PAGES:
        text = page.read_text("utf-8")
        for language, block in BLOCK.findall(text):
            if language in ("", "bash"):
                lines = re.sub(r"\\\n\s*", " ", block).splitlines()
                found |= dict.fromkeys(re.split(r"\s+#", line)[0].strip() for line in lines)
        found |= dict.fromkeys(
            " ".join(code.split()) for code in re.findall(r"`([^`]+)`", BLOCK.sub("", text))
        )
    return sorted(command for command in found if command.startswith(start))


class ArgumentsRead(Exception):
    """Ends a tool once its arguments are read."""


def check_arguments(script: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool takes these arguments. It runs for minutes to hours, on public data, so nothing but
    its arguments is read."""
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(self: argparse.ArgumentParser) -> None:
        parse(self, words)
        raise ArgumentsRead

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
    monkeypatch.syspath_prepend(ROOT / "tools")
    source = (ROOT / script).read_text("utf-8")
    if "parse_args" in source or "read_options" in source:
        with pytest.raises(ArgumentsRead):
            runpy.run_path(str(ROOT / script), run_name="__main__")
    else:
        assert not words
