"""Extraction against a plain timm and DataLoader loop over the same images, in one run.

python tests/benchmarks/bench_extract.py [--images 1024] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.features_sections import Features

FEATURES = Features(image_size=96, dtype="float32")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=1024, help="a multiple of the batch")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    compare(options.images, options.rounds)


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
    from dpladder.data.extract import encode, load_content
    from dpladder.data.sources import Source

    network = encoder(FEATURES, Source("pixels", images.__getitem__, images), threads)
    batches = np.array_split(np.arange(len(images)), len(images) // network.batch)

    def work() -> NDArray[Any]:
        encoded = encode(
            network, FEATURES, lambda index: load_content(images[index], network), batches, threads
        )
        return np.concatenate([rows for rows, _ in encoded])

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


if __name__ == "__main__":
    main()
