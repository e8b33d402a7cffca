"""The learners by name: those of the core, each a folder of methods/, and those that packages
bring (docs/extend.md), dpladder_papers among them. They enter alike, by their `METHOD`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpladder.config.learner_sections import LearnerSection
from dpladder.config.method import LearnerMethod
from dpladder.config.plugins import methods_of_packages
from dpladder.errors import BadInput
from dpladder.section import chosen_by_name, from_document

NAMES = ("dp_gd", "dp_finetune", "dp_ls", "dp_ridge")
"""Those of the core, in the order in which the reference has them."""
DEFAULT, OF_NUMBERS = "dp_gd", "dp_ridge"

# A section is needed to parse any config, so all are imported. What trains is behind `later`.
METHODS: dict[str, LearnerMethod] = {
    name: import_module(f"dpladder.methods.{name}").METHOD for name in NAMES
} | methods_of_packages("dpladder.learners", LearnerMethod, LearnerSection, NAMES)
SECTIONS = tuple(method.section for method in METHODS.values())
if TYPE_CHECKING:  # nobody who checks types can know those of other packages
    Learner = LearnerSection
else:
    Learner = chosen_by_name(SECTIONS)


def method(name: str) -> LearnerMethod:
    """The learner that the config names.

    Raises:
        BadInput: neither dpladder nor an installed package has it.
    """
    if name not in METHODS:
        raise BadInput(f"learner.name is {name}. Choose one of: {', '.join(METHODS)}.")
    return METHODS[name]


def learner_of(values: Mapping[str, Any]) -> Learner:
    """A learner's section from plain values.

    Args:
        values: its keys, `name` among them; those left out have their defaults.

    Raises:
        pydantic.ValidationError: a key or a value is not one of that learner's.
    """
    learner: Learner = from_document(Learner, values)
    return learner


def names_with(trait: str) -> tuple[str, ...]:
    """The learners whose section has a trait, whatever its keys are.

    Args:
        trait: an attribute of the section's class, such as `findings`. A property is true of every
            class, so traits that depend on keys cannot be asked for.
    """
    return tuple(name for name, method in METHODS.items() if getattr(method.section, trait))
