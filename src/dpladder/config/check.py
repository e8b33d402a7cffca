"""Rules between the keys of one experiment, one function for each key, and across a project. Types
and ranges are the model's own. The data's rules stand in dataset_rules.py, those of learners and
searches beside their sections. What a task decides is in task_rules.py."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

from dpladder.config import findings, further_tests, learner_rules, search_sections
from dpladder.config.checkpoints import wrong_with_checkpoint
from dpladder.config.dataset_rules import DATASET
from dpladder.config.depths import OF_BUNDLED, resolve_layers
from dpladder.config.features_sections import BUNDLED_IMAGES, BUNDLED_TEXT, FOLDER
from dpladder.config.images_with_table import apart_of
from dpladder.config.learners import names_with
from dpladder.config.model import Config, repeat_name
from dpladder.config.rules import Messages, Problem, Table, problems, rule_if, union
from dpladder.config.search_sections import Ladder
from dpladder.config.source_rules import wrong_with_path
from dpladder.config.sources import Takes, kind_of
from dpladder.errors import BadInput
from dpladder.public_files import PUBLIC_FOLDERS
from dpladder.wording import KeyPath, value_as_text

KEPT_WEIGHTS = ("bundled", "pretrained", "random")
IN_WORDS: Mapping[Takes, str] = {
    "features": "a feature matrix needs model: none",
    "images": "images need a model of timm's",
    "texts": "texts need model: minilm or hf:<name>",
}


def problems_of_experiment(config: Config, doubtful: Collection[KeyPath] = ()) -> Iterator[Problem]:
    """What is wrong between keys, but for echoes of doubtful ones.

    Args:
        config: one experiment, its task applied.
        doubtful: keys whose values are stand-ins for wrong ones.
    """
    yield from problems(RULES, config, doubtful)
    # of other tasks a rule of their own refuses the key as a whole
    also_tests = config.evaluate.also if config.task in ("classification", "regression") else ()
    for place, also in enumerate(also_tests):
        table, at = further_tests.rules_of(also), ("evaluate", "also", place)
        yield from problems(table, config, doubtful, at, (also,))


def problems_of_project(experiments: Mapping[str, Config]) -> Iterator[Problem]:
    """Experiments on one lineage must agree on what is fixed for the lineage's life.

    Contract 11 has one δ and one relation for a lineage. The ledger would refuse the second
    experiment at its first charge; here it costs nothing yet. Names that repeats need must be free
    too.

    Args:
        experiments: by name, each valid by itself. Of a lineage the first one's terms are compared
            with.
    """
    first: dict[str, tuple[str, dict[str, object]]] = {}
    for name, config in experiments.items():
        terms, lineage = lineage_terms(config), config.dataset.lineage
        owner, agreed = first.setdefault(lineage, (name, terms))
        for key in terms:
            theirs = agreed.get(key)
            if terms[key] != theirs:
                yield (
                    ("experiments", name, *key.split(".")),
                    f"given {value_as_text(terms[key])}, but {value_as_text(theirs)} in {owner}; "
                    f"it is fixed for the life of lineage {lineage}, so give both the same",
                )
        repeats = {repeat_name(name, number) for number in range(1, config.research.repeats)}
        for taken in experiments.keys() & repeats:
            says = f"this is what a repeat of {name} is called; choose another name"
            yield ("experiments", taken), says


def lineage_terms(config: Config) -> dict[str, object]:
    """The keys that one lineage holds for life (docs/design.md: lineage).

    Returns:
        Plain values by dotted key, in the order in which they are compared.
    """
    dataset, privacy = config.dataset, config.privacy
    return {
        "privacy.relation": privacy.relation,
        "privacy.delta": privacy.delta,
        "privacy.lifetime": None if privacy.lifetime is None else privacy.lifetime.epsilon,
        "privacy.lifetime.loss": 0.0 if privacy.lifetime is None else privacy.lifetime.loss,
        "privacy.lifetime.weight": 1.0 if privacy.lifetime is None else privacy.lifetime.weight,
        "privacy.share": privacy.share,
        "dataset.unit": dataset.unit.model_dump(),
        "dataset.split": dataset.split.model_dump(),
        "dataset.declared_public": dataset.declared_public,
        "mode": config.mode,
        **unit_keys(config),
    }


def unit_keys(config: Config) -> dict[str, object]:
    """The keys that say by what a unit is known, which its part follows from. By another column the
    same people would lie in other parts. Nothing where parts are given, which add anyhow, and where
    nobody is protected.

    Contract 9: units known by another column are another version's. plan/startup.py notes them in
    the ledger.

    Returns:
        The column, or the folder's level, by the key that names it; None for the source's own.
    """
    dataset = config.dataset
    if dataset.split.rule == "given" or config.mode == "research":
        return {}
    by_user, apart = dataset.unit.by == "user", apart_of(dataset.source)
    return {
        "dataset.id": None if by_user else dataset.id,
        "dataset.user": dataset.user if by_user else None,
        "dataset.source.patient": apart.patient if by_user and apart is not None else None,
    }


# --- the guarantee ---


def _delta(c: Config) -> Messages:
    """A delta of 1/n permits a mechanism that publishes one random record whole (Dwork & Roth 2014,
    section 2.3). The nominal size stands for n, for the data's own size is private (contract:
    public-sizes)."""
    limit = 1 / c.dataset.nominal_size
    if c.privacy.delta >= limit:
        yield (
            f"it must stay below 1/nominal_size = {limit:.3g}: at that delta publishing one random "
            "record in full would count as private"
        )


def _share(c: Config) -> Messages:
    """Trainings on samples are only nearly Gaussian, and need a part of delta."""
    if c.privacy.share == 0.0 and c.learner.sampling < 1.0:
        yield (
            "trainings on samples (learner.sampling_rate) are booked at a part of it, so it must "
            "be above 0: leave it out, or train on full batches"
        )


def _lifetime(c: Config) -> Messages:
    """A limit below one total could never be met."""
    if c.privacy.lifetime and c.privacy.lifetime.epsilon < c.privacy.epsilon:
        yield (
            f"it must be at least privacy.epsilon = {c.privacy.epsilon!r}. Lower that one where a "
            "run has fixed this limit"
        )


def _without_noise(c: Config) -> Messages:
    """A training without noise is one on full batches, with nothing bought before it."""
    if not c.final.without_noise:
        return
    if c.learner.sampling < 1:
        yield "it trains on full batches: leave learner.sampling_rate out"
    if c.features.mean is not None or c.learner.purchases:
        yield "features.mean, learner.shared and learner.head are noised: leave them out"


# --- features ---


def _model(c: Config) -> Messages:
    """A network fits what its source holds; a folder of timm's is looked into for its config
    alone."""
    kind, model = kind_of(c.dataset.source), c.features.model
    words = kind.holds if kind else tuple(IN_WORDS)
    if c.features.takes not in words:
        needed = ", and ".join(IN_WORDS[what] for what in words)
        yield (
            f"given {value_as_text(model)} with source {value_as_text(c.dataset.source)}; {needed}"
        )
    # a network's folder is public, unlike a source, so it may be looked into here
    folder = Path(model.removeprefix(FOLDER)).expanduser()
    if model.startswith(FOLDER) and not (folder / "config.json").is_file():
        yield (
            f"{folder} has no config.json: name a folder as timm saves one "
            "(timm.models.save_for_hf), with the weights beside it"
        )


def _weights(c: Config) -> Messages:
    """Weights that exist: bundled ones for three networks, or a checkpoint whose header can be
    read."""
    model, weights, texts = c.features.model, c.features.weights, c.features.takes == "texts"
    default = "bundled" if model == BUNDLED_TEXT else "pretrained"
    if texts and weights != default:
        yield f"{model} has weights: {default} alone"
    elif not texts and weights == "bundled" and model not in (*BUNDLED_IMAGES, "none"):
        yield (
            f"given 'bundled' with model {value_as_text(model)}; bundled weights exist for "
            "efficientnet_lite0, 1 and 2 alone; use pretrained or a path"
        )
    elif not texts and weights not in KEPT_WEIGHTS:
        path = Path(weights).expanduser()
        wrong = next(wrong_with_path(str(path)), None) or wrong_with_checkpoint(path)
        if wrong:
            yield f"allowed: {', '.join(KEPT_WEIGHTS)}, or a checkpoint's path; {wrong}"


def _centre(c: Config) -> Messages:
    """Each centre needs what it is made of: a public sample, a network's own norm, or a paid
    mean."""
    features, centre = c.features, c.features.centre
    if centre == "public" and c.dataset.public_sample is None:
        yield "it needs dataset.public_sample"
    if centre == "network" and features.takes == "texts":
        yield "a language model's own mean is not known; leave it out"
    elif centre == "network" and (features.model == "none" or features.layers != "last"):
        yield "it needs a network's own pooled output: features.model, and features.layers: last"
    if features.mean is not None and centre not in ("auto", "noised"):
        yield (
            f"given {value_as_text(centre)} beside features.mean, which is for noised: leave one "
            "of them out"
        )
    if centre == "noised" and features.mean is None and isinstance(features.length, str):
        yield RADIUS


def _curves(c: Config) -> Messages:
    """A public mean is of rows as they are stored, so curves have none."""
    if c.dataset.public_sample is None or c.features.centre not in ("auto", "public"):
        return
    knots = any(not isinstance(one, str) and one.knots for one in c.dataset.columns)
    crosses, curves = bool(c.dataset.crosses), c.features.curves not in (0, "auto")
    if knots or crosses or curves:
        has = "columns has knots" if knots else "crosses has pairs"
        yield (
            f"{'' if curves else f'dataset.{has}, and '}a public mean is of lines: set "
            "features.centre: noised or none, or leave out the curves or dataset.public_sample"
        )


RADIUS = (
    "a noised mean of records that keep their lengths (features.length: as_is or at_most) needs "
    "features.mean: {epsilon, radius}"
)


def _layers(c: Config) -> Messages:
    """Depths by name, each once. Of a network that is not bundled they are checked when it runs."""
    features, layers = c.features, c.features.layers
    if isinstance(layers, str):
        return
    if not layers:
        yield "it names no depth; write last for the network's own pooled output"
    elif len(set(layers)) < len(layers):
        yield "it names a depth twice"
    elif features.model in OF_BUNDLED:
        try:
            resolve_layers(layers, OF_BUNDLED[features.model], features.takes, features.model)
        except BadInput as wrong:
            yield str(wrong).removeprefix("features.layers: ")


def _check_cut(c: Config) -> Messages:
    """Activations at a cut are what a network goes on from, and nothing else may be made of
    them."""
    if c.features.until is None:
        return
    if not c.learner.above_cut:
        yield (
            f"learner {c.learner.name} takes pooled features; leave it out, or set learner.name: "
            f"{' or '.join(names_with('above_cut'))}"
        )
    if not isinstance(c.hpo, Ladder):
        yield "its learner climbs the ladder alone; leave hpo out"


# --- sweep and fit ---


def _rungs(c: Config) -> Messages:
    """Where trials solve shared sums, all trainings have one budget, and a rung's epsilon buys
    scores alone: there is no line."""
    if not isinstance(c.hpo, Ladder):
        return
    learner, search, fit = c.learner, c.sweep.search, c.fit
    # a curve of degree d needs d + 1 different places on its axis
    points = len({rung.epsilon for rung in c.sweep.ladder})
    solved = learner.trials_are_solved
    if learner.searches is None and points:
        yield f"learner {learner.name} has nothing to search; write rungs: []"
    elif learner.searches is None:
        return
    elif not points and (search.unit, search.prior) != ("kappa", "lognormal"):
        yield (
            f"without rungs by hand, r of learner {learner.name} follows from the prior in kappa: "
            "set sweep.search.unit: kappa and sweep.search.prior: lognormal, or give sweep.rungs"
        )
    elif 0 < points <= fit.degree and fit.using == "best" and fit.against != "kappa" and not solved:
        yield (
            f"{points} distinct epsilon for a fit of degree {fit.degree}; it needs at least "
            f"{fit.degree + 1}"
        )


def _check_fit_using(c: Config) -> Messages:
    """Trials that solve one release differ by nothing that a line over budgets could follow."""
    solved = c.learner.trials_are_solved
    if isinstance(c.hpo, Ladder) and c.sweep.ladder and solved and c.fit.using != "pooled":
        yield "all trials solve the same sums, one point for a line: set using: pooled"


def _calibrate(c: Config) -> Messages:
    """A share that was named buys a map of classes' or findings' margins, or is refused."""
    if c.final.calibrate is None or c.final.calibrate.share is None:
        return
    if not isinstance(c.hpo, Ladder):
        yield f"search {c.hpo.name} releases its winner as it is; leave share out"
    elif c.task != "classification":
        yield f"task: {c.task} has no probabilities of classes; leave share out"


def _select_part(c: Config) -> Messages:
    """Counts on a validation part need one; that its share is 0 is public."""
    select, split = c.sweep.select, c.dataset.split
    counted = select.by != "public" and select.part == "validation"
    if counted and split.rule == "hash" and split.validation == 0:
        yield "it needs dataset.split.validation above 0"


# --- paths ---


def _path(name: str, c: Config) -> Messages:
    """The private folder and results must not lie in each other: what is public is shared as a
    whole (contract: no-tell)."""
    path = getattr(c.paths, name)
    if path is None:
        return
    # As they are written and as they really lie: either may be a link.
    if any(
        apart_path.is_relative_to(public) or public.is_relative_to(apart_path)
        for where in (os.path.abspath, os.path.realpath)
        for apart_path in [Path(where(path))]
        for public in (Path(where(folder)) for folder in PUBLIC_FOLDERS)
    ):
        yield (
            f"neither it nor {', '.join(map(str, PUBLIC_FOLDERS))} may lie in the other: those are "
            "public, it must never be shared"
        )
    # a folder that is there may be anybody's, such as /etc; the cache has a check of its own
    if name == "private" and os.path.isdir(path) and (mode := os.stat(path).st_mode) & 0o007:
        yield (
            f"that folder is there, and open to everybody (mode {mode & 0o777:o}); name another "
            "one, which dpladder makes, or close it with chmod o-rwx"
        )


GUARANTEE: Table = {
    "privacy.delta": _delta,
    "privacy.lifetime.epsilon": _lifetime,
    "privacy.share": _share,
    "mode": rule_if(
        lambda c: c.mode == "research" and not c.dataset.declared_public,
        "research runs only on data declared public; set dataset.declared_public: true if nobody "
        "in it needs protection",
    ),
    "final.without_noise": _without_noise,
    "final.calibrate": _calibrate,
}
FEATURES_AND_SWEEP: Table = {
    "features.model": _model,
    "features.weights": _weights,
    "features.layers": _layers,
    "features.centre": _centre,
    "features.curves": _curves,
    "features.mean.radius": rule_if(
        lambda c: (
            c.features.mean and not c.features.mean.radius and isinstance(c.features.length, str)
        ),
        RADIUS,
    ),
    "features.until": _check_cut,
    "sweep.rungs": _rungs,
    "sweep.search.prior": rule_if(
        lambda c: c.sweep.search.unit == "r" and c.sweep.search.prior == "lognormal",
        "a prior in kappa; with unit: r set none, monotone or proportional",
    ),
    "sweep.select.by": rule_if(
        lambda c: c.sweep.select.by == "public" and c.dataset.public_validation is None,
        "it needs dataset.public_validation",
    ),
    "sweep.select.part": _select_part,
    "fit.using": _check_fit_using,
    "fit.against": rule_if(
        lambda c: c.sweep.search.unit == "r" and c.fit.against == "kappa",
        "with sweep.search.unit: r set epsilon or mu",
    ),
    "fit.degree": rule_if(
        lambda c: c.fit.using == "pooled" and c.fit.degree != 1,
        "pooled scores take a line: set using: best for a parabola",
    ),
}
PATHS: Table = {
    "paths.private": partial(_path, "private"),
    "paths.cache": partial(_path, "cache"),
}
OF_ONE_CLASS = union(
    GUARANTEE, DATASET, FEATURES_AND_SWEEP, search_sections.RULES, learner_rules.RULES, PATHS
)
RULES = findings.with_finding_rules(OF_ONE_CLASS)
