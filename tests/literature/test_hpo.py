"""Every way to search: what it declares, that it draws and spends just that, and what its theorem
needs to be secret."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpladder.config import searches
from dpladder.config.sweep_sections import Fit, Search
from dpladder.errors import Refused
from dpladder.learn.interface import Constants
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.accounting import gdp, selection
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.accounting.draws import check_charge_matches_noise, gaussian
from dpladder.privacy.accounting.events import Partition, Spend
from dpladder.privacy.accounting.selection import Lean
from dpladder.privacy.ledger.state import Terms
from dpladder.privacy.release.grid import Noise
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import ResearchNoise
from dpladder.search.protocol import Answer, Setting, run_alone, searcher_of
from dpladder_papers.research.contestants import DECADES, METHODS, PUBLISHED, entry
from dpladder_papers.research.ladder import LadderSearcher
from dpladder_papers.searches.dp_hypo import DpHypo
from dpladder_papers.searches.dp_hypo.search import CELLS, proposal
from dpladder_papers.searches.koskela_kulkarni import KoskelaKulkarni
from dpladder_papers.searches.liu_talwar import LiuTalwar
from dpladder_papers.searches.naive_composition import NaiveComposition
from dpladder_papers.searches.papernot_steinke import PapernotSteinke
from dpladder_papers.searches.propose_test import ProposeTest
from dpladder_papers.searches.propose_test.search import last_above_threshold, rounds_of
from dpladder_papers.searches.selection_cost import runs_of

CONSTANTS = Constants(n0=1000, classes=10, dimension=4, length=10.0)
UNITS = np.arange(1000, dtype=np.uint64).repeat(2).view(np.uint8).reshape(1000, 16)
BEST = 8.0  # the toy's best r


def setting(epsilon=1.0, constants=CONSTANTS, name=None):
    """As it is, or as a contestant is entered."""
    plain = Setting(epsilon, Search(), constants)
    return plain if name is None else entry(name, plain, Descent()).setting


def composed(events):
    everybody = Partition("given")
    spends = [Spend("toy", "add_remove", everybody, one.event, one.count) for one in events]
    return compose(spends, 1e-5).epsilon


def search(found_by, where, seed=0, asked=None, units=UNITS):
    """One search on a toy whose score is a hump around r = BEST; `asked` collects what it asks
    for."""
    terms = Terms("toy", "add_remove", "record", 1, 1e-5, "given", mode="research")
    source = ResearchNoise(terms, "toy", seed)
    declared = found_by.declare(where)
    check_charge_matches_noise(declared.events, declared.draws, where.constants.relation)
    meter, numbers = Meter(declared.draws, source), count()
    within = {
        draw.name: meter.inner_meters(draw.name)
        for draw in declared.draws
        if draw.distribution == "within"
    }

    def train(ask):
        if asked is not None:
            asked.append(ask)
        # refuses another mu
        noise = [gaussian("noise", 1.0 / ask.mu, 1.0)]
        within[ask.within].meter(str(next(numbers)), noise)
        counted = ask.trained if ask.counted is None else ask.counted
        records = 1000 if counted is None else int(counted.sum())
        share = 0.9 * math.exp(-(math.log(ask.r / BEST) ** 2) / 8)
        return Answer((np.full((10, 4), ask.r, np.float32),), int(records * share))

    found = run_alone(found_by.run(where, meter, units), lambda asks: [train(ask) for ask in asks])
    meter.close()  # refuses unless what was declared was drawn, and nothing else
    return found


class Telling(Meter):
    """Notes the totals that noise is added to, and adds it to none of them."""

    def __init__(self, draws, source):
        super().__init__(draws, source)
        self.totals = []

    def publish(self, name, total):
        self.totals.append((name, np.array(total).tolist()))
        return super().publish(name, np.zeros(np.shape(total)))


@pytest.mark.parametrize("name", METHODS)
def test_nothing_follows_from_how_many_records_there_are(name):
    """Neither what a training is asked for nor what noise is added to: each counts 20, and how
    many records lie in a subset is known to nobody."""

    def followed(units):
        found_by, where = METHODS[name], setting(name=name)
        terms = Terms("toy", "add_remove", "record", 1, 1e-5, "given", mode="research")
        source = ResearchNoise(terms, "toy", 0)
        meter, asked = Telling(found_by.declare(where).draws, source), []

        def answer(asks):
            asked.extend((one.r, one.mu, one.share, one.within, one.delta0) for one in asks)
            return [Answer((np.full((10, 4), one.r, np.float32),), 20) for one in asks]

        found = run_alone(found_by.run(where, meter, units), answer)
        return asked, meter.totals, found.r, found.mu

    assert followed(UNITS[:100]) == followed(UNITS[:437]) == followed(UNITS)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_the_whole_method_costs_the_total_and_no_more(name, epsilon):
    cost = composed(METHODS[name].declare(setting(epsilon, name=name)).events)
    assert 0.9999 * epsilon < cost <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_draws_what_it_declares_and_puts_out_a_training_it_asked_for(name):
    for seed in range(5):
        asked = []
        found = search(METHODS[name], where := setting(name=name), seed, asked)
        low, high = where.space.reach()
        assert low <= found.r <= high
        if found.weights is not None:
            assert (
                any(ask.r == found.r and ask.mu == found.mu for ask in asked) or "koskela" in name
            )
            assert found.weights[0][0, 0] == pytest.approx(found.r, rel=1e-6)


@pytest.mark.ci
@pytest.mark.parametrize("name", METHODS)
def test_a_larger_total_trains_with_less_noise(name):
    mus = [
        search(METHODS[name], setting(epsilon, name=name), 3).mu for epsilon in (0.5, 1.0, 2.0, 4.0)
    ]
    assert all(low < high for low, high in pairwise(mus))
    assert mus[-1] <= gdp.mu_from_epsilon(4.0, 1e-5)


HARDLY_LOOKING = {"random_search", "random_search_uniform", "linear_scaling_line"}
HARDLY_LOOKING |= {"propose_test", "prior", "ladder"}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", sorted(METHODS.keys() - HARDLY_LOOKING))
def test_a_method_that_looks_comes_near_the_hump(name):
    """Over four decades of r a guess is a factor 12 away in the median; uniform draws with a line
    hardly look below 100."""
    assert distance(METHODS[name], name) < math.log(9)


def test_without_looking_r_is_the_priors():
    where = setting(8.0)
    [found] = {search(LadderSearcher(()), where, seed).r for seed in range(3)}
    assert where.space.kappa(found, where.mu) == pytest.approx(
        where.space.belief().median, rel=0.01
    )


@pytest.mark.ci
def test_propose_and_test_needs_many_parts_to_come_near_the_hump():
    few, many = (
        distance(searcher_of(ProposeTest(parts=parts)), "propose_test") for parts in (10, 400)
    )
    assert many < math.log(4) < few


@pytest.mark.ci
def test_propose_and_test_tells_candidates_apart_where_units_have_several_records():
    """Each of four counts as a share of its unit: whole counts would make every candidate
    perfect, and the first is then beaten by nobody."""
    assert distance(searcher_of(ProposeTest(parts=400)), "propose_test", cap=4) < math.log(4)


def distance(found_by, name, cap=1):
    """Of r from the hump, as the median over searches of the ratio's logarithm."""
    plain = Setting(8.0, Search(**DECADES), replace(CONSTANTS, cap=cap))
    where = entry(name, plain, Descent()).setting
    units = np.repeat(UNITS, cap, axis=0)
    found = [search(found_by, where, seed, units=units).r for seed in range(12)]
    return np.median([abs(math.log(r / BEST)) for r in found])


@pytest.mark.parametrize("section", searches.SECTIONS)
def test_every_section_of_the_config_has_its_search(section):
    assert searcher_of(section()).section == section()


@pytest.mark.parametrize(
    ("found_by", "trainings"),
    [
        (searcher_of(NaiveComposition(runs=4)), 4),
        (LadderSearcher(((0.1, 3), (0.2, 2))), 6),
    ],
    ids=["naive composition", "ladder"],
)
def test_a_method_pays_for_every_training_and_score(found_by, trainings):
    asked = []
    search(found_by, setting(), asked=asked)
    scores = [
        1 / draw.scale
        for draw in found_by.declare(setting()).draws
        if draw.name.startswith("score")
        for _ in range(draw.shape[0])
    ]
    assert len(asked) == trainings
    assert gdp.compose([*scores, *(ask.mu for ask in asked)]) == pytest.approx(
        gdp.mu_from_epsilon(1.0, 1e-5), rel=1e-9
    )


def test_a_ladder_whose_draws_look_back_uses_the_rung_below():
    centred = LadderSearcher(PUBLISHED, Fit(using="best", against="epsilon"))
    asked = []
    search(
        centred, Setting(8.0, Search(**DECADES | {"prior": "proportional"}), CONSTANTS), asked=asked
    )
    first = max(asked[:3], key=lambda ask: math.exp(-(math.log(ask.r / BEST) ** 2)))
    assert all(0.1 <= ask.r / (2 * first.r) <= 10 for ask in asked[3:6])


@pytest.mark.ci
def test_how_many_runs_and_where_is_secret_and_random():
    """K follows its law over the meter's streams; nothing of it hangs on the public seed."""
    runs = searcher_of(LiuTalwar(mean=4.0, padded=False))
    counts, places = [], set()
    for seed in range(300):
        asked = []
        search(runs, setting(), seed, asked)
        counts.append(len(asked))
        places.add(asked[0].r)
    # sd of a geometric of mean 4
    assert np.mean(counts) == pytest.approx(4.0, abs=4 * math.sqrt(12 / 300))
    assert np.mean(np.array(counts) == 1) == pytest.approx(0.25, abs=0.1)
    assert len(places) > 295


@pytest.mark.parametrize("law", ["logarithmic", "geometric", "poisson"])
def test_a_run_and_its_score_and_the_end_of_the_law_fit_in_delta_together(law):
    asked = []
    section = PapernotSteinke(mean=4.0, law=law)
    found_by, runs = searcher_of(section), runs_of(section)
    search(found_by, setting(), 1, asked)
    score = next(draw for draw in found_by.declare(setting()).draws if draw.name == "score")
    mu = gdp.compose([asked[0].mu, 1 / score.scale])
    assert selection.epsilon(mu, runs, 1e-5) <= 1.0 + 1e-12
    assert score.shape == (selection.largest_count(runs),)


@pytest.mark.parametrize("padded", [True, False])
def test_no_run_at_all_puts_out_no_weights(padded):
    rarely = searcher_of(PapernotSteinke(mean=1.01, law="poisson", padded=padded))
    found = [search(rarely, setting(), seed) for seed in range(20)]
    assert {None, True} == {one.weights if one.weights is None else True for one in found}


@pytest.mark.few(1)
@pytest.mark.parametrize("section", [PapernotSteinke, LiuTalwar, DpHypo, KoskelaKulkarni])
def test_padding_hides_the_number_of_runs_and_changes_nothing_else(section):
    plain, padded = (searcher_of(section(mean=3.0, padded=padded)) for padded in (False, True))
    lengths = set()
    for seed in range(12):
        short, long = [], []
        found = [
            search(one, setting(), seed, asked) for one, asked in ((plain, short), (padded, long))
        ]
        assert found[0].r == found[1].r
        assert np.array_equal(found[0].weights[0], found[1].weights[0])
        assert len(short) < len(long)
        lengths.add(len(long))
    assert len(lengths) == 1


def test_equal_scores_are_ranked_at_random():
    from dpladder.search.protocol import Ask
    from dpladder_papers.searches.secret_runs import Chance, best

    asks = [Ask(r, 0.1) for r in (1.0, 2.0, 3.0)]
    answers = [Answer((np.zeros((1, 1), np.float32),), 5)] * 3
    won = {
        best(
            asks,
            answers,
            Chance(3, np.zeros(3), Noise(np.zeros(3), 1.0), np.roll([0.9, 0.1, 0.2], by)),
            setting(),
        ).r
        for by in range(3)
    }
    assert won == {1.0, 2.0, 3.0}


@given(st.lists(st.floats(-4, 4), min_size=CELLS, max_size=CELLS), st.floats(1.0001, 3.0))
@settings(max_examples=50, deadline=None)
def test_a_proposal_stays_within_its_bounds(wished, ratio):
    lean = Lean(1 / ratio, ratio)
    density = proposal(np.array(wished), lean)
    assert density.mean() == pytest.approx(1.0, abs=1e-9)
    assert lean.low <= density.min() <= density.max() <= lean.high
    order = np.argsort(wished)
    assert (np.diff(density[order]) >= 0).all()


@pytest.mark.long
def test_an_adaptive_search_looks_more_often_where_scores_were_high():
    adaptive = searcher_of(DpHypo(mean=12.0, law="logarithmic", adapting=0.6, padded=False))
    plain = searcher_of(PapernotSteinke(mean=12.0, padded=False))

    def nearby(found_by):
        asked = []
        for seed in range(60):
            search(found_by, setting(8.0), seed, asked)
        return np.mean([abs(math.log(ask.r / BEST)) < math.log(4) for ask in asked])

    assert nearby(adaptive) > nearby(plain) + 0.05


@pytest.mark.ci
def test_tuning_on_a_subset_keeps_the_final_training_apart():
    asked = []
    search(searcher_of(KoskelaKulkarni(mean=5.0)), setting(), asked=asked)
    *tuning, final = asked
    assert all((ask.trained == tuning[0].trained).all() for ask in tuning)
    assert not (tuning[0].trained & final.trained).any()
    assert (tuning[0].trained | final.trained).all()
    assert 0.1 < tuning[0].trained.mean() < 0.3  # Poisson, with probability 0.2
    asked.clear()
    search(searcher_of(KoskelaKulkarni(mean=5.0, apart=False)), setting(), asked=asked)
    assert asked[-1].trained is None


def test_tuning_on_a_subset_scales_r_with_the_number_of_records():
    asked = []
    found = search(
        searcher_of(KoskelaKulkarni(mean=5.0, share=0.2, padded=False)), setting(), 1, asked
    )
    assert any(ask.r == pytest.approx(found.r / 4) for ask in asked[:-1])


def test_tuning_on_a_subset_is_refused_where_its_theorem_does_not_hold():
    with pytest.raises(Refused, match="replace_one"):
        METHODS["koskela_kulkarni"].declare(
            setting(constants=Constants(1000, 10, 4, relation="replace_one"))
        )


def test_parts_are_disjoint_and_tested_on_records_set_aside():
    asked = []
    search(searcher_of(ProposeTest(parts=4, candidates=2)), setting(), asked=asked)
    *tested, final = asked
    parts = [ask.trained for ask in tested[::2]]
    aside = tested[0].counted
    assert np.sum([*parts, aside], axis=0).tolist() == [1] * 1000
    assert all((ask.counted == aside).all() for ask in tested)
    assert final.trained is None
    assert all(150 < part.sum() < 250 for part in parts)


def test_rounds_are_capped_at_what_was_paid_for():
    section = ProposeTest(step=0.1, candidates=4)
    level, utility = searcher_of(section).declare(setting()).draws[-4:-2]
    assert rounds_of(section) == 19
    assert level.shape == (19,)
    assert utility.shape == (19, 4)


@pytest.mark.long
def test_rounds_are_priced_where_twice_as_much_each_would_reveal_too_much():
    events = searcher_of(ProposeTest(step=0.3, final=0.2)).declare(setting(50.0)).events
    assert 49.99 < composed(events) <= 50.0


def test_a_climb_doubles_on_a_hit_and_resets_on_a_miss():
    def noised(*tops):
        return np.array([[0.0, top] for top in tops])

    quiet = np.zeros(9)
    assert (
        last_above_threshold(noised(0.05, 9.0), quiet[:2], 0.0, 0.1) == 0
    )  # a miss of the smallest step ends it
    # 0.1, then 0.3 missed, then 0.2
    assert last_above_threshold(noised(0.15, 0.25, 9.0), quiet[:3], 0.0, 0.1) == 1
    utilities = np.array([[0.15, 0.0], [0.0, 0.31], [0.0, 0.0], [0.0, 0.0]])
    assert (
        last_above_threshold(utilities, quiet[:4], 0.0, 0.1) == 1
    )  # 0.1, 0.3, then misses of 0.7 and 0.4


def test_replacing_a_unit_doubles_what_a_part_may_move():
    scales = [
        searcher_of(ProposeTest())
        .declare(setting(constants=Constants(1000, 10, 4, relation=relation)))
        .draws[-3]
        .scale
        for relation in ("add_remove", "replace_one")
    ]
    assert scales[1] == pytest.approx(2 * scales[0])
