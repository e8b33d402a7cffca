"""A digest of the code that runs. Snakemake does not see changes in an imported package."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dpladder.plan.mechanisms import METHODS

PACKAGE = Path(__file__).resolve().parents[1]


@cache
def digest() -> str:
    """Digest of every file of dpladder, and of the packages that bring its methods
    (config/plugins.py).

    Figures and documents are known by it, so they are made anew after an upgrade; it takes seconds.
    Releases are known by the names of their mechanisms instead (plan/mechanisms.py).

    Returns:
        64 hexadecimal digits. It is computed once for each process.
    """
    packages = {one.section.__module__.split(".")[0] for one in METHODS.values()} - {PACKAGE.name}
    total = hashlib.sha256()
    for place in [PACKAGE, *(place for name in sorted(packages) for place in _places_of(name))]:
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in files:  # by names and bytes, wherever they lie
            # what is compiled there is moved into place while others look
            if "__pycache__" not in path.relative_to(place).parts and path.is_file():
                data = path.read_bytes()
                # Bytes and names are hashed with their lengths, so no two trees of files give one
                # text.
                total.update(f"{path.relative_to(place.parent)}\0{len(data)}\0".encode() + data)
    return total.hexdigest()


def _places_of(package: str) -> list[Path]:
    """Its folders, or its one file."""
    spec = find_spec(package)
    assert spec is not None, "its methods were imported"
    return sorted(map(Path, spec.submodule_search_locations or [spec.origin or ""]))
