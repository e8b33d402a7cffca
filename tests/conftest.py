"""Which cases of a test run where."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked `few(n)`, leave all cases but the first n to the night."""
    seen: dict[str, int] = {}
    for item in items:
        if few := item.get_closest_marker("few"):
            test = item.nodeid.partition("[")[0]
            seen[test] = seen.get(test, 0) + 1
            if seen[test] > few.args[0]:
                item.own_markers = [mark for mark in item.own_markers if mark.name != "ci"]
                item.add_marker(pytest.mark.long)
