"""Records of several classes: what it is worth to train on all of a record's classes, rather than
on one of them; or, with --findings, which learner tells each of them apart best.

python tools/several_labels.py [--findings] [--epsilons 1 4 8] [--repeats 5] [--cache FOLDER]

MNIST's 5,000 digits, up to three of them on the corners of one image, no digit in two images, seen
by the bundled network at 96 pixels as far as its 112 channels. `dp_ls` with the whole total in one
training; its r is the best of three about the prior's, by the mean over repeats. Right is whatever
names a digit of the image. Each digit is a finding too, told by its AUC; features are then centred
by the mean of 200 test images, which stand for a public sample. Public data, seeded.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from arena import LENGTH, PUBLIC, arena_of, cut, encoded
from numpy.typing import NDArray
from PIL import Image
from sklearn.metrics import roc_auc_score
from terminal import print_head, print_row, read_options, totals
from variants import best_accuracies

from dpladder.config.features_sections import Features
from dpladder.config.label_sets import MANY, number_of, number_of_findings, states_by_finding
from dpladder.data.backbones import encoder
from dpladder.data.centre import Map, plain_mean
from dpladder.data.datasets import open_source
from dpladder.learn import score
from dpladder.learn.interface import Weights
from dpladder.methods.dp_gd import Descent
from dpladder.methods.dp_ls import LeastSquares
from dpladder.research.arena import Arena
from dpladder_papers.methods.dp_prototypes import Prototypes

FINDINGS = (Descent(link="sigmoid"), LeastSquares(), Prototypes())
CLASSES, MOST, SIDE = 10, 3, 28
CORNERS = ((0, 0), (0, SIDE), (SIDE, 0), (SIDE, SIDE))


def images() -> tuple[list[Image.Image], list[list[int]]]:
    """Each image, and the digits on it, in the order in which they were laid."""
    source, random = open_source("mnist5k"), np.random.default_rng(0)
    unused, pages, digits = [*random.permutation(len(source.labels))], [], []
    while len(unused) >= MOST:
        indices = [unused.pop() for _ in range(random.integers(1, MOST + 1))]
        page = np.zeros((2 * SIDE, 2 * SIDE), np.uint8)
        for index, corner in zip(indices, random.permutation(len(CORNERS)), strict=False):
            top, side = CORNERS[corner]
            page[top : top + SIDE, side : side + SIDE] = source.read(int(index))
        pages.append(Image.fromarray(page))
        digits.append([int(source.labels[index]) for index in indices])
    return pages, digits


def features_of(pages: list[Image.Image], cache: Path | None) -> NDArray[np.float32]:
    file = None if cache is None else cache / "corners.npy"
    if file is None or not file.exists():
        features = Features(image_size=96, batch_size=50, layers=("blocks.4",))
        rows = encoded(encoder(features, open_source("mnist5k"), threads=2), pages)
        if file is None:
            return rows
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, rows)
    stored: NDArray[np.float32] = np.load(file)
    return stored


def mean_area(arena: Arena, weights: Weights) -> float:
    """The mean of each finding's AUC."""
    logits = score.logits(weights, arena.test.features)
    findings = zip(states_by_finding(arena.test.labels, CLASSES), logits.T, strict=True)
    return float(np.mean([roc_auc_score(present, odds) for (present, _), odds in findings]))


def main() -> None:
    options = read_options(__doc__, epsilons=[1.0, 4.0, 8.0], repeats=5, findings=False, cache=Path)
    epsilons, repeats = options.epsilons, options.repeats
    pages, digits = images()
    extracted, count = features_of(pages, options.cache), len(pages) * 4 // 5
    mean = plain_mean(extracted[count:][:PUBLIC]) if options.findings else None
    rows = np.asarray(Map(mean, None, LENGTH, Features().constant)(extracted))
    classes = np.bincount([len(set(one)) for one in digits])[1:]
    print(
        f"{count:,} images to train on, {len(rows) - count:,} to test; of all, {classes} with 1, "
        "2, 3 classes"
    )
    if options.findings:
        states = [number_of_findings([c in one for c in range(CLASSES)]) for one in digits]
        arena = arena_of("corners", *cut(rows, states, count), labels=MANY)
        for learner in FINDINGS:
            areas = [
                best_accuracies(arena, learner, epsilon, repeats, measure=mean_area)
                for epsilon in epsilons
            ]
            print_row(learner.name, *map(float, map(np.mean, areas)))
        return
    every = [number_of(one, CLASSES) for one in digits]
    arena = arena_of("corners", *cut(rows, every, count), labels=MOST)
    trained_on = {
        "all of them": every,
        "the first of them": [one[0] for one in digits],
        "images of one class alone": np.where([len(set(one)) == 1 for one in digits], every, -1),
    }
    print_head("trained on", *totals(epsilons))
    for name, labels in trained_on.items():
        relabelled = replace(arena, train=cut(rows, labels, count)[0])
        cells = [best_accuracies(relabelled, LeastSquares(), one, repeats) for one in epsilons]
        print_row(name, *map(float, map(np.mean, cells)))


if __name__ == "__main__":
    main()
