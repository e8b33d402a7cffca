"""Feature caches: what each claims to hold, how it is found again, opened and merged.

A cache is a sealed file with the rows of one part, or of one shard of it, sorted by record id. Its
address in the cache root is a keyed digest of everything its bytes follow from. So another
experiment or clone under the same home finds it. Where a user's records are one
(`dataset.unit.pool`), what merges shards makes one row of theirs. Trial jobs import this module: no
torch, no timm.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from json import dumps, loads
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.check import KEPT_WEIGHTS
from dpladder.config.features_sections import Features
from dpladder.config.records import Corruption
from dpladder.data import sealed
from dpladder.data.files import closed_folder, link, replacing
from dpladder.data.sealed import Attrs
from dpladder.errors import BadInput, DpladderError
from dpladder.formats import Newer
from dpladder.network.facts import Network

# attributes that an address leaves out
PROVENANCE = ("dpladder", "torch", "timm", "transformers", "shard")
# and what a build or a device adds, which changes no record's features beyond their rounding
MADE_BY = (*PROVENANCE, "arithmetic", "batch_size", "forward_batch", "transform")
RECORDS = ("commitment", "units")  # keyed digests of the records themselves
NO_ATTRS: Attrs = {}


@dataclass(frozen=True)
class FeatureCache:
    """One part's features, memory-mapped and shared between processes. Private.

    Attributes:
        features: (rows, width), or (rows, views, width), of the type that the config stores.
        labels: int64 (rows,); -1 marks a row that counts as nothing.
        record_ids: uint8 (rows, 16), sorted.
        units: uint8 (rows, 16), whose each row is. Poisson samples are drawn by them.
        checks: uint8 (rows,), why a row is zero (`Check` of data/extract.py).
        attrs: what the file says of itself.
        digest: names these exact bytes. It is keyed, so it tells nothing to those without the key.
        groups: (rows,), of each record, where they are declared.
    """

    features: NDArray[np.floating]
    labels: NDArray[np.int64]
    record_ids: NDArray[np.uint8]
    units: NDArray[np.uint8]
    checks: NDArray[np.uint8]
    attrs: Attrs
    digest: str
    groups: NDArray[np.int64] | None = None


def claims(
    features: Features,
    commitment: str,
    part: str,
    views: int = 1,
    corruption: Corruption | None = None,
) -> Attrs:
    """What a cache must say about itself to belong to a config and a version of the data.

    Args:
        features: the config's section.
        commitment: of the manifest, which names records and labels by a keyed digest.
        part: whose records it holds.
        views: of each record.
        corruption: of a further test's images.

    Returns:
        The attributes that `open_cache` compares.
    """
    how = {} if corruption is None else {"corruption": f"{corruption.kind} {corruption.severity}"}
    return {
        **how,
        "kind": "features",
        "commitment": commitment,
        "part": part,
        "model": features.model,
        "weights": features.weights if features.weights in KEPT_WEIGHTS else "local",
        "image_size": features.image_size or 0,
        "largest_image": features.largest_image,
        "tokens": features.tokens,
        "pooling": features.pooling,
        "until": features.until or "",
        "normalize": int(features.normalize),
        "dtype": features.stored,
        "batch_size": features.batch_size,
        "views": views,
        "mirror": int(features.mirror),
    }


def public_network_of(attrs: Mapping[str, Any], weights: str) -> Network | None:
    """The public network that activations are of, where it was cut; None where they are of none.

    Args:
        attrs: what a cache says of itself, or a model's file.
        weights: where the network's weights come from, as the config names them.
    """
    if not attrs.get("until"):
        return None
    return Network(
        model=str(attrs["model"]),
        weights=weights,
        sha256=str(attrs["weights_sha256"]),
        image_size=int(attrs["image_size"]) or None,
        until=str(attrs["until"]),
        shape=tuple(loads(str(attrs["shape"]))),
        pooling=attrs["pooling"] if "tokenizer_sha256" in attrs else None,
    )


def address(root: Path, attrs: Attrs, key: bytes) -> Path:
    """Where in the cache root a whole part's cache lies.

    Args:
        root: private, and shared by the experiments of a home.
        attrs: all that the cache's bytes follow from.
        key: without which nobody can tell from the name what is cached.
    """
    return root / f"{_cache_name(attrs, PROVENANCE, key)}.h5"


def name_of(attrs: Attrs, key: bytes) -> str:
    """A keyed digest of a version of the data and of the map from a record to its features,
    whatever build or device makes them.

    What is found of a public sample is known by it. A query about private records names
    `map_of_cache` instead, in which no record has a part (contract: write-ahead).
    """
    return _cache_name(attrs, MADE_BY, key)


def map_of_cache(attrs: Attrs) -> str:
    """A digest of the public map from a record to its features, in hex of 64 digits. Build, device
    and records have no part in it, so that it may be told."""
    facts = {name: value for name, value in attrs.items() if name not in (*MADE_BY, *RECORDS)}
    return sha256(dumps(facts, sort_keys=True).encode()).hexdigest()


def _cache_name(attrs: Attrs, without: Sequence[str], key: bytes) -> str:
    facts = {name: value for name, value in attrs.items() if name not in without}
    return blake2b(dumps(facts, sort_keys=True).encode(), key=key, digest_size=16).hexdigest()


def open_cache(path: Path, key: bytes, expected: Attrs = NO_ATTRS) -> FeatureCache:
    """Verify a cache from end to end and map it into memory.

    Args:
        path: of the cache.
        key: home's, for seals.
        expected: what it must say of itself: from `claims`, or any part of that.

    Raises:
        BadInput: it is damaged, another home's, no feature cache, or of another config or version
            of the data.
        Newer: a later dpladder wrote it.
    """
    file = sealed.read(path, key)
    if file.attrs.get("kind") != "features":
        raise BadInput(f"{path} is not a feature cache. Run extract_features again.")
    _compare(path, file.attrs, expected)
    return FeatureCache(**file.arrays, attrs=file.attrs, digest=file.digest)


def verify_cache(path: Path, key: bytes) -> str | None:
    """What is wrong with a cache, as a message; None where nothing is.

    Raises:
        Newer: a later dpladder wrote it. It may well be sound, and must never be written anew.
    """
    try:
        open_cache(path, key)
    except Newer:  # never to be written anew
        raise
    except DpladderError as error:
        return str(error)
    return None


def merge(shards: Sequence[Path], root: Path, output: Path, key: bytes) -> Sequence[FeatureCache]:
    """Put shards together in the cache root, where `output` will point.

    One shard is the whole and gets a second name, nothing is written again. Several are copied
    once, end to end. A virtual dataset would save that pass, but it cannot be memory-mapped, and
    every step of every trial reads the map.

    Args:
        shards: caches of one part, all of them, in any order.
        root: of caches that are kept from run to run.
        output: of the whole part.
        key: home's, for seals.

    Returns:
        The shards as they were read, in order.

    Raises:
        BadInput: a shard is missing, comes twice, or is of other data.
    """
    opened = sorted((open_cache(path, key) for path in shards), key=_place)
    attrs = opened[0].attrs
    whole = address(closed_folder(root), attrs, key)
    if verify_cache(whole, key) is not None:
        for part in opened:
            _compare(
                shards[0], part.attrs, {name: attrs[name] for name in attrs if name != "shard"}
            )
        if [_place(part) for part in opened] != [
            (place, len(opened)) for place in range(len(opened))
        ]:
            raise BadInput(
                "merge_features needs every shard of one part once. Run extract_features for all "
                "of them."
            )
        if len(opened) == 1:
            _link_as(shards[0], whole)
        else:
            _concatenate(opened, whole, key)
    link(_write_pooled(whole, root, key) if "pool" in attrs else whole, output)
    return opened


def _write_pooled(whole: Path, root: Path, key: bytes) -> Path:
    """A cache with one row for each unit: the mean of its records that count, in float64, whatever
    other units there are. A unit without any counts as nothing."""
    cache = open_cache(whole, key)
    attrs = {**cache.attrs, "rows": "units"}
    path = address(root, attrs, key)
    if verify_cache(path, key) is not None:
        units = [_members(rows, cache.labels) for rows in _rows_by_unit(cache.units)]
        first = np.array([rows[0] for rows in units], np.int64)
        means = (cache.features[rows].mean(axis=0, dtype=np.float64)[None] for rows in units)
        shape = (len(units), *cache.features.shape[1:])
        arrays: dict[str, NDArray[Any] | sealed.Blocks] = {
            "features": sealed.Blocks(shape, cache.features.dtype, means),
            "labels": cache.labels[first],
            "record_ids": cache.units[first],
            "units": cache.units[first],
            "checks": cache.checks[first],
        }
        if cache.groups is not None:
            arrays["groups"] = cache.groups[first]
        sealed.write(path, arrays, attrs, key)
    return path


def _rows_by_unit(units: NDArray[np.uint8]) -> list[NDArray[np.int64]]:
    """The rows of each unit, in the order of its id."""
    ids, of_unit, counts = np.unique(units, axis=0, return_inverse=True, return_counts=True)
    return np.split(np.argsort(of_unit, kind="stable"), np.cumsum(counts))[: len(ids)]


def _members(rows: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of a unit that count; one that does not, where none does: its features are zero."""
    counting = rows[labels[rows] >= 0]
    return counting if len(counting) else rows[:1]


def _place(cache: FeatureCache) -> tuple[int, int]:
    """Which shard this is, of how many."""
    place, of = str(cache.attrs["shard"]).split("/")
    return int(place), int(of)


def _link_as(shard: Path, whole: Path) -> None:
    """Give a shard the name of the whole: by a hard link, or a copy where it lies on another file
    system."""
    with replacing(whole) as temporary:
        temporary.unlink()
        try:
            os.link(shard.resolve(), temporary)
        except OSError:  # another file system
            shutil.copyfile(shard, temporary)
            temporary.chmod(0o600)


def _concatenate(shards: Sequence[FeatureCache], whole: Path, key: bytes) -> None:
    """Write shards end to end as one cache, a piece at a time: they need not fit into memory."""
    rows = sum(len(shard.labels) for shard in shards)
    arrays: dict[str, sealed.Blocks] = {}
    names = ("features", "labels", "record_ids", "units", "checks")
    for name in names if shards[0].groups is None else (*names, "groups"):
        pieces = [getattr(shard, name) for shard in shards]
        arrays[name] = sealed.Blocks((rows, *pieces[0].shape[1:]), pieces[0].dtype, pieces)
    sealed.write(whole, arrays, {**shards[0].attrs, "shard": "0/1"}, key)


def _compare(path: Path, attrs: Attrs, expected: Mapping[str, str | int]) -> None:
    """Refuse a cache that says another thing of itself than is expected. A changed version of the
    data is told apart, for it is no mistake in the config."""
    if attrs.get("commitment") != expected.get("commitment", attrs.get("commitment")):
        raise BadInput(
            f"{path} was made from another version of the lineage's data, which has changed since. "
            "Run extract_features again; it is still the same lineage with the same budget."
        )
    for name, value in expected.items():
        if attrs.get(name) != value:
            raise BadInput(
                f"{path} was made with {name} {attrs.get(name)!r}, and {value!r} is asked for. Run "
                "extract_features again."
            )
