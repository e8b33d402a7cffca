"""The price of the best of a secret number of runs."""

from __future__ import annotations

from dpladder.search.secret_prices import price

__all__ = ["price"]
