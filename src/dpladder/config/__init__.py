"""Typed config: the one truth from which defaults, schema, documentation and error messages are
made.

`Config` and `Project` are imported when they are asked for. A method's section imports modules of
this package, and its config joins all methods' sections: whichever is imported first must find the
other's parts.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpladder.config.load import Project
    from dpladder.config.model import Config

__all__ = ["Config", "Project"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpladder.config.load import Project
    from dpladder.config.model import Config

    return {"Config": Config, "Project": Project}[name]
