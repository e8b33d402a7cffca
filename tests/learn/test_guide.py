"""Public records that guide a descent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from support import Silent

from dpladder.config.learners import learner_of
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.learn import guide, linear, public_head
from dpladder.learn.data import Data
from dpladder.learn.descent_noise import gradient_sum
from dpladder.learn.interface import Claim, Constants, Hyper
from dpladder.learn.trainings import declare, train, train_many, weights_of
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Composed, mu

CLASSES, WIDTH, ONE = 4, 12, Resources(threads=1)
GUIDED = Descent(public="gradient", clip=40.0, momentum=0.0, free_step=False, look=0.0)
HYPER = Hyper(0.5, 1, 2.0)


def records(count: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    centres = 2.0 * np.random.default_rng(9).normal(size=(CLASSES, WIDTH))
    labels = rng.integers(0, CLASSES, count)
    return Data((centres[labels] + rng.normal(size=(count, WIDTH))).astype(np.float32), labels)


def beside(data: Data, sample: Data) -> Data:
    return replace(data, sample=sample, start=np.zeros((CLASSES, WIDTH), np.float32))


def constants_of(data: Data, **keys: object) -> Constants:
    return Constants(len(data.labels), CLASSES, WIDTH, **keys)  # type: ignore[arg-type]


def trained(data: Data, learner: object = GUIDED, hyper: Hyper = HYPER) -> np.ndarray:
    (found,) = train(data, hyper, learner, constants_of(data), Silent(), ONE)
    return found


def gradient_of(data: Data) -> np.ndarray:
    """The mean of the loss's, at zero."""
    weights = torch.zeros(CLASSES, WIDTH, dtype=torch.float64, requires_grad=True)
    logits = torch.from_numpy(data.features).double() @ weights.T
    torch.nn.functional.cross_entropy(logits, torch.from_numpy(data.labels)).backward()
    return weights.grad.numpy()


def weight_of(learner: Descent, hyper: Hyper, constants: Constants, directions: float) -> float:
    gradients = gradient_sum(learner, hyper, constants)
    return guide.weight(learner, gradients, constants, directions)


def directions_of(sample: Data) -> float:
    x = np.asarray(sample.features, np.float64)
    alike = (x @ x.T) ** 2
    own = np.outer((x**2).sum(1), (x**2).sum(1))
    others = ~np.eye(len(x), dtype=bool)
    return float(own[others].sum() / alike[others].sum())


def test_on_full_batches_a_public_unit_weighs_its_directions_over_the_squared_strength() -> None:
    constants = Constants(3000, CLASSES, WIDTH)
    for steps in (1, 20):
        found = weight_of(Descent(clip=0.3), Hyper(0.5, steps, 0.1), constants, 7.5)
        assert found == pytest.approx(CLASSES * 7.5 / (3000 * 0.1) ** 2, rel=1e-9)


def test_the_weight_knows_the_noise_that_is_really_drawn() -> None:
    """Whoever is replaced moves a sum twice as far; several records of a unit move it no further
    than one; on samples noise is larger in the mean."""
    hyper, plain = Hyper(0.5, 20, 0.1, 1e-7), Constants(3000, CLASSES, WIDTH)

    def found(learner: Descent = Descent(), **keys: object) -> float:  # noqa: B008
        return weight_of(learner, hyper, replace(plain, **keys), 7.5)  # type: ignore[arg-type]

    assert found(relation="replace_one") == pytest.approx(4 * found())
    assert found(cap=5) == pytest.approx(found())
    sampled = Descent(sampling_rate=0.2)
    declared = declare(sampled, hyper, plain).draws[0]
    noise = declared.scale / (3000 * 0.2) / 20**0.5
    assert found(sampled) == pytest.approx(CLASSES * 7.5 * noise**2)
    assert found(sampled) > found()


def test_directions_are_as_many_as_features_take_up() -> None:
    rng = np.random.default_rng(0)
    for wide in (1, 3, WIDTH):
        features = np.zeros((4000, WIDTH), np.float32)
        features[:, :wide] = rng.normal(size=(4000, wide))
        sample = Data(features, np.zeros(4000, np.int64))
        found = linear.directions(linear.resident(sample, constants_of(sample), ONE))
        assert found == pytest.approx(wide, rel=0.1)
        few = Data(features[:60], np.zeros(60, np.int64))
        told = linear.directions(linear.resident(few, constants_of(few), ONE))
        assert told == pytest.approx(min(directions_of(few), WIDTH), rel=1e-5)
    one = Data(features[:1], np.zeros(1, np.int64))
    assert linear.directions(linear.resident(one, constants_of(one), ONE)) == WIDTH


def test_a_guided_step_is_the_private_gradient_and_the_weighted_public_one() -> None:
    """Against autograd, no record clipped and no noise."""
    data, sample = records(200, 1), records(50, 2)
    weight = 50 * CLASSES * directions_of(sample) / (200 * gdp.sigma(2.0, 1) ** -1) ** 2
    expected = -0.5 * (gradient_of(data) + weight * gradient_of(sample)) / (1 + weight) ** 0.5
    assert weight > 0.001
    found = trained(beside(data, sample))
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_who_asks_for_no_guide_is_given_none() -> None:
    data = records(100, 1)
    plain = GUIDED.model_copy(update={"public": "none"})
    sampled = beside(data, records(50, 2))
    assert np.array_equal(trained(data, plain), trained(sampled, plain))


def test_unlabelled_records_count_as_nothing() -> None:
    data, sample = records(100, 1), records(40, 2)
    more = records(20, 3)
    joined = Data(
        np.concatenate([sample.features, more.features]),
        np.append(sample.labels, np.full(20, -1)),
    )
    alone = trained(beside(data, sample))
    assert np.allclose(trained(beside(data, joined)), alone, rtol=1e-6)


@pytest.mark.parametrize("name", ["dp_gd", "dp_adam", "dp_adam_wosm", "dp_prodigy"])
def test_every_descent_on_a_head_is_guided_at_no_cost(name: str) -> None:
    data, sample = records(100, 1), records(400, 2)
    plain, vouched = (
        learner_of({"name": name, "public": public, "look": 0.0}) for public in ("none", "gradient")
    )
    constants, hyper = constants_of(data), Hyper(0.5, 5, 0.2)
    declared = declare(plain, hyper, constants)
    assert declare(vouched, hyper, constants) == declared
    alone = trained(data, plain, hyper)
    assert not np.allclose(trained(beside(data, sample), vouched, hyper), alone)


def test_a_look_is_one_count_at_its_part_of_the_trainings_mu_squared() -> None:
    learner = Descent(public="gradient", look=0.19)
    constants = Constants(3000, CLASSES, WIDTH, relation="replace_one", cap=2)
    declared = declare(learner, Hyper(0.5, 5, 1.0), constants)
    noise, look = declared.draws
    assert (look.name, look.shape, look.count, look.sensitivity) == ("look", (), 1, 2.0)
    assert look.scale == pytest.approx(2.0 / 0.19**0.5)
    assert noise.scale == pytest.approx(gdp.sigma(0.9, 5) * 2)
    assert mu(Composed(declared.events)) == pytest.approx(1.0, rel=1e-9)
    assert "look" not in {draw.name for draw in declare(Descent(), HYPER, constants).draws}


CLAIM = Claim(0.8, 0.3)


@pytest.mark.parametrize(
    ("right", "scale", "expected"),
    [
        (600, 1.0, True),
        (551, 1.0, True),
        (549, 1.0, False),
        (0, 1.0, False),
        (200, 310.0, True),  # hardly more is told than the operator's word
        (0, 310.0, False),
    ],
)
def test_a_head_is_trusted_that_keeps_half_of_its_word(
    right: float, scale: float, expected: bool
) -> None:
    assert guide.trusts_head(right, CLAIM, scale, Constants(1000, CLASSES, WIDTH)) is expected


@pytest.mark.parametrize(
    ("right", "scale", "expected"),
    [
        (800, 1.0, 200.0),
        (900, 1.0, 200.0),
        (600, 0.0001, 200 / (1 + 200 * 0.2**2)),
        (600, 100.0, 200 / (1 + 200 * (0.2**2 - 0.1**2))),
        (600, 250.0, 200.0),  # the count's own noise may be all that is missing
        (500, 1.0, 0.0),
    ],
)
def test_answers_that_a_head_claims_and_does_not_give_make_its_sample_smaller(
    right: float, scale: float, expected: float
) -> None:
    found = guide.effective_sample_size(200, right, CLAIM, scale, Constants(1000, CLASSES, WIDTH))
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_step_follows_a_sample_by_what_it_is_worth() -> None:
    """At zero the first class is everybody's: right about a quarter, where a third was claimed. The
    look's noise has a variance of 2 at half of mu^2."""
    data, sample = records(400, 1), records(60, 2)
    data = beside(replace(data, labels=np.arange(400) % CLASSES), sample)
    hyper, worth = Hyper(0.5, 1, 1.0), 60 / (1 + 60 * ((1 / 3 - 1 / 4) ** 2 - 2 / 400**2))
    learner = GUIDED.model_copy(update={"look": 0.5})
    found = trained(replace(data, claim=Claim(1 / 3, 0.1)), learner, hyper)
    left = guide.hyper_after_look(learner, hyper)
    public_weight = worth * weight_of(learner, left, constants_of(data), directions_of(sample))
    expected = (
        -0.5
        * (gradient_of(data) + public_weight * gradient_of(sample))
        / (1 + public_weight) ** 0.5
    )
    assert public_weight > 0.001
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_a_sample_whose_labels_teach_nothing_is_not_followed() -> None:
    sample = records(400, 2)
    drawn = np.random.default_rng(0).integers(0, CLASSES, 400)
    seen = weights_of(GUIDED).seen_by_head(GUIDED, constants_of(sample))
    _, claim = public_head.fit_public_head(replace(sample, labels=drawn), CLASSES, seen)
    assert claim.right < claim.baseline
    assert not guide.trusts_head(1000.0, claim, 1.0, Constants(1000, CLASSES, WIDTH))


@pytest.mark.few(1)
@pytest.mark.parametrize("move", [0, 1])
def test_a_sample_about_something_else_is_not_followed(move: int) -> None:
    """With each label moved on by one the head is wrong everywhere, and training goes its own
    way."""
    data, sample = records(400, 1), records(300, 2)
    sample = replace(sample, labels=(sample.labels + move) % CLASSES)
    learner = Descent(public="gradient", look=0.1)
    constants, hyper = constants_of(data), Hyper(0.5, 5, 2.0)
    seen = weights_of(learner).seen_by_head(learner, constants)
    head, claim = public_head.fit_public_head(sample, CLASSES, seen)
    assert claim.right > 0.9
    found = trained(replace(data, sample=sample, start=head, claim=claim), learner, hyper)
    alone = trained(data, Descent(), guide.hyper_after_look(learner, hyper))
    assert np.array_equal(found, alone) == bool(move)


def test_trainings_of_different_lengths_have_each_its_own_weight() -> None:
    data = beside(records(100, 1), records(50, 2))
    hypers = [Hyper(0.5, 2, 0.2), Hyper(0.25, 6, 1.0), Hyper(0.5, 4, 3.0)]
    meters = [Silent() for _ in hypers]
    constants = constants_of(data)
    together = train_many(data, hypers, GUIDED, constants, meters, ONE)  # type: ignore[arg-type]
    for found, hyper in zip(together, hypers, strict=True):
        assert np.allclose(found, trained(data, GUIDED, hyper), rtol=1e-5, atol=1e-6)


def test_a_training_without_its_guides_is_refused() -> None:
    with pytest.raises(BadInput, match=r"learner.public: gradient has no public records"):
        trained(replace(beside(records(50, 1), records(5, 1)), sample=None))
