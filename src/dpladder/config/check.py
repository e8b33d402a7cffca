"""What holds between keys, within one experiment and across a project. Types and ranges are the
model's own."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

from dpladder.config.checkpoints import wrong_with_checkpoint
from dpladder.config.label_sets import most_labels
from dpladder.config.learner_sections import Tuning, shares_releases, starts_public
from dpladder.config.model import BUNDLED_IMAGES, BUNDLED_TEXT, HUGGING_FACE, Also, Config, Group
from dpladder.config.search_sections import Ladder
from dpladder.config.sources import FORMS, SourceKind, Takes, kind_of, labels_of, names_of, overlap
from dpladder.config.wording import KeyPath, did_you_mean, shown

Problem = tuple[KeyPath, str]

PUBLIC_FOLDERS = (Path("results"), Path("logs"), Path("benchmarks"))
KEPT_WEIGHTS = ("bundled", "pretrained", "random")
IN_WORDS: Mapping[Takes, str] = {
    "features": "a feature matrix needs model: none",
    "images": "images need a model of timm's",
    "texts": "texts need model: minilm or hf:<name>",
}
LINE_COLUMNS = ("id", "user", "split")
INPUT = "input"  # of features.until: from the first layer on


def problems_of_experiment(config: Config, doubtful: Collection[KeyPath] = ()) -> list[Problem]:
    """What is wrong between keys. A check that reads a doubtful key is left out: it would complain
    of an echo."""
    return [
        problem
        for check, keys in _READS.items()
        if not any(_overlap(tuple(key.split(".")), doubt) for key in keys for doubt in doubtful)
        for problem in check(config)
    ]


def problems_of_task(config: Config) -> list[Problem]:
    """Keys that a language model decides by itself, as they were given; and what only it can have."""
    features, dataset = config.features, config.dataset
    if config.task != "language_model":
        theirs = (
            (("features", "pooling"), features.pooling == "none", "given 'none', which is for "
                                                                  "task: language_model; use mean, "
                                                                  "cls or last"),
            (("dataset", "spans"), dataset.spans, "given true, which is for task: language_model; "
                                                  "leave it out"),
            (("dataset", "unit", "by"), dataset.unit.by == "document", "given 'document', which is for task: language_model; set by: record"),
        )  # fmt: skip
        return [(key, what) for key, holds, what in theirs if holds]
    told = "which task: language_model decides by itself; leave it out"
    wrong = (
        (("dataset", "classes"), dataset.classes is not None, f"given {shown(dataset.classes)}, "
                                                              f"{told}"),
        (("features", "until"), features.until not in (None, INPUT), f"given {shown(features.until)}, {told}"),
        (("features", "pooling"), features.pooling not in ("mean", "none"), f"given {shown(features.pooling)}, {told}"),
        (("features", "model"), not features.model.startswith(HUGGING_FACE), f"given {shown(features.model)}; task: language_model needs a causal model of transformers: hf:<name or folder>"),
        (("learner", "trains"), getattr(config.learner, "trains", "") == "head", "given 'head'; a language model has none: name what of the network is trained"),
        (("dataset", "unit", "by"), dataset.spans and dataset.unit.by == "record", "given 'record'; with dataset.spans a document is several records, and to protect each by itself protects no document: set by: document, or user, and cap: how many of its records may count"),
        (("dataset", "unit", "by"), not dataset.spans and dataset.unit.by == "document", "given 'document'; without dataset.spans a document is one record: set dataset.spans: true, or by: record"),
        (("learner", "link"), getattr(config.learner, "link", "softmax") != "softmax", "given 'sigmoid'; a language model tells words by softmax alone; leave it out"),
        (("evaluate", "measures"), config.evaluate.measures != "accuracy", f"given {shown(config.evaluate.measures)}; a language model is measured by its perplexity alone; leave it out"),
    )  # fmt: skip
    return [(key, what) for key, holds, what in wrong if holds]


def _overlap(one: KeyPath, other: KeyPath) -> bool:
    return all(a == b for a, b in zip(one, other, strict=False))


def problems_of_project(experiments: Mapping[str, Config]) -> list[Problem]:
    """Experiments on one lineage must agree on what is fixed for the lineage's life."""
    problems: list[Problem] = []
    first: dict[str, tuple[str, dict[str, object]]] = {}
    for name, config in experiments.items():
        terms = lineage_terms(config)
        owner, agreed = first.setdefault(config.dataset.lineage, (name, terms))
        problems += [
            (
                ("experiments", name, *key.split(".")),
                f"given {shown(terms[key])}, but {shown(agreed[key])} in {owner}; "
                f"it is fixed for the life of lineage {config.dataset.lineage}, so give both the "
                "same",
            )
            for key in terms
            if terms[key] != agreed[key]
        ]
        problems += [
            (
                ("experiments", taken),
                f"this is what a repeat of {name} is called; choose another name",
            )
            for taken in repeat_names(name, config)[1:]
            if taken in experiments
        ]
    return problems


def repeat_names(name: str, config: Config) -> list[str]:
    """What the repeats of an experiment are called; the first one is the experiment itself."""
    return [name, *(f"{name}-{repeat}" for repeat in range(2, config.research.repeats + 1))]


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
    }


def _delta(config: Config) -> Iterator[Problem]:
    size = config.dataset.nominal_size
    if config.privacy.delta >= 1 / size:
        yield (
            ("privacy", "delta"),
            f"given {config.privacy.delta!r}; it must stay below 1/nominal_size = {1 / size:.3g}: "
            "at that delta publishing one random record in full would count as private",
        )


def _lifetime(config: Config) -> Iterator[Problem]:
    lifetime = config.privacy.lifetime
    if lifetime is not None and lifetime.epsilon < config.privacy.epsilon:
        yield (
            ("privacy", "lifetime", "epsilon"),
            f"given {lifetime.epsilon!r}; it must be at least privacy.epsilon = "
            f"{config.privacy.epsilon!r}",
        )


def _mode(config: Config) -> Iterator[Problem]:
    if config.mode == "research" and not config.dataset.declared_public:
        yield (
            ("mode",),
            "research runs only on data declared public; set dataset.declared_public: true if "
            "nobody in it needs protection",
        )
    if config.mode == "release" and config.research.repeats > 1:
        yield (
            ("research", "repeats"),
            f"given {config.research.repeats}; repeats need mode: research",
        )


def _without_noise(config: Config) -> Iterator[Problem]:
    if not config.final.without_noise:
        return
    learner, sampled = config.learner, getattr(config.learner, "sampling_rate", 1.0) < 1
    wrong = (
        (
            config.mode != "research",
            "a model without noise protects nobody: set mode: research, on data declared public",
        ),
        (sampled, "it trains on full batches: leave learner.sampling_rate out"),
        (
            config.features.until is not None,
            "its learner is one on pooled features: leave features.until out",
        ),
        (
            config.features.mean is not None or shares_releases(learner),
            "features.mean, learner.covariance and learner.statistics are noised: leave them out",
        ),
    )
    yield from (
        (("final", "without_noise"), f"given true; {what}") for holds, what in wrong if holds
    )


def _of_it(source: str, private: str) -> str:
    """What one that overlaps with the private source is of it, in words."""
    if source == private:
        return "the private source itself"
    return (
        f"which holds records of {shown(private)}, the private source: name one split there and "
        "another here"
    )


OF_DATASET = ("source", "public_test", "public_validation", "public_sample")


def _sources(config: Config) -> Iterator[Problem]:
    dataset = config.dataset
    for field in OF_DATASET:
        source = getattr(dataset, field)
        if source is None:
            continue
        yield from _source(("dataset", field), source)
        if field != "source" and overlap(source, dataset.source):
            yield (
                ("dataset", field),
                f"given {shown(source)}, {_of_it(source, dataset.source)}; name another one that "
                "is open to everybody, "
                "or hold out private data by dataset.split",
            )
    kind = kind_of(dataset.source)
    if dataset.columns and kind and not kind.columns:
        yield (
            ("dataset", "columns"),
            f"given {shown(list(dataset.columns))}; only tables (csv, parquet) have columns to "
            "choose from, and jsonl some to name: "
            "leave it out",
        )
    elif dataset.source.startswith("jsonl:") and not set(dataset.columns) <= set(LINE_COLUMNS):
        yield (
            ("dataset", "columns"),
            f"given {shown(list(dataset.columns))}; for jsonl name those of "
            f"{', '.join(LINE_COLUMNS)} that its lines have",
        )
    given = [source for field in OF_DATASET if (source := getattr(dataset, field)) is not None]
    if dataset.links != "none" and not any(
        (of := kind_of(source)) and of.folder for source in given
    ):
        yield (
            ("dataset", "links"),
            f"given {shown(dataset.links)}; only folders (folder, texts) have links: leave it out",
        )
    if kind and kind.own and dataset.classes is None:
        yield (
            ("dataset", "classes"),
            "required for your own data: list the class names, or say how many there are; they are "
            "public",
        )
    classes = list(dataset.classes) if isinstance(dataset.classes, tuple) else dataset.classes
    if (classes == 1 and config.task == "classification") or (
        isinstance(classes, list) and len(classes) == 1
    ):
        yield (
            ("dataset", "classes"),
            f"given {shown(classes)}; a single class leaves nothing to tell apart",
        )


def _labels(config: Config) -> Iterator[Problem]:
    """A record of several classes needs room for them, and a learner and a measure that know of it."""
    dataset, measures = config.dataset, config.evaluate.measures
    most, kind, classes = dataset.labels, kind_of(dataset.source), dataset.classes
    if most == 1:
        return
    names = classes if isinstance(classes, tuple) else ()
    room = most_labels(len(names) or (classes if isinstance(classes, int) else 2))
    given, of = f"given {most}", config.evaluate.of
    remedy = (
        "leave it out"
        if of is None
        else f"{of}, whose models are measured, needs a table or arrays here"
    )
    wrong = (
        (kind is not None and (kind.folder or not kind.own), f"{given}; a record of "
                                                             f"{shown(dataset.source)} has one "
                                                             f"label: {remedy}"),
        (config.learner.name != "dp_ls", f"{given}; {config.learner.name} takes one class for each "
                                         "record: use learner: {name: dp_ls}, or leave it out"),
        (most > room, f"{given}; of {classes if isinstance(classes, int) else len(names)} classes "
                      f"at most {room} can be told together"),
        (any("|" in name for name in names), f"{given}; a name in dataset.classes holds a bar, "
                                             "which stands between names: call it otherwise"),
        (any(name.strip().startswith("-") for name in names), f"{given}; a name in dataset.classes "
                                                              "begins with a minus, and rows of "
                                                              "labels are filled up with numbers "
                                                              "below 0: call it otherwise"),
    )  # fmt: skip
    yield from ((("dataset", "labels"), what) for holds, what in wrong if holds)
    if measures in ("classes", "auc"):
        yield (
            ("evaluate", "measures"),
            f"given {shown(measures)}; with dataset.labels above 1 a record is of several classes, "
            "and would count in several: "
            "use accuracy, or groups",
        )


def _order(config: Config) -> Iterator[Problem]:
    """Labels that are numbers are matched by place there, which must not mean other classes."""
    own = labels_of(config.dataset.source)
    by_place = dict.fromkeys(
        ("public_test", "public_validation"),
        "name it in evaluate.also, where labels are matched by name",
    )
    if starts_public(config.learner):
        by_place["public_sample"] = "learner.init: public needs one whose labels are the same"
    for field, remedy in by_place.items():
        source = getattr(config.dataset, field)
        other = None if source is None else labels_of(source)
        if own is not None and other is not None and own != other:
            place = next(
                at for at, both in enumerate(zip_longest(own, other)) if both[0] != both[1]
            )
            yield (
                ("dataset", field),
                f"given {shown(source)}; its label {place} and that of "
                f"{shown(config.dataset.source)} are not the same class "
                f"by their names: {remedy}",
            )


def _also(config: Config) -> Iterator[Problem]:
    """Each further test is of one kind, and its labels are matched by name."""
    tests, names = config.evaluate.also, [also.name for also in config.evaluate.also]
    if tests and config.task == "language_model":
        yield (
            ("evaluate", "also"),
            "a language model has no classes that further tests could name; leave it out",
        )
        return
    severities = {
        f"{also.name}-{one}" for also in tests if also.corruption for one in also.severities
    }
    for place, also in enumerate(tests):
        at: KeyPath = ("evaluate", "also", place)
        if also.name in {"test", *names[:place], *severities}:
            yield (
                (*at, "name"),
                f"given {shown(also.name)}; another test is called so: choose another name",
            )
        if (also.source is None) == (also.of is None):
            yield at, "it is of a source of its own, or of another test's images: give source or of"
        elif also.source is not None:
            yield from _other_source(config, also, at)
        else:
            yield from _of_another(config, also, at)


def _other_source(config: Config, also: Also, at: KeyPath) -> Iterator[Problem]:
    source, dataset = also.source or "", config.dataset
    for key in ("corruption", "epsilon", "groups"):
        if getattr(also, key):
            yield (
                (*at, key),
                f"given {shown(getattr(also, key))}; it goes with of, on a test that is named "
                "there: leave it out",
            )
            break
    if not also.declared_public:
        yield (
            (*at, "declared_public"),
            "given False; private records of other people are a lineage of their own, with a limit "
            "and a statement: give them an "
            "experiment with evaluate.of (docs/data.md); or set it to true if nobody in that "
            "source needs protection; or make them a "
            "group of dataset.source that is not trained on (dataset.group)",
        )
    if overlap(source, dataset.source):
        yield (
            (*at, "source"),
            f"given {shown(source)}, {_of_it(source, dataset.source)}; to hold some of it out, use "
            "dataset.split",
        )
    found = [*_source((*at, "source"), source)]
    yield from found
    kind = kind_of(source)
    if also.group is not None and kind is not None:
        yield from _grouped(source, also.group, (*at, "group"))
    if kind is not None and config.features.takes not in kind.holds:
        yield (
            (*at, "source"),
            f"given {shown(source)}; features.model: {config.features.model} takes "
            f"{config.features.takes}",
        )
    if not found and kind is not None:
        yield from _matched(config, also, at, kind)


def _matched(config: Config, also: Also, at: KeyPath, kind: SourceKind) -> Iterator[Problem]:
    """By name: where one side has none, the config says what counts as what."""
    own, key = names_of(config.dataset.source, config.dataset.classes), (*at, "classes")
    wrong = [name for _, name in also.classes if own is not None and name not in own]
    unnamed = [name for _, name in also.classes if own is None and not name.isdecimal()]
    if wrong:
        yield (
            key,
            f"given {shown(wrong[0])}; {did_you_mean(wrong[0], own or ())}allowed: "
            f"{', '.join(own or ())}, or null for none",
        )
    elif unnamed:
        yield (
            key,
            f"given {shown(unnamed[0])}; dataset.classes has no names, so a class is meant by its "
            "number, in quotes",
        )
    elif own is None and not also.classes:
        yield (
            key,
            "required where dataset.classes has no names: labels are matched by name, for the same "
            "numbers may mean other classes. "
            "List the names of both, or give the class that each label counts as, by its number in "
            "quotes",
        )
    elif not kind.own and not also.classes and labels_of(also.source or "") is None:
        yield (
            key,
            f"required: the labels of {shown(also.source)} are numbers, and what they are called "
            "is not known here. List their names, "
            "in the words of dataset.classes",
        )


def _of_another(config: Config, also: Also, at: KeyPath) -> Iterator[Problem]:
    """Another test's records: some groups of them, or their images corrupted, or both."""
    named = {other.name: other for other in config.evaluate.also if other.source is not None}
    private = also.of == "test" and config.dataset.public_test is None
    known = ["test", *named]
    if also.of not in known:
        yield (
            (*at, "of"),
            f"given {shown(also.of)}; {did_you_mean(also.of or '', known)}allowed: "
            f"{', '.join(known)}",
        )
    if also.corruption is None and not also.groups:
        yield (
            (*at, "corruption"),
            "required with of: blur, or noise; or groups, to count some of its records",
        )
    for key in ("classes", "declared_public", "group"):
        if getattr(also, key):
            yield (
                (*at, key),
                "it is for a source; its records are those of another test: leave it out",
            )
            break
    whose = (
        config.dataset.group
        if also.of == "test"
        else named[also.of].group
        if also.of in named
        else None
    )
    unknown = [name for name in also.groups if whose is None or name not in whose.names]
    if unknown:
        key = "dataset.group" if also.of == "test" else f"group of {also.of}"
        allowed = (
            f"allowed: {', '.join(whose.names)}"
            if whose
            else f"{key} names no groups: declare them there"
        )
        yield (
            (*at, "groups"),
            f"given {shown(unknown[0])}; "
            f"{did_you_mean(unknown[0], whose.names if whose else ())}{allowed}",
        )
    if also.corruption is not None and config.features.takes != "images":
        yield (
            (*at, "corruption"),
            f"features.model: {config.features.model} takes {config.features.takes}, and images "
            "alone can be corrupted: leave it out",
        )
    if len(set(also.severities)) != len(also.severities):
        yield (*at, "severities"), "name each severity once"
    if private and also.epsilon is None:
        yield (
            (*at, "epsilon"),
            "required: the test part is private, and each count on it is paid for: say what one "
            "may cost",
        )
    if not private and also.epsilon is not None:
        yield (
            (*at, "epsilon"),
            f"given {also.epsilon:g}; counts on what is declared public are exact and free: leave "
            "it out",
        )


def _source(key: KeyPath, source: str) -> Iterator[Problem]:
    kind = kind_of(source)
    if kind is None:
        yield (
            key,
            f"given {shown(source)}; {did_you_mean(source, FORMS)}allowed: {', '.join(FORMS)}",
        )
        return
    wrong = _wrong_with(source.partition(":")[2], kind.folder) if kind.own else None
    if wrong:
        yield key, f"given {shown(source)}; {wrong}"


def _wrong_with(path: str, folder: bool = False) -> str | None:
    """Why a path that the config names cannot be used, if so. Nothing inside it is read here."""
    try:
        found_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        return "nothing is there; paths are relative to the working directory"
    except (OSError, ValueError) as error:
        return f"it cannot be reached ({getattr(error, 'strerror', None) or error}); check the path and its permissions"
    if found_folder != folder:
        return f"a {'folder' if folder else 'file'} is wanted there"
    return None if os.access(path, os.R_OK) else "it cannot be read; check its permissions"


def _centre(config: Config) -> Iterator[Problem]:
    centre, features = config.features.centre, config.features
    given = ("features", "centre")
    if centre == "public" and config.dataset.public_sample is None:
        yield given, "given 'public'; it needs dataset.public_sample"
    if centre == "network" and (features.model == "none" or features.layers):
        yield (
            given,
            "given 'network'; it needs a network's pooled features: features.model, and no "
            "features.layers",
        )
    if features.mean is not None and centre not in ("auto", "noised"):
        yield (
            given,
            f"given {shown(centre)} beside features.mean, which is for noised: leave one of them "
            "out",
        )
    bought = centre == "noised" or features.mean is not None
    if (
        bought
        and features.length == "as_is"
        and (features.mean is None or features.mean.radius is None)
    ):
        yield (
            ("features", "mean", "radius") if features.mean is not None else given,
            "a noised mean of records that keep their lengths (features.length: as_is) needs "
            "features.mean: {epsilon, radius}",
        )


def _features(config: Config) -> Iterator[Problem]:
    kind, features = kind_of(config.dataset.source), config.features
    held = tuple(IN_WORDS) if kind is None else kind.holds
    if features.takes not in held:
        yield (
            ("features", "model"),
            f"given {shown(features.model)} with source {shown(config.dataset.source)}; "
            + ", and ".join(IN_WORDS[what] for what in held),
        )
    elif features.takes == "texts":
        yield from _texts(config)
    elif features.weights == "bundled" and features.model not in (*BUNDLED_IMAGES, "none"):
        yield (
            ("features", "weights"),
            f"given 'bundled' with model {shown(features.model)}; bundled weights exist for "
            "efficientnet_lite0, 1 and 2 alone; use pretrained or a path",
        )
    if features.until is not None:
        yield from _cut(config)
    if features.weights not in KEPT_WEIGHTS:
        path = Path(features.weights).expanduser()
        wrong = _wrong_with(str(path)) or wrong_with_checkpoint(path)
        if wrong:
            yield (
                ("features", "weights"),
                f"given {shown(features.weights)}; allowed: {', '.join(KEPT_WEIGHTS)}, or a "
                f"checkpoint's path; {wrong}",
            )


def _cut(config: Config) -> Iterator[Problem]:
    """Activations at a cut are what a network goes on from, and nothing else may be made of them."""
    features, learner = config.features, config.learner
    wrong = (
        (
            features.takes == "features",
            "features.model is none, and there is no network to cut; leave it out",
        ),
        (bool(features.layers), "it needs features.layers to be empty: those are pooled"),
        (
            features.normalize,
            "it needs features.normalize: false, for the network goes on from what is kept",
        ),
        (
            features.mean is not None or features.centre not in ("auto", "none"),
            "it needs features.centre: none, and no features.mean",
        ),
        (
            not isinstance(learner, Tuning),
            f"learner {learner.name} takes pooled features; leave it out, or set learner.name: "
            "dp_finetune or hyfree_finetune",
        ),
        (not isinstance(config.hpo, Ladder), "its learner climbs the ladder alone; leave hpo out"),
    )
    yield from (
        (("features", "until"), f"given {shown(features.until)}; {what}")
        for holds, what in wrong
        if holds
    )


def _texts(config: Config) -> Iterator[Problem]:
    """Keys that mean nothing for texts, or something else."""
    features, wanted = (
        config.features,
        "bundled" if config.features.model == BUNDLED_TEXT else "pretrained",
    )
    wrong = (
        ("weights", features.weights != wanted, f"{features.model} has weights: {wanted} alone"),
        ("image_size", features.image_size is not None, "texts have no pixels; leave it out"),
        ("layers", bool(features.layers), "a language model's last layer is taken; leave it out"),
        (
            "centre",
            features.centre == "network",
            "a language model's own mean is not known; leave it out",
        ),
    )
    yield from (
        (("features", key), f"given {shown(getattr(features, key))}; {what}")
        for key, holds, what in wrong
        if holds
    )
    if config.dataset.columns and config.dataset.source.startswith(("csv:", "parquet:")):
        yield ("dataset", "columns"), "of a table of texts the column text is read; leave it out"


def _sweep(config: Config) -> Iterator[Problem]:
    search = config.sweep.search
    if search.unit == "r" and search.prior == "lognormal":
        yield (
            ("sweep", "search", "prior"),
            "given 'lognormal', which is a prior in kappa; with unit: r set none, monotone or "
            "proportional",
        )
    if search.unit == "r" and config.fit.against == "kappa":
        yield ("fit", "against"), "given 'kappa'; with sweep.search.unit: r set epsilon or mu"
    if config.fit.using == "pooled" and config.fit.degree != 1:
        yield (
            ("fit", "degree"),
            f"given {config.fit.degree}; pooled scores take a line: set using: best for a parabola",
        )
    select, dataset = config.sweep.select, config.dataset
    if select.by == "public" and dataset.public_validation is None:
        yield ("sweep", "select", "by"), "given 'public'; it needs dataset.public_validation"
    if (
        select.by != "public"
        and select.part == "validation"
        and dataset.split.rule == "hash"
        and dataset.split.validation == 0
    ):
        yield (
            ("sweep", "select", "part"),
            "given 'validation'; it needs dataset.split.validation above 0",
        )


def _ladder(config: Config) -> Iterator[Problem]:
    learner, degree = config.learner, config.fit.degree
    if not isinstance(config.hpo, Ladder):
        return
    points = len({rung.epsilon for rung in config.sweep.ladder})
    line = (
        learner.searches is not None
        and config.fit.using == "best"
        and config.fit.against != "kappa"
    )
    # With shared statistics all trainings have one budget, and a rung's epsilon buys scores alone.
    solved = getattr(learner, "statistics", None) is not None
    if learner.searches is None and points:
        yield ("sweep", "rungs"), f"learner {learner.name} has nothing to search; write rungs: []"
    search = config.sweep.search
    blind = learner.searches is not None and points == 0
    if blind and (search.unit != "kappa" or search.prior != "lognormal"):
        key = ("sweep", "rungs")
        yield (
            key,
            f"without rungs by hand, r of learner {learner.name} follows from the prior in kappa: "
            "set "
            "sweep.search.unit: kappa and sweep.search.prior: lognormal, or give sweep.rungs",
        )
    elif blind:
        return
    elif solved and config.fit.using != "pooled":
        yield (
            ("fit", "using"),
            f"given {shown(config.fit.using)}; all trials solve the same statistics, one point for "
            "a line: set using: pooled",
        )
    elif line and not solved and points <= degree:
        yield (
            ("sweep", "rungs"),
            f"{points} distinct epsilon for a fit of degree {degree}; it needs at least "
            f"{degree + 1}",
        )


def _hpo(config: Config) -> Iterator[Problem]:
    """A private search is one job that spends the whole total, so nothing else may bear on the
    training part."""
    hpo, sweep, relation = config.hpo, config.sweep, config.privacy.relation
    if isinstance(hpo, Ladder) or config.evaluate.of is not None:
        return
    shared = config.features.mean is not None or shares_releases(config.learner)
    parallel = config.dataset.split.rule == "hash" and relation == "add_remove"
    wrong = (
        (
            config.learner.searches is None,
            f"learner {config.learner.name} has nothing to search; leave hpo out",
        ),
        (sweep.ladder, "it climbs no ladder; write sweep: {rungs: []} beside it"),
        (
            getattr(config.learner, "sampling_rate", 1.0) < 1,
            "its theorem is for full batches; leave learner.sampling_rate out",
        ),
        (
            (sweep.search.draw, sweep.search.prior) != ("stratified", "lognormal"),
            "it draws r by itself; leave sweep.search.draw and sweep.search.prior out",
        ),
        (
            (sweep.select.by, sweep.select.part) != ("noisy_count", "train"),
            "it counts on the training part; leave sweep.select.by and sweep.select.part out",
        ),
        (
            shared,
            "it spends the whole total; leave features.mean, learner.covariance and "
            "learner.statistics out",
        ),
        (config.final.budget != "remaining", "it spends the whole total; leave final.budget out"),
        (
            hpo.name == "koskela_kulkarni" and relation != "add_remove",
            "its bound holds under privacy.relation: add_remove alone",
        ),
        (
            config.dataset.public_test is None and not parallel,
            "the test part must cost nothing beside it: name dataset.public_test, or use "
            "split.rule: hash and "
            "privacy.relation: add_remove",
        ),
    )
    yield from ((("hpo", "name"), f"given {hpo.name!r}; {what}") for holds, what in wrong if holds)


def _learner(config: Config) -> Iterator[Problem]:
    learner = config.learner
    if isinstance(learner, Tuning) and config.features.until is None and learner.trains != "head":
        yield (
            ("learner", "trains"),
            f"given {shown(learner.trains)}; what is trained lies above features.until: name the "
            "last layer that stays "
            "frozen there, or set trains: head",
        )
    augment = getattr(learner, "augment", 1)
    if augment > 1 and config.features.takes != "images":
        yield (
            ("learner", "augment"),
            f"given {augment}; views are crops of images on their way into a network, and with "
            "features.model: "
            f"{config.features.model} there are none; set it to 1, or give images and a network",
        )


def _public_start(config: Config) -> Iterator[Problem]:
    if not starts_public(config.learner):
        return
    given = ("learner", "init")
    if config.dataset.public_sample is None:
        yield (
            given,
            "given 'public'; it needs dataset.public_sample, whose labelled records train the head",
        )
    if getattr(config.learner, "link", "softmax") != "softmax":
        yield (
            given,
            "given 'public'; that head is trained by softmax: set learner.link: softmax, or leave "
            "it out",
        )
    if config.learner.name == "dp_mlp" or config.task == "language_model":
        whose = "dp_mlp" if config.learner.name == "dp_mlp" else "a language model"
        yield given, f"given 'public'; {whose} has no head of its own to start from; leave it out"


def _test_part(config: Config) -> Iterator[Problem]:
    dataset = config.dataset
    if dataset.public_test is None and dataset.split.rule == "hash" and dataset.split.test == 0:
        yield (
            ("dataset", "split", "test"),
            "given 0; the final model needs something to be measured on: raise it, or name "
            "dataset.public_test",
        )


def _grouped(source: str, group: Group, at: KeyPath) -> Iterator[Problem]:
    """Groups stand where a source has room for them."""
    kind = kind_of(source)
    if kind is None:
        return
    if not kind.own:
        yield (
            at,
            f"{shown(source)} is published without groups; they are for your own files: leave it "
            "out",
        )
    elif kind.folder and group.level is None:
        yield (
            (*at, "column"),
            f"given {shown(group.column)}; {shown(source)} is a folder, which has a level: 1 or 2",
        )
    elif not kind.folder and group.column is None:
        yield (
            (*at, "level"),
            f"given {group.level}; {shown(source)} is no folder: give the column that holds the "
            "group",
        )


def _groups(config: Config) -> Iterator[Problem]:
    dataset, key = config.dataset, ("dataset", "group")
    if dataset.group is None:
        if config.evaluate.measures == "groups":
            yield (
                ("evaluate", "measures"),
                "given 'groups'; it needs dataset.group, which names them",
            )
        return
    yield from _grouped(dataset.source, dataset.group, key)
    if config.evaluate.of is not None:  # what it has beside its source is the other's, and not read
        return
    for field in ("public_test", "public_validation"):
        other = getattr(dataset, field)
        wrong = [] if other is None else [*_grouped(other, dataset.group, ("dataset", field))]
        if wrong:
            yield (
                ("dataset", field),
                f"given {shown(other)}; with dataset.group its records are told by the same "
                "groups, and it has none there: name "
                "it in evaluate.also",
            )


def _measures(config: Config) -> Iterator[Problem]:
    kind, classes = kind_of(config.dataset.source), config.dataset.classes
    known = classes if classes is not None or kind is None else kind.classes
    count = len(known) if isinstance(known, tuple) else known
    if config.evaluate.measures == "auc" and count != 2:
        told = (
            "its classes are known when it is read"
            if count is None
            else f"there are {count} classes"
        )
        yield (
            ("evaluate", "measures"),
            f"given 'auc'; {told}, and AUC is of two: set measures: classes, or dataset.classes to "
            "two names",
        )


def _paths(config: Config) -> Iterator[Problem]:
    for name, path in (("private", config.paths.private), ("cache", config.paths.cache)):
        if path is not None and any(
            _nested(Path(os.path.abspath(path)), public.absolute()) for public in PUBLIC_FOLDERS
        ):
            yield (
                ("paths", name),
                f"given {shown(path)}; neither it nor {', '.join(map(str, PUBLIC_FOLDERS))} may "
                "lie in the other: "
                "those are public, it must never be shared",
            )


def _nested(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


_READS = {
    _delta: ("privacy.delta", "dataset.nominal_size"),
    _lifetime: ("privacy.epsilon", "privacy.lifetime"),
    _mode: ("mode", "dataset.declared_public", "research.repeats"),
    _without_noise: ("final.without_noise", "mode", "learner", "features"),
    _sources: (
        "dataset.source",
        "dataset.public_test",
        "dataset.public_validation",
        "dataset.public_sample",
        "dataset.classes",
        "dataset.columns",
        "dataset.links",
        "task",
    ),
    _centre: (
        "features.centre",
        "features.mean",
        "features.model",
        "features.layers",
        "dataset.public_sample",
    ),
    _features: ("features", "dataset.source", "dataset.columns", "learner.name", "hpo"),
    _ladder: (
        "sweep.rungs",
        "fit.degree",
        "fit.using",
        "learner.name",
        "learner.statistics",
        "hpo.name",
    ),
    _sweep: ("sweep", "fit", "dataset.public_validation", "dataset.split"),
    _hpo: (
        "hpo",
        "learner",
        "sweep",
        "features.mean",
        "final.budget",
        "privacy.relation",
        "dataset.public_test",
        "dataset.split.rule",
    ),
    _learner: ("learner", "features.model", "features.until"),
    _public_start: ("learner", "dataset.public_sample", "task"),
    _test_part: ("dataset.public_test", "dataset.split"),
    _labels: ("dataset", "learner", "evaluate.measures"),
    _order: ("dataset", "learner"),
    _also: ("evaluate.also", "dataset", "features.model", "task"),
    _groups: (
        "dataset.group",
        "dataset.source",
        "dataset.public_test",
        "dataset.public_validation",
        "evaluate.measures",
    ),
    _measures: ("evaluate.measures", "dataset.classes", "dataset.source"),
    _paths: ("paths",),
}
"""Each check, and the keys it reads."""
