"""The second-order learners against closed forms and scikit-learn, and against noise that makes
systems indefinite."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit, softmax
from sklearn.linear_model import LogisticRegression
from support import Seeded, Silent, SmoothMeter, SumsInMemory, Unrounded

from dpladder.config.label_sets import number_of
from dpladder.config.learner_sections import SharedCovariance, SharedSums
from dpladder.config.learners import method
from dpladder.config.model import Resources
from dpladder.errors import Refused
from dpladder.jobs.estimate_sums import release_sums
from dpladder.learn.curator import Curator
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.moments import solve, to_coordinates, to_matrix
from dpladder.learn.queries import (
    Curvatures,
    GradientSum,
    LinearHead,
    ResidualSum,
    SecondMoments,
    declared,
)
from dpladder.learn.second_order import shared_queries
from dpladder.learn.shared_sums import ReleasedSums, create
from dpladder.learn.trainings import declare, train
from dpladder.methods.dp_ls import LeastSquares
from dpladder.privacy.accounting import gdp
from dpladder.privacy.release.meter import Meter
from dpladder_audit.engine.bare import Bare
from dpladder_papers.methods.dp_fc import FeatureCovariance
from dpladder_papers.methods.dp_newton import Newton
from dpladder_papers.methods.dp_prototypes import Prototypes

dp_fc = method("dp_fc")
dp_ls = method("dp_ls")
dp_newton = method("dp_newton")
dp_prototypes = method("dp_prototypes")

ONE = Resources(threads=1)
CLASSES, DIMENSION, COUNT = 3, 6, 240
CONSTANTS = Constants(n0=200, classes=CLASSES, dimension=DIMENSION)
MU = gdp.mu_from_epsilon(1.0, 1e-5)
MODULES = {"dp_ls": dp_ls, "dp_fc": dp_fc, "dp_newton": dp_newton, "dp_prototypes": dp_prototypes}
LEARNERS = {
    "dp_ls": LeastSquares(),
    "dp_ls shared": LeastSquares(shared=SharedSums(epsilon=1.0)),
    "dp_fc": FeatureCovariance(),
    "dp_fc, automatic clipping": FeatureCovariance(clipping="automatic"),
    "dp_fc shared": FeatureCovariance(shared=SharedCovariance(epsilon=1.0)),
    "dp_newton softmax": Newton(),
    "dp_newton sigmoid": Newton(link="sigmoid"),
    "dp_prototypes": Prototypes(),
}


class Swallowing(Meter):
    """float64 carries 53 bits: a sum vanishes beside noise of this size."""

    def noise(self, name, shape):
        found = super().noise(name, shape)
        return Unrounded(found.values * 2.0**90, found.scale)


def records(count=COUNT, seed=0):
    """Classes that overlap, so that the logistic optimum is finite."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, count)
    centres = 0.5 * np.random.default_rng(9).normal(size=(CLASSES, DIMENSION))
    features = centres[labels] + random.normal(size=(count, DIMENSION))
    return Data(features.astype(np.float32), labels)


def shared(data, learner):
    """The data as a job reads it: with the released covariance, where the learner has none of its
    own."""
    if not learner.purchases:
        return data
    random = np.random.default_rng(3)
    sums = SumsInMemory(covariance=random.normal(size=DIMENSION * (DIMENSION + 1) // 2))
    return replace(data, shared=sums)


def fitted(learner, hyper, data=None, constants=CONSTANTS, meter=None, resources=ONE):
    """Without noise, where no meter is given."""
    data, meter = records() if data is None else data, meter or Silent()
    (weights,) = train(data, hyper, learner, constants, meter, resources)
    return weights


def trained(learner, hyper, data=None, constants=CONSTANTS, meter=Meter):
    data = records() if data is None else data
    meter = meter(declare(learner, hyper, constants).draws, Seeded())
    (weights,) = train(shared(data, learner), hyper, learner, constants, meter, ONE)
    meter.close()
    return weights


def sums_of(learner, data, constants=CONSTANTS, hyper=None):
    """What a training wants to release, in units of the noise that is declared for it."""
    hyper = hyper or Hyper(0.5, 1, MU)
    draws = declare(learner, hyper, constants).draws
    meter = Bare(draws, Seeded())
    fitted(learner, hyper, data, constants, meter)
    return np.concatenate(
        [np.ravel(total) / draw.scale for draw in draws for total in meter.totals[draw.name]]
    )


# --- prototypes -----------------------------------------------------------------------------------


def test_prototypes_point_where_class_means_of_records_in_the_ball_do():
    data, weights = records(), fitted(Prototypes(radius=2.0), Hyper(1.0, 1, MU))
    lengths = np.linalg.norm(data.features, axis=1, keepdims=True)
    inside = data.features * np.minimum(1.0, 2.0 / lengths)
    means = np.stack([inside[data.labels == label].mean(axis=0) for label in range(CLASSES)])
    assert weights == pytest.approx(means / np.linalg.norm(means, axis=1, keepdims=True), abs=1e-3)


def test_a_small_class_keeps_its_prototype_beside_large_ones():
    data = records(2000)
    few = replace(
        data, labels=np.where((data.labels == 0) & (np.arange(2000) > 90), -1, data.labels)
    )
    one, other = (fitted(Prototypes(), Hyper(1.0, 1, MU), each)[0] for each in (data, few))
    assert one @ other > 0.9


# --- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "steps", "sigma"),
    [
        (LeastSquares(), 1, 6.4616),
        (FeatureCovariance(), 10, 12.373),
        (Newton(), 10, 16.684),
        (Newton(link="sigmoid"), 10, 16.684),
        (LeastSquares(shared=SharedSums(epsilon=0.1)), 1, math.sqrt(2) / 0.268051),
        (FeatureCovariance(shared=SharedCovariance(epsilon=0.1)), 10, math.sqrt(10) / 0.268051),
    ],
)
def test_noise_multiplier_at_epsilon_one(learner, steps, sigma):
    (counted,) = declare(learner, Hyper(0.1, steps, MU), CONSTANTS).events
    assert counted.event.sigma == pytest.approx(sigma, rel=5e-5)


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("cap", [1, 3])
def test_a_neighbour_moves_all_sums_together_by_mu_at_most(learner, relation, cap):
    """Of `cap` records, added or replaced by the worst ones found: opposite features, another
    class, far outside."""
    constants = replace(CONSTANTS, relation=relation, cap=cap)
    base = records(20)
    ends = np.eye(DIMENSION)[0] * 1e6
    worst = 0.0
    for before, after in [
        ((ends, 0), (-ends, 0)),
        ((ends, 0), (-ends, 1)),
        ((ends, 0), (ends[::-1], 2)),
    ]:
        one = with_unit(base, *after, cap)
        other = base if relation == "add_remove" else with_unit(base, *before, cap)
        sums, others = (sums_of(learner, shared(data, learner), constants) for data in (one, other))
        worst = max(worst, float(np.linalg.norm(sums - others)))
    assert 0.55 * MU < worst <= MU


def with_unit(data, features, label, cap):
    return Data(
        np.concatenate([data.features, np.tile(features, (cap, 1)).astype(np.float32)]),
        np.concatenate([data.labels, np.full(cap, label)]),
    )


def test_softmax_curves_the_most_at_three_equal_probabilities():
    options = {"name": "", "multiplier": 1.0, "radius": 1.0}
    curvature, slope = (kind(**options).bound(CONSTANTS) for kind in (Curvatures, ResidualSum))
    third = np.full(3, 1 / 3)
    assert np.linalg.norm(third * (1 - third)) == pytest.approx(curvature, rel=1e-12)
    random = np.random.default_rng(0)
    for classes in (2, 3, 4, 10, 100):
        p = random.dirichlet(np.full(classes, 0.3), 20_000)
        assert np.linalg.norm(p * (1 - p), axis=1).max() <= curvature
        truth = random.integers(0, classes, len(p))
        assert np.linalg.norm(p - np.eye(classes)[truth], axis=1).max() <= slope


@given(seed=st.integers(0, 2**32 - 1), cap=st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_replacing_a_unit_moves_moments_by_less_than_twice(seed, cap):
    random = np.random.default_rng(seed)
    x, y = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in random.normal(size=(2, cap, 4)))
    moved = np.linalg.norm(x.T @ x - y.T @ y)
    replaced = Constants(n0=9, classes=2, dimension=4, relation="replace_one", cap=cap)
    apart = SecondMoments(name="", multiplier=1.0, radius=1.0).sensitivity(replaced)
    assert moved <= apart * (1 + 1e-12)
    assert apart == pytest.approx(math.sqrt(2) * cap)
    opposite = GradientSum(name="", multiplier=1.0, model=LinearHead(), clip=cap)
    assert opposite.sensitivity(replaced) == 2 * cap


# --- symmetric noise ------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), dimension=st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_coordinates_keep_a_symmetric_matrix_and_its_norm(seed, dimension):
    square = torch.from_numpy(np.random.default_rng(seed).normal(size=(dimension, dimension)))
    matrix = square + square.T
    coordinates = to_coordinates(matrix)
    assert torch.allclose(to_matrix(coordinates), matrix, atol=1e-12)
    assert float(coordinates.norm()) == pytest.approx(float(matrix.norm()), rel=1e-12)
    assert len(coordinates) == dimension * (dimension + 1) // 2


def test_noise_on_coordinates_is_symmetric_and_half_as_varied_off_the_diagonal():
    drawn = np.random.default_rng(0).normal(size=(4000, 6))
    matrices = np.stack([to_matrix(torch.from_numpy(row)).numpy() for row in drawn])
    assert (matrices == matrices.transpose(0, 2, 1)).all()
    variance = matrices.var(axis=0)
    assert variance.diagonal() == pytest.approx(np.ones(3), rel=0.1)
    assert variance[np.triu_indices(3, 1)] == pytest.approx(np.full(3, 0.5), rel=0.1)


# --- without noise --------------------------------------------------------------------------------

WIDE = 100.0  # a ball that holds every record


def test_least_squares_without_noise_is_ridge_regression_weighted_by_class():
    data, learner, hyper = records(), LeastSquares(radius=WIDE, alpha=0.3), Hyper(2.0, 1, 1.0)
    x, n0 = data.features.astype(np.float64), CONSTANTS.n0
    for label, found in enumerate(fitted(learner, hyper, data)):
        own = x[data.labels == label]
        system = (own.T @ own + 0.3 * x.T @ x) / n0 + 0.5 * np.eye(DIMENSION)
        assert found == pytest.approx(np.linalg.solve(system, own.sum(0) / n0), rel=1e-4, abs=1e-6)


SETS = ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2), ())


def of_several(count=COUNT):
    """Records of none to all classes, and which ones these are."""
    own = [SETS[place % len(SETS)] for place in range(count)]
    data = replace(
        records(count), labels=np.array([number_of(classes, CLASSES) for classes in own])
    )
    return data, np.array([[label in classes for label in range(CLASSES)] for classes in own])


def test_a_record_of_several_classes_shares_its_weight_out_between_them():
    (data, holds), constants = of_several(), replace(CONSTANTS, labels=3)
    learner, hyper = LeastSquares(radius=WIDE, alpha=0.3), Hyper(2.0, 1, 1.0)
    x, n0 = data.features.astype(np.float64), CONSTANTS.n0
    weights = holds / np.sqrt(np.maximum(holds.sum(1, keepdims=True), 1))
    together = x[holds.any(1)]
    for label, found in enumerate(fitted(learner, hyper, data, constants)):
        own = x * weights[:, [label]]
        system = (x.T @ own + 0.3 * together.T @ together) / n0 + 0.5 * np.eye(DIMENSION)
        assert found == pytest.approx(np.linalg.solve(system, own.sum(0) / n0), rel=1e-4, abs=1e-6)


def test_where_a_record_is_of_one_class_others_count_as_nothing():
    data, holds = of_several()
    single = replace(data, labels=np.where(holds.sum(1) == 1, data.labels, -1))
    few, none = (fitted(LeastSquares(), Hyper(2.0, 1, 1.0), each) for each in (data, single))
    assert few.tobytes() == none.tobytes()


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("own", [(0,), (0, 2), (0, 1, 2)])
def test_a_neighbour_of_several_classes_moves_all_sums_together_by_mu_at_most(own, relation):
    constants = replace(CONSTANTS, relation=relation, cap=2, labels=3)
    base, far, worst = of_several(20)[0], np.eye(DIMENSION)[0] * 1e6, 0.0
    one = with_unit(base, far, number_of(own, CLASSES), 2)
    for other in SETS:
        replaced = with_unit(base, -far, number_of(other, CLASSES), 2)
        before = base if relation == "add_remove" else replaced
        sums, others = (sums_of(LeastSquares(), data, constants) for data in (one, before))
        worst = max(worst, float(np.linalg.norm(sums - others)))
    assert 0.55 * MU < worst <= MU


def test_one_released_covariance_serves_any_ridge():
    data, learner = records(), LeastSquares(radius=WIDE, shared=SharedSums(epsilon=1.0))
    x = data.features.astype(np.float64)
    sums = SumsInMemory(covariance=to_coordinates(torch.from_numpy(x.T @ x)).numpy())
    given = replace(data, shared=sums)
    for r in (0.1, 30.0):
        hyper = Hyper(r, 1, 1.0)
        own = fitted(LeastSquares(radius=WIDE), hyper, data)
        assert fitted(learner, hyper, given) == pytest.approx(own, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("ridge", [0.001, 0.01, 0.3])
@pytest.mark.parametrize("classes", [2, CLASSES])
def test_newton_without_noise_finds_the_softmax_optimum(classes, ridge):
    """Two classes are coupled the most: the diagonal blocks alone hold half of the curvature, and
    their own step would overshoot by as much."""
    data = records()
    data = replace(data, labels=data.labels % classes)
    constants = replace(CONSTANTS, classes=classes, n0=COUNT)
    hyper = Hyper(1 / (60 * ridge), 60, 1.0)
    assert hyper.ridge == pytest.approx(ridge)
    weights = fitted(Newton(radius=WIDE), hyper, data, constants)
    p = softmax(data.features @ weights.T, axis=1)
    slope = (p - np.eye(classes)[data.labels]).T @ data.features / COUNT + ridge * weights
    assert slope == pytest.approx(np.zeros((classes, DIMENSION)), abs=2e-6)


def test_newton_without_noise_finds_the_optimum_of_every_class_alone():
    """Each of a ridge regression beside a bias that stays where every class has probability 1/m."""
    data, ridge = records(), 0.05
    constants = replace(CONSTANTS, n0=COUNT)
    found = fitted(
        Newton(radius=WIDE, link="sigmoid"), Hyper(1 / (9 * ridge), 9, 1.0), data, constants
    )
    x, bias = data.features.astype(np.float64), -math.log(CLASSES - 1)
    for label in range(CLASSES):
        own = np.where(data.labels == label, 1.0, -1.0)

        def loss(w, own=own):
            return -log_expit(own * (x @ w + bias)).mean() + ridge / 2 * (w @ w)

        best = minimize(loss, np.zeros(DIMENSION), method="BFGS", options={"gtol": 1e-9}).x
        assert found[label] == pytest.approx(best, abs=2e-5)


def test_a_preconditioned_descent_follows_sigmoids_where_they_are_asked_for():
    data = records()
    x, n0 = data.features.astype(np.float64), CONSTANTS.n0
    learner = FeatureCovariance(clip=1e6, radius=WIDE, damping=0.2, link="sigmoid")
    inverse = np.linalg.inv(x.T @ x / n0 + 0.2 * np.eye(DIMENSION))
    weights = np.zeros((CLASSES, DIMENSION))
    for _ in range(3):
        residual = expit(x @ weights.T - math.log(CLASSES - 1)) - np.eye(CLASSES)[data.labels]
        weights = weights - 0.7 * residual.T @ x / n0 @ inverse
    assert fitted(learner, Hyper(0.7, 3, 1.0), data) == pytest.approx(weights, rel=1e-4, abs=1e-6)


def test_a_preconditioned_descent_without_noise_finds_the_softmax_optimum():
    data, learner = records(), FeatureCovariance(clip=1e6, radius=WIDE, damping=1e-3)
    constants = replace(CONSTANTS, n0=COUNT)
    reference = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10_000)
    expected = reference.fit(data.features.astype(np.float64), data.labels).coef_
    found = fitted(learner, Hyper(2.0, 300, 1.0), data, constants)
    centred = found - found.mean(0)  # without a penalty a common shift is free
    assert centred == pytest.approx(expected - expected.mean(0), abs=2e-4)


# --- shared sums ----------------------------------------------------------------------------------

SHARING = LeastSquares(radius=1.5, alpha=0.3, shared=SharedSums(epsilon=1.0, sums="all"))
NOTHING = Data(np.empty((0, DIMENSION), np.float32), np.empty(0, np.int64))


def released_sums(path, data, learner=SHARING, constants=CONSTANTS, mu=MU, meter=None):
    """The file that trainings share; with noise of its own unless a meter is given."""
    queries = shared_queries("all", mu, learner.radius, constants)
    meter = meter or SmoothMeter(declared(queries, constants).draws, Seeded(1))
    with create(path, queries, constants) as keep:
        Curator(data, constants, ONE).run(
            lambda given, asks: release_sums(given, asks, constants, keep), [queries], [meter]
        )
    return ReleasedSums(path)


def noised(seed, mu, data, learner=SHARING, constants=CONSTANTS):
    """The sums and their declared noise in plain numpy: G, and A and b of each class, A and G as
    coordinates."""
    x = data.features.astype(np.float64)
    x *= np.minimum(1.0, learner.radius * (1 - 2.0**-10) / np.linalg.norm(x, axis=1, keepdims=True))
    own = [x[data.labels == label] for label in range(constants.classes)]
    sums = {
        "covariance": [x.T @ x],
        "moments": [rows.T @ rows for rows in own],
        "targets": [rows.sum(0) for rows in own],
    }
    costs = declared(shared_queries("all", mu, learner.radius, constants), constants)
    draws = {draw.name: draw for draw in costs.draws}
    meter = SmoothMeter(list(draws.values()), Seeded(seed))
    return {
        name: np.stack([meter.publish(name, np.ravel(flat(total))) for total in totals])
        for name, totals in sums.items()
    }


def flat(total):
    return to_coordinates(torch.from_numpy(total)).numpy() if total.ndim == 2 else total


def solved(sums, learner, ridge):
    """theta_j = (A_j + alpha G + lambda I)^-1 b_j, projected as the learner does."""
    heads = []
    for moments, target in zip(sums["moments"], sums["targets"], strict=True):
        system = to_matrix(
            torch.from_numpy(moments + learner.alpha * sums["covariance"][0])
        ).numpy()
        values, vectors = np.linalg.eigh(system / CONSTANTS.n0)
        projected = vectors @ np.diag(np.maximum(values, 0.0) + ridge) @ vectors.T
        heads.append(np.linalg.solve(projected, target / CONSTANTS.n0))
    return np.stack(heads)


def test_shared_sums_cost_what_a_training_of_their_own_costs():
    own = declare(LeastSquares(radius=1.5), Hyper(0.1, 1, MU), CONSTANTS)
    assert (
        declared(shared_queries("all", MU, 1.5, CONSTANTS), CONSTANTS)
        == own
        == declare(SHARING, Hyper(0.1, 1, MU), CONSTANTS)
    )
    (counted,) = own.events
    assert (counted.count, counted.event.sigma) == (3, pytest.approx(6.4616, rel=5e-5))


def test_shared_sums_are_the_clipped_sums_and_the_declared_noise(tmp_path):
    sums = released_sums(tmp_path / "sums", records())
    expected = noised(1, MU, records())
    for query in shared_queries("all", MU, SHARING.radius, CONSTANTS):
        for place, one in enumerate(expected[query.name]):
            found, multiplier = sums.find(query, place)
            assert found == pytest.approx(one, rel=1e-5, abs=1e-4)
            assert multiplier == pytest.approx(math.sqrt(3) / MU, rel=1e-9)
        assert sums.find(replace(query, name="gradient"), 0) is None


@pytest.mark.parametrize("other", [{"radius": 2.0}, {"by_class": True}], ids=["ball", "classes"])
def test_another_sum_of_the_same_name_is_not_taken_for_the_one_that_was_released(tmp_path, other):
    sums = released_sums(tmp_path / "sums", records())
    whole, *_ = shared_queries("all", MU, SHARING.radius, CONSTANTS)
    with pytest.raises(Refused, match="asks for another sum"):
        sums.find(replace(whole, **other), 0)


def test_any_number_of_trials_solve_one_release_and_draw_nothing(tmp_path):
    sums_released = released_sums(tmp_path / "sums", records())
    sums = noised(1, MU, records())
    for number, ridge in ((0, 0.1), (1, 0.1), (2, 3.0)):
        learner = SHARING.model_copy(
            update={"shared": SharedSums(epsilon=1.0, sums="all", alpha=(0.1, 1.0))}
        ).of_trial(number)
        assert learner.alpha == (0.1, 1.0, 0.1)[number]
        hyper = Hyper(1 / ridge, 1, 0.0)
        declared = declare(learner, hyper, CONSTANTS)
        assert declared.events == declared.draws == ()
        meter = Meter(declared.draws, Seeded())
        (found,) = train(
            replace(NOTHING, shared=sums_released), hyper, learner, CONSTANTS, meter, ONE
        )
        meter.close()
        assert found == pytest.approx(solved(sums, learner, ridge), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("mu", [0.02, MU, 3.0])
def test_a_refined_training_weighs_both_releases_by_inverse_variance(tmp_path, mu):
    shared = released_sums(tmp_path / "sums", records())
    before, own = noised(1, MU, records()), noised(0, mu, records())
    share = mu**2 / (mu**2 + MU**2)
    both = {name: share * own[name] + (1 - share) * before[name] for name in own}
    hyper = Hyper(2.0, 1, mu)
    meter = SmoothMeter(declare(SHARING, hyper, CONSTANTS).draws, Seeded())
    data = replace(records(), shared=shared)
    (found,) = train(data, hyper, SHARING, CONSTANTS, meter, ONE)
    meter.close()
    assert found == pytest.approx(solved(both, SHARING, 0.5), rel=1e-4, abs=1e-5)


@pytest.mark.ci
def test_nothing_that_was_paid_for_shared_sums_is_wasted(tmp_path):
    """Under a huge ridge weights are the targets, and so show their noise: that of one release at
    the mu of both."""
    constants = Constants(n0=200, classes=40, dimension=120)
    random = np.random.default_rng(0)
    data = Data(random.normal(size=(50, 120)).astype(np.float32) / 100, random.integers(0, 40, 50))
    exact_sums = np.stack(
        [data.features[data.labels == label].astype(np.float64).sum(0) for label in range(40)]
    )
    for mu in (MU / 2, 2 * MU):
        shared = released_sums(tmp_path / "sums", data, constants=constants)
        hyper = Hyper(1e-12, 1, mu)
        draws = declare(SHARING, hyper, constants).draws
        (found,) = train(
            replace(data, shared=shared), hyper, SHARING, constants, Meter(draws, Seeded()), ONE
        )
        noise = found * hyper.ridge * constants.n0 - exact_sums
        sd = math.sqrt(3) * SHARING.radius / math.hypot(mu, MU)
        # 4,800 draws: 4 standard errors
        assert noise.std() == pytest.approx(sd, rel=4 / math.sqrt(2 * noise.size))
        assert abs(noise.mean()) < 4 * sd / math.sqrt(noise.size)


def test_a_sum_that_nobody_released_is_not_answered():
    meter = Meter(declare(SHARING, Hyper(1.0, 1, 0.0), CONSTANTS).draws, Seeded())
    with pytest.raises(Refused, match="covariance was to be released before, and was not"):
        train(records(), Hyper(1.0, 1, 0.0), SHARING, CONSTANTS, meter, ONE)


# --- with noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize(
    "hyper", [Hyper(1e-9, 3, 1e-3), Hyper(1e15, 3, 1e-3), Hyper(1e300, 1, 4.0)], ids=str
)
def test_any_noise_and_any_ridge_end_in_finite_weights(learner, hyper):
    hyper = replace(hyper, steps=1) if learner.name == "dp_ls" else hyper
    weights = trained(learner, hyper)
    assert weights.shape == (CLASSES, DIMENSION)
    assert weights.dtype == np.float32
    assert np.isfinite(weights).all()


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_under_noise_that_swallows_every_sum_the_weights_know_nothing_of_the_data(learner):
    hyper = Hyper(0.5, 2 - (learner.name == "dp_ls"), MU)
    one, other = (
        trained(learner, hyper, data, meter=Swallowing)
        for data in (records(seed=1), records(77, seed=2))
    )
    assert (one == other).all()
    assert one.any()


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((3, 3)),
        np.diag([1.0, 0.0, 0.0]),
        -np.eye(3),
        np.diag([1e-300, 1.0, -1e9]),
        np.ones((3, 3)),
    ],
    ids=["zero", "singular", "negative", "indefinite", "rank one"],
)
@pytest.mark.parametrize("ridge", [1e-300, 1e-9, 1.0])
def test_a_system_is_solved_after_projection(matrix, ridge):
    found = solve(torch.from_numpy(matrix), ridge, torch.ones(3, dtype=torch.float64))
    assert torch.isfinite(found).all()
    if ridge == 1.0:
        values, vectors = np.linalg.eigh(matrix)
        projected = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
        assert found.numpy() == pytest.approx(
            np.linalg.solve(projected + np.eye(3), np.ones(3)), rel=1e-6
        )


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_records_that_cannot_be_used_leave_every_sum_at_zero(learner):
    features = np.ones((5, DIMENSION), np.float32)
    features[0], features[1, 0], features[2, 1] = 0.0, np.nan, np.inf
    data = Data(features, np.array([0, 1, 2, -1, CLASSES]))
    assert not sums_of(learner, shared(data, learner)).any()


@pytest.mark.few(4)
@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_a_training_repeats_bit_for_bit_and_streams_to_the_same_bits(learner, tmp_path):
    data, hyper = records(22_000), Hyper(0.5, 1, 1.0)  # more than half a megabyte once resident
    mapped = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, data.features.shape)
    mapped[:] = data.features
    streamed = replace(shared(data, learner), features=mapped)
    runs = [
        fitted(learner, hyper, given, resources=Resources(threads=2, mem_mb=memory))
        for given, memory in (
            (shared(data, learner), 4000),
            (shared(data, learner), 4000),
            (streamed, 1),
        )
    ]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] == runs[2]).all()
