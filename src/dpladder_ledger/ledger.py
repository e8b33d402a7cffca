"""`dpladder.Ledger`: the books of a lineage, open to mechanisms of the user's own."""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import booking, gdp
from dpladder.privacy.accounting.composition import largest_entry
from dpladder.privacy.accounting.events import Job, Partition, Relation, Spend
from dpladder.privacy.accounting.rounding import round_down, round_up, round_up_short
from dpladder.privacy.ledger import anchors, book
from dpladder.privacy.ledger.book import OWN_CODE
from dpladder.privacy.ledger.home import open_home, refuse_home_inside, subkey
from dpladder.privacy.ledger.limits import remaining_epsilon
from dpladder.privacy.ledger.state import Item, Terms
from dpladder.privacy.statement.check import anchors_in, check, read_statement
from dpladder_ledger import statistics
from dpladder_ledger.charge import Charge
from dpladder_ledger.mechanisms import Mechanism, events_of, sensitivity_factor
from dpladder_ledger.statement import write_statement

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class OpenLedger:
    """The ledger of a lineage, for mechanisms of your own: Opacus, JAX-Privacy, TensorFlow Privacy,
    your loop.

    `epsilon` at `delta` is the most that may ever be released about the lineage. It is declared
    when the lineage is opened first, and fixed for life. Every reservation enforces it, and every
    COMMIT again. That limit is the guarantee. It covers whatever was chosen because of what: spends
    are entries of a filter (docs/privacy.md), so a search may look at its own results.

    What is guaranteed: each spend is on disk before `commit()` returns. A process that is killed
    loses no charge. Nothing that would exceed the limit is committed, whichever process, thread or
    host with the same home asks.

    What is trusted: that your mechanism is what its event says, and that it draws after `commit()`
    and once. Whatever leaves it is charged: weights, scores, stopping, intermediate values, your
    choice of what to try next by looking at private data. All data about the same people is one
    lineage. Two machines with homes of their own know nothing of each other: a lineage has one home
    (DPLADDER_HOME); `results` remembers which.

    Args:
        lineage: The data's name for life: letters, digits, - and _.
        epsilon, delta: The limit. Both are fixed for the lineage's life.
        relation: What neighbours are, fixed for life too: a unit that is there or not
            (`add_remove`), or one in place of another (`replace_one`).
        unit: Whose privacy is protected, for the statement: `record`, `user` or another word.
            Whatever else is said of a record here, of sensitivity and of values, is then said of
            all records of such a unit together.
        loss, weight: Caps beside the Gaussian part: on the sum of the pure losses of private
            selections (RepeatAndSelect) and of pure mechanisms, and on the product of selections'
            weights. By default none is allowed, and pure mechanisms are charged as Gaussians.
        results: Where records, anchors and the statement go. Public.
        home: The ledger's own folder; None: DPLADDER_HOME, or ~/.dpladder. Secret.

    Raises:
        Refused: The lineage was opened under other terms, or its ledger is older than `results`
            remembers.
    """

    def __init__(
        self,
        lineage: str,
        epsilon: float,
        delta: float,
        *,
        relation: Relation = "add_remove",
        unit: str = "record",
        loss: float = 0.0,
        weight: float = 1.0,
        results: Path | str = "results",
        home: Path | str | None = None,
    ) -> None:
        if not isinstance(lineage, str):
            raise BadInput(
                f"the lineage is {lineage!r}. Give the data's name for life, as text: letters, "
                "digits, - and _."
            )
        self.results = Path(results)
        self._process, self._lock = os.getpid(), threading.RLock()
        place = None if home is None else Path(home)
        refuse_home_inside(open_home(place, create=False), [self.results])
        opened = open_home(place)
        # before the ledger, which only grows
        stood = [anchor for anchor in anchors_in(self.results) if anchor.lineage == lineage]
        state = book.load(book.Ledger(opened, lineage))
        anchors.check(opened, stood, {lineage: state})
        terms = state.terms or Terms(
            lineage,
            relation,
            unit,
            1,
            delta,
            OWN_CODE,
            epsilon,
            "release",
            booking.SHARE,
            loss,
            weight,
        )
        if terms.mode != "release":
            raise Refused(
                f"lineage {lineage} is in mode {terms.mode}, which guarantees nothing. Open "
                "another lineage."
            )
        terms_given = replace(
            terms, relation=relation, unit=unit, delta=delta, lifetime_epsilon=epsilon
        )
        if (loss, weight) != (0.0, 1.0):
            terms_given = replace(terms_given, loss=loss, weight=weight)
        self._ledger = book.open_ledger(opened, terms_given)

    def reserve(self, name: str, mechanism: Mechanism, *, again: bool = False) -> Charge:
        """Set budget aside for a mechanism: a DpEvent of dp_accounting, an Opacus accountant, its
        history [(noise_multiplier, sample_rate, steps), ...], or a list of these. Refused beyond
        the limit.

        Noise multipliers are over what one unit adds, and halved here under replace_one: one
        record, or all records of a user where `unit` says so.
        ZCDpEvent.rho is for the lineage's own relation: 4 rho under replace_one, where rho is what
        holds for added and removed records. A pure mechanism is booked as the Gaussian that covers
        it, where one strong release is dear; or by its epsilon alone, where the lineage allows a
        `loss` (docs/ledger.md).

        A reservation that was never used is resumed under its name, by a script that is run
        again. A name that was committed is refused, because that is paid for: `again=True` pays
        once more.

        Args:
            name: What the spend is called in the ledger: letters, digits, and -, _ or . inside.
            mechanism: What it does to data.
            again: Whether to pay once more under a name that was used.

        Raises:
            Refused: No room is left, no price is known, the name was used, or the lineage was
                opened under other terms since.
        """
        self._refuse_fork()
        if not NAME.fullmatch(name):
            raise BadInput(
                f"a spend is called {name!r}. It must be letters, digits, and -, _ or . inside."
            )
        item = self._item(name, mechanism)
        with self._lock:
            charges = book.load(self._ledger).charges_for(item.question)
            if not again and any(one.status != "RESERVED" for one in charges):
                self._refuse_used(name)
            (mine,) = book.reserve(self._ledger, [item], {item.question} if again else ())
            if mine.status != "RESERVED":  # another process was quicker
                self._refuse_used(name)
            return Charge(self._ledger, mine, self._lock, self._anchor)

    def spend(self, name: str, mechanism: Mechanism, *, again: bool = False) -> Charge:
        """Reserve and commit: `with ledger.spend(name, mechanism) as charge:`, and
        `charge.finish(released)` inside.

        Arguments, and what is refused, are those of `reserve`.
        """
        return self.reserve(name, mechanism, again=again).commit()

    def spends(
        self,
        name: str | Callable[..., str],
        mechanism: Mechanism | Callable[..., Mechanism],
        *,
        again: bool = False,
    ) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
        """A decorator: each call is one spend, and what the function returns is what it released.

        The charge is on disk before the function runs. It stays where the function fails: what it
        showed by failing, nobody knows.

        Args:
            name, mechanism: As `reserve` takes them, or functions of the call's arguments.
            again: Whether each call pays once more under a name that was used.
        """

        def decorate(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
            @functools.wraps(work)
            def charged(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
                called = name(*args, **kwargs) if callable(name) else name
                costs = mechanism(*args, **kwargs) if callable(mechanism) else mechanism
                with self.spend(called, costs, again=again) as charge:
                    released = work(*args, **kwargs)
                    charge.finish(released)
                return released

            return charged

        return decorate

    def count(self, name: str, values: Any, *, epsilon: float, again: bool = False) -> float:
        """How many values there are, with noise. Missing ones are none.

        Args:
            name: What the spend is called in the ledger.
            values: One of each unit.
            epsilon: What it costs at the lineage's delta.
            again: Whether to pay once more under a name that was used.
        """
        result = self._release_statistic(name, *statistics.count_present(values), epsilon, again)
        return float(result[0])

    def histogram(
        self, name: str, values: Any, *, levels: Sequence[Any], epsilon: float, again: bool = False
    ) -> dict[Any, float]:
        """How many values are each of the levels, with noise. All levels together cost epsilon, for
        a record is in one.

        Args:
            name: What the spend is called in the ledger.
            values: One of each record. A value that is none of the levels counts nowhere.
            levels: Declared, never read off the data.
            epsilon: What it costs at the lineage's delta.
            again: Whether to pay once more under a name that was used.

        Returns:
            A count for each level. It may be below 0, and no whole number.
        """
        exact = statistics.counts_of_levels(values, levels)
        result = self._release_statistic(name, *exact, epsilon, again)
        return dict(zip(levels, result.tolist(), strict=True))

    def sum(
        self,
        name: str,
        values: Any,
        *,
        bounds: tuple[float, float],
        epsilon: float,
        again: bool = False,
    ) -> float:
        """The sum of values, each cut to bounds, with noise.

        Args:
            name: What the spend is called in the ledger.
            values: One of each unit; what is missing or no number counts as nothing.
            bounds: The smallest and largest value, known publicly: never read off the data.
            epsilon: What it costs at the lineage's delta.
            again: Whether to pay once more under a name that was used.
        """
        exact = statistics.clipped_sum_of_values(values, bounds)
        return float(self._release_statistic(name, *exact, epsilon, again)[0])

    def mean(
        self,
        name: str,
        values: Any,
        *,
        bounds: tuple[float, float],
        epsilon: float,
        again: bool = False,
    ) -> float:
        """The mean of values, each cut to bounds: a noised sum over a noised count, which cost
        epsilon together. Arguments are those of `sum`."""
        exact = statistics.scaled_sum_and_count(values, bounds)
        return statistics.mean_of(self._release_statistic(name, *exact, epsilon, again), bounds)

    def quantiles(
        self,
        name: str,
        values: Any,
        at: Sequence[float],
        *,
        bounds: tuple[float, float],
        epsilon: float,
        again: bool = False,
    ) -> list[float]:
        """The values that these shares of all lie below, read off one noised tree of counts.

        As many as you like cost the same. The tree has 1,024 leaves, so a value is known to about
        a thousandth of the bounds at best.

        Args:
            name: What the spend is called in the ledger.
            values: One of each unit; what is missing or no number counts as nothing.
            at: Shares from 0 to 1, such as 0.5 for the median.
            bounds: The smallest and largest value, known publicly.
            epsilon: What the tree costs at the lineage's delta.
            again: Whether to pay once more under a name that was used.

        Returns:
            A value within bounds for each share.
        """
        if not (np.ndim(at) == 1 and all(0.0 <= share <= 1.0 for share in at)):
            # not quoted: where both are swapped, these are the private values
            raise BadInput("at is no list of shares from 0 to 1. Give [0.5] for the median.")
        exact = statistics.tree_of(values, bounds)
        tree = self._release_statistic(name, *exact, epsilon, again)
        return statistics.quantiles_of(tree, at, bounds)

    def _release_statistic(
        self,
        name: str,
        exact: NDArray[np.float64],
        sensitivity: float,
        epsilon: float,
        again: bool,
    ) -> NDArray[np.float64]:
        """`exact` with Gaussian noise that costs epsilon at the lineage's delta, on the public
        grid.

        Guarantee: 1/sigma-GDP for the sigma that epsilon buys. Under replace_one a record leaves
        and another comes, so noise is twice as large for the same sensitivity.

        Args:
            name: What the spend is called in the ledger.
            exact: The sum. Private.
            sensitivity: The most (L2) that one record adds to `exact`.
            epsilon: What it costs.
            again: Whether to pay once more under a name that was used.
        """
        from dp_accounting import dp_event

        terms = self._terms
        sigma = gdp.sigma(gdp.mu_from_epsilon(epsilon, terms.delta), 1)
        multiplier = sensitivity_factor(terms.relation) * sigma
        with self.spend(name, dp_event.GaussianDpEvent(multiplier), again=again) as charge:
            noised = np.asarray(charge.noise(exact, sensitivity), np.float64)
            charge.finish(noised)
        return noised

    def affords(self, mechanism: Mechanism) -> bool:
        """Whether one more such spend would be reserved. Reserves nothing, so another process may
        be quicker: what is reserved is certain."""
        self._refuse_fork()
        try:
            with self._lock:
                item = self._item("asked", mechanism)
                book.admit(self._terms, book.load(self._ledger), [item], {item.question})
        except Refused:
            return False
        return True

    def stop_when_spent(self, mechanism: Mechanism) -> Callable[[Any, Any], None]:
        """A callback for Optuna's `study.optimize`: ends the search when no other trial of this
        cost fits. Reserve what the final training needs before.

        Args:
            mechanism: What one trial does to data.
        """

        def callback(study: Any, _: Any) -> None:
            if not self.affords(mechanism):
                study.stop()

        return callback

    def released(self, name: str) -> str | None:
        """The digest of what a spend released last, in hex of 64 digits; None while it has released
        nothing."""
        with self._lock:
            charges = book.load(self._ledger).charges_for(_question(name))
        return next((one.output for one in reversed(charges) if one.status == "DONE"), None)

    @property
    def spent(self) -> float:
        """Epsilon of all that is spent or reserved, whoever spent it. The guarantee is the
        limit."""
        with self._lock:
            return book.cost_so_far(self._ledger, book.load(self._ledger)).epsilon

    @property
    def left(self) -> float:
        """Epsilon of the largest Gaussian mechanism that the limit still has room for."""
        with self._lock:
            return remaining_epsilon(self._terms, book.load(self._ledger).charged_spends())

    def __repr__(self) -> str:
        terms, limit = self._terms, self._terms.lifetime_epsilon
        assert limit is not None, "it is an argument that has to be given"
        return (
            f"<Ledger of lineage {terms.lineage}: epsilon = {round_up(self.spent)} of "
            f"{round_up_short(limit)} is spent, {round_down(self.left)} is left (delta = "
            f"{round_up_short(terms.delta)}, {terms.relation}, for each {terms.unit})>"
        )

    def statement(self) -> str:
        """Write privacy.json and privacy.md into `results`, with a record of each spend.

        `dpladder verify RESULTS` recomputes them.

        Returns:
            The page.

        Raises:
            Refused: the folder holds another lineage's statement, or a run's.
        """
        self._refuse_fork()
        with self._lock:
            return write_statement(self._ledger, self.results)

    def verify(self) -> list[str]:
        """Every problem of the ledger, and of the statement where there is one, in words; none if
        all is as it was."""
        with self._lock:
            problems = book.verify(self._ledger, anchors_in(self.results))
            if (self.results / "privacy.json").is_file():
                key = subkey(self._ledger.home, "ledger")
                problems += check(read_statement(self.results), self.results, key)
        return problems

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise Refused(
            f"the ledger of lineage {self._ledger.lineage} cannot be copied, or sent to another "
            "process or host. Open it there, with the same home."
        )

    @property
    def _terms(self) -> Terms:
        """The lineage's terms, as the ledger was read last. Others may correct them before the
        first COMMIT, and then nothing more is reserved here."""
        return book.terms_of(self._ledger, self._ledger.state)

    def _item(self, name: str, mechanism: Mechanism) -> Item:
        """What is asked of the ledger: the spend's name and its events."""
        terms = self._terms
        delta0 = booking.delta0_of(terms.delta, booking.TRIAL, terms.share)
        where = Partition(terms.split_rule)
        loss = terms.loss
        if loss:  # what others left of it
            state = book.load(self._ledger)
            mine = (one.token for one in state.charges_for(_question(name)) if not one.used)
            loss -= largest_entry(state.charged_spends(*mine)).loss
        events = events_of(mechanism, terms.relation, delta0, terms.delta, loss)
        spends = tuple(
            Spend(terms.lineage, terms.relation, where, event, label="release") for event in events
        )
        return Item(Job(OWN_CODE, name), _question(name), spends)

    def _anchor(self) -> None:
        """Note in `results` where the ledger stands, so that one that is put back in time is
        seen."""
        anchors.save_anchors(self.results, [book.head(self._ledger)])

    def _refuse_fork(self) -> None:
        """Refuse in a fork: its threads' lock and its view of the books are copies."""
        if os.getpid() != self._process:
            raise Refused(
                "this Ledger was opened by another process, of which this is a fork. Open it here."
            )

    def _refuse_used(self, name: str) -> NoReturn:
        raise Refused(
            f"spend {name} on lineage {self._ledger.lineage} was committed before, so it is paid "
            "for. What it released stands; use another name for another release, or again=True, "
            "which is a new charge."
        )


def _question(name: str) -> str:
    """What the ledger knows a spend of own code by: its name. Those of the workflow are digests."""
    return f"{OWN_CODE}/{name}"
