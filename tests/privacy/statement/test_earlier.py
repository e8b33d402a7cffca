"""A model is stated with all that was released before its jobs were reserved, or resumed."""

from __future__ import annotations

import pytest

from dpladder.privacy.accounting.events import Gaussian, Partition, Spend, to_json
from dpladder.privacy.statement.build import _cost_with_earlier
from dpladder.privacy.statement.documents import StatedSpend

DELTA = 1e-5


def line(name: str, reserved: int, released: int, continued: int | None = None) -> StatedSpend:
    spend = Spend("toy", "add_remove", Partition("all"), Gaussian(9.0))
    return StatedSpend(
        rule="run_trial",
        experiment=name,
        wildcards={},
        label=name,
        partition="all",
        mu=1 / 9,
        epsilon=1.0,
        count=1,
        superseded=False,
        reserved=reserved,
        released=released,
        spend=to_json(spend),
        question=name,
        continued=continued,
    )


@pytest.mark.parametrize("continued", [None, 2, 5])
def test_a_model_that_was_taken_up_again_is_stated_with_what_came_before(
    continued: int | None,
) -> None:
    """It was reserved first. Who went on with it after the other's release may have done so
    because of that."""
    model, other = line("model", 1, 6, continued), line("other", 1, 3)
    figure = _cost_with_earlier([model], [model, other], DELTA)
    if continued == 5:
        assert figure is not None
        assert figure.mu == pytest.approx(2**0.5 / 9)
    else:
        assert figure is None
