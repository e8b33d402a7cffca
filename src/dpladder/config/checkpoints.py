"""The outside of a checkpoint: whether a file can be one, told before anything is planned on it. No
torch here.

A file that was cut short is the common mistake, by a broken download or a pointer of git lfs. Found
here, it costs nothing; found in a job, it stops a run that has paid. Pickles are never loaded here,
for that would run them.
"""

from __future__ import annotations

import json
import math
import struct
import zipfile
from pathlib import Path
from typing import BinaryIO

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
LONGEST_HEADER = 100_000_000  # bytes, as the safetensors library has it
PICKLE = b"\x80"  # the first byte of every pickle since protocol 2


def wrong_with_checkpoint(path: Path) -> str | None:
    """Why a file cannot hold a network's tensors, if so. Reads its header and never its tensors.

    Args:
        path: an expanded path; nothing need be there.

    Returns:
        A clause for a message, with what to do; None where it may be a checkpoint. Whether its
        tensors fit the network is found when it is loaded.
    """
    if path.suffix not in SUFFIXES:
        return f"its name must end in {', '.join(SUFFIXES)}"
    if not path.is_file():  # opening a pipe would wait for ever
        return "an ordinary file is wanted there"
    try:
        with path.open("rb") as file:
            whole = (
                _is_safetensors(file) if path.suffix == ".safetensors" else _is_saved_by_torch(file)
            )
    except OSError as error:
        return f"it cannot be read ({error.strerror}); check its disk"
    kind = "of safetensors" if path.suffix == ".safetensors" else "that torch.save wrote"
    return (
        None
        if whole
        else f"it is no whole checkpoint {kind}; save it again, or fetch all of it (git lfs pull)"
    )


def _is_safetensors(file: BinaryIO) -> bool:
    """A length, that many bytes of JSON, and all tensors that the JSON announces."""
    size = file.seek(0, 2)
    file.seek(0)
    try:
        [length] = struct.unpack("<Q", file.read(8))
        if length > min(LONGEST_HEADER, size - 8):
            return False
        header = json.loads(file.read(length))
        ends = [
            int(entry["data_offsets"][1])
            for name, entry in header.items()
            if name != "__metadata__"
        ]
    except (struct.error, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False
    return max(ends, default=math.nan) == size - 8 - length


def _is_saved_by_torch(file: BinaryIO) -> bool:
    """An archive whose list of files, at its end, is there; or a pickle, as torch saved before
    1.6."""
    if file.read(1) == PICKLE:
        return True
    try:
        with zipfile.ZipFile(file) as archive:
            return any(name.endswith("/data.pkl") for name in archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
        return False
