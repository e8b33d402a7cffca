"""Report sentences of more than 25 words on the pages and in the config reference.

It is a report and no gate: a long sentence that reads well may stay.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("*.md", "docs/**/*.md", "config/README.md")
NO_PROSE = re.compile(r"```.*?```|<!--.*?-->|\$\$.*?\$\$", re.DOTALL)
END = re.compile(
    r"(?<!al)(?<!e\.g)(?<!i\.e)(?<=[.!?])[*_)\"]*\s+|\n\s*\n|\n\s*(?:[-*]|\d+\.) |\n#+ "
)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page in Markdown, without code blocks; a cell of a table is by itself."""
    text = NO_PROSE.sub("\n\n", text)
    for line in re.findall(r"^\s*\|.*$", text, re.MULTILINE):
        for cell in re.split(r"(?<!\\)\|", line):
            yield from END.split(cell)
    text = re.sub(r"^\s*\|.*$", "\n", text, flags=re.MULTILINE)
    for sentence in END.split(text):
        yield " ".join(sentence.split())


def words(sentence: str) -> int:
    """Number of words; a link counts with its text, a span of code as one word."""
    sentence = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence)
    sentence = re.sub(r"`[^`]*`", "code", sentence)
    return len(re.findall(r"\w[\w'’.,/-]*", sentence))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="default: every page")
    parser.add_argument("--longest", type=int, default=25, help="words allowed (default: 25)")
    parser.add_argument("--count", action="store_true", help="print the number by page alone")
    options = parser.parse_args()
    pages = options.pages or sorted({page for name in PAGES for page in ROOT.glob(name)})
    for page in pages:
        text = page.read_text("utf-8")
        all_of = [sentence for sentence in sentences(text) if words(sentence)]
        long = [sentence for sentence in all_of if words(sentence) > options.longest]
        print(
            f"{page.resolve().relative_to(ROOT)}: {len(long)} of {len(all_of)} sentences are longer"
        )
        for sentence in [] if options.count else long:
            print(f"    {words(sentence)}: {sentence.strip()}")


if __name__ == "__main__":
    main()
