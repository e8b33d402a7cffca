"""`dpladder cache`: the feature caches of a cache root."""

from __future__ import annotations

from pathlib import Path

from dpladder.commands.output import report
from dpladder.data.cache import list_caches, verify_cache
from dpladder.errors import BadInput
from dpladder.privacy.ledger.home import open_home, subkey


def cache(action: str, root: Path) -> bool:
    """List the feature caches of a root, or check that each is as it was sealed.

    Args:
        action: `ls` prints a line for each cache: path, size in MB, part, network. Anything else
            verifies.
        root: `paths.cache` of the config; by default it lies in the private folder.

    Returns:
        Whether nothing is wrong. What is wrong stands on stderr.

    Raises:
        BadInput: the root is no folder.
    """
    if not root.is_dir():
        raise BadInput(f"{root}: no such folder; give the cache root, paths.cache of the config")
    if action == "ls":
        for one in list_caches(root):
            facts = " ".join(
                f"{key}={value}"
                for key, value in one.attrs.items()
                if key in ("part", "model", "dtype")
            )
            print(f"{one.path}  {one.size / 1e6:.1f} MB  {facts}")
        return True
    # Caches are sealed under a key of home's, so another home's do not verify here.
    key = subkey(open_home(create=False), "cache")
    problems = [p for one in list_caches(root) if (p := verify_cache(one.path, key))]
    return report(problems, "every cache is as it was sealed")
