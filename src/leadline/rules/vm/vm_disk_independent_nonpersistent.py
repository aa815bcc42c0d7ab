"""A virtual disk forgets what was written to it.

Finds:
    Virtual disks in a nonpersistent or undoable mode.

Why:
    Everything written to such a disk goes to a file that is thrown away when the VM is powered off, or asked about. A
    database on it comes back as of the day the mode was set; until then each write pays for the extra file, as with a
    snapshot.

Do:
    Copy the data off first, while the VM runs. Then power off, set the mode to persistent (Dependent in the client, or
    Independent - Persistent if snapshots shall leave the disk out), and restore the data.

When it is wrong:
    Kiosk and training systems are made to forget; so may be a disk with temporary files only.

Sources:
    vCheck-vSphere, plug-in on disk modes. vSphere Virtual Machine Administration: disk modes.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="VMC131",
    layer=Layer.VM,
    severity=Severity.HIGH,
    needs=("virtual-disk.mode",),
    clears=False,  # a persistent disk may still be slow
)
_FORGETS = frozenset({"independentnonpersistent", "nonpersistent", "undoable"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        mode = "".join(letter for letter in str(fact.value).casefold() if letter.isalpha())
        return (
            (f"{disk.label()} is {fact.value}: it forgets what is written", META.severity) if mode in _FORGETS else None
        )

    yield from by_setting(context, EntityKind.VIRTUAL_DISK, "mode", judge)
