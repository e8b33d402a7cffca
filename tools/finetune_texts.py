"""MiniLM trained above a cut, next to a linear head on its pooled features, at equal totals, on
verses by genre.

python tools/finetune_texts.py [--verses 1500] [--epsilons 1 4] [--kappas 0.5] [--trains head
norm_and_bias lora last_block all] [--freeze none down] [--shares 1 0.9 --typical 4]

The whole total goes into one training, at each kappa that is given (`head`: at the prior's); noise
is seeded and accounted as in a release. Four fifths of the verses are trained on, the others are
the test. `--freeze` says which factor of adapters is frozen: a row for each. `--shares` and
`--public` as in finetune.py. Each line is printed when it is measured,
with the CPU seconds of one training.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from arena import LENGTH, arena_of, cut, encoded, with_units
from finetune import COLUMNS, TUNED, beside, compare, compare_each
from terminal import print_head, read_options

from dpladder.config.features_sections import Features
from dpladder.config.learners import learner_of
from dpladder.config.sources import GENRES
from dpladder.config.sweep_sections import Search
from dpladder.data.backbones import encoder
from dpladder.data.centre import Map
from dpladder.data.datasets import open_source
from dpladder.methods.dp_gd import Descent
from dpladder.network.cut import text_network_of
from dpladder.research.arena import Arena

CUTS = {"last_block": "encoder.layer.4"}
BELOW = "encoder.layer.3"  # the cut of all others: two layers of six lie above it
ADAPTED = {"rank": 4, "targets": ["*.query", "*.value"]}


def main() -> None:
    options = read_options(
        __doc__,
        verses=1500,
        tokens=32,
        epsilons=[1.0, 4.0],
        kappas=[0.5],
        steps=20,
        trains=["head", "norm_and_bias", "lora", "last_block", "all"],
        freeze=["down"],
        repeats=1,
        shares=list[float],
        public=0,
        typical=LENGTH,
    )
    few = Search(steps=(options.steps, options.steps))
    public = {"public": "gradient"} if options.public else {}
    print_head(*COLUMNS)
    for trains in options.trains:
        whole = arena_of_verses(options.verses, options.tokens, trains, options.typical)
        arena = beside(whole, options.public)
        for epsilon in options.epsilons:
            if trains == "head":
                compare("head", arena, Descent(), Search(), epsilon, 0.0, options.repeats)
                continue
            for freeze in options.freeze if trains == "lora" else [None]:
                adapters = {"lora": ADAPTED | {"freeze": freeze}} if freeze else {}
                name = f"{trains}, frozen: {freeze}" if freeze else trains
                learner = learner_of(TUNED | {"trains": trains} | public | adapters)
                compare_each(arena, name, learner, few, epsilon, options)


def arena_of_verses(count: int, tokens: int, trains: str, typical: float) -> Arena:
    """Verses as a training sees them: pooled features at the public length, or activations at a
    cut."""
    until = None if trains == "head" else CUTS.get(trains, BELOW)
    features = Features(model="minilm", tokens=tokens, batch_size=25, until=until)
    source = open_source(f"kjv:{count}")
    texts = [source.read(index) for index in range(count)]
    rows = encoded(encoder(features, source, threads=1), texts)
    labels, train = [GENRES.index(label) for label in source.labels], count * 4 // 5
    if until is None:
        parts = cut(np.asarray(Map(length=LENGTH)(rows)), labels, train)
        return with_units(arena_of("verses", *parts, len(GENRES)))
    network = text_network_of(features)
    facts: dict[str, Any] = {"network": network, "dimension": math.prod(network.shape)}
    parts = cut(rows.astype(np.float16), labels, train)
    return with_units(arena_of("verses", *parts, len(GENRES), length=typical, **facts))


if __name__ == "__main__":
    main()
