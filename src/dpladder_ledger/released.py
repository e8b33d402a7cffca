"""The digest of what a mechanism released: the ledger keeps it, so that later on a release can be
told from another."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpladder.errors import BadInput
from dpladder.privacy.release.noise import encode
from dpladder.public_files import file_digest


def digest(released: Any) -> str:
    """SHA-256 of what was released, in hex of 64 digits.

    Args:
        released: bytes, files (as paths), numbers, text, arrays and tensors, a module's weights,
            and nestings of these.

    Raises:
        BadInput: it is something else.
    """
    return hashlib.sha256(encode(_to_bytes(released))).hexdigest()


def _to_bytes(value: Any) -> Any:
    if hasattr(value, "state_dict"):
        value = value.state_dict()
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return value
        case Path():
            return {"file": file_digest(value)}
        case Mapping():
            return {str(key): _to_bytes(item) for key, item in value.items()}
        case Sequence():
            return [_to_bytes(item) for item in value]
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        return {"dtype": str(value.dtype), "shape": list(value.shape), "bytes": value.tobytes()}
    raise BadInput(
        f"what was released is given as {type(value).__name__}. Give bytes, a Path, numbers, text, "
        "arrays, tensors, a module, or lists and mappings of these."
    )
