"""Tune and train differentially private models, with every epsilon on the books."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpladder.estimator import PrivateClassifier, PrivateRegressor
    from dpladder.use.model import load
    from dpladder_ledger.ledger import OpenLedger as Ledger

__all__ = ["Ledger", "PrivateClassifier", "PrivateRegressor", "load"]


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def __getattr__(name: str) -> Any:
    """What notebooks and scripts use, imported when it is asked for: models bring PyTorch."""
    if name == "Ledger":
        from dpladder_ledger.ledger import OpenLedger

        return OpenLedger
    if name in ("PrivateClassifier", "PrivateRegressor"):
        from dpladder import estimator

        return getattr(estimator, name)
    if name == "load":
        from dpladder.use.model import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
