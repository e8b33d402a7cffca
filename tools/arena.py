"""Public data for comparisons, cut once into what is trained on and what is tested on."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
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
from dpladder.research.contest import Arena

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
    "fashion70k": Published(("torchvision:FashionMNIST",), 60_000, IMAGES_96),
    # examples/glue.py writes it
    "sst2": Published(("jsonl:data/glue/sst2.jsonl",), 67_349, SENTENCES),
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
WITH_NORM = ("mnist5k", "digits-1280", "clothes", "objects", "fashion", "cifar10")
KIN = {"digits": "mnist5k-8", "mnist5k": "digits-1280", "bible": "web"}
DELTA = 1e-5
PUBLIC = 200  # records of a public sample
CLOTHES = Path("/usr/share/datasets/fashion-mnist")
# CIFAR-10's training images as JPEG, a folder for each class, whose first 600 are taken
OBJECTS = Path("data/cifar10/train")
LAST_OUTPUT = Features(layers="last")
# The last book of each genre: law, history, wisdom, prophets, gospels, acts, letters, apocalypse.
GENRES = (5, 17, 22, 39, 43, 44, 65, 66)


def load(
    name: str,
    cache: Path | None,
    threads: int,
    seed: int,
    centre: str = "auto",
    length: float = 32.0,
) -> Arena:
    """`mixture`: 5 Gaussian classes in 64 dimensions, off the origin. Centred by what is free for
    the source at hand, or, with `centre` public, by 200 records of the test part that stand for a
    public sample."""
    arena = stored(name, cache, threads, seed)
    mean = None
    if centre == "public":
        mean = plain_mean(arena.test.features[:PUBLIC])
    elif centred(name, centre):
        mean = network_mean(LAST_OUTPUT)
    seen = Map(mean, None, length, Features().constant)

    def own(data: Data) -> Data:
        return replace(data, features=seen(data.features))

    constants = replace(
        arena.constants, dimension=seen.width(arena.constants.dimension), length=length
    )
    return replace(arena, train=own(arena.train), test=own(arena.test), constants=constants)


def less_own_mean(arena: Arena, mu: float, part: float, length: float = 32.0) -> Arena:
    """The arena's records less their noised mean for this part of mu^2, at the public length."""
    n0, width, train = arena.constants.n0, arena.constants.dimension, arena.train
    mean = None
    if part:
        source = ResearchNoise(arena.terms, "price mean", arena.seed)
        sigma = gdp.sigma(mu * part**0.5, 1)
        query = UnitMean(name="mean", multiplier=sigma, radius=length, width=width, exact=True)
        meter = Meter([query.draw(arena.constants)], source)
        mean = counts.ask(query.at(), train, arena.constants, meter) / n0
        mean = shrink_mean(mean, sigma * length / n0)
    seen = Map(mean, length if part else None, length, Features().constant, exact=True)
    constants = replace(arena.constants, dimension=seen.width(width), length=length)

    def own(data: Data) -> Data:
        return replace(data, features=seen(data.features))

    return replace(arena, train=own(train), test=own(arena.test), constants=constants)


def centred(name: str, centre: str) -> bool:
    """Whether there is a mean to take away, for nothing: that of a public sample, or of the
    network's own last norm."""
    return centre == "public" or (centre == "auto" and name in WITH_NORM)


def stored(name: str, cache: Path | None, threads: int, seed: int) -> Arena:
    features, labels = mixture() if name == "mixture" else kept(name, cache)
    return arena_of(name, features, labels, threads, seed)


def arena_of(
    name: str, features: NDArray[Any], labels: NDArray[np.int64], threads: int, seed: int
) -> Arena:
    order = np.random.default_rng(0).permutation(len(labels))
    count = 3000 if name == "mixture" else len(labels) * 4 // 5
    if published := PUBLISHED.get(name.partition("-")[0]):
        count = published.train
        order = np.concatenate([order[order < count], order[order >= count]])
    train, test = (
        Data(features[part], labels[part].astype(np.int64))
        for part in (order[:count], order[count:])
    )
    constants = Constants(
        n0=count, classes=int(labels.max()) + 1, dimension=features.shape[1], delta=DELTA
    )
    lineage = name.replace(".", "-")  # of a depth by its name
    terms = Terms(lineage, "add_remove", "record", 1, DELTA, "given", mode="research")
    return Arena(train, test, constants, terms, Resources(threads=threads), seed)


def with_units(arena: Arena) -> Arena:
    """Each record is a unit."""
    numbers = np.arange(len(arena.train.labels), dtype=np.uint64)
    units = np.stack([numbers, numbers], axis=1).view(np.uint8)
    return replace(arena, train=replace(arena.train, units=units))


def all_depths(
    name: str, cache: Path | None, threads: int, network: Features = IMAGES_96
) -> tuple[Arena, Known]:
    """An arena whose records hold all depths of the network, side by side as they were kept. Of
    mnist5k and digits it may be another network."""
    features, labels, told = kept_depths(name, cache, network)
    if network != IMAGES_96:  # noise of its own
        name = f"{name}-{network.model}-{network.image_size}"
    return arena_of(name, features, labels, threads, 0), stored_depths({"depths": told})


def mixture() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    random = np.random.default_rng(1)
    means = random.normal(size=(5, 64))
    means *= 2.1 / np.linalg.norm(means, axis=1, keepdims=True)
    labels = random.integers(5, size=5000)
    return (means[labels] + random.normal(size=(5000, 64)) + 0.5).astype(np.float32), labels


def kept(name: str, cache: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """A name says the data, and after a dash which depths of the network are taken: the last, if it
    says none; `1280`, the last of digits, which without a dash are pixels; `112`, the fifth stage;
    `auto`, the default's; or one by its own name."""
    features, labels, told = kept_depths(name, cache)
    of: dict[str, Layers] = {"112": ("blocks.4",), "auto": "auto"}
    of |= dict.fromkeys(("", "8", "1280"), "last")
    which = name.partition("-")[2]
    layers = of.get(which, (which,))
    return chosen_depths(features, told, layers), labels


def kept_depths(
    name: str, cache: Path | None, network: Features = IMAGES_96
) -> tuple[NDArray[np.float16], NDArray[np.int64], str]:
    """All depths of a data set, and what they are called."""
    plain, _, which = name.partition("-")
    own = name if which == "8" else "digits-depths" if plain == "digits" and which else plain
    if network != IMAGES_96:
        own = f"{own}-{network.model}-{network.image_size}"
    file = None if cache is None else cache / f"{own}.npz"
    if file is not None and file.exists():
        with np.load(file) as arrays:
            features, labels, told = arrays["features"], arrays["labels"], str(arrays["depths"])
    else:
        features, labels, told = extract(name, network)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(file, features=features, labels=labels, depths=told)
    return features, labels, told


def chosen_depths(
    features: NDArray[Any], told: str, layers: Layers, length: float = 32.0
) -> NDArray[np.float32]:
    """The depths that features.layers asks for."""
    known = stored_depths({"depths": told})
    takes: Takes = "texts" if known and known[0][0] == EMBEDDINGS else "images"
    return Map(depths=depths_for(layers, known, length, takes, "the network"))(features)


def extract(
    name: str, network: Features = IMAGES_96
) -> tuple[NDArray[np.float16], NDArray[np.int64], str]:
    """All depths of mnist5k and digits through this network; of the first 6,000 of fashion
    (clothes) through the bundled one at 96 pixels, of 6,000 objects at 128; digits as raw pixels,
    and mnist5k-8 as they are; verses of the Bible, or of the World English one; of published data
    all records, through the network that PUBLISHED names."""
    if published := PUBLISHED.get(name.partition("-")[0]):
        sources = [open_source(one) for one in published.sources]
        records = [one.read(index) for one in sources for index in range(len(one.labels))]
        labels = [label for one in sources for label in one.labels]
        return through(
            published.features, sources[0], records, np.unique(labels, return_inverse=True)[1]
        )
    if name.startswith(("bible", "web")):
        return verses(name.partition("-")[0])
    if name.startswith(("fashion", "clothes")):
        return clothes(24_000 if name.startswith("fashion") else 6_000)
    if name.startswith("objects"):
        return objects()
    source = open_source(name.partition("-")[0])
    count, own = len(source.labels), source.read
    if name in ("digits", "mnist5k-8"):
        source = replace(source, read=lambda index: as_digit(own(index)), width=64)
        pixels = encoder(Features(model="none"), source, threads=2)
        rows = np.stack([pixels.load(source.read(index), 0) for index in range(count)])
        return rows.astype(np.float16), np.asarray(source.labels, np.int64), "[]"
    return through(network, source, [own(index) for index in range(count)], source.labels)


def through(
    features: Features, source: Source, records: Any, labels: Any
) -> tuple[NDArray[np.float16], NDArray[np.int64], str]:
    """All depths of a bundled network; `source` tells what kind of records these are."""
    network = encoder(features, source, threads=2)
    rows = [
        encoded(network, [network.load(record, 0) for record in records[start : start + 1000]])
        for start in range(0, len(records), 1000)
    ]
    told = str(network.facts["depths"])
    return np.concatenate(rows).astype(np.float16), np.asarray(labels, np.int64), told


def as_digit(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An image at 8 by 8 pixels; MNIST's without their margin, as those of digits are."""
    if len(image) == 8:
        return image
    return np.asarray(Image.fromarray(image[4:-4, 4:-4]).resize((8, 8), Image.Resampling.BOX))


def encoded(network: Any, records: Sequence[Any]) -> NDArray[np.float32]:
    blanks = [network.blank] * (-len(records) % network.batch)
    whole = [*records, *blanks]
    batches = (
        np.stack(whole[start : start + network.batch])
        for start in range(0, len(whole), network.batch)
    )
    return np.concatenate(list(network.encode(batches)))[: len(records)]


def clothes(count: int) -> tuple[NDArray[np.float16], NDArray[np.int64], str]:
    """Fashion-MNIST as Debian's package dataset-fashion-mnist holds it: the first training
    images."""

    def pixels(name: str, head: int) -> NDArray[np.uint8]:
        return np.frombuffer(gzip.decompress((CLOTHES / name).read_bytes()), np.uint8, offset=head)

    images = pixels("train-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)[:count]
    labels = pixels("train-labels-idx1-ubyte.gz", 8)[:count]
    return through(IMAGES_96, open_source("mnist5k"), images, labels)


def objects(each: int = 600) -> tuple[NDArray[np.float16], NDArray[np.int64], str]:
    """The first images of each class of CIFAR-10."""
    folders = [folder for folder in sorted(OBJECTS.iterdir()) if folder.is_dir()]
    files = [sorted(folder.glob("*.jpg"))[:each] for folder in folders]
    labels = [label for label, own in enumerate(files) for _ in own]
    images = [file.read_bytes() for own in files for file in own]
    return through(IMAGES_128, open_source(f"folder:{OBJECTS}"), images, labels)


def verses(name: str, count: int = 5000) -> tuple[NDArray[np.float16], NDArray[np.int64], str]:
    """Verses of the King James Bible, or in modern English, by genre, at all depths of MiniLM-L6.
    From the extra [text]."""
    from pythonbible.verses import VERSE_IDS

    known = [verse for verse in VERSE_IDS if verse < 67_000_000]
    some = np.random.default_rng(0).choice(known, count, replace=False)
    labels = np.searchsorted(GENRES, some // 1_000_000)
    source = open_source({"bible": "kjv", "web": "web"}[name])
    texts = [text.encode() for text in verses_of(name, some)]
    return through(SENTENCES, source, texts, labels)


def verses_of(name: str, some: Any) -> list[str]:
    import pythonbible

    version = pythonbible.Version({"bible": "KJV", "web": "WEB"}[name])
    return [
        # the modern one lacks a verse
        pythonbible.get_verse_text(int(verse), version=version)
        if name == "bible" or verse != 45016027
        else "."
        for verse in some
    ]
