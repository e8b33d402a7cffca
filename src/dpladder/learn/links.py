"""From logits to probabilities, and to the loss that a descent follows: one softmax over the
classes, or a sigmoid for each, or of a number itself half the squared error. Of findings
(`dataset.labels: many`) each has a sigmoid, told by itself.

With sigmoids and weights at zero every class would have probability 1/2, and the first steps would
only unlearn that. So a bias starts where each has 1/m, its share of m balanced classes: b = -log((1
- pi) / pi) with pi = 1/m, which is -log(m - 1) (Lin et al. 2017, section 3.3). It is public, the
same for all classes, and stands beside the weights: no prediction hangs on it, and it is not
decayed. What a constant feature or `learner.bias` learns is added to it. The first gradient is the
softmax's then, for m equal probabilities are what softmax starts from. Findings start there too, at
one a record, and their predictions do hang on the bias (learn/score.py).

Gradients are clipped as they are, so a link changes no cost, but for DP-Newton's, which has bounds
of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpladder.config.label_sets import MANY, Labels, place_in_range, states_by_finding
from dpladder.config.learner_sections import LinkName
from dpladder.learn.interface import Constants, sigmoid_bias

CLASSES_COMPARED = 10  # for each head: below, a comparison with each class is the faster way


def place_of_target(labels: Tensor) -> Tensor:
    """Where each record's number lies in its public range, from -1 to 1."""
    place: Tensor = 2.0 * place_in_range(labels.double()) - 1.0
    return place


@dataclass(frozen=True)
class Link:
    """How logits become probabilities and a loss.

    Attributes:
        name: `softmax`, or `sigmoid` for each class; `identity` of a number (dataset.target).
        classes: m.
        labels: classes that a record may be of, at most; `many` where each is a finding.
    """

    name: LinkName = "softmax"
    classes: int = 2
    labels: Labels = 1

    @property
    def bias(self) -> float:
        """What is added to every logit."""
        return sigmoid_bias(self.classes) if self.name == "sigmoid" else 0.0

    @property
    def loss_at_zero(self) -> float:
        """A record's loss where all weights are zero: log m, or for sigmoids log m + (m - 1) log(m
        / (m - 1))."""
        if self.name == "identity":  # a target at an end of its range
            return 0.5
        m = max(self.classes, 2)
        rest = (m - 1) * math.log(m / (m - 1)) if self.name == "sigmoid" else 0.0
        return math.log(m) + rest

    def probabilities(self, logits: Tensor, dim: int) -> Tensor:
        """The probability of each class along `dim`, the public bias included."""
        if self.name == "identity":
            return logits
        if self.name == "sigmoid":
            return torch.sigmoid(logits + self.bias)
        return torch.softmax(logits, dim=dim)

    def subtract_targets(self, probabilities: Tensor, labels: Tensor) -> Tensor:
        """The slope of the loss in each logit, in place: probabilities less 1 for a record's class,
        or for each of its findings. It is nothing where a finding is unknown.

        Args:
            probabilities: (heads, classes, records, views).
            labels: (records,).

        Returns:
            The same tensor.
        """
        if self.name == "identity":
            return probabilities.sub_(place_of_target(labels)[..., None])
        if self.labels == MANY:
            present, known = self._findings(labels, dim=0)
            return probabilities.sub_(present[..., None]).mul_(known[..., None])
        heads, classes, count, views = probabilities.shape
        # Comparing takes its time for each class, a scatter for each head. A GPU's scatter, where
        # it is deterministic, takes longer than both products of a step.
        if probabilities.is_cuda or classes < CLASSES_COMPARED * heads:
            targets = labels == torch.arange(classes, device=labels.device)[:, None]
            return probabilities.sub_(targets[..., None].to(probabilities.dtype))
        labels = labels.view(1, 1, count, 1).expand(heads, 1, count, views)
        return probabilities.scatter_add_(1, labels, probabilities.new_full(labels.shape, -1.0))

    def _findings(self, labels: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        """Along `dim` for each class whether it is present, and whether that is known, as 0 or
        1."""
        present, known = zip(*states_by_finding(labels, self.classes), strict=True)
        return torch.stack(present, dim).float(), torch.stack(known, dim).float()

    def losses(self, logits: Tensor, labels: Tensor, dim: int) -> Tensor:
        """Each record's loss, 0 or more, summed over its known classes.

        Args:
            logits: any shape, with the classes along `dim`.
            labels: of the logits' shape, with a single place along `dim`.
            dim: the classes' dimension, which the result lacks.
        """
        if self.name == "identity":
            return ((logits - place_of_target(labels)) ** 2 / 2).sum(dim=dim)
        if self.name == "softmax":
            return logits.logsumexp(dim=dim) - logits.gather(dim, labels).squeeze(dim)
        shifted = logits + self.bias
        if self.labels == MANY:
            present, known = self._findings(labels.squeeze(dim), dim)
            return ((softplus(shifted) - shifted * present) * known).sum(dim=dim)
        return softplus(shifted).sum(dim=dim) - shifted.gather(dim, labels).squeeze(dim)


SOFTMAX = Link()


def link_of(learner: Any, constants: Constants) -> Link:
    """The link that a learner's section names, for these classes and labels."""
    return Link(learner.link, constants.classes, constants.labels)
