"""What a config leaves to the plan, settled before anything is priced: by public figures alone, and
said in words.

A choice may follow from declared sizes, budgets and public files, never from records, so it costs
nothing. Figures behind the choices were measured on public data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dpladder.config import Config, Project
from dpladder.config.features_sections import LAST, Mean, row_length
from dpladder.config.learners import method
from dpladder.config.load import BASE
from dpladder.config.method import Kind
from dpladder.config.search_sections import Ladder
from dpladder.config.sources import count_of_classes, labels_of
from dpladder.config.sweep_sections import Calibrate, Final, Rung, Sweep
from dpladder.plan.about import depths_of
from dpladder.plan.cost import partition
from dpladder.plan.curves import (
    CURVES,
    can_have_curves,
    descends,
    in_form,
    leaves_learner,
    longest_row,
    pieces_for,
    with_descent,
    with_pieces,
)
from dpladder.plan.dag import build_dag
from dpladder.plan.follows import digest
from dpladder.plan.retired import CHOSEN_BEFORE
from dpladder.plan.rules import RULES
from dpladder.plan.unit_counts import resolve_unit_counts, with_price
from dpladder.privacy.accounting import gdp
from dpladder.privacy.ledger.state import State
from dpladder.privacy.statement.documents import FINALS
from dpladder.search.prior import DEFAULT, with_prior
from dpladder.search.sweep_value import LadderToBuy, best_ladder, rungs_as_text
from dpladder.section import from_document, values_of

# networks whose own mean was measured to help
KNOWN = ("efficientnet_lite0", "tf_efficientnet_lite0")
# A noised mean for this part of mu^2 gains from this n0 * mu on, whatever the width. From the
# second on it also gains where the network's own mean is there for nothing: `tools/price_means.py`,
# `compare_hpo.py --centre bought`.
MEAN, PAYS, PAYS_AGAIN = 0.05, 100.0, 480.0
# Below this n0 * mu, several depths of an image's network lose to its last output, which has a mean
# for nothing: `tools/depths.py`.
DEPTHS_PAY = 100.0
# A map of margins gains from these n0 * mu on, with two classes and with more, for a share of mu^2
# that makes the noise in its counts 0.7 % of n0, as far as these shares do.
CALIBRATES_TWO, CALIBRATES_MORE = 1000.0, 300.0
COUNT_NOISE, CALIBRATION_SHARES = 0.007, (0.01, 0.05)
FEWEST = 12  # directions that features take up, of all data sets in docs/measurements/learners.md


Remembered = Mapping[str, Mapping[str, Any]]
"""What was chosen for an experiment before, and paid for."""


def resolve_split(project: Project, known: Mapping[str, str] = MappingProxyType({})) -> Project:
    """The project with the test part's share of each lineage, where the config leaves it open.
    Nobody would read a private part beside a public test, so all units train; but a split holds for
    a lineage's life. `known`: the rule that a lineage was opened under.

    Args:
        project: all experiments.
        known: the split rule that each lineage was opened under, by lineage. It stays for life.

    Returns:
        A project in which every `split.test` is a number.
    """
    asking = {
        config.dataset.lineage
        for config in project.experiments.values()
        if config.dataset.public_test is None
    }
    return replace(
        project,
        experiments={
            name: config
            if config.dataset.split.test is not None
            else _resolve_test_part(config, config.dataset.lineage in asking, known)
            for name, config in project.experiments.items()
        },
    )


def _resolve_test_part(config: Config, asks_for_test: bool, known: Mapping[str, str]) -> Config:
    split, lineage = config.dataset.split, config.dataset.lineage
    opened_so = known.get(lineage) == partition(config).split_rule
    test = split.held_out if asks_for_test or split.rule == "given" or opened_so else 0.0
    dataset = config.dataset.model_copy(update={"split": split.model_copy(update={"test": test})})
    return config.model_copy(update={"dataset": dataset})


def resolve_defaults(project: Project, remembered: Remembered = MappingProxyType({})) -> Project:
    """The project with nothing left to choose. Chosen are the centring of features, whether public
    records guide steps, what a ladder left to the plan buys, what the count of units costs, and
    the test part's share.

    Choices hang on public facts alone. What was paid for under an earlier choice keeps it
    (`remembered`, see paid_choices), which is told where today's would be another (`choices`).

    Args:
        project: as the config has it.
        remembered: by experiment, choices that were paid for; today's own where there are none.

    Returns:
        A project with `choices`, what was chosen in words, and `resolved_choices`, what a ledger is
        to remember of it.
    """
    project = resolve_split(project)
    configs = project.experiments
    totals: dict[str, list[float]] = {}
    for config in configs.values():
        totals.setdefault(config.dataset.lineage, []).extend(config.totals)
    experiments = {
        name: resolve_unit_counts(
            resolve_prior(
                _resolve_calibration(
                    _resolve_centre(
                        _resolve_curves(_resolve_depths(_guiding(_resolve_learner(config))))
                    )
                )
            ),
            totals[config.dataset.lineage],
        )
        for name, config in configs.items()
    }
    # The ladder comes last, for what pays hangs on whether features are centred.
    looks = {name: _ladder_to_buy(config) for name, config in experiments.items()}
    today = {name: _apply_ladder(config, looks[name]) for name, config in experiments.items()}
    resolved = {
        name: _apply_choices(configs[name], config, remembered.get(name, {}))
        for name, config in today.items()
    }
    return replace(
        project,
        resolved_choices={
            name: {"inputs": _choice_keys(configs[name]), "chosen": resolved_choices(config)}
            for name, config in resolved.items()
            if resolved_choices(config) != resolved_choices(configs[name])
        },
        experiments=resolved,
        choices={
            name: "; ".join(words)
            for name, config in experiments.items()
            if (
                words := [
                    *_note_depths(configs[name], resolved[name]),
                    *_note_curves(configs[name], resolved[name]),
                    *_note_learner(resolved[name]),
                    *_note_mean(configs[name], resolved[name]),
                    *_note_ladder(
                        config,
                        looks[name] if resolved[name].sweep == today[name].sweep else None,
                    ),
                    *_note_calibration(configs[name], resolved[name]),
                    *_note_kept_choices(resolved[name], today[name]),
                ]
            )
        },
    )


def paid_choices(project: Project, states: Mapping[str, State]) -> Remembered:
    """The choices of earlier plans, as ledgers have them, whose questions were answered, for each
    experiment that leaves the same to the plan. So a total that is added keeps what was paid for.
    The smallest total that has one decides, and today's choice comes first.

    Args:
        project: as the config has it, its split resolved.
        states: what the ledgers hold, by lineage.

    Returns:
        By experiment the choices that apply; an experiment that paid for none is left out.
    """
    paid_by_name: dict[str, Mapping[str, Any]] = {}
    if not any(state.plans or state.charges for state in states.values()):
        return paid_by_name
    today = resolve_defaults(project)
    before = _as_before(project)
    for name, own_config in project.experiments.items():
        config = today.experiments[name]
        choices, state = resolved_choices(config), states.get(config.dataset.lineage, State())
        for inputs in _choice_keys(own_config):
            remembered = ({**CHOSEN_BEFORE, **chosen} for chosen in state.choices.get(inputs, ()))
            paid = [
                chosen
                for chosen in remembered
                if _is_paid(_apply_choices(own_config, config, chosen), state)
            ]
            if paid:
                paid_by_name[name] = choices if choices in paid else paid[-1]
                break
        else:
            # paid for before some choices came, with nothing else left to the plan
            as_before = {**resolved_choices(before.experiments[name]), **CHOSEN_BEFORE}
            if as_before != choices and _is_paid(
                _apply_choices(own_config, config, as_before), state, FINALS
            ):
                paid_by_name[name] = as_before
    return paid_by_name


def _as_before(project: Project) -> Project:
    """The project as it was resolved before there were curves: what is chosen beside them, such as
    the prior, hangs on them."""
    experiments = {
        name: config.model_copy(update={"features": config.features.model_copy(update={CURVES: 0})})
        if config.features.curves == "auto"
        else config
        for name, config in project.experiments.items()
    }
    return resolve_defaults(replace(project, experiments=experiments))


def _is_paid(config: Config, state: State, rules: Collection[str] = tuple(RULES)) -> bool:
    """Whether something that an experiment asks by some rules, so configured, was answered.
    Questions have no names, so it is asked of this experiment alone."""
    asking = build_dag(Project({BASE: config})).asking_jobs(BASE)
    return any(state.answer(node.question) for node in asking if node.rule in rules)


def _choice_keys(config: Config) -> list[str]:
    """Digests of what automatic choices hang on, one for each total, from the smallest on. Sizes
    and budgets are among them, the experiment's name and its sources are not, so a copy of it
    chooses alike."""
    features, sweep = config.features, config.sweep
    sizes = [config.dataset.public_size] if public_weight(config) else []
    sizes += [features.curves] if features.curves != "auto" else []
    basis = digest(
        [values_of(config.learner), config.mode, config.hpo.name],
        features.model_dump(
            mode="json", include={"centre", "mean", "until", "model", "layers", "length"}
        ),
        sweep.model_dump(mode="json", include={"rungs", "search", "select"}),
        [config.dataset.nominal_size, config.dataset.public_sample is None, *sizes],
        [config.privacy.relation, config.privacy.delta, config.final.budget],
    )
    return [digest(basis, total) for total in sorted(config.totals)]


def resolved_choices(config: Config) -> dict[str, Any]:
    """What may have been left to the plan, as it stands in a resolved config: plain values by key,
    as ledgers keep them."""
    census, curves = config.dataset.census, config.features.curves
    return {
        CURVES: 0 if curves == "auto" else curves,
        "learner": DEFAULT if leaves_learner(config) and config.learner.name == DEFAULT else None,
        **config.features.model_dump(mode="json", include={"centre", "mean", "layers"}),
        **config.sweep.model_dump(mode="json", include={"rungs", "search", "select"}),
        "public": "gradient" if config.learner.uses_public_gradient else "none",
        "count of units": census and census.epsilon,
        "calibrate": config.final.calibrate and config.final.calibrate.share,
    }


def _apply_choices(given_config: Config, config: Config, values: Mapping[str, Any]) -> Config:
    """A resolved config, with what was chosen before in place of today's choice."""
    if not values or values == resolved_choices(config):
        return config
    base = with_descent(given_config) if values["learner"] == DEFAULT else given_config
    if base.learner.name != config.learner.name and leaves_learner(given_config):
        config = config.model_copy(update={"learner": base.learner})
    if given_config.features.curves == "auto":
        config = _in_place_of_curves(base, config, values[CURVES])
    learner = config.learner
    if base.learner.guidance == "auto":
        public = values["public"] if learner.uses_public_gradient else "none"
        learner = learner.model_copy(update={"public": public})
    features = {
        "centre": values["centre"],
        "mean": values["mean"] and from_document(Mean, values["mean"]),
    }
    if given_config.features.layers == "auto":
        features["layers"] = values["layers"]
    chosen = from_document(Sweep, {key: values[key] for key in ("rungs", "search", "select")})
    sweep = config.sweep.model_copy(
        update={"rungs": chosen.rungs, "search": chosen.search, "select": chosen.select}
    )
    final = config.final
    if _leaves_calibration(given_config):
        final = _with_calibration(final, values["calibrate"])
    census, price = given_config.dataset.census, values["count of units"]
    if census is not None and census.epsilon is None and price is not None:
        config = with_price(config, price)
    return config.model_copy(
        update={
            "features": config.features.model_copy(update=features),
            "learner": learner,
            "sweep": sweep,
            "final": final,
        }
    )


def _in_place_of_curves(given_config: Config, config: Config, pieces: int) -> Config:
    """A resolved config with other pieces, and what goes with them."""
    features, learner = given_config.features, given_config.learner
    plain = {key: getattr(features, key) for key in ("length", "typical", "constant")}
    trained = {key: getattr(learner, key) for key in ("clip", "bias") if hasattr(learner, key)}
    config = config.model_copy(
        update={
            "features": config.features.model_copy(update={**plain, "mean": None}),
            "learner": config.learner.model_copy(update=trained),
        }
    )
    return with_pieces(config, pieces if can_have_curves(config) else 0)


def _note_kept_choices(config: Config, today: Config) -> Iterator[str]:
    """What is kept though today's choice would be another, with both values."""
    before, now = resolved_choices(config), resolved_choices(today)
    differing = [key for key in before if before[key] != now[key]]
    if differing:
        text = "; ".join(
            f"{key} {_choice_as_text(before[key])}, today {_choice_as_text(now[key])}"
            for key in ([CURVES] if CURVES in differing else differing)  # others follow from them
        )
        yield f"kept as it was chosen when it was paid for ({text})"


def _choice_as_text(value: Any) -> str:
    return str(value.get("epsilon", "as before")) if isinstance(value, dict) else str(value)


def _guiding(config: Config) -> Config:
    """Whether public records guide steps, where it was left to the plan: every head that they can
    guide, from their own head on. Private searches were not measured with them."""
    learner, dataset = config.learner, config.dataset
    if learner.guidance != "auto":
        return config
    here, there = labels_of(dataset.source), labels_of(dataset.public_sample or "")
    fits = (
        dataset.public_sample is not None
        and learner.guidable
        and dataset.labels == 1
        and isinstance(config.hpo, Ladder)
        and (None in (here, there) or here == there)
    )
    public = "gradient" if fits else "none"
    return config.model_copy(update={"learner": learner.model_copy(update={"public": public})})


def _resolve_learner(config: Config) -> Config:
    """Descent or least squares of a number, where nobody named either."""
    return with_descent(config) if descends(config, strength(config)) else config


def _resolve_curves(config: Config) -> Config:
    """Lines or curves of a table's numbers, by what noise leaves of them."""
    pieces = config.features.curves
    if pieces == "auto":
        pieces = pieces_for(config, strength(config)) if can_have_curves(config) else 0
    return with_pieces(config, pieces)


def _resolve_depths(config: Config) -> Config:
    """One depth in place of several where records are few and noise is large, of images without a
    public sample, which would choose by itself. In research several depths stay, for experiments
    that are compared must have the same features."""
    features = config.features
    few = (
        features.layers == "auto"
        and features.takes == "images"
        and features.until is None
        and config.dataset.public_sample is None
        and config.mode == "release"
        and strength(config) < DEPTHS_PAY
    )
    if not few:
        return config
    return config.model_copy(update={"features": features.model_copy(update={"layers": LAST})})


def _resolve_calibration(config: Config) -> Config:
    """The share of a final training that calibrates it, where that was left to the plan: what a map
    needs to gain more on public data than its noise costs (tests/benchmarks/bench_calibration.py).
    Private searches have no final training of their own, and research compares trainings alone. Of
    weights that are a plug-in's own nobody may know how to turn their margins."""
    if not _leaves_calibration(config):
        return config
    classes = count_of_classes(config.dataset.source, config.dataset.classes)
    two = classes == 2 and config.dataset.labels == 1
    pays = (
        config.mode == "release"
        and config.task == "classification"
        and classes != 1
        and isinstance(config.hpo, Ladder)
        and not config.learner.trials_are_solved
        and method(config.learner.name).weights.startswith("dpladder.")
        and strength(config) >= (CALIBRATES_TWO if two else CALIBRATES_MORE)
    )
    share = calibration_share(strength(config)) if pays else None
    return config.model_copy(update={"final": _with_calibration(config.final, share)})


def calibration_share(strength: float) -> float:
    """The share of a final training's mu^2 that buys its map where that pays: its counts have as
    much noise at any strength n0 mu, within ends."""
    least, most = CALIBRATION_SHARES
    return float(f"{min(max((COUNT_NOISE * strength) ** -2, least), most):.2g}")


def _leaves_calibration(config: Config) -> bool:
    return config.final.calibrate is not None and config.final.calibrate.share is None


def _with_calibration(final: Final, share: float | None) -> Final:
    return final.model_copy(update={"calibrate": None if share is None else Calibrate(share=share)})


def resolve_prior(config: Config) -> Config:
    """The config with the prior in kappa filled in, where it was left to the learner and its
    features.

    Idempotent: a prior that the config names stays.
    """
    kind: Kind = "number" if config.task == "regression" else config.features.centre != "none"
    if in_form(config):
        kind = "curves of a number" if kind == "number" else "curves"
    search = with_prior(config.sweep.search, config.learner, kind)
    return config.model_copy(update={"sweep": config.sweep.model_copy(update={"search": search})})


def _resolve_centre(config: Config) -> Config:
    """The best centring that is free for the source at hand, or else the data's own mean where it
    is worth its price."""
    centring = _centring(config)
    chosen: dict[str, object] = {"centre": centring}
    if centring == "noised" and config.features.mean is None:
        radius = longest_row(config) if in_form(config) else None
        chosen["mean"] = Mean(epsilon=_part(config, MEAN), radius=radius)
    return config.model_copy(update={"features": config.features.model_copy(update=chosen)})


def _centring(config: Config) -> str:
    """What `features.centre: auto` stands for: the mean that was asked for or that is there for
    nothing. Else it is a noised one of these people's own features, where that pays for itself."""
    features = config.features
    if features.centre != "auto":
        return features.centre
    if features.until is not None:
        return "none"
    if features.mean is not None:
        return "noised"
    if config.dataset.public_sample is not None:
        return "public"
    known = features.layers == LAST and features.model in KNOWN
    if _bought_mean_pays(config, PAYS_AGAIN if known else PAYS):
        return "noised"
    return "network" if known else "none"


def _bought_mean_pays(config: Config, enough: float) -> bool:
    """Only where the plan chooses what is bought before the final training, and so may add to it.
    It does not in research, where experiments are compared that must have the same features."""
    left = (
        not config.sweep.rungs
        and config.final.budget == "remaining"
        and isinstance(config.hpo, Ladder)
    )
    has_radius = not isinstance(config.features.length, str) or in_form(config)
    measured = config.learner.name == DEFAULT and has_radius
    return left and measured and config.mode == "release" and strength(config) >= enough


def _part(config: Config, part: float) -> float:
    """The epsilon of a release that takes this part of the smallest total's mu^2."""
    mu, delta = gdp.mu_from_epsilon(min(config.totals), config.privacy.delta), config.privacy.delta
    return float(f"{gdp.epsilon(part**0.5 * mu, delta):.3g}")


def strength(config: Config, total: float | None = None) -> float:
    """n0 mu of a total, the smallest one, which has to pay for the sweep too. Under replace_one
    noise is twice as large.

    The noise of a mean over n0 units is 1/(n0 mu) of one unit's length. Choices of the plan were
    measured on public data against this number.

    Args:
        config: the experiment's.
        total: an epsilon; None takes the smallest total.
    """
    moved, total_or_least = (
        2 if config.privacy.relation == "replace_one" else 1,
        total or min(config.totals),
    )
    return (
        config.dataset.nominal_size
        / moved
        * gdp.mu_from_epsilon(total_or_least, config.privacy.delta)
    )


def _strength_text(config: Config) -> str:
    """The strength with as many digits as a person wants."""
    return f"{strength(config):,.0f}" if strength(config) >= 100 else f"{strength(config):.3g}"


def public_weight(config: Config, total: float | None = None) -> float:
    """lambda, how much public records weigh beside the private ones in a training with all of a
    total (learn/guide.py). It is that of features which take up as few directions as any that were
    measured.

    Args:
        config: whose learner is guided by public records; else the answer is 0.
        total: an epsilon; None takes the smallest total.

    Returns:
        The public records' weight against 1 for the private ones: their share of a step is x / (1 +
        x).
    """
    dataset, count = (
        config.dataset,
        config.dataset.public_size if config.learner.uses_public_gradient else None,
    )
    classes = count_of_classes(dataset.source, dataset.classes)
    return (count or 0) * (classes or 2) * FEWEST / strength(config, total) ** 2


def _public_outweighs_private(config: Config, look: LadderToBuy) -> bool:
    """Whether public records are more of a trial's steps than private ones are: mu^2, and so
    lambda, is a part of the total's. Such a trial tells of another training's kappa."""
    return any(public_weight(config) >= rung.part * (1 - look.share) for rung in look.rungs)


def _ladder_to_buy(config: Config) -> LadderToBuy | None:
    """What a ladder left to the plan should buy; None where there is none, or it was given by
    hand."""
    if (
        config.sweep.rungs is not None
        or config.learner.searches is None
        or config.task == "regression"  # its law is public, and trials would not beat it
        or not isinstance(config.hpo, Ladder)
    ):
        return None
    ladder = best_ladder(strength(config), config.features.centre != "none")
    needless = _public_outweighs_private(config, ladder) or _kappa_out_of_reach(config)
    return replace(ladder, rungs=(), gained=ladder.blind) if needless else ladder


def _kappa_out_of_reach(config: Config) -> tuple[float, float] | None:
    """kappa of the largest r that steps reach, and the prior's, where that lies beyond it. Then the
    largest r did best on public tables (docs/measurements/tables.md), and trials would only say
    so."""
    search = config.sweep.search
    if config.learner.name != DEFAULT or search.expected is None or search.unit != "kappa":
        return None
    learner: Any = config.learner
    features = config.features
    length = row_length(features.length, features.typical)
    # r C R / (n0 mu), and momentum m carries noise on, 1 / (1 - m) as far (docs/laws.md)
    kappa = search.eta[1] * search.steps[1] * learner.clip * length / strength(config)
    kappa /= 1.0 - learner.momentum
    wanted = min(search.expected[0], search.kappa[1])  # a search may end before the prior
    return (kappa, search.expected[0]) if kappa < wanted else None


def _apply_ladder(config: Config, look: LadderToBuy | None) -> Config:
    """The config with the rungs that were bought; unchanged where the ladder was not left to the
    plan."""
    if look is None:
        return config
    rungs = tuple(Rung(epsilon=_part(config, one.part), trials=one.trials) for one in look.rungs)
    select = config.sweep.select.model_copy(update={"share": look.share})
    sweep = config.sweep.model_copy(update={"rungs": rungs, "select": select})
    return config.model_copy(update={"sweep": sweep})


def _note_depths(given_config: Config, config: Config) -> Iterator[str]:
    """Which depths features are of, where that was left open."""
    features = config.features
    if given_config.features.layers != "auto" or features.takes == "features" or features.until:
        return
    why = (
        f": at n0*mu = {_strength_text(config)} several depths would lose more to noise than they "
        "tell"
        if features.layers == LAST
        else ""
    )
    yield f"features are of {depths_of(config)} (features.layers){why}"


def _note_curves(given_config: Config, config: Config) -> Iterator[str]:
    """Whether a table's numbers are curves, where that was left open."""
    pieces = config.features.curves
    if given_config.features.curves != "auto" or not can_have_curves(config):
        return
    at = f"at n0*mu = {_strength_text(config)}"
    yield (
        f"numbers are curves of {pieces} pieces (features.curves): {at} they tell more than lines"
        if pieces
        else f"numbers are lines (features.curves): {at} noise would hide what curves tell"
    )


def _note_learner(config: Config) -> Iterator[str]:
    """Which learner a number has, where that was left open."""
    if leaves_learner(config) and config.learner.name == DEFAULT:
        yield (
            f"learnt by {DEFAULT} (learner.name): at n0*mu = {_strength_text(config)} least "
            "squares would lose more to noise"
        )


def _note_mean(given_config: Config, config: Config) -> Iterator[str]:
    """What centring costs, where the config did not price it."""
    mean = config.features.mean
    if mean is not None and given_config.features.mean is None:
        why = f", which at n0*mu = {_strength_text(config)} gains more than that"
        yield (
            f"mean bought: centring the features costs epsilon = {mean.epsilon:g}, "
            f"{MEAN:.0%} of mu^2{why if given_config.features.centre == 'auto' else ''} "
            "(features.centre: none leaves them as they are)"
        )


def _note_calibration(given_config: Config, config: Config) -> Iterator[str]:
    """What probabilities rest on, where a map of them is bought."""
    bought = config.final.calibrate
    if bought is not None and bought.share is not None and _leaves_calibration(given_config):
        yield (
            f"calibration bought: {bought.share:.0%} of the final training's mu^2 makes its "
            "probabilities as sure as they are right (final.calibrate: null goes without)"
        )


def _note_ladder(config: Config, look: LadderToBuy | None) -> Iterator[str]:
    """Why, in words."""
    at = f"at n0*mu = {_strength_text(config)}"
    if look is not None and look.rungs:
        yield (
            f"sweep bought: {at} trials pay, {rungs_as_text(look.rungs)} of mu^2, {look.spent:.0%} "
            f"in all (on public data of that strength they take accuracy from {look.blind:.3f} to "
            f"{look.gained:.3f})"
        )
    elif look is not None and (out_of_reach := _kappa_out_of_reach(config)):
        reached, prior = out_of_reach
        yield (
            f"no sweep: {at} the largest steps (sweep.search) are best, though their kappa = "
            f"{reached:.2g} is below the usual {prior:.2g}, so trials would tell nothing new. "
            "Nothing needs doing; a larger sweep.search.steps would reach it, and take longer"
        )
    elif look is not None:
        best = best_ladder(strength(config), config.features.centre != "none")
        why = (
            "a trial's steps would be the public records' more than the private ones'"
            if _public_outweighs_private(config, best)
            else "scores would tell less than they cost"
        )
        yield (
            f"no sweep: {at} {why}, so kappa is the prior's (on public data of that strength it "
            f"reaches {look.blind:.3f} by itself)"
        )
