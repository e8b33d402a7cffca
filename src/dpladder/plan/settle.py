"""What a config leaves to the plan, settled before anything is priced: by public figures alone, and
said in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dpladder.config import Config, Project
from dpladder.config.features_sections import LAST, Mean
from dpladder.config.model import Tester
from dpladder.config.search_sections import Ladder
from dpladder.config.section import restored, values_of
from dpladder.config.sources import count_of_classes, labels_of
from dpladder.config.sweep_sections import Rung, Sweep
from dpladder.plan import dag
from dpladder.plan.about import depths_of
from dpladder.plan.cost import partition
from dpladder.privacy.accounting import gdp
from dpladder.privacy.ledger.state import State
from dpladder.search.looking import Bought, bought, written
from dpladder.search.prior import DEFAULT, expecting

# networks whose own mean was measured to help
KNOWN = ("efficientnet_lite0", "tf_efficientnet_lite0")
# A noised mean for this part of mu^2 gains from this n0 * mu on, whatever the width, and from the
# second on also where the network's own mean is there for nothing: `tools/price_means.py`,
# `compare_hpo.py --centre bought`.
MEAN, PAYS, PAYS_AGAIN = 0.05, 100.0, 480.0
# Below this n0 * mu, several depths of an image's network lose to its last output, which has a mean
# for nothing: `tools/depths.py`.
DEPTHS_PAY = 100.0
FEWEST = 12  # directions that features take up, of all data sets in docs/measurements/learners.md


Remembered = Mapping[str, Mapping[str, Any]]
"""What was chosen for an experiment before, and paid for."""


def divided(project: Project, known: Mapping[str, str] = MappingProxyType({})) -> Project:
    """The project with the test part's share of each lineage, where the config leaves it open.
    Nobody would read a private part beside a public test, so all units train; but a split holds for
    a lineage's life. `known`: the rule that a lineage was opened under."""
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
            else _with_test(config, config.dataset.lineage in asking, known)
            for name, config in project.experiments.items()
        },
    )


def _with_test(config: Config, asked: bool, known: Mapping[str, str]) -> Config:
    split, lineage = config.dataset.split, config.dataset.lineage
    opened_so = known.get(lineage) == partition(config).split_rule
    test = split.held_out if asked or split.rule == "given" or opened_so else 0.0
    dataset = config.dataset.model_copy(update={"split": split.model_copy(update={"test": test})})
    return config.model_copy(update={"dataset": dataset})


def settled(project: Project, remembered: Remembered = MappingProxyType({})) -> Project:
    """The project with nothing left to choose: the centring of features, whether public records
    guide steps, what a ladder left to the plan buys, the test part's share.

    Choices hang on public facts alone. What was paid for under an earlier choice keeps it
    (`remembered`, see paid_choices), which is told where today's would be another (`choices`)."""
    project = divided(project)
    asked = project.modelled
    experiments = {
        name: _expecting(_centred(_with_depths(_guiding(config)))) for name, config in asked.items()
    }
    looks = {name: _look(config) for name, config in experiments.items()}
    today = {name: _swept(config, looks[name]) for name, config in experiments.items()}
    found = {
        name: _as_chosen(asked[name], config, remembered.get(name, {}))
        for name, config in today.items()
    }
    return replace(
        project,
        settled={
            name: (_hung_on(asked[name]), chosen_in(config))
            for name, config in found.items()
            if chosen_in(config) != chosen_in(asked[name])
        },
        experiments={
            name: _as_there(config, found) if isinstance(config, Tester) else found[name]
            for name, config in project.experiments.items()
        },
        choices={
            name: "; ".join(words)
            for name, config in experiments.items()
            if (
                words := [
                    *_said_of_depths(project.experiments[name], config),
                    *_said_of_mean(project.experiments[name], config),
                    *_said(config, looks[name]),
                    *_said_of_kept(found[name], config, today[name]),
                ]
            )
        },
    )


def paid_choices(project: Project, states: Mapping[str, State]) -> Remembered:
    """Of what ledgers remember of earlier plans, the choices whose questions were answered, for
    each experiment that leaves the same to the plan: a total that is added keeps what was paid for.
    The smallest total that has one decides, and today's choice comes first."""
    found: dict[str, Mapping[str, Any]] = {}
    if not any(state.choices for state in states.values()):
        return found
    today = settled(project)
    for name, asked in project.modelled.items():
        config, state = today.experiments[name], states[asked.dataset.lineage]
        for inputs in _hung_on(asked):
            paid = [
                chosen
                for chosen in state.choices.get(inputs, ())
                if _is_paid(today, name, _as_chosen(asked, config, chosen), state)
            ]
            if paid:
                own = chosen_in(config)
                found[name] = own if own in paid else paid[-1]
                break
    return found


def _is_paid(project: Project, name: str, config: Config, state: State) -> bool:
    """Whether something that an experiment asks, so configured, was answered."""
    chosen = replace(project, experiments={**project.experiments, name: config})
    return any(state.answer(question) for _, question in dag.questions(chosen, name))


def _hung_on(config: Config) -> tuple[str, ...]:
    """Digests of what automatic choices hang on, one for each total, from the smallest on."""
    features, sweep = config.features, config.sweep
    told = [config.dataset.public_size] if pull(config) else []
    basis = dag.digest(
        [values_of(config.learner), config.mode, config.hpo.name],
        features.model_dump(
            mode="json", include={"centre", "mean", "until", "model", "layers", "length"}
        ),
        sweep.model_dump(mode="json", include={"rungs", "search", "select"}),
        [config.dataset.nominal_size, config.dataset.public_sample is None, *told],
        [config.privacy.relation, config.privacy.delta, config.final.budget],
    )
    return tuple(dag.digest(basis, total) for total in sorted(config.totals))


def chosen_in(config: Config) -> dict[str, Any]:
    """What may have been left to the plan, as it stands in a settled config."""
    sweep = config.sweep.model_dump(mode="json", include={"rungs", "search", "select"})
    public = {"public": "gradient"} if config.learner.guided else {}
    features = config.features.model_dump(mode="json", include={"centre", "mean"})
    last = {"layers": LAST} if config.features.layers == LAST else {}
    return {**features, **sweep, **public, **last}


def _as_chosen(asked: Config, config: Config, values: Mapping[str, Any]) -> Config:
    """A settled config, with what was chosen before in place of today's choice."""
    if not values or values == chosen_in(config):
        return config
    learner = config.learner
    if asked.learner.guidance == "auto":
        public = values.get("public", "none") if learner.guided else "none"
        learner = learner.model_copy(update={"public": public})
    features = {
        "centre": values["centre"],
        "mean": values["mean"] and restored(Mean, values["mean"]),
    }
    if asked.features.layers == "auto":
        features["layers"] = values.get("layers", "auto")
    sweep = restored(Sweep, {key: values[key] for key in ("rungs", "search", "select")})
    return config.model_copy(
        update={
            "features": config.features.model_copy(update=features),
            "learner": learner,
            "sweep": sweep,
        }
    )


def _said_of_kept(config: Config, centred: Config, today: Config) -> Iterator[str]:
    kept, now = ({"public": "none", "layers": "auto"} | chosen_in(one) for one in (config, today))
    differing = [key for key in kept if kept[key] != now[key]]
    if differing:
        told = "; ".join(
            f"{key} {_short(kept[key])}, today {_short(now[key])}" for key in differing
        )
        yield f"kept as it was chosen when it was paid for ({told})"


def _short(value: Any) -> str:
    return str(value.get("epsilon", "as before")) if isinstance(value, dict) else str(value)


def _as_there(config: Tester, found: Mapping[str, Config]) -> Tester:
    """What measures another experiment's models sees records as that one does, and has no search
    nor public sample."""
    tested = found[config.tested]
    final = tested.final.model_copy(update={"targets": tested.totals, "without_noise": False})
    sweep = tested.sweep.model_copy(update={"rungs": ()})
    of_training = ("public_sample", "public_validation", "public_unlabelled")
    dataset = config.dataset.model_copy(update=dict.fromkeys(of_training))
    seen = {"dataset": dataset, "features": tested.features, "learner": tested.learner}
    return config.model_copy(update={**seen, "sweep": sweep, "final": final})


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


def _with_depths(config: Config) -> Config:
    """One depth in place of several where records are few and noise is large, of images without a
    public sample, which would choose by itself; not in research, where experiments are compared
    that must have the same features."""
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


def _centred(config: Config) -> Config:
    """The best centring that is free for the source at hand, or else the data's own mean where it
    is worth its price."""
    found = _centring(config)
    chosen: dict[str, object] = {"centre": found}
    if found == "noised" and config.features.mean is None:
        chosen["mean"] = Mean(epsilon=_part(config, MEAN))
    return config.model_copy(update={"features": config.features.model_copy(update=chosen)})


def _centring(config: Config) -> str:
    """What `features.centre: auto` stands for: the mean that was asked for or that is there for
    nothing; else a noised one of these people's own features, where it pays for itself."""
    features = config.features
    if features.centre != "auto":
        return features.centre
    if features.until is not None:
        return "none"
    if features.mean is not None:
        return "noised"
    if config.dataset.public_sample is not None:
        return "public"
    known = features.model in KNOWN and features.layers == LAST
    if _mean_pays(config, PAYS_AGAIN if known else PAYS):
        return "noised"
    return "network" if known else "none"


def _mean_pays(config: Config, enough: float) -> bool:
    """Only where the plan chooses what is bought before the final training, and so may add to it;
    and not in research, where experiments are compared that must have the same features."""
    left = (
        not config.sweep.rungs
        and config.final.budget == "remaining"
        and isinstance(config.hpo, Ladder)
    )
    measured = config.learner.name == DEFAULT and config.features.length != "as_is"
    return left and measured and config.mode == "release" and strength(config) >= enough


def _part(config: Config, part: float) -> float:
    """The epsilon of a release that takes this part of the smallest total's mu^2."""
    mu, delta = gdp.mu(min(config.totals), config.privacy.delta), config.privacy.delta
    return float(f"{gdp.epsilon(part**0.5 * mu, delta):.3g}")


def _expecting(config: Config) -> Config:
    """The prior in kappa, where it was left to the learner and its features."""
    found = expecting(config.sweep.search, config.learner, config.features.centre != "none")
    return config.model_copy(update={"sweep": config.sweep.model_copy(update={"search": found})})


def strength(config: Config, total: float | None = None) -> float:
    """n0 mu of a total, the smallest one, which has to pay for the sweep too. Under replace_one
    noise is twice as large."""
    moved, asked = 2 if config.privacy.relation == "replace_one" else 1, total or min(config.totals)
    return config.dataset.nominal_size / moved * gdp.mu(asked, config.privacy.delta)


def pull(config: Config, total: float | None = None) -> float:
    """lambda, how much public records weigh beside the private ones in a training with all of a
    total (learn/guide.py), where features take up as few directions as any that were measured."""
    dataset, count = config.dataset, config.dataset.public_size if config.learner.guided else None
    classes = count_of_classes(dataset.source, dataset.classes)
    return (count or 0) * (classes or 2) * FEWEST / strength(config, total) ** 2


def _outweighed(config: Config, look: Bought) -> bool:
    """Whether public records are more of a trial's steps than private ones are: mu^2, and so
    lambda, is a part of the total's. Such a trial tells of another training's kappa."""
    return any(pull(config) >= rung.part * (1 - look.share) for rung in look.rungs)


def _look(config: Config) -> Bought | None:
    """What a ladder left to the plan should buy; None where there is none, or it was given by
    hand."""
    if (
        config.sweep.rungs is not None
        or config.learner.searches is None
        or not isinstance(config.hpo, Ladder)
    ):
        return None
    found = bought(strength(config), config.features.centre != "none")
    return replace(found, rungs=(), gained=found.blind) if _outweighed(config, found) else found


def _swept(config: Config, look: Bought | None) -> Config:
    if look is None:
        return config
    rungs = tuple(Rung(epsilon=_part(config, rung.part), trials=rung.trials) for rung in look.rungs)
    select = config.sweep.select.model_copy(update={"share": look.share})
    sweep = Sweep(rungs=rungs, search=config.sweep.search, select=select)
    return config.model_copy(update={"sweep": sweep})


def _said_of_depths(asked: Config, config: Config) -> Iterator[str]:
    features = config.features
    if asked.features.layers != "auto" or features.takes == "features" or features.until:
        return
    why = (
        f": at n0*mu = {strength(config):.3g} several depths would lose more to noise than they "
        "tell"
        if features.layers == LAST
        else ""
    )
    yield f"features are of {depths_of(config)} (features.layers){why}"


def _said_of_mean(asked: Config, config: Config) -> Iterator[str]:
    mean = config.features.mean
    if mean is not None and asked.features.mean is None:
        why = f", which at n0*mu = {strength(config):.3g} gains more than that"
        yield (
            f"mean bought: centring the features costs epsilon = {mean.epsilon:g}, {MEAN:.0%} of "
            f"mu^2{why if asked.features.centre == 'auto' else ''} (features.centre: none leaves "
            "them as they are)"
        )


def _said(config: Config, look: Bought | None) -> Iterator[str]:
    """Why, in words."""
    at = f"at n0*mu = {strength(config):.3g}"
    if look is not None and look.rungs:
        yield (
            f"sweep bought: {at} trials pay, {written(look.rungs)} of mu^2, {look.spent:.0%} in "
            f"all (on public data of that strength they take accuracy from {look.blind:.3f} to "
            f"{look.gained:.3f})"
        )
    elif look is not None:
        yield (
            f"no sweep: {at} {_why_not(config)}, so kappa is the prior's (on public data of that "
            f"strength it reaches {look.blind:.3f} by itself)"
        )


def _why_not(config: Config) -> str:
    if _outweighed(config, bought(strength(config), config.features.centre != "none")):
        return "a trial's steps would be the public records' more than the private ones'"
    return "scores would tell less than they cost"
