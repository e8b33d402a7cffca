"""What a plan cannot hope for, said before it is paid: scores that noise alone decides, and a test
that tells nothing.

Notes refuse nothing. They follow from config and price alone, for whoever reads a plan may have
spent nothing yet and must learn nothing of the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from dpladder.config import Config, Project
from dpladder.config.detectability import detectable_count
from dpladder.config.evaluate_sections import BY_CLASS, measures_text, shares_of, tables_of
from dpladder.config.images_with_table import apart_of
from dpladder.config.label_sets import MANY
from dpladder.config.search_sections import Ladder
from dpladder.config.sources import count_of_classes
from dpladder.plan import follows
from dpladder.plan.cost import needed_share, trial_budget
from dpladder.plan.mechanisms import AUTHORS_WORD, BROUGHT
from dpladder.plan.resolve import public_weight, strength
from dpladder.plan.unit_counts import note_unit_counts
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.rounding import round_up_short
from dpladder.privacy.statement.documents import Cost
from dpladder.privacy.statement.facts import detection_rate_text
from dpladder.search.sweep_value import ceiling

# deviations of a score's noise that should lie between the worst and the best trial there can be
ROOM = 4.0
LITTLE = 0.1  # of accuracy
# n0 mu below which probabilities may say less than the base rate (docs/measurements/models.md)
WEAK_TWO, WEAK_MORE = 200.0, 100.0
LOOSE = 10.0  # an epsilon above which the plan says what that protects
VAST = 500.0  # an epsilon above which no mu has to be found
# of mu^2, for the head that a network starts from (docs/measurements/learners.md)
HEAD_SHARES = {"images": 0.6, "texts": 0.9}


Said = TypeVar("Said")


def notes(project: Project) -> tuple[str, ...]:
    """What the plan says beside its prices: choices that it made, and what may surprise, line by
    line.

    What is the same for several experiments, such as repeats, is said once.

    Args:
        project: all experiments, resolved.

    Returns:
        Lines of text. Each begins with the names that it is about.
    """
    own_notes = (
        (name, words)
        for name, config in project.experiments.items()
        for words in (
            *_note_other_packages(config),
            *_note_without_noise(config),
            *_note_users(config),
            *_note_guide(config),
            *_head(config),
            *_note_student(config),
            *_totals(config),
            *_note_large_limit(config),
            *note_unit_counts(config),
            *_scores(config),
            *_note_exact_test(config),
            *_shares(config),
            *_test(config),
            *_rarest(config),
            *_note_weak_probabilities(config),
            *_note_idle_keys(config),
        )
    )
    by_text = (f"{names_text(names)}: {text}" for names, text in experiments_by_text(own_notes))
    return (*by_text, *_note_unused_parts(project))


def experiments_by_text(lines: Iterable[tuple[str, Said]]) -> list[tuple[list[str], Said]]:
    """What is said of experiments, once for all of which it is the same, such as repeats.

    Args:
        lines: an experiment's name, and what is said of it; the latter need not be hashable.

    Returns:
        Names that share what is said, and that; in the order in which each was first said.
    """
    by_text: list[tuple[list[str], Said]] = []
    for name, text in lines:
        names = next((names for names, other in by_text if other == text), None)
        if names is None:
            by_text.append(([name], text))
        else:
            names.append(name)
    return by_text


def names_text(names: Sequence[str]) -> str:
    """Experiments in a line of their own: of many the first two and the last.

    Args:
        names: one at least; up to three are all named.
    """
    return ", ".join(names if len(names) < 4 else (*names[:2], "...", names[-1]))


def _note_unused_parts(project: Project) -> Iterator[str]:
    """Parts of a lineage that no experiment reads: their units could train."""
    read: dict[str, set[str]] = {}
    for config in project.experiments.values():
        private = [part for part in follows.parts(config) if not follows.is_public(config, part)]
        read.setdefault(config.dataset.lineage, set()).update(
            follows.records_of(config, one) for one in private
        )
    splits = {
        config.dataset.lineage: config.dataset.split for config in project.experiments.values()
    }
    for lineage, split in splits.items():
        for part in ("test", "validation"):
            share = split.held_out if part == "test" else split.validation
            if split.rule == "hash" and share > 0 and part not in read[lineage]:
                yield (
                    f"lineage {lineage}: {share:.0%} of the units are set aside as the {part} "
                    f"part, which nothing reads. For a new lineage dataset.split.{part}: 0 trains "
                    "on them; a split holds for a lineage's life."
                )


def _note_other_packages(config: Config) -> Iterator[str]:
    """What rests on another author's word (plan/mechanisms.py): one line for each such method."""
    for name in (config.learner.name, config.hpo.name):
        if other := BROUGHT.get(name):
            yield f"{name} is of {other.package}, not dpladder's: {AUTHORS_WORD}"


def _note_without_noise(config: Config) -> Iterator[str]:
    """A reader must not take that model for a release."""
    if config.final.without_noise:
        yield (
            "final.without_noise trains once more WITHOUT NOISE, at epsilon = infinity: that "
            "model is no release and protects nobody."
        )


def _note_users(config: Config) -> Iterator[str]:
    """Users who are named and not protected: whoever names them may think that they are."""
    dataset, apart = config.dataset, apart_of(config.dataset.source)
    if dataset.unit.by == "user" or dataset.declared_public:
        return
    patient = None if apart is None else apart.patient
    for key, value in (("dataset.user", dataset.user), ("dataset.source.patient", patient)):
        if value is not None:
            yield (
                f"{key} says whose a record is, yet each {dataset.unit.by} is protected by itself, "
                f"and whoever has several is protected less: dataset.unit: {{by: user}} protects "
                "all of a user's together."
            )


def _note_guide(config: Config) -> Iterator[str]:
    """How much of a step is the public records' (learn/guide.py), or could be."""
    learner = config.learner
    if config.dataset.public_sample is None:
        return
    if learner.uses_public_gradient:
        look = learner.look_share
        whose = "each training's" if follows.head(config) is None else "the bought head's"
        yield (
            f"guided by dataset.public_sample{_guide_pull_text(config)}. "
            + (
                f"A look at its head costs {look:.0%} of {whose} mu^2."
                if look
                else "You vouch for it: nothing asks the private records whether it fits."
            )
            + " Where its records have no labels, or other classes, set learner.public: none."
        )
    elif learner.guidable:
        yield (
            "dataset.public_sample centres the features alone. Where its records are labelled, "
            "learner.public: gradient lets them guide each step too, at no cost."
        )


def _head(config: Config) -> Iterator[str]:
    """What the head that a network starts from takes of its totals, beside what did best."""
    bought, delta = follows.head(config), config.privacy.delta
    if bought is None:
        return
    mu = gdp.mu_from_epsilon(bought.epsilon, delta)
    shares = " and ".join(
        f"{(mu / gdp.mu_from_epsilon(total, delta)) ** 2:.0%} of mu^2 at a total of {total:g}"
        for total in sorted({min(config.totals), max(config.totals)})
    )
    kind = config.features.takes
    share = HEAD_SHARES[kind]
    best = gdp.epsilon(share**0.5 * gdp.mu_from_epsilon(min(config.totals), delta), delta)
    yield (
        f"the head that the network starts from costs epsilon = {bought.epsilon:g}, {shares}. On "
        f"public {kind} {share:.0%} of the smallest total's did well: epsilon: {best:.3g}."
    )


def _note_student(config: Config) -> Iterator[str]:
    """What is released for nothing beside the final model."""
    if config.dataset.public_unlabelled is None:
        return
    unless_public = "" if config.exact_test else "; only a public test shows how good it is"
    yield (
        "the final head labels dataset.public_unlabelled, and a student that learns those labels "
        f"is released beside it, at no cost{unless_public}."
    )


def _guide_pull_text(config: Config) -> str:
    """How far public gradients pull a training that may spend the whole total, or a head that is
    bought, which is guided most, at what it costs."""
    bought = follows.head(config)
    if config.dataset.public_size is None:
        return " (dataset.public_size, how many records it has, tells how much of a step is theirs)"
    where = "a total" if bought is None else "the bought head's epsilon"
    shares = (
        f"lambda = {share:.2g} at {where} of {total:g}, {share / (1 + share):.0%} of each step"
        for total in sorted(
            {min(config.totals), max(config.totals)} if bought is None else {bought.epsilon}
        )
        for share in [public_weight(config, total)]
    )
    return f", at least: {'; '.join(shares)}"


def _totals(config: Config) -> Iterator[str]:
    """A total above privacy.epsilon that was asked for by name."""
    most = max(config.totals)
    if most > config.privacy.epsilon:
        yield (
            f"final.targets goes up to {most:g}, above privacy.epsilon: "
            f"{config.privacy.epsilon:g}, which it replaces; privacy.lifetime alone limits it."
        )


def _note_large_limit(config: Config) -> Iterator[str]:
    """What a large limit protects, in words. YAML reads 1:30 as 90, a number of seconds."""
    limit = config.privacy.lifetime.epsilon if config.privacy.lifetime else None
    most = limit or max(config.totals)
    if config.mode == "release" and most > LOOSE:
        exact = most < VAST and _charges_gaussians_alone(config)
        mu = gdp.mu_from_epsilon(most, config.privacy.delta) if exact else None
        rate = detection_rate_text(Cost(most, mu), config.privacy.delta)
        yield (
            f"epsilon = {round_up_short(most)} protects little: whoever accuses 5 % wrongly may "
            f"find {rate} of those who are in the data. Up to 1 is strong, above "
            f"{round_up_short(LOOSE)} is for people to defend."
        )


def _charges_gaussians_alone(config: Config) -> bool:
    """Whether a mu says all that may be charged. Samples and private searches need more than one,
    and whoever accuses many wrongly finds more than a mu of the same epsilon allows."""
    share, limit = config.privacy.share, config.privacy.lifetime
    beside = needed_share(config) if share is None else share
    if limit is not None and (limit.loss or limit.weight > 1.0):
        return False
    return not beside and isinstance(config.hpo, Ladder)


IDLE: Mapping[str, tuple[str, Callable[[Config], object]]] = {
    "learner.look": ("without dataset.public_sample", lambda c: c.dataset.public_sample is None),
    "features.mirror": ("without learner.augment", lambda c: getattr(c.learner, "augment", 1) == 1),
    "learner.lora": (
        "but with learner.trains: lora",
        lambda c: getattr(c.learner, "trains", "") != "lora",
    ),
    "learner.momentum": ("with optimizer: adam", lambda c: _optimizer(c) == "adam"),
    "learner.betas": ("with optimizer: momentum", lambda c: _optimizer(c) == "momentum"),
    "learner.stability": ("with optimizer: momentum", lambda c: _optimizer(c) == "momentum"),
}
"""Keys that change nothing beside some values of others, and where."""


def _optimizer(config: Config) -> str | None:
    return getattr(config.learner, "optimizer", None)


def _note_idle_keys(config: Config) -> Iterator[str]:
    """Keys that were given, and do nothing there."""
    for key, (where, is_idle) in IDLE.items():
        section, name = key.split(".")
        if name in getattr(config, section).model_fields_set and is_idle(config):
            yield f"{key} does nothing {where}; leave it out."


def _scores(config: Config) -> Iterator[str]:
    """A score is a count with noise, and never more than all or less than luck. What it can show at
    all is how far a training of its mu can get above luck."""
    dataset, labels, select = config.dataset, config.dataset.labels, config.sweep.select
    classes = count_of_classes(dataset.source, dataset.classes)
    if select.by == "public" or classes in (None, 1) or not isinstance(labels, int):
        # luck says nothing of a language model, and of findings it hangs on how rare they are
        return
    size = follows.nominal_size(config, select.part)
    for number, rung in enumerate(config.sweep.ladder):
        cost = trial_budget(config, number)
        if cost.score is None:
            continue
        sd = gdp.sigma(cost.score, 1) * config.dataset.unit.cap / size
        n0 = config.dataset.nominal_size
        most = 1.0 if cost.weights is None else ceiling(cost.weights, n0, classes, labels)
        if sd * ROOM > most - 1.0 / classes:
            yield (
                f"rung {number + 1} at epsilon = {rung.epsilon:g} tells little: its scores have a "
                f"noise of {sd:.0%} of the {size} units that they count, and trainings of it can "
                f"lie between {1 / classes:.0%} and {most:.0%} at most. Buy it with more epsilon "
                "or a larger sweep.select.share, or leave the sweep to the plan (sweep: auto)."
            )


def _note_exact_test(config: Config) -> Iterator[str]:
    """Why research's test figures look better than a release's would."""
    if config.mode == "research":
        yield (
            "research counts its tests exactly, for the data is declared public: a release would "
            "noise these counts, and pay for them."
        )


def _test(config: Config) -> Iterator[str]:
    """The accuracy's sd is at most that of one count over all units (jobs/evaluate.py), whose price
    all tables share."""
    if config.exact_test or config.evaluate.epsilon is None:
        return
    size = follows.nominal_size(config, "test")
    sd = _noise_of_a_count(config, config.evaluate.epsilon) * len(_tables(config)) ** 0.5 / size
    if sd > LITTLE:
        yield (
            f"the test count at evaluate.epsilon = {config.evaluate.epsilon:g} tells little: its "
            f"noise is {sd:.0%} of the {size} units of the test part. Give it more epsilon, or "
            "leave evaluate.epsilon empty: it is paid for beside the training."
        )


def _noise_of_a_count(config: Config, epsilon: float) -> float:
    """Standard deviation of a noised count of records, at this epsilon and the lineage's delta. A
    unit moves it by its cap; a replaced one moves two counts, sqrt(2) as far."""
    moved = config.dataset.unit.cap * (2**0.5 if config.privacy.relation == "replace_one" else 1.0)
    return gdp.sigma(gdp.mu_from_epsilon(epsilon, config.privacy.delta), 1) * moved


def _tables(config: Config) -> tuple[str, ...]:
    """The tables of counts that the test part's evaluation buys."""
    dataset = config.dataset
    looks = dataset.target is not None and dataset.target.error is None
    grouped = dataset.group is not None
    return tables_of(config.evaluate.measures, dataset.labels == MANY, grouped, looks)


def _shares(config: Config) -> Iterator[str]:
    """How the price of a test is shared out."""
    shares = shares_of(_tables(config))
    if not config.exact_test and len(shares) > 1:
        looks = (
            ", a first look among them" if any(share < max(shares) / 5 for share in shares) else ""
        )
        yield (
            f"evaluate.measures: {measures_text(config.evaluate.measures)} buys {len(shares)} "
            f"tables of counts{looks}, for the price of one: a table has {max(shares):.0%} of the "
            f"test's mu^2 at most, and {max(shares) ** -0.5:.3g} times the noise."
        )


def _rarest(config: Config) -> Iterator[str]:
    """What noise would hide of the rarest class or finding, from its declared share. Without one
    all count as equally large, and findings as in half of the records (jobs/evaluate.py)."""
    dataset, measures = config.dataset, config.evaluate.measures
    count = count_of_classes(dataset.source, dataset.classes)
    if config.exact_test or {*BY_CLASS}.isdisjoint(measures) or count is None:
        return
    many = dataset.labels == MANY
    epsilon = config.evaluate.epsilon or min(config.totals)
    sd = _noise_of_a_count(config, epsilon) * (count if many else 1.0) ** 0.5
    sd *= max(shares_of(_tables(config))) ** -0.5
    share = _rarest_share(config, 2 if many else count)
    size = follows.nominal_size(config, "test") * dataset.unit.cap
    least = detectable_count(sd, 2)
    if share * size <= least:
        declared = dataset.rare is not None or dataset.majority is not None
        yield (
            f"evaluate.measures: {measures_text(measures)} can tell nothing of "
            f"{'the rarest' if declared else 'any'} {'finding' if many else 'class'}: noise hides "
            f"fewer than {math.ceil(least)} records of one, and {share:.1%} of the {size} that the "
            f"test part has at most are {round(share * size)}. Give evaluate.epsilon more, or the "
            "test part more of the units (dataset.split.test)."
        )


def _note_weak_probabilities(config: Config) -> Iterator[str]:
    """What was measured of weak trainings, whose probabilities people would act on."""
    dataset, n0_mu = config.dataset, strength(config)
    two = count_of_classes(dataset.source, dataset.classes) == 2
    of_classes = config.task == "classification" and dataset.labels == 1
    if of_classes and n0_mu < (WEAK_TWO if two else WEAK_MORE):
        yield (
            f"n0*mu = {n0_mu:.3g}: where one class is rare, probabilities of a training as weak as "
            "this may say less than how frequent each class is. Rank by them, or give it more "
            "epsilon or more units."
        )


def _rarest_share(config: Config, count: int) -> float:
    """Declared share of the rarest of `count` classes: `dataset.rare`, or an equal part of what the
    majority leaves. Without either all count as equally large."""
    dataset = config.dataset
    if dataset.rare is not None or dataset.majority is None:
        return dataset.rare or 1.0 / count
    return (1.0 - dataset.majority) / (count - 1)
