"""The learners by name: dpladder's own, each a folder of methods/, and those of other packages
(docs/extend.md). They enter alike, by their `METHOD`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field

from dpladder.config.learner_sections import LearnerSection
from dpladder.config.method import Method
from dpladder.config.plugins import check_section, entries
from dpladder.config.section import from_document
from dpladder.errors import BadInput

NAMES = (
    "dp_gd",
    "dp_mlp",
    "dp_adam",
    "dp_adam_wosm",
    "dp_finetune",
    "dp_ls",
    "dp_newton",
    "dp_fc",
    "hyfree_dp",
    "hyfree_finetune",
    "dp_zo",
    "one_step",
    "dp_prototypes",
    "dp_prodigy",
    "prodigy_finetune",
)
"""dpladder's own, in the order in which the reference has them."""
DEFAULT = "dp_gd"


def of_another_package(entry: EntryPoint, package: str) -> Method:
    """The method that an entry point names."""
    method = import_module(entry.value).METHOD
    if not isinstance(method, Method):
        raise BadInput(f"{entry.value}.METHOD must be a dpladder.config.method.Method.")
    check_section(method.section, entry.name, LearnerSection)
    return replace(method, package=package)


METHODS: dict[str, Method] = {
    name: import_module(f"dpladder.methods.{name}").METHOD for name in NAMES
} | entries("dpladder.learners", of_another_package)
SECTIONS = tuple(method.section for method in METHODS.values())
if TYPE_CHECKING:  # nobody who checks types can know those of other packages
    Learner = LearnerSection
else:
    Learner = Annotated[Union[SECTIONS], Field(discriminator="name")]  # noqa: UP007


def method(name: str) -> Method:
    """The learner that the config names."""
    if name not in METHODS:
        raise BadInput(f"learner.name is {name}. Choose one of: {', '.join(METHODS)}.")
    return METHODS[name]


def learner_of(values: Mapping[str, Any]) -> Learner:
    """A learner's section from plain values."""
    learner: Learner = from_document(Learner, values)
    return learner


def names_with(trait: str) -> tuple[str, ...]:
    """The learners whose section has a trait, whatever its keys are."""
    return tuple(name for name, method in METHODS.items() if getattr(method.section, trait))
