"""The blind check: with answers pinned, nothing that a learner returns follows from records."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from dpladder.config.learners import METHODS
from dpladder.learn.curator import Curator
from dpladder_audit import learners
from dpladder_papers.methods.dp_prototypes import train as prototypes

KEY = b"another public key of test audit"
SLOW = {"dp_gd", "dp_adam", "dp_adam_wosm", "dp_prodigy", "dp_mlp", "hyfree_dp"}
SLOW |= {"dp_finetune", "hyfree_finetune", "prodigy_finetune"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.ci] if name in SLOW else []) for name in METHODS],
)
def test_no_learner_follows_from_records(name: str) -> None:
    found = list(learners.findings(name, KEY))
    assert found
    assert all(finding.ok for finding in found), found


def test_a_learner_that_reaches_around_its_curator_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = prototypes.train

    def peeking(*about: Any) -> Any:
        (weights,) = yield from honest(*about)
        seen = [one for one in gc.get_objects() if isinstance(one, Curator)]
        return (weights + max(len(one._data.labels) for one in seen),)

    monkeypatch.setattr(prototypes, "train", peeking)
    assert not all(finding.ok for finding in learners.findings("dp_prototypes", KEY))
