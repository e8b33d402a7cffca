"""A month of random edits: many in this process, and a few by real runs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from month.driver import by_command, killed_by_time
from month.machine import Month

# What failed is told step by step; to shorten that would take minutes.
AS_IT_COMES: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [*HealthCheck],
    "database": None,
    "phases": [Phase.generate],
}


class RealMonth(Month):
    run_project = staticmethod(by_command)
    kill_project = staticmethod(killed_by_time)
    in_process = False


def months(machine: type[Month], examples: int, steps: int, derandomize: bool = False) -> None:
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, derandomize=derandomize, **AS_IT_COMES
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.ci
def test_a_month_of_edits() -> None:
    months(Month, 3, 5, derandomize=True)


@pytest.mark.long
@pytest.mark.timeout(2 * 3600)  # six hundred runs, in a tenth of that
def test_many_months_of_edits() -> None:
    months(Month, 40, 15)


@pytest.mark.long
def test_a_month_of_edits_by_real_runs() -> None:
    months(RealMonth, 1, 5)
