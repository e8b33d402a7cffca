"""The documentation's links, without the site's own packages: `make site` checks the same and
builds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "config" / "README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
]
LINK = re.compile(r"\]\(((?!https?:|mailto:|#)[^)#\s]+)")
ANCHORED = re.compile(r"\]\(((?!https?:)[^)#\s]*\.md)?#([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page):
    targets = LINK.findall(page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def anchors(page: Path) -> set[str]:
    """What links may name in a page: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_heading_finds_it(page):
    links = ANCHORED.findall(page.read_text("utf-8"))
    wrong = [
        f"{target}#{anchor}"
        for target, anchor in links
        if anchor not in anchors(page.parent / target if target else page)
    ]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_table_of_a_page_is_whole(page):
    """An empty line inside a table makes text of the rows below it."""
    blocks = re.split(r"\n\s*\n", page.read_text("utf-8"))
    tables = [re.findall(r"^\|.*$", block, re.MULTILINE) for block in blocks]
    for rows in filter(None, tables):
        assert re.fullmatch(r"\|[-|]+\|", " ".join(rows[1:2])), rows[0]
        assert len({row.replace(r"\|", "").count("|") for row in rows}) == 1, rows[0]


def test_every_page_has_its_place_in_the_site():
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    nav = repr(yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader)["nav"])
    docs = ROOT / "docs"
    names = [page.relative_to(docs).as_posix() for page in docs.glob("**/*.md")]
    assert [name for name in names if f"'{name}'" not in nav] == []
