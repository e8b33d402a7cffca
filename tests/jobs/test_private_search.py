"""What a private search is sent of the trainings that it asks for."""

from __future__ import annotations

from typing import Any

import pytest

from dpladder.audit.rules import terms
from dpladder.audit.scene import Units, job_environment, scene_folder
from dpladder.config import searches
from dpladder.jobs.run import run_rule
from dpladder.search.protocol import Asking
from dpladder.searches.propose_test.search import Searcher

UNITS: Units = tuple((((1.0, 0.5, place / 20), place % 2),) for place in range(20))


def test_weights_of_trainings_that_cost_nothing_are_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their noise is on no bill: a search that put them out would publish them for nothing."""
    sent: list[tuple[str, bool]] = []
    run = Searcher.run

    def watched(*arguments: Any) -> Asking:
        asking = run(*arguments)
        asks = next(asking)
        while True:
            answers = yield asks
            sent.extend((a.within, bool(b.weights)) for a, b in zip(asks, answers, strict=True))
            try:
                asks = asking.send(answers)
            except StopIteration as done:
                return done.value

    monkeypatch.setattr(Searcher, "run", watched)
    name = "propose_test"
    changes = {"hpo": {"name": name, **searches.METHODS[name].attack}}
    with scene_folder(b"the key of tests of what searches get"[:32]) as made:
        scene = made.scene(terms("add_remove"), changes)
        task = scene.task("private_search", {"target": "9"}, UNITS)
        with job_environment(scene.folder, scene.home):
            run_rule(task)
    assert set(sent) == {("parts", False), ("final", True)}
