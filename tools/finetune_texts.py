"""MiniLM trained above a cut, next to a linear head on its pooled features, at equal totals, on
verses by genre.

python tools/finetune_texts.py [--verses 1500] [--epsilons 1 4] [--kappas 0.5] [--trains head
norm_and_bias lora last_block all] [--shares 1 0.9 --typical 4]

The whole total goes into one training, at each kappa that is given (`head`: at the prior's); noise
is seeded and accounted as in a release. Four fifths of the verses are trained on, the others are
the test. `--shares` and `--public` as in finetune.py. Each line is printed when it is measured,
with the CPU seconds of one training.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from arena import DELTA, with_units
from finetune import after_head, beside, compared
from terminal import print_head, read_options

from dpladder.config.features_sections import Features
from dpladder.config.learners import learner_of
from dpladder.config.model import Resources
from dpladder.config.sources import GENRES
from dpladder.config.sweep_sections import Search
from dpladder.data.backbones import encoder
from dpladder.data.centre import Map
from dpladder.data.datasets import open_source
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.methods.dp_gd.section import Descent
from dpladder.network.cut import text_network_of
from dpladder.privacy.ledger.state import Terms
from dpladder.research.contest import Arena

CUTS = {"last_block": "encoder.layer.4"}
BELOW = "encoder.layer.3"  # the cut of all others: two layers of six lie above it
ADAPTED = {"rank": 4, "targets": ["*.query", "*.value"]}


def main() -> None:
    asked = read_options(
        __doc__,
        verses=1500,
        tokens=32,
        epsilons=[1.0, 4.0],
        kappas=[0.5],
        steps=20,
        trains=["head", "norm_and_bias", "lora", "last_block", "all"],
        repeats=1,
        shares=list[float],
        public=0,
        typical=32.0,
    )
    print_head("learner", "kappa", "total", "test accuracy, mean and sd", "CPU seconds", "steps")
    for trains in asked.trains:
        arena = beside(arena_of(asked.verses, asked.tokens, trains, asked.typical), asked.public)
        for epsilon in asked.epsilons:
            if trains == "head":
                compared("head", arena, Descent(), Search(), epsilon, 0.0, asked.repeats)
                continue
            values = {"name": "dp_finetune", "trains": trains, "bias": True, "sampling_rate": 0.25}
            values |= {"public": "gradient"} if asked.public else {}
            learner = learner_of(values | ({"lora": ADAPTED} if trains == "lora" else {}))
            few = Search(steps=(asked.steps, asked.steps))
            for kappa, share in product(asked.kappas, asked.shares):
                after_head(arena, learner, few, epsilon, kappa, asked.repeats, share)
            for kappa in asked.kappas if not asked.shares else ():
                compared(trains, arena, learner, few, epsilon, kappa, asked.repeats)


def arena_of(count: int, tokens: int, trains: str, typical: float = 32.0) -> Arena:
    """Verses as a training sees them: pooled features at the public length, or activations at a
    cut."""
    until = None if trains == "head" else CUTS.get(trains, BELOW)
    features = Features(model="minilm", tokens=tokens, batch_size=25, until=until)
    source = open_source(f"kjv:{count}")
    network = encoder(features, source, threads=1)
    records = [network.load(source.read(index), 0) for index in range(count)]
    batches = (np.stack(records[start : start + 25]) for start in range(0, count, 25))
    rows = np.concatenate(list(network.encode(batches))).astype(np.float16 if until else np.float32)
    labels = np.array([GENRES.index(label) for label in source.labels], np.int64)
    cut, seen = None if until is None else text_network_of(features), Map(None, None, 32.0)
    kept = count * 4 // 5
    train, test = (
        Data(rows[part] if cut else seen(rows[part]), labels[part])
        for part in (slice(kept), slice(kept, None))
    )
    width = math.prod(cut.shape) if cut else rows.shape[1]
    length = typical if cut else 32.0
    constants = Constants(kept, len(GENRES), width, delta=DELTA, length=length, network=cut)
    terms = Terms("verses", "add_remove", "record", 1, DELTA, "given", mode="research")
    return with_units(Arena(train, test, constants, terms, Resources(threads=1), 0))


if __name__ == "__main__":
    main()
