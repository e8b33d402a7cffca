"""The audit's arithmetic, what it makes of a mechanism's words, and its report. Planted defects:
tests/statistical."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_mechanisms import extremes, laplace_count, noised_count, sampled_sum
from scipy import stats

from dpladder.errors import BadInput
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import Draw, gaussian
from dpladder.privacy.accounting.events import Composed, Counted, Gaussian, Laplace, Sampled, ZCdp
from dpladder.privacy.release import noise
from dpladder_audit.engine import attack, bare, bounds, findings
from dpladder_audit.engine.findings import Finding, LeftOut, Report
from dpladder_audit.engine.mechanism import Mechanism, neighbours

KEY = bytes([1]) * 32
CHANCES = st.floats(1e-9, 0.4)
PROBABILITIES = st.floats(0.001, 0.999)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "BLOCK", 64)
    monkeypatch.setattr(attack, "ROUNDS", 60)
    monkeypatch.setattr(attack, "RUNS", 600)
    monkeypatch.setattr(attack, "FEW_RUNS", 100)


def measured(report: Report, check: str) -> Finding:
    return next(finding for finding in report.findings if check in finding.check)


@given(st.integers(1, 500), st.data(), CHANCES)
def test_proportions_are_bounded_as_clopper_and_pearson_do(runs, data, chance):
    hits = data.draw(st.integers(0, runs))
    interval = stats.binomtest(hits, runs).proportion_ci(1 - 2 * chance, method="exact")
    assert bounds.hit_rate_lower_bound(hits, runs, chance) == pytest.approx(
        interval.low, rel=1e-6, abs=1e-12
    )
    assert bounds.hit_rate_upper_bound(hits, runs, chance) == pytest.approx(
        interval.high, rel=1e-6, abs=1e-12
    )


@given(st.floats(0, 5), st.floats(0, 4))
def test_every_threshold_on_gaussian_noise_gives_its_mu_back(mu, threshold):
    right, wrong = stats.norm.sf(threshold - mu), stats.norm.sf(threshold)
    assert bounds.mu_bound(right, wrong) == pytest.approx(mu, abs=1e-8)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomised_response_and_its_complement_give_their_epsilon_back(epsilon):
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert bounds.epsilon_bound(truth, 1 - truth, 0.0) == pytest.approx(epsilon)
    # a rare answer of the first neighbour says most when it stays away
    assert bounds.epsilon_bound(1 - 0.01 / math.exp(epsilon), 0.99, 0.0) == pytest.approx(epsilon)


@given(st.floats(0.01, 5), st.floats(0, 0.01), PROBABILITIES, PROBABILITIES)
def test_no_test_that_epsilon_and_delta_allow_gives_a_larger_epsilon(epsilon, delta, right, wrong):
    allowed = (
        right <= math.exp(epsilon) * wrong + delta
        and 1 - wrong <= math.exp(epsilon) * (1 - right) + delta
    )
    assert (bounds.epsilon_bound(right, wrong, delta) <= epsilon * (1 + 1e-12)) == allowed


def test_a_guess_that_says_nothing_gives_nothing():
    assert bounds.mu_bound(0.0, 1.0) == 0.0
    assert bounds.mu_bound(0.3, 0.3) == 0.0
    assert bounds.epsilon_bound(0.3, 0.3, 1e-5) == 0.0


def test_an_honest_mechanism_passes_every_check():
    report = attack.run_audit([noised_count()], KEY)
    assert report.ok, findings.table(report)
    assert len(report.findings) == 9
    assert measured(report, "sensitivity").measured == pytest.approx(2.0)
    bound = measured(report, "epsilon")
    assert bound.claimed == gdp.epsilon(gdp.mu_from_sigma(gdp.sigma(2.0, 1), 1), 1e-5)
    assert bound.claimed / 2 < bound.measured < bound.claimed


class Together:
    """A count whose runs come in passes. A careless pass gives all of them the first one's
    noise."""

    def __init__(self, careless: bool) -> None:
        self.careless, self.alone, self.passes = careless, noised_count().run, 0

    def __call__(self, data, meter):
        return self.alone(data, meter)

    def many(self, data, meters):
        self.passes += 1
        found = [self.alone(data, meter) for meter in meters]
        return [found[0]] * len(found) if self.careless else found


@pytest.mark.parametrize("careless", [False, True])
def test_what_runs_in_one_pass_is_attacked_in_one_pass(careless):
    together = Together(careless)
    report = attack.run_audit([replace(noised_count(), run=together)], KEY)
    assert together.passes > 4 * 60 / bare.RUNS_PER_PASS
    assert measured(report, "largest correlation of noise").ok != careless
    if not careless:
        assert report == attack.run_audit([noised_count()], KEY)


@pytest.mark.ci
def test_the_same_key_repeats_an_audit_and_another_does_not():
    first, again, other = (attack.run_audit([noised_count()], key) for key in (KEY, KEY, b"1" * 32))
    assert first == again
    assert measured(first, "scale").measured != measured(other, "scale").measured


@pytest.mark.ci
def test_checks_share_the_family_error():
    alone = attack.run_audit([laplace_count()], KEY)
    among = attack.run_audit([laplace_count()] * 3, KEY)
    for check in ("correlation", "scale", "Kolmogorov"):
        assert measured(among, check).high > measured(alone, check).high
    assert measured(among, "epsilon").measured < measured(alone, "epsilon").measured


def test_the_scale_may_miss_by_what_chi_square_allows():
    count, chance = attack.ROUNDS * 4, findings.FAMILY_ERROR / attack.CHANCE_CHECKS
    finding = measured(attack.run_audit([noised_count()], KEY), "scale")
    assert stats.chi2.cdf(finding.low**2 * count, count) == pytest.approx(chance / 2)
    assert stats.chi2.sf(finding.high**2 * count, count) == pytest.approx(chance / 2)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("event", "shift"),
    [
        (Gaussian(0.5), 2.0),
        (Composed((Counted(Gaussian(2.0), 4),)), 1.0),
        (Composed((Counted(Gaussian(2.0), 2), Counted(Sampled(0.1, Gaussian(2.0)), 2))), 1.0),
        (Sampled(0.1, Composed((Counted(Gaussian(1.0), 9),))), 3.0),
    ],
)
def test_an_event_says_how_far_one_unit_may_move_a_release(event, shift):
    report = attack.run_audit([replace(sampled_sum(), event=event)], KEY)
    assert measured(report, "sensitivity").claimed == pytest.approx(shift)


def test_laplace_shifts_add_up():
    event = Composed((Counted(Laplace(4.0), 2), Counted(Laplace(2.0))))
    assert measured(
        attack.run_audit([replace(laplace_count(), event=event)], KEY), "sensitivity"
    ).claimed == pytest.approx(1)


def test_laplace_shifts_are_measured_in_the_l1_norm():
    once = laplace_count()

    def run(data, meter):
        return np.array([meter.publish("count", sum(data)) for _ in range(2)])

    twice = replace(
        once,
        event=Composed((Counted(once.event, 2),)),
        draws=(replace(once.draws[0], count=2),),
        run=run,
    )
    assert measured(attack.run_audit([twice], KEY), "sensitivity").ok


def test_a_canary_is_measured_inside_the_sample():
    finding = measured(
        attack.run_audit([replace(sampled_sum(sigma=0.5), tight=True)], KEY), "sensitivity"
    )
    assert finding.ok
    assert finding.measured == pytest.approx(2.0)


@pytest.mark.ci
def test_a_unit_that_enters_a_sample_is_measured_from_nobody_sampled():
    """Two replaced units that are both sampled lie no further apart than an added one moves the
    sum: as on a full batch."""
    nothing, edge, *_ = extremes((4,), 1.0)
    pairs = neighbours((), (nothing, edge), "replace_one")
    mechanism = replace(sampled_sum(), neighbours=pairs, relation="replace_one")
    findings = attack.run_audit([mechanism], KEY).findings
    assert {found.check for found in findings if not found.ok} == {
        "move in a sample over its declaration"
    }
    assert next(found.measured for found in findings if not found.ok) == pytest.approx(2.0)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("sigma", [0.25, 0.5])
def test_the_likelihood_of_a_sample_shows_more_than_a_threshold_and_no_more_than_is_true(sigma):
    """Of an honest sum the bound stays below what is charged; of twice as long records it does
    not."""
    honest = sampled_sum(sigma=sigma, probability=0.5)
    assert measured(attack.run_audit([honest], KEY), "epsilon").ok
    twice = sampled_sum(sigma=sigma / 2, probability=0.5)
    longer = replace(twice, event=honest.event)
    bound = measured(attack.run_audit([longer], KEY), "epsilon")
    assert bound.measured > bound.claimed


@pytest.mark.parametrize("event", [ZCdp(0.5), Laplace(1.0), Composed((Counted(Laplace(1.0)),))])
def test_an_event_that_does_not_fit_the_noise_is_refused_by_name(event):
    with pytest.raises(BadInput, match=r"noised count is charged as .* adds gaussian noise"):
        attack.run_audit([replace(noised_count(), event=event)], KEY)


def test_a_mechanism_with_no_noise_to_look_at_is_refused_by_name():
    mechanism = replace(noised_count(), draws=(Draw("count", "uniform"),))
    with pytest.raises(BadInput, match="noised count declares no noise"):
        attack.run_audit([replace(mechanism, run=lambda data, meter: meter.uniform("count"))], KEY)


def test_a_release_too_large_to_correlate_is_refused():
    wide = gaussian("wide", 1.0, 1.0, (bare.MOST_RELEASED_NUMBERS + 1,))
    mechanism = Mechanism(
        "wide",
        Gaussian(1.0),
        (wide,),
        1.0,
        lambda data, meter: meter.publish("wide", np.zeros(wide.shape)),
        (((), ()),),
    )
    with pytest.raises(
        BadInput, match="wide publishes 1001 numbers and an audit takes at most 1000"
    ):
        attack.run_audit([mechanism], KEY)


def test_nothing_to_audit_is_refused():
    with pytest.raises(BadInput, match="nothing to audit"):
        attack.run_audit([], KEY)


def test_neighbours_differ_in_one_unit():
    added = neighbours(("a",), ("x", "y"), "add_remove")
    assert added[0] == (("a",), ("a", "x"))
    assert (("a", "y"), ("a", "y", "y")) in added  # a duplicate of a record already there
    assert all(len(second) == len(first) + 1 for first, second in added)
    replaced = neighbours(("a",), ("x", "y"), "replace_one")
    assert replaced == ((("a", "x"), ("a", "y")), (("a", "y"), ("a", "x")))


def test_the_first_extreme_contributes_nothing_and_one_reaches_the_radius():
    records = extremes((2, 3), 0.5)
    assert not records[0].any()
    assert [np.linalg.norm(record) for record in records[1:3]] == [0.5, 0.5]
    assert np.array_equal(records[1], -records[2])


def test_a_report_goes_to_json_and_to_a_reader():
    good = Finding("sum", "scale", 1.0, 1.01, 0.9, 1.1)
    bad = Finding("sum", "sensitivity", 1.0, math.nan, 0.0, 1.0)
    report = Report(
        1e-5, (good, bad), (LeftOut("a 1", "not a"), LeftOut("b", "not b"), LeftOut("a 2", "not a"))
    )
    written = json.loads(json.dumps(findings.to_json(report), allow_nan=False))
    assert written["ok"] is False
    assert [finding["ok"] for finding in written["findings"]] == [True, False]
    assert written["findings"][1]["measured"] is None
    assert written["left_out"][0] == {"what": "a 1", "why": "not a"}
    lines = findings.table(report).splitlines()
    assert lines[3:5] == ["left out: 2 x not a", "left out: 1 x not b"]
    assert [line.split()[0] for line in lines[1:3]] == ["ok", "FAILED"]
    assert "1 of 2 checks failed" in lines[-1]


@pytest.mark.parametrize(
    ("value", "ok"), [(0.9, True), (1.1, True), (0.899, False), (1.101, False)]
)
def test_a_finding_is_right_within_its_bounds(value, ok):
    assert Finding("m", "c", 1.0, value, 0.9, 1.1).ok is ok
