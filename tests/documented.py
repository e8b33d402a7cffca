"""The commands that the documentation gives."""

from __future__ import annotations

import re
from pathlib import Path

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
