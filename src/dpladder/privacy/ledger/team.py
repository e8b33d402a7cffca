"""A home for a group: who may do what in it, and how much each may spend.

Two colleagues with a home each keep two ledgers for the same patients, which is two promises. In a
group's home there is one. Members read the key, so they are operators: limits here keep honest
people apart, and are no part of the guarantee.
"""

from __future__ import annotations

import contextlib
import grp
import os
import platform
import pwd
from pathlib import Path

import yaml
from pydantic import Field, ValidationError

from dpladder.errors import BadInput
from dpladder.privacy.ledger.home import (
    A_GROUPS,
    ROOM,
    Home,
    check_owners,
    is_groups,
    make_folder,
    open_home,
    replace,
)
from dpladder.section import Positive, Section, from_document

TEMPLATE = """\
# How much each member may spend of each lineage, within the lineage's own limit for life. Only the
# owner of this home may change it.
users: {}        # epsilon of each, by their login names, as {anna: 2.0, bo: 0.5}
others: null     # epsilon of everybody else; null: as much as the lineage has left
"""


class Limits(Section):
    """What `home.yaml` says.

    Attributes:
        users: the epsilon of each lineage that a member may spend, by login name.
        others: that of everybody else; None where the lineage's own limit is all.
    """

    users: dict[str, Positive] = Field(default_factory=dict)
    others: Positive | None = None

    def of(self, user: str) -> float | None:
        """The epsilon that a member may spend of each lineage; None: no limit but the lineage's."""
        return self.users.get(user, self.others)


def user() -> str:
    """Who runs this, by the system and not by a variable."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def signature() -> dict[str, str]:
    """Who asks, for the ledger."""
    return {"user": user(), "host": platform.node()}


def limits(home: Home) -> Limits:
    """The limits of a group's home; none in one user's.

    Raises:
        BadInput: they are missing, cannot be read, or others than the owner could have written
            them.
    """
    if not (home.path.is_dir() and is_groups(home)):
        return Limits()
    try:
        status = os.lstat(home.limits)
        check_owners(home, home.limits, status)
        limits_read: Limits = from_document(
            Limits, yaml.safe_load(home.limits.read_text("utf-8")) or {}
        )
    except FileNotFoundError:
        raise BadInput(
            f"{home.limits} is missing. The owner of this home restores it, or runs `dpladder home "
            "init --group` again."
        ) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError, TypeError):
        raise BadInput(
            f"{home.limits} cannot be read. It must say users: {{name: epsilon}} and others: "
            "epsilon or null."
        ) from None
    return limits_read


def init(group: str, path: Path | None = None) -> Home:
    """Make a home of a group, or make one's own home a group's. Doing it again mends its modes.

    Args:
        group: its name or number; who runs this must be of it.
        path: of the home; by default as `open_home` finds it.

    Raises:
        BadInput: there is no such group, or it is not the user's, or the home is another user's.
    """
    try:
        number = grp.getgrnam(group).gr_gid if not group.isdigit() else int(group)
    except KeyError:
        raise BadInput(f"there is no group {group}. Yours are {', '.join(_groups())}.") from None
    if number not in {os.getegid(), *os.getgroups()}:
        raise BadInput(
            f"you are not of the group {group}. Yours are {', '.join(_groups())}; ask your "
            "administrator, and log in again."
        )
    home = open_home(path)
    if home.path.stat().st_uid != os.geteuid():
        raise BadInput(f"{home.path} is another user's, who alone may give it to a group.")
    if not is_groups(home):
        replace(home.format, f"{A_GROUPS}\n".encode())  # an older dpladder stays out from here on
    if not home.limits.exists():
        replace(home.limits, TEMPLATE.encode())
    make_folder(home.features)
    for room in (*home.rooms, home.features):
        for here, folders, files in os.walk(room):
            for name in files:
                _set_group(Path(here, name), number, 0o640)
            for name in folders:
                _set_group(Path(here, name), number, ROOM)
        _set_group(room, number, ROOM)
    for file in (home.key, home.format, home.limits):
        _set_group(file, number, 0o640)
    _set_group(home.path, number, 0o2750)  # last: nobody else enters a home that is half made
    return home


def _set_group(path: Path, group: int, mode: int) -> None:
    """What a member made is that member's to give; it has its rights from the first."""
    if not path.is_symlink() and path.stat().st_uid == os.geteuid():
        os.chown(path, -1, group)
        path.chmod(mode)


def _groups() -> list[str]:
    """The names of the groups of who runs this."""
    groups = []
    for number in sorted({os.getegid(), *os.getgroups()}):
        with contextlib.suppress(KeyError):
            groups.append(grp.getgrgid(number).gr_name)
    return groups
