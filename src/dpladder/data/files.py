"""Private files: mode 0600 in folders of mode 0700, whole or absent, never half written."""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import secrets
from collections.abc import Iterator
from pathlib import Path

from dpladder.errors import BadInput, os_error_text


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner can open, and any parents that are missing likewise."""
    with explain_os_errors(path):
        for folder in (*reversed(path.parents), path):
            folder.mkdir(mode=0o700, exist_ok=True)
    return path


def closed_folder(path: Path) -> Path:
    """A private folder that the user chose, so it may be there already: shared with a group, but
    not with everybody. A file's size alone tells how many records there are.

    Raises:
        BadInput: everybody may enter it, or it cannot be made.
    """
    mode = private_folder(path).stat().st_mode & 0o777
    if mode & 0o007:
        raise BadInput(
            f"paths.cache is {path}, which is open to everybody (mode {mode:o}). Close it with "
            f"`chmod o-rwx {path}`, or name another folder."
        )
    return path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file of mode 0600 to fill, which takes the name `path` when the block succeeds and
    vanishes when it fails.

    It is synced before it has the name, and the folder after: who sees the name sees all of it,
    also after a power cut.

    Raises:
        BadInput: the file system refuses.
    """
    private_folder(path.parent)
    temporary = _temporary_name(path)
    with explain_os_errors(path):
        _sweep(path)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            yield temporary
            _sync(temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync(path.parent)


def write_private(path: Path, data: bytes) -> None:
    """Write a file of mode 0600, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def link(target: Path, name: Path) -> None:
    """Let `name` stand for `target`, in one step, whatever stood there before.

    A target within the project, whose path is relative, is found again when the project was copied
    or moved.
    """
    private_folder(name.parent)
    temporary, destination = _temporary_name(name), target.resolve()
    with explain_os_errors(name):
        temporary.symlink_to(
            destination
            if target.is_absolute()
            else os.path.relpath(destination, name.parent.resolve())
        )
        os.replace(temporary, name)


@contextlib.contextmanager
def explain_os_errors(path: Path) -> Iterator[None]:
    """Turn what the file system refuses into one message with the remedy."""
    try:
        yield
    except OSError as error:
        raise BadInput(
            f"{path} cannot be written: {os_error_text(error)}. Check free space and permissions "
            "there, then run again; what was finished before is kept."
        ) from error


def _temporary_name(path: Path) -> Path:
    """A name for work in progress that tells which process is at it."""
    return path.parent / f".{path.name}.{platform.node()}.{os.getpid()}.{secrets.token_hex(4)}"


def _sweep(path: Path) -> None:
    """Remove what processes of this machine that were killed left beside a file; caches are
    large."""
    for left in path.parent.glob(glob.escape(f".{path.name}.{platform.node()}.") + "*.*"):
        if not _is_running(int(left.name.split(".")[-2])):
            left.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    """Whether a process of this machine still runs, whosever it is."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # someone else's, and running
    return True


def _sync(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
