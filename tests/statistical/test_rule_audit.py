"""The rules and the searches at the audit's full strength. Their planted bugs: tests/mutation."""

from __future__ import annotations

import pytest

from dpladder_audit import every, rules, searches
from dpladder_audit.engine.attack import run_audit
from dpladder_audit.engine.findings import table
from dpladder_audit.scene import scene_folder

pytestmark = pytest.mark.long

KEY = b"a public key for audits in tests"


@pytest.mark.parametrize("group", [*rules.ATTACKED, *searches.ATTACKED])
def test_every_rule_and_every_search_passes(group: str) -> None:
    with scene_folder(KEY) as made:
        report = run_audit(every.mechanisms(group, made), KEY, among=50)
    assert report.ok, table(report)
