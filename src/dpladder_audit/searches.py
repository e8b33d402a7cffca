"""Every private search, attacked in the rule that runs it: the model that it puts out, with all
that it trained kept secret.

On records that contribute nothing the model is the noise of one training, and no more. Without
noise a unit moves it by what that training is charged, and no more. And nobody may tell two
neighbours apart by more than the whole search claims. What the winner's choice adds is far below
that claim: for it, tests/statistical looks at whole searches of toys.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dpladder.config.searches import METHODS
from dpladder.errors import BadInput
from dpladder.privacy.accounting.events import Event, Gaussian, RepeatAndSelect, SubsetSelect
from dpladder.privacy.release.store import Question
from dpladder_audit.engine.findings import LeftOut
from dpladder_audit.engine.mechanism import Mechanism
from dpladder_audit.rules import CAPS, EPSILON, KINDS, Kind, pairs, released_weights, terms
from dpladder_audit.scene import ETA, N0, Rule, SceneFolder

SHARE = 0.3  # of a run's mu^2, for its score
ATTACKED = METHODS


def attacks(scenes: SceneFolder, name: str) -> Iterator[Mechanism]:
    """A search under every relation that it is priced under."""
    return (search(scenes, name, kind) for kind in relations_of(name))


def relations_of(name: str) -> tuple[Kind, ...]:
    """The relations that a search is priced under."""
    return tuple(kind for kind in KINDS if kind in METHODS[name].section.exact_under)


def skipped_combinations(name: str) -> Iterator[LeftOut]:
    """What is not run of a search."""
    yield LeftOut(
        f"search {name} sampled", "searches on samples: their theorems are for full batches"
    )
    for kind, cap in CAPS.items():
        if kind not in relations_of(name):
            yield LeftOut(
                f"search {name} {kind}", f"{name} under {kind}: its theorem is for add_remove"
            )
        else:
            why = f"searches under {kind} run with cap {cap}, and kinds of queries with both"
            yield LeftOut(f"search {name} {kind} cap {3 - cap}", why)


def search(scenes: SceneFolder, name: str, kind: Kind | None = None) -> Mechanism:
    """A search in the rule that runs it, at all of a total.

    Args:
        scenes: a folder for scenes.
        name: of the search.
        kind: the relation; by default the last one that the search is priced under.
    """
    kind = kind or relations_of(name)[-1]
    options: Mapping[str, Any] = {
        "hpo": {"name": name, **METHODS[name].attack},
        "sweep": {"select": {"share": SHARE}},
        # Where units are replaced, a search may not share its total with a private test part.
        "dataset": {"public_test": f"npz:{scenes.folder}/public.npz"},
    }
    rule = Rule(
        scenes.scene(terms(kind), options),
        "private_search",
        released_weights,
        {"target": f"{EPSILON:g}"},
    )
    question = rule.question(pairs(kind)[0][0])
    winner = released_weights_event(question.spends[0].event, scored=METHODS[name].scored)
    moved = 2.0 if kind == "replace_one" else 1.0  # of the clip, by one unit of any cap

    def scale(_: Question) -> float:
        return ETA * winner.sigma * moved / N0

    title = f"search {name} {kind} cap {CAPS[kind]}"
    effort = 0.25 if kind == relations_of(name)[-1] else 0.1
    return rule.mechanism(title, scale, pairs(kind), winner=winner, effort=effort)


def released_weights_event(event: Event, scored: bool) -> Gaussian:
    """What the weights that a search puts out cost by themselves: a run's share for its weights, or
    the final training.

    Of a run's mu^2, SHARE pays for its score. So its weights have noise of sigma / sqrt(1 - SHARE).

    Raises:
        BadInput: a new kind of search is charged by another event.
    """
    match event:
        case RepeatAndSelect(Gaussian(sigma)):
            return Gaussian(sigma / math.sqrt(1 - SHARE))
        case SubsetSelect(final=final):
            return final
        case Gaussian(sigma):
            return Gaussian(sigma / math.sqrt(1 - SHARE)) if scored else event
    raise BadInput(f"nobody knows what a search that is charged as {event} puts out: say so here.")
