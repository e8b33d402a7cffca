"""The private searches by name: dpladder's own, each a folder of searches/, and those of other
packages (docs/extend.md). They enter alike, by their `METHOD`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from dpladder.config.learners import METHODS as LEARNERS
from dpladder.config.method import SearchMethod
from dpladder.config.plugins import methods_of_packages
from dpladder.config.search_sections import Ladder, SearchSection

NAMES = (
    "random_search",
    "naive_composition",
    "papernot_steinke",
    "liu_talwar",
    "dp_hypo",
    "koskela_kulkarni",
    "propose_test",
)
"""dpladder's own, in the order in which the reference has them."""
# names of learners are taken: a question names its mechanisms, and one name must mean one
METHODS: dict[str, SearchMethod] = {
    name: import_module(f"dpladder.searches.{name}").METHOD for name in NAMES
} | methods_of_packages("dpladder.searches", SearchMethod, SearchSection, LEARNERS)
SECTIONS = tuple(method.section for method in METHODS.values())
if TYPE_CHECKING:  # nobody who checks types can know those of other packages
    PrivateSearch = SearchSection
    Hpo = Ladder | SearchSection
else:
    PrivateSearch = Union[SECTIONS]  # noqa: UP007
    Hpo = Annotated[Union[(Ladder, *SECTIONS)], Field(discriminator="name")]
