"""Which cases of a test run where, and which texts are approved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import approval
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--approve", action="store_true", help="renew tests/approved, and run no more")


@pytest.fixture(name="approved")
def _approved(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., None]:
    """Compares a text with the approved one of this case, of its folder's file by default."""
    room = Path(request.node.path).relative_to(Path(__file__).parent)
    name = room.parts[0].removesuffix(".py")

    def compare(text: str, file: str = name, heading: str = request.node.name) -> None:
        text = text.replace(str(tmp_path), "<folder>")
        approval.compare(file, heading, text, request.config.getoption("approve"))

    return compare


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
