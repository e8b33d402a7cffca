"""Extraction against a plain timm and DataLoader loop over the same images, in one run.

python tests/benchmarks/bench_extract.py [--images 1024] [--rounds 3]
python tests/benchmarks/bench_extract.py --probe  # mnist5k as in the demo, with a ridge probe
python tests/benchmarks/bench_extract.py --large  # opening and reading 1.28 M x 1,280 features
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.dataset_sections import Dataset
from dpladder.config.docs import DEMO
from dpladder.config.features_sections import Features
from dpladder.data import sealed
from dpladder.data.cache import open_cache
from dpladder.data.prepare import Keys, prepare

FEATURES = Features(image_size=96)
KEYS = Keys(*(bytes([purpose]) * 32 for purpose in range(4)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=1024, help="a multiple of the batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--probe", action="store_true")
    parser.add_argument("--large", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.probe:
            probe(Path(folder))
        elif asked.large:
            large(Path(folder))
        else:
            compare(asked.images, asked.rounds)


def compare(count: int, rounds: int) -> None:
    """Images per second of both, taken in turns so that a busy machine slows them alike."""
    import torch

    from dpladder.data.datasets import open_source

    source = open_source("mnist5k")
    images = [source.read(index) for index in np.linspace(0, 4999, count).astype(int)]
    threads = len(os.sched_getaffinity(0))
    ours, theirs = ours_on(images, threads), plain_on(images, threads)
    times: dict[str, list[tuple[float, float]]] = {"plain timm + DataLoader": [], "dpladder": []}
    results = {}
    for _ in range(rounds + 1):
        for name, work in zip(times, (theirs, ours), strict=True):
            start, processor = time.perf_counter(), time.process_time()
            results[name] = work()
            times[name].append((time.perf_counter() - start, time.process_time() - processor))
    (plain, plain_cpu), (fast, fast_cpu) = (
        map(statistics.median, zip(*values[1:], strict=True))
        for values in times.values()  # the first round warms up
    )
    alone = results["plain timm + DataLoader"]
    last = results["dpladder"][:, -alone.shape[1] :]  # of all depths, the last output stands last
    apart = np.abs(last - alone).max()
    device = (
        torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {threads} threads"
    )
    print(f"{device}: {count} images at {FEATURES.image_size} px, medians of {rounds} rounds")
    print(f"plain timm + DataLoader  {count / plain:8.0f} images/s")
    print(
        f"dpladder                 {count / fast:8.0f} images/s   {plain / fast:.2f} x   (bar: 2.5 "
        "x on a CPU)"
    )
    print(f"processor time, which other people's jobs disturb less: {plain_cpu / fast_cpu:.2f} x")
    print(f"largest difference between their features: {apart:.1e}")


def ours_on(images: list[Any], threads: int) -> Any:
    """The loading and the network of extract_features, without its files."""
    from dpladder.data.backbones import encoder
    from dpladder.data.parallel import ordered_map
    from dpladder.data.sources import Source

    network = encoder(FEATURES, Source("pixels", images.__getitem__, images), threads)
    size = network.batch
    batches = [range(start, start + size) for start in range(0, len(images) - size + 1, size)]

    def load(batch: range) -> NDArray[Any]:
        return np.stack([network.load(images[index], 0) for index in batch])

    def work() -> NDArray[Any]:
        return np.concatenate(
            list(network.encode(ordered_map(load, batches, threads, network.on_gpu)))
        )

    return work


def plain_on(images: list[Any], threads: int) -> Any:
    """What one would write in a notebook: timm's transform, a DataLoader with workers, a loop."""
    import timm
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader

    from dpladder.network.public import bundled_state

    model = timm.create_model("tf_efficientnet_lite0")
    model.load_state_dict(bundled_state())
    model.reset_classifier(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.eval().to(device)
    settings = timm.data.resolve_data_config({"input_size": (3, 96, 96)}, model=model)
    transform = timm.data.create_transform(**settings, is_training=False)

    class Images(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(images)

        def __getitem__(self, index: int) -> Any:
            return transform(Image.fromarray(images[index]).convert("RGB"))

    def work() -> NDArray[Any]:
        torch.set_num_threads(threads)
        with torch.no_grad():
            loader = DataLoader(Images(), batch_size=FEATURES.batch_size, num_workers=threads)
            return np.concatenate([model(batch.to(device)).cpu().numpy() for batch in loader])

    return work


def probe(folder: Path) -> None:
    """How long the demo's data takes, and what the features are worth. Not private: MNIST is
    public."""
    from sklearn.linear_model import RidgeClassifier

    from dpladder.data.extract import extract

    asked = Features.model_validate(DEMO["features"])
    dataset = Dataset(lineage="bench", source="mnist5k", nominal_size=4000)
    prepare(dataset, KEYS, folder / "manifest.h5", folder / "prepare.jsonl")
    found = {}
    start = time.perf_counter()
    for part in ("train", "test"):
        output = folder / f"{part}.h5"
        extract(
            folder / "manifest.h5",
            asked,
            part,
            output,
            folder / f"{part}.jsonl",
            root=folder / "root",
            units_key=KEYS.units,
            cache_key=KEYS.cache,
            threads=len(os.sched_getaffinity(0)),
        )
        found[part] = open_cache(output, KEYS.cache)
    seconds = time.perf_counter() - start
    features = np.concatenate([found[part].features for part in found]).astype(np.float32)
    labels = np.concatenate([found[part].labels for part in found])
    print(
        f"mnist5k at {asked.image_size} px: 5,000 images in {seconds:.0f} s, imports and "
        "model included"
    )
    # rows lie in the order of keyed ids, so these folds are random
    held = np.arange(5000).reshape(5, 1000)
    scores = []
    for fold in held:
        rest = np.setdiff1d(held, fold)
        scores.append(
            RidgeClassifier(alpha=100.0)
            .fit(features[rest], labels[rest])
            .score(features[fold], labels[fold])
        )
    print(f"ridge probe, mean of five held-out thousands: {np.mean(scores):.3f} (bar: 0.92)")


def large(folder: Path, rows: int = 1_281_167, width: int = 1280) -> None:
    """ImageNet's size: what opening costs, one pass over the map, and what memory is ours beyond
    the page cache."""

    def pieces() -> Iterator[NDArray[Any]]:
        block = np.random.default_rng(0).standard_normal((16384, width)).astype(np.float16)
        for start in range(0, rows, len(block)):
            yield block[: rows - start]

    path, key = folder / "large.h5", KEYS.cache
    arrays: dict[str, NDArray[Any] | sealed.Blocks] = {
        "features": sealed.Blocks((rows, width), np.float16, pieces()),
        "labels": np.zeros(rows, np.int64),
        "record_ids": np.zeros((rows, 16), np.uint8),
        "units": np.zeros((rows, 16), np.uint8),
        "checks": np.zeros(rows, np.uint8),
    }
    timed("written and sealed", lambda: sealed.write(path, arrays, {"kind": "features"}, key), path)
    cache = timed("opened, every byte verified", lambda: open_cache(path, key), path)
    timed(
        "read once through the map",
        lambda: [block.view(np.uint16).max() for block in blocks(cache.features)],
        path,
    )
    timed("read once as a plain file", lambda: path.read_bytes() and None, path)
    print(f"memory of our own: {own_memory():.2f} GB")


def blocks(features: NDArray[Any], size: int = 4096) -> Iterator[NDArray[Any]]:
    return (features[start : start + size] for start in range(0, len(features), size))


def timed(what: str, work: Any, path: Path) -> Any:
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    print(f"{what:30s} {seconds:6.2f} s   {path.stat().st_size / seconds / 1e9:.2f} GB/s")
    return result


def own_memory() -> float:
    """Resident memory that is not a mapped file, in GB."""
    status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) / 1e6


if __name__ == "__main__":
    main()
