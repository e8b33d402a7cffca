"""Rules between a learner's keys and other sections. They go by its traits, never by its name, so
that they hold for learners of other packages too."""

from __future__ import annotations

from typing import Any

from dpladder.config.rules import Messages, Table


def _trains(c: Any) -> Messages:
    """What is trained of a network lies above its last frozen layer, which must then be named."""
    learner = c.learner
    if learner.above_cut and c.features.until is None and not learner.head_alone:
        yield (
            "what is trained lies above features.until: name the last layer that stays frozen "
            "there, or set trains: head"
        )


def _augment(c: Any) -> Messages:
    """Views are made of images before the network, which is the only place where a crop means
    anything."""
    # texts and tables have no crops, so a view would be the record itself
    if c.learner.views > 1 and c.features.takes != "images":
        yield (
            "views are crops of images on their way into a network, and with features.model: "
            f"{c.features.model} there are none; set it to 1, or give images and a network"
        )


def _init(c: Any) -> Messages:
    """A public head needs a public sample, and a guided training has no other start."""
    if not c.learner.uses_public_gradient and c.learner.start == "public":
        yield from _public_head(c)
    if c.learner.uses_public_gradient and c.learner.start == "random":
        yield ("with learner.public: gradient training starts from the public head: leave it out")


def _public(c: Any) -> Messages:
    """A guided training starts from the public head, so it needs all that the head needs."""
    if c.learner.uses_public_gradient:
        yield from _public_head(c)


def _loss_noise(c: Any) -> Messages:
    """Refuse noise on losses under a relation for which no exact price is known."""
    if c.privacy.relation not in c.learner.exact_under:
        yield (
            f"laplace losses on Poisson samples have no known cost under {c.privacy.relation}: use "
            "gaussian, or sampling_rate 1"
        )


def _head(c: Any) -> Messages:
    """A private head is released once, and each training of the network starts from it alone."""
    if not c.learner.starts_from_private_head:
        return
    if c.task == "language_model":
        yield "a language model has no head: leave it out"
    elif c.features.until is None or c.learner.head_alone:
        yield (
            "trainings of the network start from it: name features.until, and learner.trains of "
            "it, or leave it out"
        )
    if c.learner.start != "zero":
        yield f"training starts from one head: leave it out, or learner.init: {c.learner.start}"


def _public_head(c: Any) -> Messages:
    """What a head trained on public labels needs: a public sample, a softmax, and a learner with a
    head."""
    if c.dataset.public_sample is None:
        yield "it needs dataset.public_sample, whose labelled records train the head"
    # its training is one multinomial regression, whose weights mean nothing to other links
    if c.learner.link != "softmax":
        yield "that head is trained by softmax: set learner.link: softmax, or leave it out"
    if not c.learner.has_head or c.task == "language_model":
        whose = "a language model" if c.learner.has_head else c.learner.name
        yield f"{whose} has no head of its own to start from; leave it out"


RULES: Table = {
    "learner.trains": _trains,
    "learner.augment": _augment,
    "learner.init": _init,
    "learner.public": _public,
    "learner.head": _head,
    "learner.loss_noise": _loss_noise,
}
