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
from arena import DELTA, PUBLIC, encoded
from numpy.typing import NDArray
from PIL import Image
from sklearn.metrics import roc_auc_score
from terminal import print_head, print_row, read_options, totals
from variants import best_accuracies

from dpladder.config.features_sections import Features
from dpladder.config.label_sets import MANY, number_of, number_of_findings, states_by_finding
from dpladder.config.model import Resources
from dpladder.data.backbones import encoder
from dpladder.data.centre import Map, plain_mean
from dpladder.data.datasets import open_source
from dpladder.learn import score
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Weights
from dpladder.methods.dp_gd.section import Descent
from dpladder.methods.dp_ls.section import LeastSquares
from dpladder.methods.dp_prototypes.section import Prototypes
from dpladder.privacy.ledger.state import Terms
from dpladder.research.contest import Arena

FINDINGS = (Descent(link="sigmoid"), LeastSquares(), Prototypes())
CLASSES, MOST, SIDE, LENGTH = 10, 3, 28, 32.0
CORNERS = ((0, 0), (0, SIDE), (SIDE, 0), (SIDE, SIDE))


def images() -> tuple[list[NDArray[np.uint8]], list[list[int]]]:
    """Each image, and the digits on it, in the order in which they were laid."""
    source, random = open_source("mnist5k"), np.random.default_rng(0)
    left, made, digits = [*random.permutation(len(source.labels))], [], []
    while len(left) >= MOST:
        own = [left.pop() for _ in range(random.integers(1, MOST + 1))]
        image = np.zeros((2 * SIDE, 2 * SIDE), np.uint8)
        for index, corner in zip(own, random.permutation(len(CORNERS)), strict=False):
            top, side = CORNERS[corner]
            image[top : top + SIDE, side : side + SIDE] = source.read(int(index))
        made.append(image)
        digits.append([int(source.labels[index]) for index in own])
    return made, digits


def features_of(made: list[NDArray[np.uint8]], cache: Path | None) -> NDArray[np.float32]:
    file = None if cache is None else cache / "corners.npy"
    if file is not None and file.exists():
        kept: NDArray[np.float32] = np.load(file)
        return kept
    features = Features(image_size=96, batch_size=50, layers=("blocks.4",))
    network = encoder(features, open_source("mnist5k"), threads=2)
    found = encoded(network, [network.load(Image.fromarray(image), 0) for image in made])
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, found)
    return found


def areas(arena: Arena, weights: Weights) -> float:
    """AUC of each finding, and their mean."""
    logits = score.logits(weights, arena.test.features)
    findings = zip(states_by_finding(arena.test.labels, CLASSES), logits.T, strict=True)
    return float(np.mean([roc_auc_score(present, told) for (present, _), told in findings]))


def main() -> None:
    asked = read_options(__doc__, epsilons=[1.0, 4.0, 8.0], repeats=5, findings=False, cache=Path)
    made, digits = images()
    stored, cut = features_of(made, asked.cache), len(made) * 4 // 5
    mean = plain_mean(stored[cut:][:PUBLIC]) if asked.findings else None
    rows = np.asarray(Map(mean, None, LENGTH, Features().constant)(stored))
    every = np.array([number_of(own, CLASSES) for own in digits])
    if asked.findings:
        every = np.array(
            [number_of_findings([one in own for one in range(CLASSES)]) for own in digits]
        )
    trained = {
        "all of them": every,
        "the first of them": np.array([own[0] for own in digits]),
        "images of one class alone": np.where([len(set(own)) == 1 for own in digits], every, -1),
    }
    constants = Constants(
        n0=cut,
        classes=CLASSES,
        dimension=rows.shape[1],
        delta=DELTA,
        length=LENGTH,
        labels=MANY if asked.findings else MOST,
    )
    terms = Terms("corners", "add_remove", "record", 1, DELTA, "given", mode="research")
    test = Data(rows[cut:], every[cut:])
    arena = Arena(Data(rows[:cut], every[:cut]), test, constants, terms, Resources(threads=1), 0)
    told = np.bincount([len(set(own)) for own in digits])[1:]
    print(
        f"{cut:,} images to train on, {len(rows) - cut:,} to test; of all, {told} with 1, 2, 3 "
        "classes"
    )
    if asked.findings:
        for learner in FINDINGS:
            apart = [
                np.mean(best_accuracies(arena, learner, epsilon, asked.repeats, measure=areas))
                for epsilon in asked.epsilons
            ]
            print_row(learner.name, *apart)
        return
    print_head("trained on", *totals(asked.epsilons))
    for name, labels in trained.items():
        own = replace(arena, train=replace(arena.train, labels=labels[:cut]))
        found = [
            np.mean(best_accuracies(own, LeastSquares(), epsilon, asked.repeats))
            for epsilon in asked.epsilons
        ]
        print_row(name, *found)


if __name__ == "__main__":
    main()
