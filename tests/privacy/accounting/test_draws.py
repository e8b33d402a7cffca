"""What is charged is what the declared noise costs: any other pair is refused, and names no figure
of the data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import (
    Draw,
    check_charge_matches_noise,
    cost,
    gaussian,
    sampled_sensitivity,
    to_json,
)
from dpladder.privacy.accounting.events import (
    Booked,
    Composed,
    Counted,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Nothing,
    RepeatAndSelect,
    Sampled,
    SubsetSelect,
)

RUNS = RepeatAndSelect(Gaussian(2.0), 3.0, 1.0, 20)
SELECTION = (
    Draw("runs", "uniform", law=(3.0, 1.0, 20)),
    gaussian("score", 4.0, 1.0, (20,), under="runs"),
    Draw("trainings", "within", sensitivity=math.sqrt(1 / 4 - 1 / 16), under="runs"),
)
SAMPLE = Draw("sample", "mask", 0.1, count=5)
PAIRS: dict[str, tuple[Event, tuple[Draw, ...]]] = {
    "one release": (Gaussian(3.0), (gaussian("sum", 3.0, 0.7),)),
    "two draws that share a charge": (
        Composed((Counted(Gaussian(3.0), 2),)),
        (gaussian("weights", 3.0, 1.0, count=1), gaussian("score", 3.0, 5.0)),
    ),
    "a stack is one release": (Gaussian(3.0), (gaussian("moments", 3.0, 2.0, count=4, stack=4),)),
    "pure noise": (Laplace(2.0), (Draw("count", "laplace", 4.0, sensitivity=2.0),)),
    "pure noise charged as Gaussians that dominate it": (
        Composed((Counted(Gaussian(3.0)), Counted(Gaussian(1 / gdp.mu_of_pure(0.5)), 2))),
        (gaussian("sum", 3.0, 0.7), Draw("counts", "laplace", 4.0, count=2, sensitivity=2.0)),
    ),
    "sampled steps": (
        Booked((Counted(Sampled(0.1, Gaussian(2.0)), 5),), 1e-7),
        (SAMPLE, gaussian("step", 2.0, 1.0, (3,), 5, under="sample", entering=1.0)),
    ),
    "sampled steps, some of which look at losses": (
        Booked(
            (
                Counted(
                    Sampled(0.1, Composed((Counted(Gaussian(2.0)), Counted(Laplace(3.0), 2)))), 2
                ),
                Counted(Sampled(0.1, Gaussian(2.0)), 3),
            ),
            1e-7,
        ),
        (
            SAMPLE,
            gaussian("step", 2.0, 1.0, (3,), 5, under="sample", entering=1.0),
            *(
                Draw(name, "laplace", 3.0, (), 2, 1.0, under="sample", entering=1.0)
                for name in ("losses 0", "losses 1")
            ),
        ),
    ),
    "the best of secret runs": (RUNS, SELECTION),
    "tuning on a subset": (
        SubsetSelect(0.2, RUNS, Gaussian(1.5), True, 1e-7),
        (Draw("subset", "mask", 0.2), *SELECTION, Draw("final", "within", sensitivity=1 / 1.5)),
    ),
    "rounds of tests": (
        Booked((Counted(Exponential(0.5), 7),), 1e-7),
        (
            Draw("level", "laplace", 4.0, (7,), sensitivity=1.0, under="rounds"),
            Draw("utility", "laplace", 8.0, (7, 3), sensitivity=2.0, under="rounds"),
        ),
    ),
    "nothing": (Nothing("public"), ()),
}
NOISY = [name for name in PAIRS if name != "nothing"]


@pytest.mark.parametrize("name", PAIRS)
def test_a_charge_and_its_own_noise_go_together(name):
    event, draws = PAIRS[name]
    check_charge_matches_noise([Counted(event)], draws, "add_remove")


def noises(draws: tuple[Draw, ...]) -> list[int]:
    return [place for place, draw in enumerate(draws) if draw.sensitivity]


@pytest.mark.parametrize("name", NOISY)
@pytest.mark.parametrize("factor", [0.5, 1.001, 2.0])
def test_no_noise_may_hide_more_or_less_than_is_charged(name, factor):
    event, draws = PAIRS[name]
    for place in noises(draws):
        other = replace(draws[place], sensitivity=factor * draws[place].sensitivity)
        with pytest.raises(Refused, match="is not what the declared noise costs"):
            check_charge_matches_noise(
                [Counted(event)], (*draws[:place], other, *draws[place + 1 :]), "add_remove"
            )


@pytest.mark.parametrize("name", NOISY)
def test_no_noise_may_be_drawn_that_is_not_charged_nor_charged_that_is_not_drawn(name):
    event, draws = PAIRS[name]
    for place in noises(draws):
        with pytest.raises(Refused):
            check_charge_matches_noise(
                [Counted(event)], (*draws[:place], *draws[place + 1 :]), "add_remove"
            )
    with pytest.raises(Refused):
        check_charge_matches_noise(
            [Counted(event)], (*draws, gaussian("another", 100.0, 1.0)), "add_remove"
        )
    with pytest.raises(Refused):
        check_charge_matches_noise([Counted(event), Counted(Gaussian(100.0))], draws, "add_remove")
    with pytest.raises(Refused):
        check_charge_matches_noise([], draws, "add_remove")


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_sum_over_a_sample_declares_how_far_neighbours_lie_from_nobody_sampled(relation):
    """Under replace_one a unit's bounds are right on full batches, for counts, and too little
    inside a sample."""
    event = Booked((Counted(Sampled(0.1, Gaussian(2.0)), 5),), 1e-7)
    enough = sampled_sensitivity(0.7, relation)

    def declared(sensitivity, entering=0.7):
        step = gaussian("step", 2.0, sensitivity, (3,), 5, under="sample", entering=entering)
        return [Counted(event)], (SAMPLE, step), relation

    assert enough == (1.4 if relation == "replace_one" else 0.7)
    check_charge_matches_noise(*declared(enough))
    for wrong in (declared(0.99 * enough), declared(0.5 * enough), declared(enough, entering=0.0)):
        with pytest.raises(Refused, match=f"Under {relation} the sensitivity must be at least"):
            check_charge_matches_noise(*wrong)


@pytest.mark.parametrize("law", [(30.0, 1.0, 20), (3.0, 0.0, 20), (3.0, 1.0, 200), None], ids=str)
@pytest.mark.parametrize(
    "kind", [name for name, (_, draws) in PAIRS.items() if SELECTION[0] in draws]
)
def test_a_secret_number_of_runs_is_drawn_by_the_law_that_is_charged(kind: str, law: Any) -> None:
    event, draws = PAIRS[kind]
    other = tuple(replace(draw, law=law) if draw.name == "runs" else draw for draw in draws)
    check_charge_matches_noise([Counted(event)], draws, "add_remove")
    with pytest.raises(Refused):
        check_charge_matches_noise([Counted(event)], other, "add_remove")


def test_a_journal_holds_draws_as_before_there_were_laws() -> None:
    """Or a selection that an older dpladder began could not be resumed."""
    runs = SELECTION[0]
    assert runs.law is not None
    assert to_json(runs) == to_json(replace(runs, law=None))


def on(mask: str, multiplier: float, count: int = 5, name: str = "step") -> Draw:
    return gaussian(name, multiplier, 1.0, (3,), count, under=mask, entering=1.0)


STEPS = Counted(Sampled(0.1, Gaussian(2.0)), 5)
NONE = Draw("none", "within", shape=(3,))  # trainings whose answers cost nothing by themselves
ROUNDS, TESTS = PAIRS["rounds of tests"]
LOSSES, (_, LONG, LOSS, _) = PAIRS["sampled steps, some of which look at losses"]
TWO_LOSSES = replace(LOSS, shape=(2,), scale=LOSS.scale, sensitivity=2.0)
TUNING, (SUBSET, *FINAL) = PAIRS["tuning on a subset"]
# noise whose scale is the probability that is charged
BY_CHANCE = gaussian("score", 4.0, 0.05, (20,), under="runs")
HIDDEN: dict[str, tuple[tuple[Counted, ...], tuple[Draw, ...]]] = {
    "samples at twice the probability": ((STEPS,), (replace(SAMPLE, scale=0.2), on("sample", 2.0))),
    "a subset at another probability": (
        (Counted(TUNING),),
        tuple(BY_CHANCE if d.name == "score" else d for d in (replace(SUBSET, scale=0.3), *FINAL)),
    ),
    "one step more": ((STEPS,), (replace(SAMPLE, count=6), on("sample", 2.0, 6))),
    "one round more": (
        (Counted(ROUNDS),),
        tuple(replace(draw, shape=(8, *draw.shape[1:])) for draw in TESTS),
    ),
    "several numbers with Laplace noise on a sample as one": (
        (Counted(LOSSES),),
        (SAMPLE, LONG, TWO_LOSSES),
    ),
    "several numbers with Laplace noise on a sample as one, alone": (
        (Counted(Booked((Counted(Sampled(0.1, Laplace(1.5)), 2),), 1e-7)),),
        (SAMPLE, TWO_LOSSES),
    ),
    "two samples, one of them charged twice": (
        (STEPS, STEPS),
        (SAMPLE, replace(SAMPLE, name="other"), on("sample", 2.0), on("other", 0.01, name="b")),
    ),
    "noise under a draw that is none": (
        (Counted(Gaussian(3.0)),),
        (gaussian("sum", 3.0, 1.0), gaussian("b", 0.01, 1.0, under="ghost")),
    ),
    "noise under other noise": (
        (Counted(Gaussian(3.0)),),
        (gaussian("sum", 3.0, 1.0), gaussian("b", 0.01, 1.0, under="sum")),
    ),
    "trainings on a sample": (
        (Counted(Gaussian(3.0)),),
        (
            gaussian("sum", 3.0, 1.0),
            SAMPLE,
            Draw("trainings", "within", sensitivity=50.0, under="sample"),
        ),
    ),
    "steps that share one sample, charged as if each had its own": (
        (STEPS,),
        (replace(SAMPLE, count=1), on("sample", 2.0)),
    ),
    "one large Laplace release charged as the mu of many small ones": (
        (Counted(Laplace(1 / gdp.pure_of_mu(math.sqrt(30) * gdp.mu_of_pure(0.1)))),),
        (Draw("count", "laplace", 10.0, count=30, sensitivity=1.0),),
    ),
    "a Gaussian charged as Laplace noise of its mu": (
        (Counted(Laplace(1.0)),),
        (gaussian("sum", 1 / gdp.mu_of_pure(1.0), 1.0),),
    ),
    "rounds that are run more often than they are charged": (
        (Counted(Exponential(1.0), 3),),
        (Draw("level", "laplace", 1.0, (3,), 2, 1.0, under="rounds"),),
    ),
    "rounds of no length": (
        (Counted(Exponential(1.0), 1),),
        (Draw("level", "laplace", 1.0, (), 1, 1.0, under="rounds"),),
    ),
    "rounds under a secret number": (
        (Counted(Exponential(1.0), 3),),
        (Draw("runs", "uniform"), Draw("level", "laplace", 1.0, (3,), 1, 1.0, under="runs")),
    ),
    "steps on samples charged as rounds of as many tests": (
        (Counted(Exponential(0.01), 5),),
        (SAMPLE, on("sample", 2.0)),
    ),
    "a selection that is run again": (
        (Counted(RUNS),),
        (replace(SELECTION[0], count=2), *SELECTION[1:]),
    ),
    "a sample of a sample": (
        (STEPS,),
        (Draw("runs", "uniform"), replace(SAMPLE, under="runs"), on("sample", 2.0)),
    ),
    "noise under a number of runs that no law was declared for": (
        (Counted(Gaussian(3.0)),),
        (
            gaussian("sum", 3.0, 1.0),
            Draw("runs", "uniform"),
            gaussian("b", 0.01, 1.0, under="runs"),
        ),
    ),
    "trainings under a number of runs that no law was declared for": (
        (Counted(Gaussian(3.0)),),
        (
            gaussian("sum", 3.0, 1.0),
            Draw("runs", "uniform"),
            Draw("trainings", "within", sensitivity=50.0, under="runs"),
        ),
    ),
    "free trainings with nothing that keeps their answers": (
        (Counted(Gaussian(3.0)),),
        (gaussian("sum", 3.0, 1.0), NONE),
    ),
    "free trainings beside a selection, which charges all that its runs look at": (
        (Counted(RUNS),),
        (*SELECTION, NONE),
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_no_noise_escapes_the_count_by_where_it_lies_or_how_it_is_drawn(name: str) -> None:
    with pytest.raises(Refused, match="the declaration of this mechanism is wrong"):
        check_charge_matches_noise(*HIDDEN[name], "add_remove")


def test_trainings_may_be_free_beside_what_keeps_their_answers() -> None:
    rounds = Draw("level", "laplace", 1.0, (3,), 1, 1.0, under="rounds")
    check_charge_matches_noise((Counted(Exponential(1.0), 3),), (rounds, NONE), "add_remove")


def test_pure_noise_costs_the_gaussian_that_dominates_it():
    assert cost([Draw("count", "laplace", 4.0, sensitivity=2.0)]) == gdp.mu_of_pure(0.5)


def test_mus_add_in_squares():
    assert cost([gaussian("a", 2.0, 1.0, count=3), gaussian("b", 4.0, 7.0)]) == pytest.approx(
        math.sqrt(13 / 16)
    )


WRONG = {
    "say how far one unit moves": {"sensitivity": 0.0},
    "sensitivity inf": {"sensitivity": math.inf},
    "entering -1": {"under": "sample", "entering": -1.0},
    "entering inf": {"under": "sample", "entering": math.inf},
    "stack 2 must divide": {"count": 3, "stack": 2},
    "stack 0": {"stack": 0},
    "stack -1": {"stack": -1},  # or its releases would take away from what others cost
    "count -1": {"count": -1, "stack": 1},
    "a law is that of one number": {"law": (3.0, 1.0, 20)},
}


@pytest.mark.parametrize("message", WRONG)
def test_a_draw_that_could_not_be_counted_is_refused(message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Draw("sum", "gaussian", **{"sensitivity": 1.0} | WRONG[message])


@pytest.mark.parametrize("other", [{"scale": 10.0}, {"count": 4, "stack": 4}], ids=str)
def test_trainings_are_charged_by_the_mu_that_their_meters_ask_for(other: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="charged by their sensitivity alone"):
        Draw("trainings", "within", sensitivity=1.0, **other)
