"""PyTorch's compiler takes more than a second to load, and torchvision loads it to ask what it can
compile. No job compiles anything."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

NAMES = ("torch._dynamo", "torch._dynamo.utils")


class _Postponed(ModuleType):
    """Stands for the compiler, and compiles nothing. Whoever asks it for more gets the compiler."""

    @staticmethod
    def disable(function: Any = None, *_: Any, **__: Any) -> Any:
        return function

    @staticmethod
    def is_compile_supported(_: str) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and (name, self.__name__) != ("__path__", NAMES[0]):
            raise AttributeError(name)
        for one in NAMES:
            if isinstance(sys.modules.get(one), _Postponed):
                del sys.modules[one]
        return getattr(import_module(self.__name__), name)


def postpone_compiler() -> None:
    """Load the compiler where somebody compiles, and not with torchvision."""
    for name in NAMES:
        sys.modules.setdefault(name, _Postponed(name))
