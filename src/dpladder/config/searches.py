"""The private searches by name. The core has the ladder alone: packages bring all others
(docs/extend.md), dpladder_papers among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpladder.config.learners import METHODS as LEARNERS
from dpladder.config.method import SearchMethod
from dpladder.config.plugins import methods_of_packages
from dpladder.config.search_sections import Ladder, SearchSection
from dpladder.section import chosen_by_name

# names of learners are taken: a question names its mechanisms, and one name must mean one
METHODS: dict[str, SearchMethod] = methods_of_packages(
    "dpladder.searches", SearchMethod, SearchSection, LEARNERS
)
SECTIONS = tuple(method.section for method in METHODS.values())
if TYPE_CHECKING:  # nobody who checks types can know those of other packages
    PrivateSearch = SearchSection
    Hpo = Ladder | SearchSection
else:
    PrivateSearch = chosen_by_name(SECTIONS or (SearchSection,))  # the latter where none is there
    Hpo = chosen_by_name((Ladder, *SECTIONS))
