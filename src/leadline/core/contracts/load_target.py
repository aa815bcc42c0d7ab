"""What a load works on, as the user named it: ``--on`` of every verb, taken apart once, where it enters the program."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from leadline.core.system import dsn
from leadline.core.system.addresses import split_target
from leadline.core.system.opened import is_uri
from leadline.core.system.secret import Secret

LAB = "lab:"
ISCSI = "iscsi://"
NEW = "new"


class TargetKind(Enum):
    """What a name of a target means, before anything is opened or reached."""

    NAME = "a folder, file or device of this machine, which is seen when it is opened; of a network load a host"
    EXPORT = "an export, by its scheme, as nbd://host/disk"
    LUN = "a LUN, as iscsi://host/iqn.2026-11.example:db/1"
    LAB_GUEST = "a disk of a guest of a lab, as lab:FILE:GUEST/DISK"
    DATABASE = "a database, by its DSN"
    NEW = "a server of its own, made for the load and thrown away"


def kind_of(name: str) -> TargetKind:
    """Return what a target's name means.

    >>> kind_of("/srv/scratch"), kind_of("nbd://127.0.0.1/disk")
    (<TargetKind.NAME: ...>, <TargetKind.EXPORT: ...>)
    """
    if name == NEW:
        return TargetKind.NEW
    if name.startswith(LAB):
        return TargetKind.LAB_GUEST
    if dsn.is_of_database(name):
        return TargetKind.DATABASE
    if name.startswith(ISCSI):
        return TargetKind.LUN
    return TargetKind.EXPORT if is_uri(name) else TargetKind.NAME


@dataclass(frozen=True, slots=True)
class Target:
    """What is loaded.

    Attributes:
        name: as the user named it, without a password.
        destroy: the target the user named to be overwritten, without a password, or None.
        roles: where streams of a role go instead, by role.
        secret: the password that stood in the name of a database; neither shown nor stored.
        kind: what the name means.

    Raises:
        UsageError: a password cannot be told from the rest of a name, or stands where none is used.
    """

    name: str
    destroy: str | None = None
    roles: dict[str, str] = field(default_factory=dict)
    secret: Secret = field(default_factory=Secret, repr=False, compare=False)
    kind: TargetKind = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Take the password out of every name."""
        name, secret = split_target(self.name)
        parsed = {
            "name": name,
            "destroy": None if self.destroy is None else split_target(self.destroy)[0],
            "roles": {role: split_target(place)[0] for role, place in self.roles.items()},
            "secret": self.secret or secret,
            "kind": kind_of(name),
        }
        for field_name, value in parsed.items():
            object.__setattr__(self, field_name, value)

    @property
    def is_address(self) -> bool:
        """Whether the name is an address with a scheme, and no path."""
        return is_uri(self.name)

    def of_role(self, role: str | None) -> Target:
        """Return where the streams of a role go: the place that was named for it, else this one."""
        return self if role not in self.roles else replace(self, name=self.roles[role])
