"""Public data for comparisons, cut once into what is trained on and what is tested on."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dpladder.config.depths import EMBEDDINGS
from dpladder.config.features_sections import Features, Layers
from dpladder.config.model import Resources
from dpladder.config.sources import Takes
from dpladder.data.backbones import encoder
from dpladder.data.centre import Map, network_mean, plain_mean, shrink_mean
from dpladder.data.datasets import open_source
from dpladder.data.depths import Known, depths_for, stored_depths
from dpladder.data.sources import Source
from dpladder.learn import counts
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.queries import UnitMean
from dpladder.privacy.accounting import gdp
from dpladder.privacy.ledger.state import Terms
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import ResearchNoise
from dpladder.research.arena import Arena

IMAGES_96 = Features(image_size=96, batch_size=50)
IMAGES_128 = Features(image_size=128, batch_size=50)
SENTENCES = Features(model="minilm", batch_size=50)


@dataclass(frozen=True)
class Published:
    """Published data in files of your own. The first `train` records are for training, as their
    authors have it, and all others for the test."""

    sources: Sequence[str]
    train: int
    features: Features = IMAGES_128


PUBLISHED: Mapping[str, Published] = {
    "cifar10": Published(("folder:data/cifar10/train", "folder:data/cifar10/test"), 50_000),
    # as PNG, a folder for each class, without test images that are training images (cifar100.py)
    "cifar100": Published(("folder:data/cifar100/train", "folder:data/cifar100/test"), 50_000),
    "fashion70k": Published(("torchvision:FashionMNIST",), 60_000, IMAGES_96),
    # as PNG, a folder for each class
    "mnist70k": Published(("folder:data/mnist/train", "folder:data/mnist/test"), 60_000, IMAGES_96),
    # examples/glue.py writes it
    "sst2": Published(("jsonl:data/glue/sst2.jsonl",), 67_349, SENTENCES),
    # examples/tweeteval.py writes them
    "offensive": Published(("jsonl:data/tweeteval/offensive.jsonl",), 11_883, SENTENCES),
    "emoji": Published(("jsonl:data/tweeteval/emoji.jsonl",), 44_507, SENTENCES),
    # aclImdb's train and test, a folder for each class
    "imdb": Published(
        ("texts:data/imdb/train", "texts:data/imdb/test"),
        25_000,
        SENTENCES.model_copy(update={"tokens": 128}),
    ),
}
# as features.layers: auto has them: several depths of a network
AUTO = ("mnist5k-auto", "digits-auto", "clothes-auto", "objects-auto", "bible-auto")
LAST = ("mnist5k", "digits-1280", "clothes", "objects", "bible")  # the same, its last output alone
WHOLE = tuple(f"{name}{depths}" for name in PUBLISHED for depths in ("", "-auto"))
DATA = ("mnist5k-112", "digits", "mixture", "fashion", *LAST, *AUTO, *WHOLE)
FITTED = ("digits", "mixture", *AUTO)  # what priors and prices are fitted to
# the same classes from elsewhere: MNIST as digits has its images, digits as MNIST, a translation
# whose last output follows the network's own norm
WITH_NORM = ("mnist5k", "digits-1280", "clothes", "objects", "fashion", "cifar10", "cifar100")
KIN = {"digits": "mnist5k-8", "mnist5k": "digits-1280", "bible": "web"}
DELTA, LENGTH = 1e-5, 32.0
PUBLIC = 200  # records of a public sample
CLOTHES = Path("/usr/share/datasets/fashion-mnist")
# CIFAR-10's training images as JPEG, a folder for each class, whose first 600 are taken
OBJECTS = Path("data/cifar10/train")
LAST_OUTPUT = Features(layers="last")
# sentences of 798 writers with readers' ratings, from -4 to 4 (Hutto & Gilbert 2014): of
# vaderSentiment 0.5, `pip download --no-deps vaderSentiment==0.5`, additional_resources unpacked
RATED = Path("data/rated")
BAD = -1.5
RATED_FILES = ("amazonReviewSnippets_GroundTruth.txt", "nytEditorialSnippets_GroundTruth.txt")
VERSES = {"bible": "kjv", "web": "web"}
# The last book of each genre: law, history, wisdom, prophets, gospels, acts, letters, apocalypse.
GENRES = (5, 17, 22, 39, 43, 44, 65, 66)


def load(name: str, cache: Path | None, centre: str = "auto", threads: int = 2) -> Arena:
    """Features as trainings see them, scaled to the public length.

    Args:
        name: One of DATA. `mixture`: 5 Gaussian classes in 64 dimensions, off the origin.
        cache: Where extracted features stay between runs.
        centre: `auto`: less the mean that is there for nothing. `public`: less that of 200 records
            of the test part, which stand for a public sample. `none`: as they are.
        threads: Of its trainings.
    """
    arena = load_raw(name, cache, threads)
    mean = None
    if centre == "public":
        mean = plain_mean(arena.test.features[:PUBLIC])
    elif centred(name, centre):
        mean = network_mean(LAST_OUTPUT)
    return mapped(arena, Map(mean, None, LENGTH, Features().constant))


def load_raw(name: str, cache: Path | None, threads: int = 2, seed: int = 0) -> Arena:
    """Features as they were extracted."""
    features, labels = mixture() if name == "mixture" else features_of(name, cache)
    return shuffled(name, features, labels, threads, seed)


def all_depths(
    name: str, cache: Path | None, threads: int, network: Features = IMAGES_96
) -> tuple[Arena, Known]:
    """An arena whose records hold all depths of the network, side by side as they were extracted.
    Of mnist5k and digits it may be another network."""
    features, labels, depths = extracted(name, cache, network)
    if network != IMAGES_96:  # noise of its own
        name = f"{name}-{network.model}-{network.image_size}"
    return shuffled(name, features, labels, threads, 0), stored_depths({"depths": depths})


def shuffled(
    name: str, features: NDArray[Any], labels: NDArray[np.int64], threads: int, seed: int
) -> Arena:
    """Records in any order, four fifths to train on; published data as PUBLISHED says."""
    order = np.random.default_rng(0).permutation(len(labels))
    count = 3000 if name == "mixture" else len(labels) * 4 // 5
    if published := PUBLISHED.get(name.partition("-")[0]):
        count = published.train
        order = np.concatenate([order[order < count], order[order >= count]])
    lineage = name.replace(".", "-")  # of a depth by its name
    classes = int(labels.max()) + 1
    parts = cut(features[order], labels[order], count)
    return arena_of(lineage, *parts, classes, threads, seed, length=1.0)


def cut(rows: NDArray[Any], labels: Any, count: int) -> tuple[Data, Data]:
    """The first so many records to train on, and the others to test on."""
    labels = np.asarray(labels, np.int64)
    return Data(rows[:count], labels[:count]), Data(rows[count:], labels[count:])


def arena_of(
    lineage: str,
    train: Data,
    test: Data,
    classes: int = 10,
    threads: int = 1,
    seed: int = 0,
    length: float = LENGTH,
    **facts: Any,
) -> Arena:
    """Public data under a name that seeds its noise. `facts`: more of a training's constants."""
    constants = Constants(
        **{"dimension": train.features.shape[1], "delta": DELTA} | facts,
        n0=len(train.labels),
        classes=classes,
        length=length,
    )
    terms = Terms(lineage, "add_remove", "record", 1, DELTA, "given", mode="research")
    return Arena(train, test, constants, terms, Resources(threads=threads), seed)


def mapped(arena: Arena, seen: Map) -> Arena:
    """The arena with its features as this map has them, at the public length."""
    train, test = (
        replace(data, features=seen(data.features)) for data in (arena.train, arena.test)
    )
    width = seen.width(arena.constants.dimension)
    constants = replace(arena.constants, dimension=width, length=LENGTH)
    return replace(arena, train=train, test=test, constants=constants)


def first(arena: Arena, rows: Any) -> Arena:
    """The arena with these training records alone; their number is public."""
    data = arena.train
    units = None if data.units is None else data.units[rows]
    features = np.asarray(data.features)[rows]
    train = replace(data, features=features, labels=data.labels[rows], units=units)
    return replace(arena, train=train, constants=replace(arena.constants, n0=len(train.labels)))


def less_own_mean(arena: Arena, mu: float, part: float) -> Arena:
    """The arena's records less their noised mean for this part of mu^2, at the public length."""
    n0, width, mean = arena.constants.n0, arena.constants.dimension, None
    if part:
        source = ResearchNoise(arena.terms, "price mean", arena.seed)
        sigma = gdp.sigma(mu * part**0.5, 1)
        query = UnitMean(name="mean", multiplier=sigma, radius=LENGTH, width=width, exact=True)
        meter = Meter([query.draw(arena.constants)], source)
        mean = counts.ask(query.at(), arena.train, arena.constants, meter) / n0
        mean = shrink_mean(mean, sigma * LENGTH / n0)
    limit = LENGTH if part else None
    return mapped(arena, Map(mean, limit, LENGTH, Features().constant, exact=True))


def centred(name: str, centre: str = "auto") -> bool:
    """Whether there is a mean to take away, for nothing: that of a public sample, or of the
    network's own last norm."""
    return centre == "public" or (centre == "auto" and name in WITH_NORM)


def with_units(arena: Arena) -> Arena:
    """Each record is a unit."""
    numbers = np.arange(len(arena.train.labels), dtype=np.uint64)
    units = np.stack([numbers, numbers], axis=1).view(np.uint8)
    return replace(arena, train=replace(arena.train, units=units))


def mixture() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    random = np.random.default_rng(1)
    means = random.normal(size=(5, 64))
    means *= 2.1 / np.linalg.norm(means, axis=1, keepdims=True)
    labels = random.integers(5, size=5000)
    return (means[labels] + random.normal(size=(5000, 64)) + 0.5).astype(np.float32), labels


def features_of(name: str, cache: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """A name says the data, and after a dash which depths of the network are taken: the last, if it
    says none; `1280`, the last of digits, which without a dash are pixels; `112`, the fifth stage;
    `auto`, the default's; or one by its own name."""
    features, labels, depths = extracted(name, cache)
    by_name: dict[str, Layers] = {"112": ("blocks.4",), "auto": "auto"}
    by_name |= dict.fromkeys(("", "8", "1280"), "last")
    which = name.partition("-")[2]
    return chosen_depths(features, depths, by_name.get(which, (which,))), labels


def chosen_depths(features: NDArray[Any], depths: str, layers: Layers) -> NDArray[np.float32]:
    """The depths that features.layers asks for."""
    known = stored_depths({"depths": depths})
    takes: Takes = "texts" if known and known[0][0] == EMBEDDINGS else "images"
    return Map(depths=depths_for(layers, known, LENGTH, takes, "the network"))(features)


def extracted(
    name: str, cache: Path | None, network: Features = IMAGES_96
) -> tuple[NDArray[np.float16], NDArray[np.int64], str]:
    """All depths of a data set, and what they are called."""
    plain, _, which = name.partition("-")
    stem = name if which == "8" else "digits-depths" if plain == "digits" and which else plain
    if network != IMAGES_96:
        stem = f"{stem}-{network.model}-{network.image_size}"
    file = None if cache is None else cache / f"{stem}.npz"
    if file is None or not file.exists():
        features, source, records, labels = records_of(name, network)
        encoder_of_source = encoder(features, source, threads=2)
        rows = encoded(encoder_of_source, records).astype(np.float16)
        numbers = np.unique(labels, return_inverse=True)[1]
        depths = str(encoder_of_source.facts.get("depths", "[]"))
        if file is None:
            return rows, numbers, depths
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, features=rows, labels=numbers, depths=depths)
    with np.load(file) as arrays:
        return arrays["features"], arrays["labels"], str(arrays["depths"])


def records_of(name: str, network: Features) -> tuple[Features, Source, Sequence[Any], Any]:
    """How records are read, a source that says of which kind they are, records, and labels."""
    plain = name.partition("-")[0]
    if published := PUBLISHED.get(plain):
        sources = [open_source(source) for source in published.sources]
        records = [source.read(index) for source in sources for index in range(len(source.labels))]
        return published.features, sources[0], records, [y for own in sources for y in own.labels]
    if plain in VERSES:
        return verses(plain)
    if plain == "rated":
        texts, ratings, _ = rated()
        return SENTENCES, open_source("kjv"), texts, ratings
    if plain in ("fashion", "clothes"):
        return clothes(24_000 if plain == "fashion" else 6_000)
    if plain == "objects":
        folders = [folder for folder in sorted(OBJECTS.iterdir()) if folder.is_dir()]
        files = [file for folder in folders for file in sorted(folder.glob("*.jpg"))[:600]]
        records = [file.read_bytes() for file in files]
        return IMAGES_128, open_source(f"folder:{OBJECTS}"), records, [f.parent.name for f in files]
    source = open_source(plain)
    images: list[Any] = [source.read(index) for index in range(len(source.labels))]
    if name not in ("digits", "mnist5k-8"):
        return network, source, images, source.labels
    source = replace(source, read=lambda index: as_digit(images[index]), width=64)
    return Features(model="none"), source, [as_digit(image) for image in images], source.labels


def encoded(
    network: Any, records: Sequence[Any], change: Callable[[Any], Any] = lambda record: record
) -> NDArray[np.float32]:
    """What a network puts out; `change` is made to each record once it is loaded."""

    def batches() -> Iterator[NDArray[Any]]:
        for start in range(0, len(records), network.batch):
            some = records[start : start + network.batch]
            loaded = [change(network.load(record, 0)) for record in some]
            yield np.stack([*loaded, *[network.blank] * (network.batch - len(loaded))])

    return np.concatenate(list(network.encode(batches())))[: len(records)]


def rated() -> tuple[list[bytes], list[bool], list[str]]:
    """Sentences, whether their readers found them bad (below -1.5), and who wrote them."""
    lines = [
        (name, *line.split("\t"))
        for name in RATED_FILES
        for line in (RATED / name).read_text("utf-8", errors="replace").splitlines()
        if line.strip()
    ]
    texts = [text.encode() for _, _, _, text in lines]
    writers = [f"{name} {place.partition('_')[0]}" for name, place, _, _ in lines]
    return texts, [float(rating) < BAD for _, _, rating, _ in lines], writers


def by_writers(cache: Path | None, cap: int = 8) -> Arena:
    """The sentences of `rated` as they were extracted, whose writers are units: of four fifths of
    them, so many sentences each at most train."""
    features, labels = features_of("rated", cache)
    writers = np.unique(rated()[2], return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(writers))
    features, labels, writers = features[order], labels[order], writers[order]
    names = np.random.default_rng(1).permutation(writers.max() + 1)
    trains = names[: len(names) * 4 // 5]
    rows = np.concatenate([np.flatnonzero(writers == one)[:cap] for one in trains])
    tests = np.flatnonzero(~np.isin(writers, trains))
    units = np.stack([writers[rows], writers[rows]], axis=1).astype(np.uint64).view(np.uint8)
    train = Data(features[rows], labels[rows], units)
    arena = arena_of("rated", train, Data(features[tests], labels[tests]), 2, length=1.0, cap=cap)
    return replace(arena, constants=replace(arena.constants, n0=len(trains)))


def as_digit(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An image at 8 by 8 pixels; MNIST's without their margin, as those of digits are."""
    if len(image) == 8:
        return image
    return np.asarray(Image.fromarray(image[4:-4, 4:-4]).resize((8, 8), Image.Resampling.BOX))


def clothes(count: int) -> tuple[Features, Source, Sequence[Any], Any]:
    """Fashion-MNIST as Debian's package dataset-fashion-mnist holds it: the first training
    images."""

    def pixels(name: str, head: int) -> NDArray[np.uint8]:
        return np.frombuffer(gzip.decompress((CLOTHES / name).read_bytes()), np.uint8, offset=head)

    images = pixels("train-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)[:count]
    labels = pixels("train-labels-idx1-ubyte.gz", 8)[:count]
    return IMAGES_96, open_source("mnist5k"), [*images], labels


def verses(name: str, count: int = 5000) -> tuple[Features, Source, Sequence[Any], Any]:
    """Verses of the King James Bible, or in modern English, by genre. From the extra [text]."""
    import pythonbible
    from pythonbible.verses import VERSE_IDS

    known = [verse for verse in VERSE_IDS if verse < 67_000_000]
    some = np.random.default_rng(0).choice(known, count, replace=False)
    labels = np.searchsorted(GENRES, some // 1_000_000)
    version = pythonbible.Version({"bible": "KJV", "web": "WEB"}[name])
    lacking = () if name == "bible" else (45016027,)
    texts = [
        "." if verse in lacking else pythonbible.get_verse_text(int(verse), version=version)
        for verse in some
    ]
    return SENTENCES, open_source(VERSES[name]), [text.encode() for text in texts], labels
