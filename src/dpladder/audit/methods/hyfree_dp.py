"""How HyFreeDP is attacked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from dpladder.audit.engine.built_in import neighbours
from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.engine.trainings import (
    CLASSES,
    DELTA0,
    ETA,
    N0,
    NOTHING,
    Record,
    canaries_of,
    cell_of,
    effort_of,
    learner_data,
)
from dpladder.audit.engine.trainings import in_cell as as_in
from dpladder.config.label_sets import MANY, Labels
from dpladder.config.learner_sections import HyperparameterFree, LossesLookedAt
from dpladder.config.model import Resources
from dpladder.learn.hyfree_dp.cost import split
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.registry import method
from dpladder.network.facts import Network
from dpladder.privacy.accounting.events import (
    Booked,
    Composed,
    Event,
    Gaussian,
    Relation,
    Sampled,
)
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter

LAPLACE = HyperparameterFree(gamma=2.0, loss_noise="laplace")


def in_cell(cell: GridCell) -> Mechanism:
    return first_look(as_in(HyperparameterFree(gamma=2.0), cell), cell)


def others() -> tuple[Mechanism, ...]:
    cells = (GridCell("hyfree_dp", "replace_one", sampled) for sampled in (False, True))
    findings = HyperparameterFree(gamma=2.0, link="sigmoid")
    published = HyperparameterFree(gamma=2.0, points=5, steering="published")
    relations: tuple[Relation, ...] = get_args(Relation)
    return (
        *(first_look(as_in(HyperparameterFree(gamma=2.0), cell), cell, far=True) for cell in cells),
        *(
            first_look(findings, GridCell("hyfree_dp", relation), note=", findings", labels=MANY)
            for relation in relations
        ),
        first_look(
            published, GridCell("hyfree_dp", "replace_one"), note=", as published", far=True
        ),
        *(
            first_look(as_in(LAPLACE, cell), cell, note=", Laplace losses alone", far=True)
            for sampled in (False, True)
            for cell in [GridCell("hyfree_dp", "add_remove", sampled)]
        ),
    )


def first_look(
    learner: LossesLookedAt,
    cell: GridCell,
    mu: float = 2.0,
    note: str = "",
    network: Network | None = None,
    far: bool = False,
    labels: Labels = 1,
) -> Mechanism:
    """A step that looks at the losses, by what it asks: how its rate follows from the answers is
    post-processing. Under a network records are activations at its cut. `far`: a linear head has
    come to where some canaries' losses are at their bound at all places that are looked at, and
    others' are nothing. Laplace losses are attacked without their gradient, whose noise is of
    another kind."""
    width = len(NOTHING[0]) if network is None else math.prod(network.shape)
    constants = Constants(
        N0, CLASSES, width, cell.relation, cap=cell.cap, labels=labels, network=network
    )
    hyper = Hyper(ETA, 1, mu, DELTA0)
    found = split(learner, hyper, cell.relation)
    declared = method(learner.name).declare(learner, hyper, constants)
    alone = learner.loss_noise == "laplace"
    draws = tuple(d for d in declared.draws if not (alone and d.distribution == "gaussian"))
    event: Event = Composed(declared.events)
    scales = [draw.scale / N0 for draw in declared.draws[:2]]

    def run(records: Sequence[Record], meter: Meter) -> Floats:
        import torch

        from dpladder.learn.descent import sampled_rows
        from dpladder.learn.hyfree_dp.train import Step, noised_gradient, noised_losses

        data = learner_data(learner, constants, records)
        begun = method(learner.name).room("train").begun
        sums, first = begun(data, learner, constants, Resources(threads=1))
        rows = sampled_rows(sums.records, learner.sampling_rate, meter, data.units)
        step = Step(sums, rows, N0)
        weights, bound = first[None].double(), torch.ones(1).double()
        if far:
            weights[0, :2, 0] = torch.tensor([1.0, -1.0])
        if alone:
            losses = noised_losses(step, weights, 0 * weights, bound, [found], [meter])
            return (losses.ravel() / scales[1]).numpy()
        gradient = noised_gradient(step, weights, constants, [meter])
        losses = noised_losses(step, weights, ETA * gradient, bound, [found], [meter])
        return np.concatenate([gradient.ravel() / scales[0], losses.ravel() / scales[1]])

    return Mechanism(
        name=f"{cell}{', far' * far}{note}",
        event=_without_gaussians(event) if alone else event,
        draws=draws,
        scale=1.0,
        run=run,
        neighbours=neighbours((NOTHING, NOTHING), canaries_of(labels), cell.relation),
        relation=cell.relation,
        effort=effort_of(cell),
        cell=cell_of(learner, constants),
    )


def _without_gaussians(event: Event) -> Event:
    match event:
        case Sampled(q, inner):
            return Sampled(q, _without_gaussians(inner))
        case Composed(parts) | Booked(parts):
            others = (part for part in parts if not isinstance(part.event, Gaussian))
            kept = tuple(replace(part, event=_without_gaussians(part.event)) for part in others)
            return replace(event, events=kept)
    return event
