"""Every kind of query, attacked as it is declared and as the curator answers it.

The cells of a kind are all that a config can ask for. There are both relations, full batches and
samples, one record to a unit and two, and one view of it and two.

What a learner makes of answers is post-processing, which the blind check holds (learners.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, get_args

import numpy as np

from dpladder.config.label_sets import MANY, NUMBER, Labels
from dpladder.config.learner_sections import Lora
from dpladder.config.model import Resources
from dpladder.learn.finetune import shapes as finetune
from dpladder.learn.interface import Constants, public_random
from dpladder.learn.queries import (
    Curvatures,
    Flat,
    GradientSum,
    LinearHead,
    LossDifference,
    LossSums,
    OfModel,
    Query,
    QueryCall,
    RecordSum,
    ResidualSum,
    RightCount,
    SecondMoments,
    WeighedSums,
    declared,
)
from dpladder.learn.scorers import ClassScorer
from dpladder.methods.dp_finetune import FineTune
from dpladder.network.cut import network_of
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Composed, Relation
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter
from dpladder_audit.count_attacks import attacks_on_counts
from dpladder_audit.engine.findings import LeftOut
from dpladder_audit.engine.mechanism import Mechanism, neighbours
from dpladder_audit.engine.records import CLASSES, N0, ZERO_RECORD, Record, canaries_of, data_of
from dpladder_audit.scene import SceneFolder

MU = 2.0  # of one query on a full batch
STEPS = 2  # of which each must have noise of its own
RATE = 0.5  # of samples
HIDDEN = 128  # units of a perceptron
DELTA0 = 1e-7  # what they are booked at
SCORES = "scores"
NETWORK = "test_vit", "blocks.4", 32  # a small one: its name, its cut, and its images' size


@dataclass(frozen=True)
class GridCell:
    """One place of the grid: a setting that a config can ask for.

    Attributes:
        relation: what neighbours are.
        sampled: whether answers are sums over a Poisson sample of rate RATE.
        cap: records of a unit.
        views: of a record.
    """

    relation: Relation
    sampled: bool = False
    cap: int = 1
    views: int = 1

    def __str__(self) -> str:
        marks = (" sampled" * self.sampled, f" cap {self.cap}" * (self.cap > 1))
        return "".join((self.relation, *marks, f" {self.views} views" * (self.views > 1)))

    @property
    def rate(self) -> float:
        return RATE if self.sampled else 1.0


Make = Callable[[GridCell, Constants], tuple[Query, ...]]


@dataclass(frozen=True)
class Attack:
    """Queries that are asked together, and the cells that they are asked in.

    Args:
        make: The queries, in a cell.
        note: What sets the attack apart from others of its kind, for its name.
        sampled, views: Whether a config can ask for samples, and for several views of a record.
        cells: Where the attack runs; None means every cell that `sampled` and `views` allow.
        classes, labels: Number of classes, and of labels that a record may have.
        cut: Whether records are activations at the cut of `NETWORK`, and not plain features.
        far: Weights at which some canaries' losses, or residuals, are at their bound, and others'
            are nothing.
        tight: Whether a canary reaches the claim where one record is added.
    """

    make: Make
    note: str = ""
    sampled: bool = False
    views: bool = False
    cells: tuple[GridCell, ...] | None = None
    classes: int = CLASSES
    labels: Labels = 1
    cut: bool = False
    far: bool = False
    tight: bool = False

    def grid(self) -> Iterator[GridCell]:
        """The cells that the attack runs in."""
        ways = (
            get_args(Relation),
            (False, True)[: 1 + self.sampled],
            (1, 2),
            (1, 2)[: 1 + self.views],
        )
        yield from self.cells or (GridCell(*each) for each in product(*ways))

    def mechanisms(self, name: str) -> Iterator[Mechanism]:
        """The attack in each of its cells.

        Args:
            name: of the kind of query; the cell's stands behind it.
        """
        network = network_of(*NETWORK) if self.cut else None
        dimension = math.prod(network.shape) if network else len(ZERO_RECORD[0])
        for cell in self.grid():
            constants = Constants(
                N0,
                self.classes,
                dimension,
                cell.relation,
                cap=cell.cap,
                labels=self.labels,
                network=network,
            )
            tight = self.tight and cell == GridCell("add_remove")
            label = f"{name} {cell}{', ' * bool(self.note)}{self.note}"
            asking = Asking(self.make(cell, constants), constants, cell.views, self.far)
            yield asking.mechanism(label, tight)


@dataclass(frozen=True, eq=False)
class Asking:
    """A method that asks its queries as often as it may, at fixed places, and returns the answers
    in units of their noise.

    Attributes:
        queries: that are asked.
        constants: public sizes.
        views: of each record.
        far: whether weights put some canaries' losses at their bound, and others' at nothing.
        curators: those of before, by their units: runs differ in their noise alone.
    """

    queries: tuple[Query, ...]
    constants: Constants
    views: int = 1
    far: bool = False
    curators: dict[Any, Any] = field(default_factory=dict)

    def mechanism(self, name: str, tight: bool = False) -> Mechanism:
        """The query as the engine attacks it.

        It is charged by what its queries declare, and answered by a curator. So a bound which the
        curator does not keep is seen.

        Args:
            name: of the attack.
            tight: whether some canary reaches the claim.
        """
        costs = declared(self.queries, self.constants, DELTA0)
        relation = self.constants.relation
        # that noise is what it claims to be is seen without further records and views; what moves
        # sums shows at any effort
        effort = 1.0 if tight or self.constants.cap == self.views == 1 else 0.2
        canaries = canaries_of(self.constants.labels)
        return Mechanism(
            name=name,
            event=Composed(costs.events),
            draws=costs.draws,
            scale=1.0,
            run=self,
            neighbours=neighbours((ZERO_RECORD, ZERO_RECORD), canaries, relation),
            relation=relation,
            tight=tight,
            effort=effort,
        )

    def __call__(self, units: Sequence[Record], meter: Meter) -> Floats:
        [released] = self.many(units, [meter])
        return released

    def many(self, units: Sequence[Record], meters: Sequence[Meter]) -> list[Floats]:
        """What several trainings side by side release, as a rung's job has them: one curator, and a
        meter for each."""
        from dpladder.learn.curator import Curator

        if units not in self.curators:
            data = data_of(units, self.views, self.constants.dimension, self.constants.cap)
            self.curators[units] = Curator(data, self.constants, Resources(threads=1))
        queries = [self.queries] * len(meters)
        released: list[Floats] = self.curators[units].run(self.ask_all, queries, meters)
        return released

    def ask_all(self, inputs: Any, queries: tuple[Query, ...]) -> Any:
        """The method itself: it yields its questions, and returns every answer over its scale.

        Args:
            inputs: what a curator gives a method: public sizes, and where tensors lie.
            queries: that are asked.
        """
        import torch

        answers = []
        places = [self.places(query, inputs) for query in queries]
        for step in range(max(query.count for query in queries)):
            for query, at in zip(queries, places, strict=True):
                if step < query.count:
                    replies = yield [QueryCall(query, arguments) for arguments in at]
                    scale = query.scale(self.constants)
                    answers += [answer.double().cpu().ravel() / scale for answer in replies]
        return torch.cat(answers).numpy()

    def places(self, query: Query, inputs: Any) -> list[tuple[Any, ...]]:
        """The arguments of the questions that make one answer: one tuple, or one for each class."""
        import torch

        constants = self.constants
        labels = range(constants.classes)
        match query:
            case OfModel():
                weights = self.weights(query.model, inputs)
                if isinstance(query, LossSums):
                    return [(weights.expand(query.points, *weights.shape), inputs.zeros() + 1.0)]
                if isinstance(query, LossDifference):
                    along = torch.zeros_like(weights)
                    along[0, 0] = 1.0
                    return [(weights + along, weights - along)]
                return [(weights,)]
            case ResidualSum() | Curvatures():
                weights = inputs.zeros(constants.classes, constants.dimension)
                if self.far:  # surely wrong about two far canaries of class 1, as wrong as can be
                    weights[:, 2] = 1e3 * torch.tensor([2.0, -1.0, 1.0])
                by_class = isinstance(query, Curvatures)
                return [(weights, label) for label in labels] if by_class else [(weights,)]
            case RightCount():
                head = np.eye(constants.classes, constants.dimension, dtype=np.float32)
                return [((head,), ClassScorer())]
        return [(label,) for label in labels] if query.parts(constants) > 1 else [()]

    def weights(self, model: LinearHead | Flat, inputs: Any) -> Any:
        """Where a training starts; a head at random, where one of zeros would let no gradient
        through."""
        import torch

        if isinstance(model, LinearHead):
            weights = inputs.zeros(*model.shape(self.constants))
            if self.far:
                weights[:2, 0] = torch.tensor([1.0, -1.0])
            return weights
        if model.engine.endswith("learn.perceptron"):
            random, (shapes, *_) = public_random(self.constants), model.options
            layers = [random.uniform(-1.0, 1.0, shape) * shape[1] ** -0.5 for shape in shapes]
            start_weights = np.concatenate([layer.ravel() for layer in layers])
            return torch.from_numpy(start_weights).to(inputs.device)
        from dpladder.learn.finetune.parts import start, tuned_model

        tuned = tuned_model(model.options, self.constants)
        return start(model.options, self.constants, tuned).to(inputs.device)


def _gradients(clipping: Any = "flat", link: Any = "softmax", steps: int = STEPS) -> Make:
    """Clipped gradients of a linear head at weights of zero, with noise for MU over all steps."""

    def make(cell: GridCell, _: Constants) -> tuple[Query, ...]:
        return (
            GradientSum(
                name="noise",
                multiplier=gdp.sigma(MU, steps),
                count=steps,
                sampling_rate=cell.rate,
                model=LinearHead(False, link, cell.views),
                clipping=clipping,
            ),
        )

    return make


def _gradient_and_losses(points: int = 3, link: Any = "softmax", laplace: bool = False) -> Make:
    """A step that asks for the gradient and for losses; by Laplace noise for losses alone, for an
    attack takes noise of one kind."""

    def make(cell: GridCell, _: Constants) -> tuple[Query, ...]:
        return _loss_queries(LinearHead(False, link, cell.views), cell, points, laplace)

    return make


def _loss_queries(
    model: LinearHead | Flat, cell: GridCell, points: int, laplace: bool
) -> tuple[Query, ...]:
    """The gradient at half of MU, and losses at what is left of it."""
    mu = 2 * MU if cell.sampled else MU  # samples hide the canary
    gradient = GradientSum(
        name="noise",
        multiplier=gdp.sigma(mu / 2, 1),
        sampling_rate=cell.rate,
        model=model,
        clipping="automatic",
    )
    losses = LossSums(
        name="losses",
        multiplier=gdp.sigma(gdp.remaining(mu, [mu / 2]), points),
        sampling_rate=cell.rate,
        model=model,
        points=points,
    )
    if not laplace:
        return gradient, losses
    alone = replace(losses, points=1, distribution="laplace")
    return tuple(replace(alone, name=f"losses {place}") for place in range(points))


def _differences(laplace: bool = False, link: Any = "softmax", steps: int = 3) -> Make:
    """Differences of losses between two heads, each step with noise of its own."""

    def make(_: GridCell, __: Constants) -> tuple[Query, ...]:
        return (
            LossDifference(
                name="noise",
                multiplier=gdp.sigma(MU, steps),
                count=steps,
                distribution="laplace" if laplace else "gaussian",
                model=LinearHead(link=link),
            ),
        )

    return make


def _single_query(kind: Callable[..., Query], **options: Any) -> Make:
    """One query, asked once."""
    return lambda *_: (kind(name="sums", multiplier=gdp.sigma(MU, 1), **options),)


def _class_sums(radius: float = 1.0, **options: Any) -> Make:
    """Weighed sums in a ball of this radius."""
    return _single_query(WeighedSums, radius=radius, **options)


def _moments(**options: Any) -> Make:
    """Second moments in a ball of radius 2, so that a radius that is not squared is seen."""
    return _single_query(SecondMoments, radius=2.0, **options)


def _network(trains: Any, looks: bool = False, **options: Any) -> Make:
    """Queries of a public network above a cut: of matrices, whose records' gradients are never
    made, of a norm, whose are, and of the head alone."""

    def make(cell: GridCell, constants: Constants) -> tuple[Query, ...]:
        learner = FineTune(trains=trains, init="random", augment=cell.views, **options)
        model = finetune.model_of(learner, constants)
        if looks:
            return _loss_queries(model, cell, 3, laplace=False)
        return (
            GradientSum(
                name="noise",
                multiplier=gdp.sigma(MU, STEPS),
                count=STEPS,
                sampling_rate=cell.rate,
                model=model,
            ),
        )

    return make


def _perceptron(clipping: Any = "flat", link: Any = "softmax") -> Make:
    """The gradient of both matrices around a hidden layer, at random weights."""

    def make(cell: GridCell, constants: Constants) -> tuple[Query, ...]:
        shapes = (HIDDEN, constants.dimension), (constants.classes, HIDDEN)
        size = sum(math.prod(shape) for shape in shapes)
        return (
            GradientSum(
                name="noise",
                multiplier=gdp.sigma(MU, 1),
                sampling_rate=cell.rate,
                model=Flat("dpladder.learn.perceptron", (shapes, False, link), size, cell.views),
                clipping=clipping,
            ),
        )

    return make


def _odd_product(x: Any, label: Any) -> Any:
    """A plug-in's function of a record: opposite for opposite records, and not zero at a record of
    zeros."""
    return x[0] * x[:2].outer(x[:2]) * (label + 1) + 0.25


def _oversized_weights(x: Any, label: Any) -> Any:
    """A plug-in's weights for sums, which are longer than they may be, and follow features too. The
    curator has to cut them."""
    return (label + x.new_tensor([1.0, 2.0, -3.0])) * (1.0 + x.sum())


# cells for attacks that vary a query, where the first attack of its kind runs in all of them
WHOLE = GridCell("add_remove"), GridCell("replace_one", cap=2)
ONE = WHOLE[:1]
ADDED = (GridCell("add_remove"), GridCell("add_remove", sampled=True))
REPLACED = (GridCell("replace_one"), GridCell("replace_one", sampled=True))
THIN = Lora(rank=1, targets=("*.mlp.fc2",))
FROZEN = partial(_network, "lora", lora=THIN)
ADAPTED = partial(_network, "lora", lora=THIN.model_copy(update={"freeze": "none"}))

ATTACKS: dict[str, tuple[Attack, ...]] = {
    "gradients": (
        Attack(_gradients(), sampled=True, views=True),
        Attack(_gradients(steps=1), "one step", cells=WHOLE, tight=True),
        Attack(_gradients("automatic", "sigmoid"), "automatic clipping, sigmoids", cells=WHOLE),
        Attack(
            _gradients(link="sigmoid", steps=1), "findings", cells=WHOLE, labels=MANY, tight=True
        ),
        Attack(
            _gradients(link="identity", steps=1),
            "numbers",
            cells=WHOLE,
            classes=1,
            labels=NUMBER,
            tight=True,
        ),
    ),
    "losses": (
        Attack(_gradient_and_losses(), sampled=True),
        Attack(_gradient_and_losses(), "far", cells=REPLACED, far=True),
        Attack(_gradient_and_losses(5), "five points", cells=REPLACED[:1], far=True),
        Attack(_gradient_and_losses(link="sigmoid"), "findings", cells=WHOLE, labels=MANY),
        Attack(
            _gradient_and_losses(link="identity"),
            "numbers",
            cells=WHOLE,
            classes=1,
            labels=NUMBER,
        ),
        Attack(_gradient_and_losses(laplace=True), "Laplace noise", cells=ADDED, far=True),
    ),
    "differences": (
        Attack(_differences()),
        Attack(_differences(steps=1), "one step", cells=ONE, tight=True),
        Attack(
            _differences(laplace=True, steps=1), "Laplace noise, one step", cells=ONE, tight=True
        ),
        Attack(_differences(laplace=True), "Laplace noise", cells=ONE),
        Attack(
            _differences(link="sigmoid", steps=1), "findings", cells=WHOLE, labels=MANY, tight=True
        ),
        Attack(
            _differences(link="identity", steps=1),
            "numbers",
            cells=WHOLE,
            classes=1,
            labels=NUMBER,
            tight=True,
        ),
    ),
    "class sums": (
        Attack(_class_sums(), classes=3, tight=True),
        Attack(_class_sums(apart=True), "class by class", classes=3, tight=True),
        Attack(_class_sums(apart=True), "up to 3 classes", classes=3, labels=3, tight=True),
        Attack(_class_sums(by="presence"), "presence", labels=MANY, tight=True),
        Attack(_class_sums(radius=2.0, by="lack"), "lack", labels=MANY, tight=True),
        Attack(_class_sums(by="number"), "numbers", classes=1, labels=NUMBER, tight=True),
        Attack(
            _class_sums(radius=2.0, by="number", constant=0.5),
            "numbers, with a constant",
            classes=1,
            labels=NUMBER,
            tight=True,
        ),
        Attack(
            _class_sums(radius=2.0, by=_oversized_weights, sums=3, constant=1.0),
            "weights of a plug-in's",
            tight=True,
        ),
    ),
    "moments": (
        Attack(_moments(), tight=True),
        Attack(_moments(by_class=True), "class by class", classes=3, tight=True),
        Attack(_moments(by_class=True), "up to 3 classes", classes=3, labels=3, tight=True),
        Attack(_moments(constant=0.5), "with a constant", classes=1, labels=NUMBER, tight=True),
    ),
    "curvatures": tuple(
        Attack(
            _single_query(kind, radius=1.0, link=link),
            f"{what}, {link}",
            classes=3,
            far=kind is ResidualSum,
            tight=kind is ResidualSum,
        )
        for what, kind in (("residuals", ResidualSum), ("curvatures", Curvatures))
        for link in ("softmax", "sigmoid")
    ),
    "counts": (Attack(_single_query(RightCount), "a public head's right answers", tight=True),),
    "any function": (
        Attack(_single_query(RecordSum, of=_odd_product, of_shape=(2, 2)), tight=True),
    ),
    "perceptron": (
        Attack(_perceptron(), sampled=True, views=True),
        Attack(_perceptron(clipping="automatic"), "automatic clipping", cells=ONE),
        Attack(_perceptron(link="sigmoid"), "findings", cells=WHOLE, labels=MANY),
    ),
    "network": (
        Attack(ADAPTED(), "adapted", sampled=True, views=True, cut=True),
        Attack(ADAPTED(looks=True), "adapted, losses", sampled=True, cut=True),
        Attack(FROZEN(), "adapted, one factor frozen", cells=WHOLE, cut=True),
        Attack(_network(("norm.*",)), "with a norm", cells=WHOLE, cut=True),
        Attack(_network("head"), "the head alone", sampled=True),
        Attack(_network("head", looks=True), "the head alone, losses", sampled=True),
    ),
}
"""Every kind of query, and how it is attacked. Its first attack runs in every cell that a config
can ask for. Further ones vary what the query declares, in the cells where that may matter."""
ATTACKED = (SCORES, *ATTACKS)


def attacks(_: SceneFolder, name: str) -> tuple[Mechanism, ...]:
    """What `dpladder audit` runs of a kind of query, or of scores.

    Args:
        _: a folder for scenes, which kinds do not need.
        name: one of ATTACKED.
    """
    if name == SCORES:
        return tuple(attacks_on_counts())
    return tuple(one for each in ATTACKS[name] for one in each.mechanisms(name))


def skipped_combinations(_: str) -> tuple[LeftOut, ...]:
    """None: kinds of queries are attacked in every cell."""
    return ()
