"""The array sources, as small as they can be: python make_arrays.py FOLDER."""

import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

folder = Path(sys.argv[1])
features = np.array([[0.1, 2.0], [0.3, 1.0], [0.2, 1.5]], np.float32)  # a row for each record
images = np.zeros((3, 8, 8, 3), np.uint8)  # records, height, width, channels; uint8 or uint16
labels, ids = np.array([0, 1, 0]), np.array(["r1", "r2", "r3"])

np.savez(folder / "features.npz", features=features, labels=labels, ids=ids)
np.savez(folder / "images.npz", images=images, labels=labels)
with h5py.File(folder / "features.h5", "w") as file:
    file["features"], file["labels"] = features, labels
table = pd.DataFrame(
    {"age": [41, 67, 35], "colour": ["red", "green", "red"], "label": ["no", "yes", "no"]}
)
table.to_parquet(folder / "features.parquet")
