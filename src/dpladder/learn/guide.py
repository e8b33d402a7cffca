"""How much public records weigh that guide a descent on a linear head.

At each step the sum of their clipped gradients joins the private ones' noised mean. It costs
nothing, for it follows from public records and from weights that are private already.

The weight follows from variances, so there is nothing to choose (Amid et al. 2022, arXiv
2112.00193, leave it to a search). What counts is the error that each mean gradient puts into a
logit, for records x of one length L. Over a whole training noise of deviation s = C / (n0 mu) puts
s^2 L^2 into each of m logits. Take the public mean of P gradients r x'^T of length C at most. It
puts E|r|^2 E(x.x')^2 / P into all logits together, which is C^2 L^2 / (P k). Here k = L^4 /
E(x.x')^2 is how many directions features take up: 18 of 1,280 for images of digits, 86 of 384 for
verses. On full batches that weighs the public mean, beside the private one, by

    lambda = P m k / (n0 mu)^2,

and by four times as much where units are replaced. Noise in the other directions meets no record.

All of this holds for a sample of the same kind. Of one that is about something else the error does
not fall with P. So a part of mu^2 (`learner.look`) buys one noised count of the public head's right
answers on the training part. Where those are too few, a training goes its own way, from zero. Where
a share of them is missing, its square, less what the count's noise makes of it, joins the public
mean's squared error. Of a sample of the same kind that error is 1 / P.

What a network's head sees keeps its mean m, which is the longest direction and tells no classes
apart. There both errors are those of x - m alone. With D^2 = E|x - m|^2 noise puts s^2 D^2 into
each logit, and the public mean C^2 D^4 / (P k L^2). So k of the directions of x - m counts L^2 /
D^2 times. A network is guided by the law of its head, a batch of public records a step. Over a
training those average as P does, or as all that the batches hold, where they are fewer. A head that
is bought for the network looks, and what it found its sample worth is released with it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dpladder.config.learner_sections import Descending
from dpladder.learn.descent_noise import batch_size, gradient_sum
from dpladder.learn.interface import Claim, Constants, Hyper
from dpladder.learn.queries import GradientSum, Model, Query, RightCount
from dpladder.privacy.accounting import gdp

LOOK = "look"
PRIOR_ODDS = 10.0  # odds that a sample is of the same kind, before anything is seen
BATCH = 64  # public records in a network's step


def asks_for_look(learner: Descending) -> bool:
    """Whether a training buys a noised count of what its public head gets right. Not above a head
    that was bought: the look of that head was released with it."""
    return (
        learner.uses_public_gradient
        and learner.look_share > 0
        and not learner.starts_from_private_head
    )


def look_query(learner: Descending, hyper: Hyper) -> RightCount:
    """One noised count of the public head's right answers over all records of the training part.

    Guarantee: (sqrt(`learner.look`) mu)-GDP. Its sensitivity is the cap, however neighbours differ.
    """
    return RightCount(name=LOOK, multiplier=gdp.sigma(_mu_of_look(learner, hyper), 1))


def hyper_after_look(learner: Descending, hyper: Hyper) -> Hyper:
    """The training with what is left of mu for its steps."""
    if not asks_for_look(learner):
        return hyper
    return replace(hyper, mu=gdp.remaining(hyper.mu, [_mu_of_look(learner, hyper)]))


def queries(
    learner: Descending, hyper: Hyper, constants: Constants, model: Model | None = None
) -> tuple[Query, ...]:
    """A descent's noised sums of gradients, and a look where the learner takes one. All of them
    together are mu-GDP on full batches.

    Args:
        learner: its section in the config.
        hyper: steps, and the mu that all of it costs together.
        constants: public sizes.
        model: a linear head where none is named.
    """
    gradients = gradient_sum(learner, hyper_after_look(learner, hyper), constants, model)
    return (gradients, look_query(learner, hyper)) if asks_for_look(learner) else (gradients,)


def trusts_head(right: float, claim: Claim, scale: float, constants: Constants) -> bool:
    """Whether a noised count of right answers speaks for a head.

    It compares the count's likelihood where the head keeps what it claims with that where it knows
    no more than the baseline. Noise is Gaussian, so the log of their ratio is (claim -
    baseline)(share - middle) / noise^2. The word of whoever named the sample counts ten to one,
    which decides where the noise of the count says nothing.

    Args:
        right: the noised count.
        claim: of the head, on public records.
        scale: sd of the count's noise.
        constants: n0, which both are divided by.
    """
    share, noise = right / constants.n0, scale / constants.n0
    beyond = claim.right - claim.baseline
    middle = (claim.right + claim.baseline) / 2
    return beyond > 0 and beyond * (share - middle) / noise**2 > -math.log(PRIOR_ODDS)


def effective_sample_size(
    units: int, right: float, claim: Claim, scale: float, constants: Constants
) -> float:
    """How many public units of the same kind a sample is worth, by its look; 0 where its head is
    not trusted.

    Let g be the share of answers that the head claims and does not give. It adds g^2 to the public
    mean's squared error, which is 1 / units by itself. What the noise of the count makes of g^2 is
    taken away.

    Args:
        units: of the public sample.
        right: the noised count of right answers.
        claim: of the head, on public records.
        scale: sd of the count's noise.
        constants: n0.
    """
    if not trusts_head(right, claim, scale, constants):
        return 0.0
    share, noise = right / constants.n0, scale / constants.n0
    missing = max(0.0, claim.right - share)
    return units / (1 + units * max(0.0, missing**2 - noise**2))


def _mu_of_look(learner: Descending, hyper: Hyper) -> float:
    """The look's mu: its square is the share `learner.look` of the whole one's."""
    return float(learner.look**0.5 * hyper.mu)


def weight(
    learner: Descending, gradients: GradientSum, constants: Constants, directions: float
) -> float:
    """lambda / P of the law above: what one public unit weighs in a step, beside the noise of a
    whole training. By public figures alone.

    Args:
        learner: clip and sampling rate.
        gradients: the query of each step, with its noise.
        constants: public sizes.
        directions: k, of the public sample.
    """
    noise = gradients.scale(constants) / batch_size(learner, constants)
    return constants.classes * directions / gradients.count * (noise / learner.clip) ** 2
