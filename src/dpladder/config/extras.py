"""Packages that a plain installation leaves out."""

from __future__ import annotations

from importlib.util import find_spec

from dpladder.errors import BadInput


def require_package(package: str, extra: str, what: str) -> None:
    """Refuse, in one sentence, what needs a package that is not installed; nothing is imported.

    Args:
        package: as Python imports it.
        extra: of dpladder, that installs it.
        what: the key or option that needs it, which begins the sentence.
    """
    if find_spec(package) is None:
        raise BadInput(
            f"{what} needs the package {package.replace('_', '-')}, which is not installed: run "
            f"pip install 'dpladder[{extra}]', or `make env` in a clone."
        )
