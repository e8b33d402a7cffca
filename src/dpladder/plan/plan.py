"""The plan: every spend that a config declares, known before any private record is read.

Rungs, trials and targets have fixed budgets, so the plan needs no data. A trial's step count may
still depend on an earlier release; its budget may not (Gaussian budgets are a filter:
docs/design.md, line 10). What the ledger already holds is taken as it was paid, never priced again.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dpladder.config import Config, Project
from dpladder.config.load import BASE
from dpladder.config.model import Rung
from dpladder.config.search_sections import KoskelaKulkarni, Ladder, PrivateSearch, ProposeTest
from dpladder.errors import BadInput, Refused
from dpladder.plan import dag, stages
from dpladder.privacy.accounting import booking, gdp, remaining
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.composition import Composition, compose
from dpladder.privacy.accounting.events import (
    Booked,
    Counted,
    Gaussian,
    Job,
    Partition,
    Spend,
    counts_for,
)
from dpladder.privacy.accounting.selection import largest
from dpladder.privacy.accounting.shown import up
from dpladder.privacy.ledger.book import Held, Item, State, Status, Terms, check_terms
from dpladder.privacy.ledger.book import name as name_of
from dpladder.search.cost import price

TRAIN, TEST = "train", "test"
FINAL_SHARE = 0.5  # of mu^2, that a proposed plan leaves to the final training
# of mu; what rounding leaves of a total that is spent, and no model to speak of, nor count
CRUMBS = 1e-4
# of a total; less is what rounding left of a search that was paid: mus add in squares
LEAST_SEARCH = 0.02
TEST_SHARE = 0.05  # of mu^2, for the test count where it does not compose in parallel

# who finished owns what is shared before who only began
USED: tuple[Status, ...] = ("DONE", "COMMITTED")
Spends = dict[Job, tuple[Spend, ...]]


@dataclass(frozen=True)
class TrialBudget:
    """One trial's mu, split between its weights and its score: weights^2 + score^2 = total^2. What
    is free is None."""

    total: float
    weights: float | None
    score: float | None


@dataclass(frozen=True)
class Artifact:
    """One published final model, or the measuring of another lineage's: its file, the total it
    promises, and every job its guarantee composes. `earlier`: what other answers to its questions
    cost that were released before it was planned. `former`: the names that its experiment had;
    `shared_with`: experiments that are gone, and paid for some of its jobs."""

    path: str
    experiment: str
    target: float
    delta: float
    lineage: str
    jobs: tuple[Job, ...]
    earlier: tuple[Spend, ...] = ()
    former: tuple[str, ...] = ()
    shared_with: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """`superseded`: what earlier versions of this DAG's jobs spent, which nobody can take back.
    `config`: a digest of all that the jobs read of the config, whatever their code."""

    items: dict[Job, Item]
    artifacts: tuple[Artifact, ...]
    terms: dict[str, Terms]
    superseded: tuple[Spend, ...]
    config: str

    def of(self, jobs: Iterable[Job]) -> tuple[Spend, ...]:
        return tuple(spend for job in jobs for spend in self.items[job].spends)

    def items_of(self, lineage: str) -> list[Item]:
        """The jobs that a lineage's ledger is charged for."""
        return [item for item in self.items.values() if item.spends[0].lineage == lineage]

    def of_lineage(self, lineage: str) -> tuple[Spend, ...]:
        """Every spend of the DAG on one lineage, charged once however many artifacts stand on
        it."""
        return tuple(s for s in (*self.of(self.items), *self.superseded) if s.lineage == lineage)


def make_plan(project: Project, states: Mapping[str, State]) -> Plan:
    """All jobs of all experiments, finished ones at what they cost. Terms come first: under others,
    no sum means a thing."""
    terms = terms_of_project(project, states)
    for lineage, state in states.items():
        if state.terms is not None:
            check_terms(state.terms, terms[lineage])
    asked = asked_of(project)
    made = {job: _identity(project, job, config) for job, config in asked.items()}
    statics = {job: one.static for job, one in made.items()}
    finished, superseded = _history(states, statics, project)
    asked_for = {token for state in states.values() for token in _asked_for(state, statics)}
    edited = (
        []
        if project.main.mode == "research"
        else [held for held in superseded if held.token not in asked_for]
    )
    items: dict[Job, Item] = {}
    artifacts = []
    for name, config in project.experiments.items():
        ladder = _ladder(project, name, config)
        ladder |= _known(finished, ladder)
        for target in config.totals:
            stands_on = (*ladder, *_final_jobs(project, name, config, target))
            former = tuple(project.former.get(name, ()))
            gone = _gone(project, stands_on, finished)
            counts = counts_for(name, stands_on, former, gone)
            planned = _planned(stands_on, finished)
            earlier = _earlier(edited, config.dataset.lineage, counts, planned)
            most, path = config.promised(target), stages.artifact(name, config, target)
            tuned = any(
                counts(held.job) and not dag.asks_for(project, held.job, held.static, held.versions)
                for held in edited
            )
            known = states.get(config.dataset.lineage)
            with _explained(name, config, most, earlier, known, tuned):
                final = _final(project, name, config, target, [*_flat(ladder), *earlier], finished)
            items |= {
                job: replace(made[job], spends=spends) for job, spends in (ladder | final).items()
            }
            artifacts.append(
                Artifact(
                    path,
                    name,
                    most,
                    config.privacy.delta,
                    config.dataset.lineage,
                    stands_on,
                    earlier,
                    former,
                    gone,
                )
            )
    read = [
        (name_of(job), dag.identity(config, job.rule, dict(job.wildcards)))
        for job, config in asked.items()
    ]
    spent = tuple(spend for held in superseded for spend in held.spends)
    return Plan(items, tuple(artifacts), terms, spent, dag.digest(dict(read)))


def _identity(project: Project, job: Job, config: Config) -> Item:
    """A job as the ledger knows it, before it is priced: a kept one under the versions that it was
    released under."""
    code = stages.code_of(config, job.rule)
    if (kept := project.kept.get(job)) is not None:
        return Item(job, kept.static, (), kept.versions, code)
    static = dag.static(config, job.rule, dict(job.wildcards), dag.modelled(project, config))
    return Item(job, static, (), stages.versions_of(config, job.rule), code)


@contextlib.contextmanager
def _explained(
    experiment: str,
    config: Config,
    target: float,
    superseded: Sequence[Spend],
    state: State | None,
    tuned: bool,
) -> Iterator[None]:
    """Where earlier versions of the same jobs have eaten the total, say so, and what total would
    do. `tuned`: whether the config was edited. Else its mechanisms or its data changed, and another
    name would ask the same."""
    try:
        yield
    except Refused:
        if not superseded:
            raise
        paid = compose(superseded, config.privacy.delta)
        raise Refused(
            f"experiment {experiment} changed (config, code or data) after epsilon = "
            f"{up(paid.epsilon)} was paid for it, which cannot "
            f"be taken back, and its total of {target:g} has no room for the change beside that: "
            "it is infeasible. Undo the change and "
            f"nothing is spent; or {_raised(config, target, paid, state)}"
            f"{'; or run the change as an experiment with a name of its own' if tuned else ''}."
        ) from None


def _raised(config: Config, target: float, paid: Composition, state: State | None) -> str:
    """The total that buys the same again beside what was paid: mu squared adds."""
    key = config.totals_key
    if paid.mu is None:
        return f"raise the total ({key}) and set respend: true"
    delta, lifetime = config.privacy.delta, config.privacy.lifetime
    enough = gdp.epsilon(math.hypot(gdp.mu(target, delta), paid.mu), delta)
    told = (
        f"raise the total ({key}) to {up(enough)}, which pays as much again, and set respend: true"
    )
    spent = () if state is None else state.charged()
    if lifetime is not None and math.hypot(
        compose(spent, delta).entry.mu, gdp.mu(target, delta)
    ) > gdp.mu(lifetime.epsilon, delta):
        return (
            f"{told} (but the lineage's lifetime limit of {lifetime.epsilon:g} leaves no room for "
            "all of that)"
        )
    return told


def artifact_cost(plan: Plan, artifact: Artifact) -> Composition:
    """What an artifact costs beside its total: its own and its ancestors' spends, and what was paid
    for other answers to the same questions before it was planned. Older versions of the data are
    not among these: they stand in its stated figure."""
    return compose((*plan.of(artifact.jobs), *artifact.earlier), artifact.delta)


def _planned(jobs: Iterable[Job], finished: Mapping[Job, Held]) -> float:
    """The entry of the ledger that reserved the last of these jobs; of those that are yet to be
    reserved, any later one."""
    return max(
        (finished[job].reserved if job in finished else math.inf for job in jobs), default=math.inf
    )


def _earlier(
    edited: Iterable[Held], lineage: str, counts: Callable[[Job], bool], planned: float
) -> tuple[Spend, ...]:
    """What other versions of an artifact's jobs spent before it was planned. Whoever tunes by hand
    pays for each look; what was released later cannot have been a reason for it. What is known to
    have read records of before is no such look."""
    return tuple(
        spend
        for held in edited
        if counts(held.job) and (held.released or held.reserved) < planned
        for spend in held.spends
        if spend.lineage == lineage and not spend.partition.version
    )


def terms_of_project(project: Project, states: Mapping[str, State]) -> dict[str, Terms]:
    """What a config fixes for the life of each of its lineages. The share of delta for booked
    events may be left to us: what a lineage was opened with holds."""
    found: dict[str, Terms] = {}
    for config in project.experiments.values():
        lineage = config.dataset.lineage
        known = states[lineage].terms if lineage in states else None
        users = [
            other for other in project.experiments.values() if other.dataset.lineage == lineage
        ]
        share = config.privacy.share
        if share is None:
            share = known.share if known else booking.SHARE * any(map(_needs_booking, users))
        found[lineage] = _terms_of(config, share)
    return found


def _needs_booking(config: Config) -> bool:
    """Whether what an experiment spends is Gaussian only up to a small probability."""
    searched = isinstance(config.hpo, KoskelaKulkarni | ProposeTest)
    return config.models == "own" and (_samples(config) or searched)


def _samples(config: Config) -> bool:
    return getattr(config.learner, "sampling_rate", 1.0) < 1.0


def _terms_of(config: Config, share: float) -> Terms:
    lifetime = config.privacy.lifetime
    return Terms(
        lineage=config.dataset.lineage,
        relation=config.privacy.relation,
        unit=config.dataset.unit.by,
        cap=config.dataset.unit.cap,
        delta=config.privacy.delta,
        split_rule=partition(config).split_rule,
        lifetime_epsilon=None if lifetime is None else lifetime.epsilon,
        share=share,
        loss=0.0 if lifetime is None else lifetime.loss,
        weight=1.0 if lifetime is None else lifetime.weight,
        mode=config.mode,
    )


def trial_budget(config: Config, rung: int) -> TrialBudget:
    """mu of one trial at its rung's epsilon; a share of its square pays for the score. Solving
    shared statistics is free, which leaves all of it to the score."""
    total = _mu_of(config, config.sweep.ladder[rung].epsilon, booking.TRIAL)
    public = config.sweep.select.by == "public"
    if stages.statistics(config) is not None:
        return TrialBudget(total, None, None if public else total)
    if public:
        return TrialBudget(total, total, None)
    score = math.sqrt(config.sweep.select.share) * total
    return TrialBudget(total, gdp.remaining(total, [score]), score)


def _mu_of(config: Config, epsilon: float, runs: int) -> float:
    """The mu of a training at this epsilon, beside what it is booked at where it samples."""
    delta = config.privacy.delta
    return booking.largest_mu(epsilon, delta, Entry(delta0=_delta0(config, runs)))


def _delta0(config: Config, runs: int) -> float:
    return booking.delta0_of(config.privacy.delta, runs) if _samples(config) else 0.0


def partition(config: Config, *parts: str) -> Partition:
    """A unit's hashed part holds for life. Parts as given may change with the next version of the
    data, so a unit may have been in two of them: each is a rule of its own, and what reads them
    adds (docs/design.md, line 9)."""
    split = config.dataset.split
    if split.rule == "given":
        return Partition(f"given {' '.join(parts)}".strip(), parts)
    return Partition(f"hash test={split.held_out!r} validation={split.validation!r}", parts)


def _parallel(config: Config) -> bool:
    """Whether the test part is paid for beside the training part. A replaced unit may touch
    both."""
    return config.dataset.split.rule == "hash" and config.privacy.relation == "add_remove"


def asked_of(project: Project) -> dict[Job, Config]:
    """Every private job of the DAG, with the config that it follows."""
    asked: dict[Job, Config] = {}
    for name, config in project.experiments.items():
        alone = [*_ladder(project, name, config)]
        for target in config.totals:
            alone += _final_jobs(project, name, config, target)
        asked |= dict.fromkeys(alone, config)
    return asked


def _history(
    states: Mapping[str, State], statics: Mapping[Job, str], project: Project
) -> tuple[dict[Job, Held], list[Held]]:
    """From the ledgers: what the current jobs already cost, and what other versions of them cost
    beside it, also under the names that experiments had before."""
    current: dict[Job, Held] = {}
    others: list[Held] = []
    for state in states.values():
        own = {
            job: replace(held, spends=state.settled(held.spends))
            for job, held in state.by_name()
            if held.status in USED and statics.get(job) == held.static
        }
        current |= own
        taken = {held.token for held in own.values()}
        paid = {held.job.experiment for held in own.values()}
        names = {*project.experiments, *itertools.chain(*project.former.values()), *paid}
        # Of several names the one that the plan has.
        others += {
            held.token: replace(held, job=job, spends=state.settled(held.spends))
            for job, held in sorted(state.by_name(), key=lambda one: one[0] in statics)
            if held.status in USED and job.experiment in names and held.token not in taken
        }.values()
    return current, others


def _gone(project: Project, jobs: Iterable[Job], finished: Mapping[Job, Held]) -> tuple[str, ...]:
    """The experiments that the config no longer has, and that paid for some of these jobs."""
    paid = {finished[job].job.experiment for job in jobs if job in finished}
    return tuple(sorted(paid - project.experiments.keys()))


def _asked_for(state: State, statics: Mapping[Job, str]) -> Iterator[str]:
    """The charges for just what the config asks for, by their tokens; some were paid for anew."""
    yield from (held.token for job, held in state.by_name() if statics.get(job) == held.static)


def _known(finished: Mapping[Job, Held], jobs: Iterable[Job]) -> Spends:
    """Finished jobs at what they cost; an experiment that was renamed has them under its name of
    today."""
    return {
        job: tuple(replace(spend, job=job) for spend in finished[job].declared)
        for job in jobs
        if job in finished
    }


def _flat(spends: Spends) -> list[Spend]:
    return [spend for of_job in spends.values() for spend in of_job]


def _ladder(project: Project, name: str, config: Config) -> Spends:
    """The spends that every target of an experiment stands on: the noised mean, covariance and
    statistics, and the sweep."""
    jobs: Spends = {}
    for rule, bought in stages.purchases(config):
        job = dag.owned_job(project, name, rule)
        mu = gdp.mu(bought.epsilon, config.privacy.delta)
        jobs[job] = (_spend(config, job, TRAIN, mu, rule.removeprefix("estimate_")),)
    for wildcards in stages.jobs(config, "run_trial"):
        job = dag.owned_job(project, name, "run_trial", **wildcards)
        if spends := _trial_spends(config, job, int(wildcards["rung"])):
            jobs[job] = spends
    return jobs


def _trial_spends(config: Config, job: Job, rung: int) -> tuple[Spend, ...]:
    """Solving shared statistics and counting on a public source cost nothing."""
    cost = trial_budget(config, rung)
    found = []
    if cost.weights is not None:
        delta0 = _delta0(config, booking.TRIAL)
        found.append(_spend(config, job, TRAIN, cost.weights, "weights", delta0))
    if cost.score is not None:
        found.append(_spend(config, job, config.sweep.select.part, cost.score, "score"))
    return tuple(found)


def _final_jobs(project: Project, name: str, config: Config, target: float) -> tuple[Job, ...]:
    """The final training, or the private search that puts its model out, and its evaluations on a
    private test part: the further ones first, for their prices are given."""
    return tuple(
        dag.owned_job(project, name, rule, **job)
        for rule in (*stages.FINALS, "evaluate_also", "evaluate", "evaluate_of")
        for job in stages.jobs(config, rule, target=stages.target_name(target))
        if not all(
            stages.is_public(config, part) for part in stages.STAGES[rule].parts(config, job)
        )
    )


def _final(
    project: Project,
    name: str,
    config: Config,
    target: float,
    before: list[Spend],
    finished: Mapping[Job, Held],
) -> Spends:
    """What a final model and its tests cost, in the order in which a total is divided: what is done
    already keeps its price; tests with an epsilon of their own come next; the training gets what
    the total leaves."""
    final, *tests = _final_jobs(project, name, config, target)
    spends = _known(finished, (final, *tests))
    if final.rule == "evaluate_of" and final not in spends:
        mu = _test_mu(config, config.promised(target), before, True)
        spends[final] = (_spend(config, final, TEST, mu, "test score"),)
    if final.rule == "private_search" and final not in spends:
        spends[final] = _search(config, final, target, before)
    for test in tests:
        if test not in spends:
            others = [
                *before,
                *_flat({job: spends[job] for job in (final, *tests) if job in spends}),
            ]
            mu = _also_mu(config, test) or _test_mu(config, target, others, final in spends)
            spends[test] = (_spend(config, test, TEST, mu, "test score"),)
    if final not in spends:
        mu = _final_mu(config, target, [*before, *(s for test in tests for s in spends[test])])
        spends[final] = (
            _spend(config, final, TRAIN, mu, "weights", _delta0(config, booking.FINAL)),
        )
    return {job: spends[job] for job in (final, *tests)}


def _search(config: Config, job: Job, target: float, before: Sequence[Spend]) -> tuple[Spend, ...]:
    """A private search spends the whole total, or what earlier versions of its experiment left of
    it. The test part is paid for beside it (config/check.py)."""
    hpo, delta = config.hpo, config.privacy.delta
    assert not isinstance(hpo, Ladder)

    def spends(epsilon: float) -> tuple[Spend, ...]:
        found = price(hpo, epsilon, delta, config.privacy.relation)
        return tuple(_spend_of(config, job, TRAIN, one, _label(hpo, one)) for one in found)

    def cost(epsilon: float) -> float:
        try:
            return compose([*before, *spends(epsilon)], delta).epsilon
        except BadInput:  # too little for any training
            return math.inf

    if not before:
        return spends(target)
    try:
        left = largest(cost, target, target, 2**-12)
    except BadInput:
        left = 0.0
    if left < LEAST_SEARCH * target:
        raise Refused(f"Nothing of epsilon {target:g} is left for {hpo.name}.")
    return spends(left)


def _label(hpo: PrivateSearch, one: Counted) -> str:
    """What a search's event buys. Whether its runs are padded is a part of what its figure rests
    on."""
    if isinstance(one.event, Booked):
        return "tests"
    return "search, not padded" if not getattr(hpo, "padded", True) else "search"


def _final_mu(config: Config, target: float, before: Sequence[Spend]) -> float:
    """`remaining` solves mu_f = sqrt(B^2 - sum mu^2) exactly."""
    if config.final.budget != "remaining":
        return _mu_of(config, config.final.budget, booking.FINAL)
    try:
        return _left(config, target, before, TRAIN, _delta0(config, booking.FINAL))
    except Refused as refused:
        raise Refused(
            f"total epsilon {target:g} is infeasible. {refused} {_nearest(config, target)}"
        ) from None


def _left(
    config: Config, target: float, before: Sequence[Spend], part: str, delta0: float = 0.0
) -> float:
    """What a total leaves to one more mechanism on a part."""
    delta = config.privacy.delta
    left = remaining.remaining_mu(target, delta, before, partition(config, part), delta0)
    if left < CRUMBS * gdp.mu(target, delta):
        raise Refused(
            f"What is spent before uses up epsilon {target:g}. Raise the total, or spend less "
            "before."
        )
    return left


def _test_mu(config: Config, target: float, before: Sequence[Spend], priced: bool) -> float:
    """What the noised test count may cost. Where the parts compose in parallel it may cost as much
    as the final training, and the test part still never bears more than the training part
    (docs/design.md, line 9); elsewhere it takes a share; and where all else is priced, what is
    left."""
    if config.evaluate.epsilon is not None:
        return gdp.mu(config.evaluate.epsilon, config.privacy.delta)
    if priced:  # done, or a search, which takes the whole total
        return _left(config, target, before, TEST)
    left = _final_mu(config, target, before)
    if not _parallel(config):
        return left * math.sqrt(TEST_SHARE)
    beside = remaining.remaining_mu(target, config.privacy.delta, before, partition(config, TEST))
    return min(left, beside)  # less only where further tests read the part too


def _also_mu(config: Config, test: Job) -> float | None:
    """What a further test's count costs by the config."""
    found = stages.further(config).get(dict(test.wildcards).get("test", ""))
    if found is None:
        return None
    assert found.epsilon is not None, "config/check.py asks for it"
    return gdp.mu(found.epsilon, config.privacy.delta)


def _nearest(config: Config, target: float) -> str:
    """The nearest plans that leave the final training its share, in one sentence with numbers."""

    def sweep(factor: float) -> list[Spend]:
        rungs = tuple(
            Rung(epsilon=rung.epsilon * factor, trials=rung.trials) for rung in config.sweep.ladder
        )
        scaled = config.model_copy(
            update={"sweep": config.sweep.model_copy(update={"rungs": rungs})}
        )
        return _flat(_ladder(Project({BASE: scaled}), BASE, scaled))

    delta, train = config.privacy.delta, partition(config, TRAIN)
    return remaining.sentence(remaining.nearest_feasible(target, delta, sweep, train, FINAL_SHARE))


def _spend(
    config: Config, job: Job, part: str, mu: float, label: str, delta0: float = 0.0
) -> Spend:
    one = Counted(Gaussian(gdp.sigma(mu, 1)))
    return _spend_of(config, job, part, Counted(Booked((one,), delta0)) if delta0 else one, label)


def _spend_of(config: Config, job: Job, part: str, one: Counted, label: str) -> Spend:
    relation, where = config.privacy.relation, partition(config, part)
    return Spend(config.dataset.lineage, relation, where, job, one.event, one.count, label)
