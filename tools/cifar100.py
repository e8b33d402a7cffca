"""Takes out of a test part what stands in the training part too, whatever its label.

python tools/cifar100.py data/cifar100

CIFAR-100 has ten such test images. Its images as PNG lie in the public repository
cyizhuo/CIFAR-100-dataset: `git clone --depth 1 https://github.com/cyizhuo/CIFAR-100-dataset
data/cifar100`.
"""

from __future__ import annotations

import argparse
from hashlib import sha256
from pathlib import Path

import numpy as np
from PIL import Image


def pixels(file: Path) -> bytes:
    with Image.open(file) as image:
        return sha256(np.asarray(image.convert("RGB")).tobytes()).digest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="it holds train and test, as PNG")
    folder = parser.parse_args().folder
    known = {pixels(file) for file in (folder / "train").rglob("*.png")}
    twins = [file for file in sorted((folder / "test").rglob("*.png")) if pixels(file) in known]
    for file in twins:
        file.unlink()
        print(f"{file} stands in the training part too: removed")


if __name__ == "__main__":
    main()
