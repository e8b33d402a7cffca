"""What a month of edits found, each as one short story."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from month import plain
from month.driver import Ended, ask, configure, in_process, killed_in_process
from month.project import DELTA, LINEAGE, Data, Experiment, Wish
from support import commit

from dpladder.errors import Refused
from dpladder.plan import mechanisms
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.home import open_home

SHORT = Experiment(rungs=((0.1, 1),))


class Story:
    """One project, run in this process."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        self.data = Data(folder / "data.npz", ids=True)
        self.wish = Wish({"main": SHORT})

    def run(self, wish: Wish | None = None, *force: str) -> Ended:
        self.wish = wish or self.wish
        configure(self.folder, self.wish.config(self.data.path))
        return in_process(self.folder, *force)

    def finish(self, wish: Wish | None = None, *force: str) -> int:
        """A run that must end well, and a statement that must hold. How many charges there are by
        then."""
        ended = self.run(wish, *force)
        assert not ended.refused
        code, told = ask(self.folder, "verify", "results")
        assert code == 0, told
        return len(plain.charges(self.home, LINEAGE))

    def stated(self) -> dict[str, object]:
        statement = json.loads((self.folder / "results" / "privacy.json").read_text())
        return statement["datasets"][LINEAGE]  # type: ignore[no-any-return]


@pytest.fixture
def story(tmp_path, monkeypatch) -> Story:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(mechanisms, "VERSIONS", dict(mechanisms.VERSIONS))
    return Story(tmp_path, tmp_path / "home")


def test_research_is_refused_nothing_for_what_was_spent(story):
    first = Wish({"main": SHORT}, mode="research", lifetime=1.2)
    story.finish(first)
    # tuned by hand: above its total, and above its lifetime
    edited = first.with_one("main", clip=0.5)
    story.finish(edited)
    more = {**edited.experiments, "e1": replace(SHORT, clip=0.25)}
    story.finish(replace(edited, experiments=more))
    renamed = {"main": more["main"], "e2": more["e1"]}
    story.finish(replace(edited, experiments=renamed))


def test_a_name_that_is_gone_is_known_under_its_old_versions(story):
    both = replace(story.wish, experiments={"main": SHORT, "e1": replace(SHORT, clip=0.5)})
    paid = story.finish(both)
    mechanisms.VERSIONS["dp_gd"] = 2
    renamed = replace(both, experiments={"main": SHORT, "e2": replace(SHORT, clip=0.5)})
    assert "Call the experiment e1 again, or put e1 back" in story.run(renamed).refused
    assert story.finish(both) == paid


def test_what_another_experiment_no_longer_asks_for_is_read_from_there(story):
    """main once had the total that e1 asks for: nobody pays for that twice."""
    twice = story.wish.with_one("main", targets=(1.0, 0.8))
    paid = story.finish(twice)
    like = {"main": SHORT, "e1": replace(SHORT, targets=(0.8,))}
    assert "Give main its total of 0.8 again" in story.run(replace(twice, experiments=like)).refused
    again = {**like, "main": replace(SHORT, targets=(1.0, 0.8))}
    assert story.finish(replace(twice, experiments=again)) == paid
    other = {"main": replace(SHORT, targets=(1.0,)), "e1": replace(SHORT, targets=(0.8,), clip=0.5)}
    assert story.finish(replace(twice, experiments=other)) > paid


def test_what_a_lifetime_has_no_room_for_is_not_advised(story):
    tight = replace(story.wish, lifetime=1.2)
    paid = story.finish(tight)
    refused = story.run(tight.with_one("main", clip=0.5)).refused
    assert "leaves no room for all of that" in refused
    story.data.append()
    assert "respend: true" in story.run(tight).refused
    assert "undo what asks for it" in story.run(replace(tight, respend=True)).refused
    story.data.back(0)
    assert story.finish(tight) == paid


def test_paying_again_is_no_way_out_of_a_spent_lifetime(tmp_path):
    ledger = book.open_ledger(open_home(tmp_path / "home"), TERMS)
    for respend, told in (
        (False, "respend: true is no way out here, for lineage toy has a lifetime"),
        (True, "undo what asks"),
    ):
        first = item("as it was", 0.15)
        (held,) = book.reserve(ledger, [first])
        if held.status == "RESERVED":
            commit(ledger, held.token, "query", held.declared)
            book.finish(ledger, held.token, "0" * 64)
        with pytest.raises(Refused, match=told):
            book.reserve(ledger, [item("edited", 0.3)], respend)


TERMS = book.Terms("toy", "add_remove", "record", 1, 1e-5, "all", lifetime_epsilon=1.0)


def item(static: str, mu: float) -> book.Item:
    job = Job("main", "run_trial")
    spend = Spend("toy", "add_remove", Partition("all"), job, Gaussian(gdp.sigma(mu, 1)))
    return book.Item(job, static, (spend,))


def test_a_lost_record_comes_back(story):
    paid = story.finish()
    (story.folder / "results/main/data/privacy.json").unlink()
    assert story.finish() == paid


def test_a_plan_that_snakemake_forgot_is_named(story):
    """Without its memory Snakemake sees no change of parameters: the statement would be of
    experiments that are gone."""
    story.finish(replace(story.wish, experiments={"main": SHORT, "e1": replace(SHORT, clip=0.5)}))
    shutil.rmtree(story.folder / ".snakemake")
    left = replace(story.wish, experiments={"main": SHORT})
    ended = story.run(left)
    assert "snakemake --forcerun plan_spend" in ended.told
    story.finish(left, "plan_spend")
    artifacts = story.stated()["artifacts"]
    assert [*artifacts] == ["results/main/final/1/weights.safetensors"]  # type: ignore[call-overload]


def test_the_larger_total_that_is_named_is_enough(story):
    story.finish()
    refused = story.run(story.wish.with_one("main", clip=0.5)).refused
    named = float(refused.split("raise the total (final.targets) to ")[1].split(",")[0])
    raised = story.wish.with_one("main", clip=0.5, targets=(named,))
    story.finish(replace(raised, respend=True))


@pytest.mark.ci
@pytest.mark.parametrize("step", range(365, 545, 12))
def test_killed_anywhere_a_project_pays_once(story, step):
    configure(story.folder, story.wish.config(story.data.path))
    killed_in_process(story.folder, step, before=True)
    assert story.finish() == 3


def test_a_models_figure_counts_what_was_tuned_by_hand_before_it(story):
    story.finish(story.wish.with_one("main", targets=(0.5,)))
    story.finish(replace(story.wish.with_one("main", clip=0.5, targets=(1.0,)), respend=True))
    (model,) = story.stated()["artifacts"].values()  # type: ignore[attr-defined]
    everything = [*plain.charges(story.home, LINEAGE).values()]
    assert model["with_earlier"]["epsilon"] == pytest.approx(
        plain.epsilon(everything, DELTA), rel=1e-5
    )


def test_an_upgrade_is_free(story):
    paid = story.finish()
    mechanisms.VERSIONS["dp_gd"] = 2
    assert story.finish(story.wish.with_one("main", targets=(1.0, 2.0))) == paid + 2


def test_paying_again_for_what_is_unchanged_is_free(story):
    paid = story.finish()
    story.data.touch()
    assert story.finish(replace(story.wish, respend=True)) == paid
