"""One spend of a mechanism of the user's own: reserved, committed before anything is drawn,
finished with its release."""

from __future__ import annotations

import math
import os
import secrets
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting.draws import EQUAL
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import make_folder, subkey
from dpladder.privacy.ledger.state import LedgerCharge
from dpladder.privacy.release import noise
from dpladder.privacy.release.grid import add_noise_on_grid
from dpladder.privacy.release.noise import SecretNoise
from dpladder_ledger.mechanisms import Steps, steps_of
from dpladder_ledger.released import digest

if TYPE_CHECKING:
    from opacus.accountants import IAccountant

AGAIN = "Reserve anew with again=True, which is a new charge"


class Charge:
    """A spend that is reserved. `commit()` writes it down before anything is drawn; `finish()` what
    came out of it.

    It belongs to the process that reserved it and, from COMMIT on, to the thread that committed it.
    Drawn from twice, one charge would pay for two mechanisms. Killed at any moment, it stays
    charged from COMMIT on.

    Args:
        ledger: of the lineage.
        charge: the reservation.
        lock: of the `Ledger` that made it, whose threads share its books.
        moved: called after each change of the ledger, to note where it stands.
    """

    def __init__(
        self, ledger: Ledger, charge: LedgerCharge, lock: threading.RLock, moved: Callable[[], None]
    ) -> None:
        self._ledger, self._held, self._lock, self._moved = ledger, charge, lock, moved
        self._process = os.getpid()
        self._thread: threading.Thread | None = None
        self._left = steps_of(
            [spend.event for spend in charge.declared], charge.declared[0].relation
        )
        self._drawn = 0

    @property
    def name(self) -> str:
        """What the spend is called in the ledger."""
        return self._held.job.rule

    @property
    def status(self) -> str:
        """RESERVED, COMMITTED, DONE or REFUNDED."""
        return self._held.status

    def commit(self) -> Charge:
        """Write the charge down, durably. Only then may the mechanism read private data and draw
        its noise.

        Returns:
            This charge, for a `with` block.

        Raises:
            Refused: it was committed before, by whomever, or the limit has no room for it any more.
        """
        self._refuse_fork()
        with self._lock:
            if self.status != "RESERVED":
                self._refuse(f"is {self.status} already, and is committed once. {AGAIN}")
            try:
                # Each attempt is a question of its own: what one that died has shown, nobody knows.
                query = secrets.token_hex(32)
                self._held = book.commit_elsewhere(
                    self._ledger, self._held.token, query, self._held.declared
                )
            except Refused:
                now = self._ledger.state.charges[self._held.token].status
                if now == "RESERVED":
                    raise
                self._refuse(
                    f"was reserved under this name by another process or thread too, and is {now} "
                    "there. Give each its own name"
                )
            self._thread = threading.current_thread()
            # As the workflow's releases do, this tells of the ledger if the ledger is put back in
            # time alone.
            make_folder(self._ledger.home.releases / self._ledger.lineage / query)
            self._moved()
        return self

    def finish(self, released: Any) -> str:
        """Note what came out, once: its digest goes into the ledger.

        Args:
            released: bytes, a `Path`, numbers, text, arrays, tensors, a module, or nestings of
                these.

        Returns:
            The digest, in hex of 64 digits.

        Raises:
            Refused: the charge is not committed, or by another process or thread.
        """
        self._require_committed("finish")
        output = digest(released)
        with self._lock:
            self._held = book.finish(self._ledger, self._held.token, output)
            self._moved()
        return output

    def refund(self) -> None:
        """Give the budget back. Only what was never committed can be: after that a mechanism may
        have drawn.

        Raises:
            Refused: it is committed, or done.
        """
        self._refuse_fork()
        with self._lock:
            book.refund(self._ledger, [self._held.token])
            self._held = self._ledger.state.charges[self._held.token]

    def noise(self, value: Any, sensitivity: float) -> Any:
        """`value` with Gaussian noise from home's key, on a public grid: one of the reserved
        Gaussians that lie under no sample.

        Guarantee: that Gaussian's, if no record adds more than `sensitivity`, which is the caller's
        word. A record that makes a sum infinite or no number adds more than any figure, so leave it
        out of the sum. What is no number here counts as 0.

        Args:
            value: A number or an array, exact.
            sensitivity: The most (L2) that one record adds to `value`. Under replace_one too: the
                reserved multiplier counts that two records change places.

        Returns:
            float64 of the same shape; a float for a number.
        """
        self._require_committed("draw noise")
        if not (sensitivity > 0.0 and math.isfinite(sensitivity)):
            raise BadInput(f"sensitivity is {sensitivity}. It must be positive and finite.")
        try:
            exact = np.asarray(value, np.float64)
        except (TypeError, ValueError):  # numpy's words quote the value
            raise BadInput(
                "value is no number and no array of numbers. Give sums or counts; what was "
                "committed stays charged."
            ) from None
        with self._lock:
            step = self._use(lambda left: left.sample_rate == 1.0, "another Gaussian")
            index, self._drawn = self._drawn, self._drawn + 1
        key = subkey(self._ledger.home, "noise")
        source = SecretNoise(key, str(self._held.query), str(self._held.nonce))
        drawn = noise.gaussian(source.stream("own", index), exact.shape)
        noised = add_noise_on_grid(exact, drawn, step.noise_multiplier * sensitivity)
        return float(noised) if np.ndim(value) == 0 else noised

    def accountant(self) -> IAccountant:
        """An accountant for Opacus: `engine.accountant = charge.accountant()`, before
        `make_private`.

        A step that was not reserved, or not committed, is refused before it changes the model.
        """
        from dpladder_ledger.accountant import WatchedAccountant

        return WatchedAccountant(self.step)

    def step(self, noise_multiplier: float, sample_rate: float) -> None:
        """Take one reserved step of DP-SGD.

        It draws nothing: the caller's engine does, and that is its author's word (contract:
        one-door).

        Args:
            noise_multiplier: noise over the clipping norm.
            sample_rate: the probability of each record, from 0 to 1.

        Raises:
            Refused: none of these steps is left, or the charge is not committed.
        """
        self._require_committed("take a step")

        def same(left: Steps) -> bool:
            return math.isclose(
                left.noise_multiplier, noise_multiplier, rel_tol=EQUAL
            ) and math.isclose(left.sample_rate, sample_rate, rel_tol=EQUAL)

        with self._lock:
            self._use(
                same,
                f"a step at noise multiplier {noise_multiplier} and sample rate {sample_rate}",
            )

    def __enter__(self) -> Charge:
        return self.commit() if self.status == "RESERVED" else self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self.status == "COMMITTED":
            self._refuse(
                "ended without finish(released). It stays charged: say what came out of it"
            )

    def __reduce_ex__(self, _: Any) -> NoReturn:
        self._refuse(
            "cannot be copied, or sent to another process or host. Open the Ledger there and "
            "reserve there, under another name"
        )

    def _use(self, fits: Callable[[Steps], bool], what: str) -> Steps:
        """Take one of the reserved steps that fits; refused where none is left."""
        for place, left in enumerate(self._left):
            if left.count and fits(left):
                self._left[place] = Steps(left.noise_multiplier, left.sample_rate, left.count - 1)
                return left
        self._refuse(
            f"has no room for {what}: it was not reserved, or is used up. Reserve what the "
            "mechanism draws"
        )

    def _require_committed(self, what: str) -> None:
        """Refuse a charge that is not committed, or by another process or thread: two who draw
        would share one charge."""
        self._refuse_fork()
        if self.status != "COMMITTED":
            before = (
                "commit() it first"
                if self.status == "RESERVED"
                else f"it is {self.status}. {AGAIN}"
            )
            self._refuse(f"cannot {what}: {before}")
        if threading.current_thread() is not self._thread:
            self._refuse(
                f"cannot {what} in another thread than the one that committed it. {AGAIN}, in "
                "each thread"
            )

    def _refuse_fork(self) -> None:
        """Refuse in a fork: it would draw the same noise as the process that it is a copy of."""
        if os.getpid() != self._process:
            self._refuse(
                "was reserved by another process, of which this is a fork. Open the Ledger here "
                "and reserve here, under another name"
            )

    def _refuse(self, what: str) -> NoReturn:
        raise Refused(f"spend {self.name} on lineage {self._ledger.lineage} {what}.")
