"""Puts into the site what the pages link to and what lies outside docs/: the README, the key
reference, examples, sources."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
FRONT = "README.md"
LINK = re.compile(r"(\]\()((?!https?:|mailto:|#)[^)#\s]+)")
PREFIX = "repository/"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Every file of the repository that is linked to, from page to page."""
    for file in [file for file in files if file.src_uri == "hooks.py"]:
        files.remove(file)
    files.append(File.generated(config, "index.md", content=(ROOT / FRONT).read_text("utf-8")))
    waiting = [
        FRONT,
        *(
            f"docs/{file.src_uri}"
            for file in files.documentation_pages()
            if file.src_uri != "index.md"
        ),
    ]
    seen = set(waiting)
    while waiting:
        for path in set(_linked(waiting.pop())) - seen:
            seen.add(path)
            if path.startswith("docs/"):
                continue
            if path.endswith(".md"):
                waiting.append(path)
            files.append(_file(path, config))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    own = page.file.src_uri
    source = (
        FRONT
        if own == "index.md"
        else own.removeprefix(PREFIX)
        if own.startswith(PREFIX)
        else f"docs/{own}"
    )

    def moved(link: re.Match[str]) -> str:
        return link[1] + posixpath.relpath(
            _place(_resolved(source, link[2])), posixpath.dirname(own) or "."
        )

    return LINK.sub(moved, markdown)


def _file(path: str, config: MkDocsConfig) -> File:
    place, on_disk = _place(path), ROOT / path
    if on_disk.is_dir():
        names = sorted(child.name for child in on_disk.iterdir() if child.is_file())
        listed = "\n".join(f"- `{name}`" for name in names)
        return File.generated(
            config, place, content=f"# {path}\n\nIn the repository:\n\n{listed}\n"
        )
    return File.generated(config, place, content=on_disk.read_bytes())


def _linked(path: str) -> Iterator[str]:
    """What a page links to, as paths of the repository."""
    for link in LINK.finditer((ROOT / path).read_text("utf-8")):
        yield _resolved(path, link[2])


def _resolved(source: str, target: str) -> str:
    found = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if not (ROOT / found).exists():
        raise SystemExit(f"{source} links to {target}, which does not exist")
    return found


def _place(path: str) -> str:
    """Where a path of the repository lies in the site."""
    if path == FRONT:
        return "index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PREFIX + (f"{path}/index.md" if (ROOT / path).is_dir() else path)
