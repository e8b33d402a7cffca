"""`dpladder tune`: a public network trained on dataset.public_sample, for private trainings to rest
on. It reads that sample alone, which the config declares public.

`dpladder run` never does this: which network a config names is a choice of the operator's, and part
of the public map to features.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

# Before numpy loads: threads of small products wait on each other, for minutes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from dpladder.config import Config
from dpladder.config.features_sections import Features
from dpladder.config.model import Resources
from dpladder.data.backbones import encoder
from dpladder.data.cache import claims, public_network_of
from dpladder.data.encoders import Encoder, Rows
from dpladder.data.extract import Check, encode, load_content
from dpladder.data.files import write_private
from dpladder.data.parallel import cores
from dpladder.data.prepare import Survey, survey
from dpladder.errors import BadInput
from dpladder.jobs.prepare_dataset import keys_of
from dpladder.learn.data import Data
from dpladder.learn.finetune.public_network import PublicNetwork, tune_network
from dpladder.learn.interface import Constants
from dpladder.network.cut import check_cut
from dpladder.network.public import BUNDLED, model_of
from dpladder.plan.startup import open_resolved
from dpladder.privacy.ledger.home import open_home

SUFFIX = ".safetensors"


def tune(configs: Sequence[Path], file: Path, until: str | None, epochs: int) -> bool:
    """Train a public network further on `dataset.public_sample`, and write it where that helps.

    It costs nothing, because it reads public records alone. One that holds the private data itself
    is refused.

    Args:
        configs: of the project. The experiment must read a sample with labels.
        file: a new .safetensors file.
        until: the last layer that stays as it is; None takes `features.until`.
        epochs: most passes over the sample.

    Returns:
        Whether the network was better on records held out, and written.

    Raises:
        BadInput: the file is there, the sample has no labels, or the network cannot be cut there.
    """
    if file.suffix != SUFFIX:
        raise BadInput(f"{file}: the name of the new network must end in {SUFFIX}.")
    if file.exists():
        raise BadInput(f"{file} is there already. Name a new file.")
    if epochs < 1:
        raise BadInput(f"--epochs {epochs}: it must be 1 or more.")
    config = _experiment_to_tune(configs)
    features = _choose_cut(config.features, until)
    # Only the public source is opened, whatever else the config names.
    sample = survey(config.dataset, keys_of(open_home()), "sample")
    network = encoder(features, sample.source, cores())
    data = _read_labelled(sample, network, features)
    facts = {**claims(features, "", "sample"), **network.facts}
    known = public_network_of(facts, features.weights)
    constants = Constants(
        len(data.labels), len(sample.names), data.features.shape[1], network=known
    )
    tuned_network = tune_network(data, constants, epochs, Resources(threads=cores()))
    lost = len(sample.source.labels) - len(data.labels)
    note = f" ({lost:,} more name no class, are copies or cannot be read)" if lost else ""
    print(
        f"{len(data.labels):,} public records{note}: of those held out the network is right about "
        f"{tuned_network.right[0]:.3f} as it is, and "
        f"{tuned_network.right[tuned_network.epochs]:.3f} after {tuned_network.epochs} epochs on "
        "the others"
    )
    if not tuned_network.epochs:
        print("no epoch leaves less loss: the network stays as it is, and nothing is written")
        return False
    _write(file, features, tuned_network)
    name = BUNDLED.get(features.model, features.model)
    print(f"features: {{model: {name}, weights: {file}}} rests on it, at the same image_size")
    return True


def _experiment_to_tune(configs: Sequence[Path]) -> Config:
    """The first experiment on images that names a public sample of single classes."""
    for config in open_resolved(configs).experiments.values():
        dataset = config.dataset
        single = dataset.labels == 1 and not dataset.unit.pooled
        if dataset.public_sample is not None and config.features.takes == "images" and single:
            return config
    raise BadInput(
        "dpladder tune needs dataset.public_sample: images that anybody may see, each of one "
        "class. No experiment of this config has them."
    )


def _choose_cut(features: Features, until: str | None) -> Features:
    """The features cut at that layer, which the network is known to have."""
    cut = until or features.until
    if cut is None:
        raise BadInput(
            "dpladder tune trains what lies above a layer. Name one with --until, such as blocks.3 "
            "of an EfficientNet; --until input trains the whole network."
        )
    features = features.model_copy(update={"until": cut})
    check_cut(features)
    return features


def _read_labelled(sample: Survey, network: Encoder, features: Features) -> Data:
    """The labelled records that can be read, in the source's order."""
    rows = np.flatnonzero(sample.rows.label >= 0)
    rows = rows[np.argsort(sample.rows.index[rows])]
    if not len(rows):
        raise BadInput("dataset.public_sample has no labelled record. Say which class is whose.")
    places, labels = sample.rows.index[rows], sample.rows.label[rows]
    batches = (
        places[first : first + network.batch] for first in range(0, len(places), network.batch)
    )

    def load(place: int) -> tuple[Rows, Check]:
        return load_content(sample.source.read(place), network)

    encoded = [*encode(network, features, load, batches, cores())]
    # The last batch is padded to the one size, so rows beyond the records are cut off.
    activations = np.concatenate([encoded_batch for encoded_batch, _ in encoded])[: len(rows)]
    fine = np.concatenate([checks for _, checks in encoded])[: len(rows)] == Check.FINE
    return Data(activations[fine], labels[fine])


def _write(file: Path, features: Features, network: PublicNetwork) -> None:
    """Write the whole network, tuned tensors in place of its own, as a checkpoint for
    `features.weights`."""
    from safetensors.torch import save

    state = model_of(features).state_dict()
    state |= {name: tensor.contiguous() for name, tensor in network.tensors.items()}
    write_private(file, save(state))
