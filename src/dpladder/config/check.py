"""Rules between the keys of one experiment, one function for each key, and across a project. Types
and ranges are the model's own."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import zip_longest
from pathlib import Path

from dpladder.config import findings, further_tests, learner_sections, search_sections
from dpladder.config.apart import apart_of
from dpladder.config.checkpoints import wrong_with_checkpoint
from dpladder.config.evaluate_sections import BY_CLASS
from dpladder.config.features_sections import BUNDLED_IMAGES, BUNDLED_TEXT, FOLDER, HUGGING_FACE
from dpladder.config.label_sets import MANY, most_labels
from dpladder.config.learner_sections import (
    HEADS,
    Tuning,
    guided,
    shares_releases,
    starts_bought,
    starts_public,
)
from dpladder.config.model import Config, Tester, repeat_name
from dpladder.config.rules import Messages, Problem, Table, problems, when
from dpladder.config.search_sections import Ladder
from dpladder.config.source_rules import (
    group_rules,
    overlapping,
    wrong_with_path,
    wrong_with_source,
)
from dpladder.config.sources import SourceKind, Takes, count_of_classes, kind_of, labels_of, overlap
from dpladder.config.wording import KeyPath, shown

MOST_CONFUSED = 30  # classes in a table of what each was taken for
PUBLIC_FOLDERS = (Path("results"), Path("logs"), Path("benchmarks"))
KEPT_WEIGHTS = ("bundled", "pretrained", "random")
IN_WORDS: Mapping[Takes, str] = {
    "features": "a feature matrix needs model: none",
    "images": "images need a model of timm's",
    "texts": "texts need model: minilm or hf:<name>",
}
OF_DATASET = (
    "source",
    "public_test",
    "public_validation",
    "public_sample",
    "public_unlabelled",
)
LINE_COLUMNS = ("id", "user", "split")
INPUT = "input"  # of features.until: from the first layer on
SQUAD = "squad:"  # begins a source of questions
LEAST_TOKENS = 128  # of a question with its context
TASK_OF_POOLING = {"none": "language_model", "each": "question_answering"}


def problems_of_experiment(config: Config, doubtful: Collection[KeyPath] = ()) -> Iterator[Problem]:
    """What is wrong between keys, but for echoes of doubtful ones."""
    yield from problems(TESTER if isinstance(config, Tester) else RULES, config, doubtful)
    for place, also in enumerate(config.evaluate.also if config.task == "classification" else ()):
        table, at = further_tests.rules_of(also), ("evaluate", "also", place)
        yield from problems(table, config, doubtful, at, (also,))


def problems_of_task(config: Config) -> Iterator[Problem]:
    """Keys that a task decides by itself, as they were given; and what only one task can have."""
    of_task = {
        "language_model": LANGUAGE_MODEL,
        "question_answering": QUESTION_ANSWERING,
        "classification": CLASSIFIER,
    }[config.task]
    yield from problems(of_task, config)


def problems_of_project(experiments: Mapping[str, Config]) -> Iterator[Problem]:
    """Experiments on one lineage must agree on what is fixed for the lineage's life."""
    first: dict[str, tuple[str, dict[str, object]]] = {}
    for name, config in experiments.items():
        terms, lineage = lineage_terms(config), config.dataset.lineage
        owner, agreed = first.setdefault(lineage, (name, terms))
        for key in terms:
            theirs = agreed.get(key)
            if terms[key] != theirs:
                yield (
                    ("experiments", name, *key.split(".")),
                    f"given {shown(terms[key])}, but {shown(theirs)} in {owner}; it is fixed "
                    f"for the life of lineage {lineage}, so give both the same",
                )
        repeats = {repeat_name(name, number) for number in range(1, config.research.repeats)}
        for taken in experiments.keys() & repeats:
            says = f"this is what a repeat of {name} is called; choose another name"
            yield ("experiments", taken), says


def lineage_terms(config: Config) -> dict[str, object]:
    """The keys that one lineage holds for life (docs/design.md: lineage)."""
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
    """The keys that say by what a unit is known, which its part follows from: by another column
    the same people would lie in other parts. Nothing where parts are given, which add anyhow, and
    where nobody is protected."""
    dataset = config.dataset
    if dataset.split.rule == "given" or config.mode == "research":
        return {}
    by_user, apart = dataset.unit.by == "user", apart_of(dataset.source)
    return {
        "dataset.id": None if by_user else dataset.id,
        "dataset.user": dataset.user if by_user else None,
        "dataset.source.patient": apart.patient if by_user and apart is not None else None,
    }


# --- what a task decides, and what it alone can have ---


def _unit(c: Config) -> Messages:
    spans, by = c.dataset.spans, c.dataset.unit.by
    if spans and by == "record":
        yield (
            "with dataset.spans a document is several records, and to protect each by itself "
            "protects no document: set by: document, or user, and cap: how many of its records may "
            "count"
        )
    if not spans and by == "document":
        yield (
            "without dataset.spans a document is one record: set dataset.spans: true, or by: record"
        )


def _of_squad(field: str, c: Config) -> Messages:
    """Questions stand in sources of their own, and nothing else stands there."""
    source, asks = getattr(c.dataset, field), c.task == "question_answering"
    kind = None if source is None else kind_of(source)
    if kind is not None and source.startswith(SQUAD) != asks:
        yield (
            f"task: question_answering needs questions with their contexts: {SQUAD}<path>"
            if asks
            else f"{SQUAD}<path> holds questions with their contexts: set task: question_answering"
        )


SQUAD_ALONE: Table = {f"dataset.{field}": partial(_of_squad, field) for field in OF_DATASET}
DECIDED = "a key which task: language_model decides by itself; leave it out"
LANGUAGE_MODEL: Table = {
    **SQUAD_ALONE,
    "dataset.classes": when(lambda c: c.dataset.classes is not None, DECIDED),
    "features.until": when(lambda c: c.features.until not in (None, INPUT), DECIDED),
    "features.pooling": when(lambda c: c.features.pooling not in ("mean", "none"), DECIDED),
    "features.model": when(
        lambda c: not c.features.model.startswith(HUGGING_FACE),
        "task: language_model needs a causal model of transformers: hf:<name or folder>",
    ),
    "learner.trains": when(
        lambda c: getattr(c.learner, "trains", "") == "head",
        "a language model has no head: name what of the network is trained",
    ),
    "learner.link": when(
        lambda c: getattr(c.learner, "link", "softmax") != "softmax",
        "a language model tells words by softmax alone; leave it out",
    ),
    "dataset.unit.by": _unit,
    "evaluate.measures": when(
        lambda c: c.evaluate.measures != "accuracy",
        "a language model is measured by its perplexity alone; leave it out",
    ),
    "evaluate.also": when(
        lambda c: c.evaluate.also,
        "a language model has no classes that further tests could name; leave it out",
    ),
}
CLASSIFIER: Table = {
    **SQUAD_ALONE,
    "features.pooling": when(
        lambda c: c.features.pooling in TASK_OF_POOLING,
        lambda c: (
            f"given {shown(c.features.pooling)}, which is for task: "
            f"{TASK_OF_POOLING[c.features.pooling]}; use mean, cls or last"
        ),
    ),
    "dataset.spans": when(
        lambda c: c.dataset.spans, "given true, which is for task: language_model; leave it out"
    ),
    "dataset.unit.by": when(
        lambda c: c.dataset.unit.by == "document",
        "given 'document', which is for task: language_model; set by: record",
    ),
}
NO_CLASSES = "a question has answers, and no class; leave it out"
QUESTION_ANSWERING: Table = {
    **SQUAD_ALONE,
    **{
        key: rule for key, rule in CLASSIFIER.items() if key in ("dataset.spans", "dataset.unit.by")
    },
    "dataset.classes": when(lambda c: c.dataset.classes is not None, NO_CLASSES),
    "dataset.label": when(lambda c: c.dataset.label is not None, NO_CLASSES),
    "dataset.rare": when(lambda c: c.dataset.rare is not None, NO_CLASSES),
    "dataset.user": when(
        lambda c: c.dataset.unit.by == "user" and c.dataset.user is None,
        "required with dataset.unit.by: user; SQuAD names each article by its title: user: title",
    ),
    "dataset.unit.pool": when(
        lambda c: c.dataset.unit.pooled, "a mean of questions is none: set a cap instead"
    ),
    "dataset.public_sample": when(
        lambda c: c.dataset.public_sample is not None,
        "nothing is learnt from it where answers are looked for; leave it out",
    ),
    "dataset.split.rule": when(
        lambda c: c.dataset.split.rule == "given",
        "SQuAD's layouts name no parts: use hash, and dataset.public_test for another file",
    ),
    "features.model": when(
        lambda c: c.features.takes != "texts",
        "task: question_answering needs an encoder of texts: minilm or hf:<name or folder>",
    ),
    "features.tokens": when(
        lambda c: c.features.tokens < LEAST_TOKENS,
        f"a question with its context needs {LEAST_TOKENS} at least, and 384 holds nearly all of "
        "SQuAD's: what is cut off holds no answer",
    ),
    "features.until": when(
        lambda c: c.features.until not in (None, INPUT),
        "what is kept of a question are its tokens; leave it out",
    ),
    "features.pooling": when(
        lambda c: c.features.pooling not in ("mean", "each"),
        "answers are told by each token; leave it out",
    ),
    "learner.trains": when(
        lambda c: getattr(c.learner, "trains", "") == "head",
        "a head alone is not trained on tokens: name what of the network is trained with it",
    ),
    "learner.link": when(
        lambda c: getattr(c.learner, "link", "softmax") != "softmax",
        "tokens are told apart by softmax alone; leave it out",
    ),
    "learner.init": when(
        lambda c: getattr(c.learner, "init", "zero") == "public",
        "a public head tells classes apart; leave it out",
    ),
    "learner.public": when(
        lambda c: guided(c.learner), "public records that guide have classes; leave it out"
    ),
    "learner.head": when(
        lambda c: starts_bought(c.learner), "the head that is bought tells classes; leave it out"
    ),
    "evaluate.measures": when(
        lambda c: c.evaluate.measures != "accuracy",
        "what is counted is how many answers are right; leave it out",
    ),
    "evaluate.also": when(
        lambda c: c.evaluate.also,
        "a question has no class that further tests could name; leave it out",
    ),
}

# --- the guarantee ---


def _delta(c: Config) -> Messages:
    limit = 1 / c.dataset.nominal_size
    if c.privacy.delta >= limit:
        yield (
            f"it must stay below 1/nominal_size = {limit:.3g}: at that delta publishing one random "
            "record in full would count as private"
        )


def _lifetime(c: Config) -> Messages:
    if c.privacy.lifetime and c.privacy.lifetime.epsilon < c.privacy.epsilon:
        yield f"it must be at least privacy.epsilon = {c.privacy.epsilon!r}"


def _without_noise(c: Config) -> Messages:
    if not c.final.without_noise:
        return
    if c.mode != "research":
        yield "a model without noise protects nobody: set mode: research, on data declared public"
    if getattr(c.learner, "sampling_rate", 1.0) < 1:
        yield "it trains on full batches: leave learner.sampling_rate out"
    if c.features.until is not None:
        yield "its learner is one on pooled features: leave features.until out"
    if c.features.mean is not None or shares_releases(c.learner):
        yield "features.mean and learner.covariance, statistics and head are noised: leave them out"


# --- dataset ---


def _kind(c: Config) -> SourceKind | None:
    """What is known of the private source."""
    return kind_of(c.dataset.source)


def _names(c: Config) -> tuple[str, ...]:
    return c.dataset.classes if isinstance(c.dataset.classes, tuple) else ()


def _source(field: str, c: Config) -> Messages:
    own, source = c.dataset.source, getattr(c.dataset, field)
    yield from wrong_with_source(source)
    if source is None or field == "source":
        return
    if overlap(source, own):
        yield (
            f"{overlapping(source, own)}; name another one that is open to everybody, or hold out "
            "private data by dataset.split"
        )
    kind = kind_of(source)
    of_one = kind is not None and (kind.folder or not kind.own)
    if of_one and findings.are_many(c):
        yield "with dataset.labels: many name a table or arrays: a record of this has one label"
    told_by_groups = group_rules("", lambda: (source, c.dataset.group)).values()
    of_part = field not in ("public_sample", "public_unlabelled")
    if of_part and any([*rule()] for rule in told_by_groups):
        yield (
            "with dataset.group its records are told by the same groups, and it has none there: "
            "name it in evaluate.also"
        )
    if field == "public_unlabelled" and c.learner.name not in HEADS:
        yield f"a linear head labels them: set learner.name to one of {', '.join(HEADS)}"
    if not of_part and (field == "public_unlabelled" or not starts_public(c.learner)):
        return
    # labels that are numbers are matched by place there, which must not mean other classes
    here, there = labels_of(own), labels_of(source)
    if here is not None and there is not None and here != there:
        place = next(at for at, both in enumerate(zip_longest(here, there)) if both[0] != both[1])
        remedy = (
            f"learner.{'public: gradient' if guided(c.learner) else 'init: public'} needs one "
            "whose labels are the same"
            if field == "public_sample"
            else "name it in evaluate.also, where labels are matched by name"
        )
        yield (
            f"its label {place} and that of {shown(own)} are not the same class by their names: "
            f"{remedy}"
        )


def _columns(c: Config) -> Messages:
    columns, source, kind = c.dataset.columns, c.dataset.source, _kind(c)
    if columns and kind and not kind.columns:
        yield (
            "only tables (csv, parquet) have columns to choose from, and jsonl some to name: leave "
            "it out"
        )
    elif source.startswith("jsonl:") and not set(columns) <= set(LINE_COLUMNS):
        yield f"for jsonl name those of {', '.join(LINE_COLUMNS)} that its lines have"
    elif columns and c.features.takes == "texts" and source.startswith(("csv:", "parquet:")):
        yield "of a table of texts the column text is read; leave it out"


def _links(c: Config) -> Messages:
    given = [getattr(c.dataset, field) for field in OF_DATASET]
    kinds = [kind_of(source) for source in given if source is not None]
    if c.dataset.links != "none" and not any(kind and kind.walked for kind in kinds):
        yield "only folders (folder, texts, images) have links: leave it out"


def _two_users(c: Config) -> bool:
    apart = apart_of(c.dataset.source)
    return c.dataset.user is not None and apart is not None and apart.patient is not None


def _classes(c: Config) -> Messages:
    classes, kind = c.dataset.classes, _kind(c)
    if classes is None and kind and kind.own:
        yield (
            "required for your own data: list the class names, or say how many there are; they are "
            "public"
        )
    if len(_names(c)) == 1 or (classes == 1 and c.task == "classification"):
        yield "a single class leaves nothing to tell apart"


def _count(c: Config) -> int | None:
    return count_of_classes(c.dataset.source, c.dataset.classes)


def _majority(c: Config) -> Messages:
    share, count = c.dataset.majority, _count(c)
    if share is not None and count and share < 1 / count:
        yield (
            f"given {share:g}, and the largest of {count} classes holds {1 / count:.4g} at least: "
            "correct it, or leave it out"
        )


def _rare(c: Config) -> Messages:
    share, count, largest = c.dataset.rare, _count(c), c.dataset.majority
    if share is None or c.dataset.labels != 1:
        return
    if count and share > 1 / count:
        yield (
            f"given {share:g}, and the rarest of {count} classes holds {1 / count:.4g} at most: "
            "correct it, or leave it out"
        )
    elif largest is not None and share > 1 - largest:
        yield f"dataset.majority leaves {1 - largest:.4g} to all other classes: correct one of both"


def _labels(c: Config, of_one: str = "leave it out") -> Messages:
    """A record of several classes needs room for them, and a learner and a measure that know of
    it."""
    dataset, kind, names, count = c.dataset, _kind(c), _names(c), _count(c) or 2
    if dataset.labels == 1:
        return
    if kind and (kind.folder or not kind.own):
        yield f"a record of {shown(dataset.source)} has one label: {of_one}"
    if dataset.labels == MANY:
        yield from findings.too_many(count)
    elif c.learner.name != "dp_ls":
        yield (
            f"{c.learner.name} takes one class for each record: use learner: {{name: dp_ls}}, or "
            "leave it out"
        )
    elif dataset.labels > most_labels(count):
        yield f"of {count} classes at most {most_labels(count)} can be told together"
    if any("|" in name for name in names) and not isinstance(dataset.label, tuple):
        yield "a name in dataset.classes holds a bar, which stands between names: call it otherwise"
    if any(name.strip().startswith("-") for name in names):
        yield (
            "a name in dataset.classes begins with a minus, and rows of labels are filled up with "
            "numbers below 0: call it otherwise"
        )


def _test_part(c: Config) -> Messages:
    split = c.dataset.split
    if c.dataset.public_test is None and split.rule == "hash" and split.test == 0:
        yield (
            "the final model needs something to be measured on: raise it, or name "
            "dataset.public_test"
        )


def _measures(c: Config) -> Messages:
    measures, labels, count = c.evaluate.measures, c.dataset.labels, _count(c)
    if measures in BY_CLASS and labels != MANY and labels > 1:
        yield (
            "with dataset.labels above 1 a record is of several classes, and would count in "
            "several: use accuracy, or groups"
        )
    if measures == "groups" and c.dataset.group is None:
        yield "it needs dataset.group, which names the groups"
    if measures == "confusion" and labels == MANY:
        yield "findings are each told by themselves, and classes counts what each is taken for"
    if measures == "confusion" and count and count > MOST_CONFUSED:
        yield (
            f"a table of {count} times {count} counts would be mostly noise, and {MOST_CONFUSED} "
            "classes are the most that it is made of: set measures: classes"
        )
    if measures == "auc" and count != 2 and labels != MANY:
        told = f"there are {count} classes" if count else "its classes are known when it is read"
        yield f"{told}, and AUC is of two: set measures: classes, or dataset.classes to two names"


# --- features ---


def _model(c: Config) -> Messages:
    kind, model = _kind(c), c.features.model
    held = kind.holds if kind else tuple(IN_WORDS)
    if c.features.takes not in held:
        needed = ", and ".join(IN_WORDS[what] for what in held)
        yield f"given {shown(model)} with source {shown(c.dataset.source)}; {needed}"
    folder = Path(model.removeprefix(FOLDER)).expanduser()
    if model.startswith(FOLDER) and not (folder / "config.json").is_file():
        yield (
            f"{folder} has no config.json: name a folder as timm saves one "
            "(timm.models.save_for_hf), with the weights beside it"
        )


def _weights(c: Config) -> Messages:
    model, weights, texts = c.features.model, c.features.weights, c.features.takes == "texts"
    own = "bundled" if model == BUNDLED_TEXT else "pretrained"
    if texts and weights != own:
        yield f"{model} has weights: {own} alone"
    elif not texts and weights == "bundled" and model not in (*BUNDLED_IMAGES, "none"):
        yield (
            f"given 'bundled' with model {shown(model)}; bundled weights exist for "
            "efficientnet_lite0, 1 and 2 alone; use pretrained or a path"
        )
    elif not texts and weights not in KEPT_WEIGHTS:
        path = Path(weights).expanduser()
        wrong = next(wrong_with_path(str(path)), None) or wrong_with_checkpoint(path)
        if wrong:
            yield f"allowed: {', '.join(KEPT_WEIGHTS)}, or a checkpoint's path; {wrong}"


def _centre(c: Config) -> Messages:
    features, centre = c.features, c.features.centre
    if centre == "public" and c.dataset.public_sample is None:
        yield "it needs dataset.public_sample"
    if centre == "network" and features.takes == "texts":
        yield "a language model's own mean is not known; leave it out"
    elif centre == "network" and (features.model == "none" or features.layers):
        yield "it needs a network's pooled features: features.model, and no features.layers"
    if features.mean is not None and centre not in ("auto", "noised"):
        yield (
            f"given {shown(centre)} beside features.mean, which is for noised: leave one of them "
            "out"
        )
    if centre == "noised" and features.mean is None and features.length == "as_is":
        yield RADIUS


RADIUS = (
    "a noised mean of records that keep their lengths (features.length: as_is) needs "
    "features.mean: {epsilon, radius}"
)


def _until(c: Config) -> Messages:
    """Activations at a cut are what a network goes on from, and nothing else may be made of
    them."""
    features = c.features
    if features.until is None:
        return
    if features.takes == "features":
        yield "features.model is none, and there is no network to cut; leave it out"
    if features.layers:
        yield "it needs features.layers to be empty: those are pooled"
    if features.normalize:
        yield "it needs features.normalize: false, for the network goes on from what is kept"
    if features.mean is not None or features.centre not in ("auto", "none"):
        yield "it needs features.centre: none, and no features.mean"
    if not isinstance(c.learner, Tuning):
        yield (
            f"learner {c.learner.name} takes pooled features; leave it out, or set learner.name: "
            "dp_finetune, hyfree_finetune or prodigy_finetune"
        )
    if not isinstance(c.hpo, Ladder):
        yield "its learner climbs the ladder alone; leave hpo out"


# --- sweep and fit ---


def _rungs(c: Config) -> Messages:
    """With shared statistics all trainings have one budget, and a rung's epsilon buys scores alone:
    there is no line."""
    if not isinstance(c.hpo, Ladder):
        return
    learner, search, fit = c.learner, c.sweep.search, c.fit
    points = len({rung.epsilon for rung in c.sweep.ladder})
    solved = getattr(learner, "statistics", None) is not None
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


def _using(c: Config) -> Messages:
    solved = getattr(c.learner, "statistics", None) is not None
    if isinstance(c.hpo, Ladder) and c.sweep.ladder and solved and c.fit.using != "pooled":
        yield "all trials solve the same statistics, one point for a line: set using: pooled"


def _select_part(c: Config) -> Messages:
    select, split = c.sweep.select, c.dataset.split
    counted = select.by != "public" and select.part == "validation"
    if counted and split.rule == "hash" and split.validation == 0:
        yield "it needs dataset.split.validation above 0"


# --- paths ---


def _path(name: str, c: Config) -> Messages:
    path = getattr(c.paths, name)
    own = None if path is None else Path(os.path.abspath(path))
    public = [folder.absolute() for folder in PUBLIC_FOLDERS]
    if own and any(own.is_relative_to(one) or one.is_relative_to(own) for one in public):
        yield (
            f"neither it nor {', '.join(map(str, PUBLIC_FOLDERS))} may lie in the other: those are "
            "public, it must never be shared"
        )


OF_ONE_CLASS: Table = {
    "privacy.delta": _delta,
    "privacy.lifetime.epsilon": _lifetime,
    "mode": when(
        lambda c: c.mode == "research" and not c.dataset.declared_public,
        "research runs only on data declared public; set dataset.declared_public: true if nobody "
        "in it needs protection",
    ),
    "research.repeats": when(
        lambda c: c.mode == "release" and c.research.repeats > 1, "repeats need mode: research"
    ),
    "final.without_noise": _without_noise,
    **{f"dataset.{field}": partial(_source, field) for field in OF_DATASET},
    "dataset.columns": _columns,
    "dataset.links": _links,
    "dataset.id": when(
        lambda c: c.dataset.id is not None and apart_of(c.dataset.source) is not None,
        "an image is known by its path below the folder, and so is a bag; leave it out",
    ),
    "dataset.user": when(_two_users, "dataset.source.patient says whose an image is; keep one"),
    "dataset.classes": _classes,
    "dataset.labels": _labels,
    "dataset.majority": _majority,
    "dataset.rare": _rare,
    "dataset.unit.pool": when(
        lambda c: c.dataset.unit.pooled and (c.features.until or c.task == "language_model"),
        "a mean is of pooled features, and this learner trains a part of the network: use a head's "
        "learner without features.until, or a cap",
    ),
    "dataset.split.test": _test_part,
    "dataset.public_size": when(
        lambda c: c.dataset.public_size is not None and c.dataset.public_sample is None,
        "it is about dataset.public_sample, which is not given: leave it out",
    ),
    **group_rules("dataset.group", lambda c: (c.dataset.source, c.dataset.group)),
    "evaluate.measures": _measures,
    "features.model": _model,
    "features.weights": _weights,
    "features.image_size": when(
        lambda c: c.features.takes == "texts" and c.features.image_size is not None,
        "texts have no pixels; leave it out",
    ),
    "features.layers": when(
        lambda c: c.features.takes == "texts" and c.features.layers,
        "a language model's last layer is taken; leave it out",
    ),
    "features.centre": _centre,
    "features.mean.radius": when(
        lambda c: c.features.mean and not c.features.mean.radius and c.features.length == "as_is",
        RADIUS,
    ),
    "features.until": _until,
    "sweep.rungs": _rungs,
    "sweep.search.prior": when(
        lambda c: c.sweep.search.unit == "r" and c.sweep.search.prior == "lognormal",
        "a prior in kappa; with unit: r set none, monotone or proportional",
    ),
    "sweep.select.by": when(
        lambda c: c.sweep.select.by == "public" and c.dataset.public_validation is None,
        "it needs dataset.public_validation",
    ),
    "sweep.select.part": _select_part,
    "fit.using": _using,
    "fit.against": when(
        lambda c: c.sweep.search.unit == "r" and c.fit.against == "kappa",
        "with sweep.search.unit: r set epsilon or mu",
    ),
    "fit.degree": when(
        lambda c: c.fit.using == "pooled" and c.fit.degree != 1,
        "pooled scores take a line: set using: best for a parabola",
    ),
    **search_sections.RULES,
    **learner_sections.RULES,
    "paths.private": partial(_path, "private"),
    "paths.cache": partial(_path, "cache"),
}
RULES = findings.beside(OF_ONE_CLASS)

OF_OTHERS = (
    "hpo.name",
    "dataset.public_test",
    "dataset.public_validation",
    "dataset.public_sample",
    "dataset.public_unlabelled",
)
TESTER: Table = {
    **{key: rule for key, rule in RULES.items() if key not in OF_OTHERS},
    "dataset.labels": lambda c: _labels(
        c, f"{c.tested}, whose models are measured, needs a table or arrays here"
    ),
}
"""What an experiment is held to that measures another one's models: its searches and public sources
are the other's (config/testers.py)."""
