"""What a month of edits found, each as one short story."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from month import plain
from month.driver import Ended, configure, in_process, killed_in_process, verified
from month.project import DELTA, LINEAGE, Data, Experiment, Wish
from support import mixture

from dpladder.data import backbones, extract
from dpladder.plan import package
from dpladder.privacy.release import store

pytestmark = pytest.mark.ci  # each is several runs of a project

SHORT = Experiment(rungs=((0.1, 1),))


class Story:
    """One project, run in this process."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        self.data = Data(folder / "data.npz", ids=True)
        self.wish = Wish({"main": SHORT})

    def run(self, wish: Wish | None = None, *force: str) -> Ended:
        self.wish = wish or self.wish
        configure(self.folder, self.wish.config(self.data))
        return in_process(self.folder, *force)

    def finish(self, wish: Wish | None = None, *force: str) -> int:
        """A run that must end well, and a statement that must hold. How many charges there are by
        then."""
        ended = self.run(wish, *force)
        assert not ended.refused
        code, told = verified(self.folder)
        assert code == 0, told
        return len(plain.charges(self.home, LINEAGE))

    def stated(self) -> dict[str, Any]:
        statement = json.loads((self.folder / "results" / "privacy.json").read_text())
        return statement["datasets"][LINEAGE]  # type: ignore[no-any-return]


@pytest.fixture
def story(tmp_path, monkeypatch) -> Story:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
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


OTHER = replace(SHORT, clip=0.5)


def named(story: Story, **experiments: Experiment) -> Wish:
    return replace(story.wish, experiments={"main": SHORT, **experiments})


def test_a_name_is_free_there_and_back(story):
    paid = story.finish(named(story, e1=OTHER))
    before, weights = story.stated(), released(story, "e1")
    assert story.finish(named(story, e2=OTHER)) == paid
    after = story.stated()
    assert [after[key] for key in FIGURES] == [before[key] for key in FIGURES]
    assert (model(after, "e2")["epsilon"], model(after, "e2")["with_earlier"]) == (
        model(before, "e1")["epsilon"],
        model(before, "e1")["with_earlier"],
    )
    assert {line["experiment"] for line in after["spends"]} == {"main", "e2"}
    assert not after["outside_this_dag"]["jobs"]
    assert released(story, "e2") == weights
    assert story.finish(named(story, e1=OTHER)) == paid
    assert story.finish(named(story, e2=OTHER, e1=OTHER)) == paid
    shutil.rmtree(story.folder / "results/e1")
    assert story.finish(named(story, e3=OTHER)) == paid
    assert story.finish(named(story, e3=replace(OTHER, targets=(1.0, 2.0)))) == paid + 2


FIGURES = ("epsilon", "lifetime_spent", "planned", "chosen")


def released(story: Story, name: str) -> bytes:
    return (story.folder / f"results/{name}/final/1/weights.safetensors").read_bytes()


def model(stated: Mapping[str, Any], name: str, total: str = "1") -> Mapping[str, Any]:
    return stated["artifacts"][f"results/{name}/final/{total}/weights.safetensors"]


def test_a_new_name_asks_no_room_of_a_lifetime(story):
    full = replace(named(story, e1=OTHER), lifetime=1.5)
    paid = story.finish(full)
    assert story.finish(replace(named(story, e2=OTHER), lifetime=1.5)) == paid


def test_a_total_that_takes_anothers_place_under_a_new_name_is_refused(story):
    story.finish(named(story, e1=OTHER))
    story.finish(named(story, e2=OTHER))
    moved = story.run(named(story, e2=replace(OTHER, targets=(2.0,))))
    assert "experiment e2 has a finished model of total 1" in moved.refused


def figures(story: Story, *names: tuple[str, str]) -> list[tuple[float, float | None]]:
    """Of models by their experiments and totals: what each bears, and with what came before."""
    found = [model(story.stated(), *one) for one in names]
    return [(one["epsilon"], (one["with_earlier"] or {}).get("epsilon")) for one in found]


TUNED_OF = replace(SHORT, clip=0.7, targets=(0.5,))
LATER = replace(SHORT, clip=0.25, targets=(0.8,))
LAST = replace(SHORT, clip=0.25, rungs=((0.2, 1),), targets=(0.7,))


@pytest.mark.long
def test_names_that_go_round_change_no_figure(story):
    """One was tuned by hand, another was planned before that, and a third one after it."""
    story.finish(named(story, a=TUNED_OF, b=LATER))
    story.finish(replace(named(story, a=OTHER, b=LATER), respend=True))
    paid = story.finish(replace(named(story, a=OTHER, b=LATER, c=LAST), respend=False))
    before = figures(story, ("a", "1"), ("b", "0.8"), ("c", "0.7"))
    assert [price for price, _ in before] == pytest.approx([1.0, 0.8, 0.7], rel=1e-5)
    round_ = named(story, b=OTHER, c=LATER, a=LAST)
    assert story.finish(round_) == paid
    assert figures(story, ("b", "1"), ("c", "0.8"), ("a", "0.7")) == before
    assert story.finish(named(story, a=OTHER, b=LATER, c=LAST)) == paid
    assert figures(story, ("a", "1"), ("b", "0.8"), ("c", "0.7")) == before


def test_paying_again_for_what_was_renamed_is_free_while_it_is_unchanged(story):
    paid = story.finish(named(story, e1=OTHER))
    again = replace(named(story, e2=OTHER), respend=("e2",))
    assert story.finish(again) == paid
    story.data.change()
    assert story.finish(replace(named(story), respend=False)) == paid
    assert story.finish(named(story, e2=OTHER)) == paid


def test_what_another_experiment_no_longer_asks_for_is_read_from_there(story):
    """main once had the total that e1 asks for: nobody pays for that twice, and what was tuned of
    main before counts."""
    twice = story.wish.with_one("main", targets=(1.0, 0.8))
    paid = story.finish(twice)
    assert story.finish(named(story, e1=replace(SHORT, targets=(0.8,)))) == paid
    other = named(story, e1=replace(SHORT, targets=(0.8,), clip=0.5))
    assert "would pay again for 3 such job" in story.run(other).refused


@pytest.mark.long
def test_both_versions_of_an_experiment_may_have_names_of_their_own(story):
    """It was tuned by hand, and the first version is wanted back beside the second."""
    story.finish(named(story, e1=OTHER))
    tuned = replace(OTHER, clip=0.25, targets=(2.0,))
    paid = story.finish(replace(named(story, e1=tuned), respend=True))
    assert story.finish(named(story, e1=tuned, e2=OTHER)) == paid
    assert story.finish(named(story, e3=tuned, e4=OTHER)) == paid


def test_what_a_lifetime_has_no_room_for_is_not_advised(story):
    tight = replace(story.wish, lifetime=1.2)
    paid = story.finish(tight)
    refused = story.run(tight.with_one("main", clip=0.5)).refused
    assert "respend: true is no way out here, for lineage month has a lifetime" in refused
    story.data.append()
    assert "undo what asks for it" in story.run(tight).refused
    story.data.back(0)
    assert story.finish(tight) == paid


def test_a_first_run_that_read_nothing_fixes_no_terms(story):
    story.data.path.unlink()
    config = story.wish.config(story.data)
    configure(story.folder, config)
    assert in_process(story.folder).refused
    story.data.write()
    config["privacy"] |= {"delta": 1e-6, "relation": "replace_one"}
    configure(story.folder, config)
    assert not in_process(story.folder).refused
    assert {one.status for one in plain.charges(story.home, LINEAGE).values()} == {"DONE"}
    configure(story.folder, story.wish.config(story.data))
    assert "opened under other terms" in in_process(story.folder).refused


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
    assert "dpladder run --forcerun plan_spend" in ended.told
    story.finish(left, "plan_spend")
    artifacts = story.stated()["artifacts"]
    final = "results/main/final/1/weights.safetensors"
    assert [*artifacts] == [final]  # type: ignore[call-overload]


@pytest.mark.few(3)
@pytest.mark.parametrize("step", range(365, 545, 12))
def test_killed_anywhere_a_project_pays_once(story, step):
    configure(story.folder, story.wish.config(story.data))
    assert killed_in_process(story.folder, step, before=True) == -9
    assert story.finish() == 3


def test_a_models_figure_counts_what_was_tuned_by_hand_before_it(story):
    story.finish(story.wish.with_one("main", targets=(0.5,)))
    story.finish(replace(story.wish.with_one("main", clip=0.5, targets=(1.0,)), respend=True))
    (model,) = story.stated()["artifacts"].values()  # type: ignore[attr-defined]
    everything = [*plain.charges(story.home, LINEAGE).values()]
    assert model["with_earlier"]["epsilon"] == pytest.approx(
        plain.epsilon(everything, DELTA), rel=1e-5
    )


def test_paying_again_for_what_is_unchanged_is_free(story):
    paid = story.finish()
    story.data.touch()
    assert story.finish(replace(story.wish, respend=True)) == paid


def cut_off(story: Story) -> int:
    """A run that breaks between a COMMIT and its answer. How many charges there are by then."""
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(store.Meter, "close", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            story.run()
    charges = plain.charges(story.home, LINEAGE)
    assert [one.status for one in charges.values()].count("COMMITTED") == 1
    return len(charges)


def test_what_was_cut_off_is_finished_by_whatever_code_there_is(story, monkeypatch):
    charged = cut_off(story)
    monkeypatch.setattr(package, "digest", lambda: "other code")
    assert story.finish() == charged


def test_features_of_another_build_and_device_are_those_that_were_lost(story, monkeypatch):
    paid = story.finish()
    shutil.rmtree(story.folder / "private")
    monkeypatch.setattr(extract, "version", lambda package: "99")
    monkeypatch.setattr(backbones, "_matrix", rounded(backbones._matrix))
    again = ("prepare_dataset",)
    assert story.finish(story.wish, *again) == paid
    assert story.finish(story.wish.with_one("main", targets=(1.0, 2.0))) == paid + 2
    shutil.rmtree(story.folder / "results/main/final")
    assert story.finish() == paid + 2
    # The same number is the same data; another one pays.
    story.data.change()
    assert story.finish() == paid + 2
    story.data.append()
    assert story.finish(story.wish) > paid + 2


@pytest.mark.long
def test_what_is_found_of_a_sample_on_another_device_is_what_was_lost(story, monkeypatch):
    sample = {name: values[-40:] for name, values in mixture(records=400).items()}
    np.savez(story.folder / "sample.npz", **sample)
    public = {
        "dataset": {"public_sample": f"npz:{story.folder / 'sample.npz'}"},
        "features": {"centre": "public"},
        "learner": {"clip": 1.0, "init": "public"},
    }
    paid = story.finish(replace(story.wish, inert=public))
    shutil.rmtree(story.folder / "private")
    monkeypatch.setattr(backbones, "_matrix", rounded(backbones._matrix))
    for path in story.folder.glob("results/**/*.safetensors"):
        path.unlink()
    assert story.finish(story.wish, "prepare_dataset", "prepare_public") == paid


def rounded(numbers: Any) -> Any:
    """The encoder of another device."""

    def encoder(*given: Any) -> Any:
        own = numbers(*given)
        return replace(own, load=lambda content, number: own.load(content, number) * (1 + 2**-20))

    return encoder


def test_a_trial_that_is_added_to_a_rung_is_no_other_one(story):
    story.finish()
    more = story.wish.with_one("main", rungs=((0.1, 3),), targets=(2.0,))
    story.finish(replace(more, respend=True))
    rung = story.folder / "results/main/rungs/0/trials"
    found = [json.loads((rung / f"{trial}/score.json").read_text())["trial"] for trial in range(3)]
    assert [one["trial"] for one in found] == [0, 1, 2]


@pytest.mark.long
def test_research_goes_back_to_data_of_before(story):
    """Where parts hang on the version of the data, a record is of the release on its version."""
    story.data = Data(story.folder / "data.npz", ids=False)
    first = replace(story.wish, mode="research")
    story.finish(first)
    story.data.append()
    paid = story.finish(first)
    story.data.back(0)
    assert story.finish(first) == paid


@pytest.mark.long
def test_data_that_comes_back_has_the_answer_of_its_version(story):
    """It was asked anew meanwhile, of other data."""
    story.finish()
    story.data.append()
    paid = story.finish(replace(story.wish, respend=True))
    story.data.back(0)
    assert story.finish(replace(story.wish, respend=False)) == paid


def test_new_data_is_no_look_by_hand(story):
    story.data = Data(story.folder / "data.npz", ids=False)
    story.finish()
    story.finish()
    story.data.append()
    paid = story.finish(replace(story.wish, respend=True))
    assert story.finish(replace(story.wish, respend=False)) == paid


def elsewhere(story: Story) -> dict[str, Any]:
    """An experiment on people of its own."""
    others = mixture(400, seed=1)
    np.savez(story.folder / "others.npz", **others, users=np.arange(400) // 2)
    dataset = {
        "lineage": "elsewhere",
        "source": f"npz:{story.folder / 'others.npz'}",
        "nominal_size": 40,
        "unit": {"by": "user", "cap": 2},
        "split": {"test": 0.8},
    }
    return {"dataset": dataset, "privacy": {"epsilon": 3.0}}


@pytest.mark.long
def test_what_is_asked_anew_on_two_lineages_is_no_other_run(story):
    """Ledgers are read in the order of their names, and planned in the config's."""

    def configured(**changes: Any) -> dict[str, Any]:
        config = replace(story.wish, **changes).config(story.data)
        return config | {"experiments": {"others": elsewhere(story)}}

    configure(story.folder, configured())
    assert not in_process(story.folder).refused
    story.data.append()
    twice = Experiment(targets=(2.0,), rungs=((0.1, 1),))
    configure(story.folder, configured(respend=True, experiments={"main": twice}))
    assert not in_process(story.folder).refused
