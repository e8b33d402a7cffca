"""Data as a run prepares it: the manifest of a source and the features of its parts, in a folder of
a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpladder.config.dataset_sections import Dataset
from dpladder.config.features_sections import Features
from dpladder.data.cache import FeatureCache, open_cache
from dpladder.data.extract import extract
from dpladder.data.prepare import Keys, Manifest, Part, prepare, read_manifest

KEYS = Keys(b"u" * 32, b"c" * 32, b"k" * 32)


def dataset_of(source: str, **keys: Any) -> Dataset:
    return Dataset(**{"lineage": "x", "source": source, "nominal_size": 1} | keys)


def manifest_of(
    folder: Path,
    dataset: Dataset,
    public: Part | None = None,
    keys: Keys = KEYS,
    cutting: Any = None,
) -> Manifest:
    """Records that cannot be used are told in problems.jsonl."""
    path = folder / "manifest.h5"
    prepare(dataset, keys, path, folder / "problems.jsonl", public, None, cutting)
    return read_manifest(path, keys.cache)


def extract_part(
    folder: Path, features: Features, name: str = "train.h5", part: Part = "train", **options: Any
) -> Path:
    """By the folder's manifest. Records that cannot be used are told in <name>.jsonl."""
    extract(
        folder / "manifest.h5",
        features,
        part,
        folder / name,
        folder / f"{name}.jsonl",
        root=folder / "root",
        units_key=KEYS.units,
        cache_key=KEYS.cache,
        **options,
    )
    return folder / name


def open_part(path: Path) -> FeatureCache:
    return open_cache(path, KEYS.cache)
