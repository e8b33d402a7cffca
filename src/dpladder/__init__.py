"""Tune and train differentially private models, with every epsilon on the books."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpladder.use.model import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    """What notebooks use, imported when it is asked for: it brings PyTorch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpladder.use.model import load

    return load
