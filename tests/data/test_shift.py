"""Tests of a shift: labels by name, and images corrupted each as a function of itself alone."""

from __future__ import annotations

import numpy as np
import pytest

from dpladder.config.records import Corruption, Matching
from dpladder.config.sources import labels_of, names_of
from dpladder.data.shift import NOISE, class_mapping, corrupt_image

CIFAR10, STL10 = "torchvision:CIFAR10", "torchvision:STL10"
IMAGE = np.random.default_rng(0).integers(0, 256, (112, 160, 3), np.uint8)


def matching(
    own: str, other: str, classes: int | tuple[str, ...] | None = None, **counts_as: str
) -> Matching:
    count = classes if isinstance(classes, int) else None
    return Matching(
        names_of(own, classes), count, own, labels_of(other) or (), tuple(counts_as.items())
    )


def test_the_same_number_is_not_taken_for_the_same_class():
    """STL10's label 1 is a bird, and CIFAR-10's an automobile."""
    class_of, count = class_mapping(matching(CIFAR10, STL10, car="automobile"))
    assert [class_of(label) for label in range(10)] == [0, 2, 1, 3, 4, 5, 7, -1, 8, 9]
    assert count == 10
    # a car is no automobile until the config says so
    assert class_mapping(matching(CIFAR10, STL10))[0](2) == -1


def test_a_number_can_be_told_what_it_counts_as():
    class_of, _ = class_mapping(matching(CIFAR10, "npz:x.npz", None, **{"1": "bird"}))
    assert [class_of(label) for label in ("1", 1, 0, "bird", b"cat", "Cat", None)] == [
        2,
        2,
        -1,
        2,
        3,
        -1,
        -1,
    ]


def test_classes_without_names_match_nothing_by_themselves():
    plain, _ = class_mapping(matching("npz:x.npz", "mnist5k", 3))
    named, count = class_mapping(matching("npz:x.npz", "mnist5k", 3, **{"2": "1"}))
    assert [plain(label) for label in range(3)] == [-1, -1, -1]
    assert [named(label) for label in range(3)] == [-1, -1, 1]
    assert count == 3


@pytest.mark.parametrize("kind", ["blur", "noise"])
def test_a_corruption_is_the_same_every_time_and_grows_with_its_severity(kind):
    found = [corrupt_image(IMAGE, Corruption(kind, severity)) for severity in range(1, 6)]
    again = corrupt_image(IMAGE.copy(), Corruption(kind, 3))
    moved = [float(np.abs(image - IMAGE.astype(float)).mean()) for image in found]
    assert np.array_equal(found[2], again)
    assert moved == sorted(moved)
    assert moved[0] > 1
    assert {(image.shape, image.dtype.name) for image in found} == {(IMAGE.shape, "uint8")}


def test_noise_is_of_the_size_that_the_literature_gives_it_and_another_for_each_image():
    grey, other = np.full((64, 64, 3), 128, np.uint8), np.full((64, 64, 3), 127, np.uint8)
    first, second = (
        corrupt_image(image, Corruption("noise", 2)) - image.astype(float)
        for image in (grey, other)
    )
    assert first.std() == pytest.approx(255 * NOISE[1], rel=0.05)
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.05


@pytest.mark.parametrize("side", [224, 448])
def test_a_blur_is_measured_against_the_image(side):
    edge = np.zeros((side, side, 3), np.uint8)
    edge[:, side // 2 :] = 255
    row = corrupt_image(edge, Corruption("blur", 3))[0, :, 0].astype(float)
    sd = np.sqrt(np.average((np.arange(side - 1) - side / 2 + 1) ** 2, weights=np.diff(row)))
    assert sd == pytest.approx(3.0 * side / 224, rel=0.05)
