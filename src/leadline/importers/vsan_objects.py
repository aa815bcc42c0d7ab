"""esxcli vsan debug object list: which hosts and devices hold the disks of VMs on vSAN, and whether all of it is there.

Reads:
    The objects that ``esxcli vsan debug object list`` prints. Of each disk of a VM these become settings: its health,
    its policy, and where its components and witnesses lie.

Sample:
    .. code-block:: text

        Object UUID: 47cbdc58-e01c-9e33-dada-020010d5dfa3
           Version: 5
           Health: healthy
           Policy:
              stripeWidth: 1
              hostFailuresToTolerate: 1

           Configuration:

              RAID_1
                 Component: 47cbdc58-6928-333f-0c51-020010d5dfa3
                   Component State: ACTIVE,  Address Space(B): 273804165120 (255.00GB),  Disk UUID: 52e95956-42cf, \
Disk Name: mpx.vmhba1:C0:T1:L0:2
                   Votes: 1,  Capacity Used(B): 373293056 (0.35GB),  Host Name: esx1.lab
              Witness: 47cbdc58-21d2-383f-e45a-020010d5dfa3
                Component State: ACTIVE,  Disk UUID: 52bfd405-160b, Disk Name: mpx.vmhba1:C0:T1:L0:2
                Votes: 1,  Host Name: esx3.lab

           Type: vdisk
           Path: /vmfs/volumes/vsan:52f4bd33f4da6d38/06cbdc58/db01_1.vmdk (Exists)

Lost:
    Objects that are no disks (namespaces, swap), and disks whose path is not printed: old releases leave it out. Votes,
    sizes and what else the policy says. A VM is named by the file of its disk: db01 of db01.vmdk and db01_1.vmdk.

Units:
    None: counts and names.

Sources:
    Output of ESXi 6.5 in VMware's public notes on vSAN objects; vSphere ESXCLI reference, vsan debug object list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.vcenter.vsan_objects import VsanPart, layout_name, placement_settings

META = ImporterMeta(
    tool="esxcli vsan objects",
    marks=("object uuid:",),
    layers=(Layer.DATASTORE,),
    record="esxcli vsan debug object list > vsan-objects.txt      (on any host of the cluster)",
)

_OBJECT = re.compile(r"[ \t]*Object UUID: ([0-9a-f]{8}-[0-9a-f-]{9,40})[ \t]*")
_LINE = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9 ]{0,40}?):(?:[ \t]+(\S.{0,500}?))?[ \t]*")
_RAID = re.compile(r"[ \t]*RAID_([0-9D])[ \t]*")
_PIECES = re.compile(r"(Component State|Disk Name|Host Name): ([^,]{1,200})")
_DISK = re.compile(r"(\S.{0,400}\.vmdk)(?:[ \t]+\(\w+\))?")
_NUMBERED = re.compile(r"_\d{1,3}$")
_PARTITION = re.compile(r":\d{1,2}$")
_COUNTS = {"stripeWidth": "vsan_stripe_count", "hostFailuresToTolerate": "vsan_ftt"}
_DIGITS = re.compile(r"\d{1,3}")


@dataclass(slots=True)
class VsanObject:
    """One object as printed."""

    uuid: str
    health: str = ""
    kind: str = ""
    path: str = ""
    levels: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    parts: list[VsanPart] = field(default_factory=list)


def sniff(source: Source) -> int:
    """Sure by the first object and what is printed of it."""
    head = source.head_text
    lines = head.splitlines()[:2000]
    return 94 if any(map(_OBJECT.fullmatch, lines)) and ("Configuration:" in head or "Health:" in head) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only.

    Raises:
        InputError: there is no object in the text.
    """
    builder = CaptureBuilder(source.name, "vsan-objects", META.tool)
    lines = source.text().splitlines()
    if request.truncate_last and lines:
        lines = lines[:-1]
    objects = _objects(lines)
    if not objects:
        raise InputError(
            source.name,
            found="no object",
            expected="lines such as Object UUID: 47cbdc58-e01c-9e33-dada-020010d5dfa3",
            advice="Record again: esxcli vsan debug object list",
        )
    unnamed = 0
    for one in objects:
        match = _DISK.fullmatch(one.path)
        if match is None:
            unnamed += one.kind in ("", "vdisk")
            continue
        builder.inventory.add(_entity(match[1]), source.name, **_settings(one, match[1]))
    if unnamed:
        builder.warn("no-path", "objects without the path of a disk were left out", unnamed)
    return builder.build()


def _entity(path: str) -> Entity:
    file = PurePosixPath(path)
    vm = _NUMBERED.sub("", file.stem) or file.stem
    return Entity(EntityKind.VIRTUAL_DISK, file.name, Entity(EntityKind.VM, vm))


def _settings(one: VsanObject, path: str) -> dict[str, Any]:
    settings = {"file": path, **one.settings}
    layout = layout_name(one.levels)
    if layout is not None:
        settings["vsan_raid"] = layout
    if one.health:
        settings["vsan_object_health"] = one.health
    return settings | placement_settings(one.parts)


def _objects(lines: list[str]) -> list[VsanObject]:
    objects: list[VsanObject] = []
    for line in lines:
        start = _OBJECT.fullmatch(line)
        if start is not None:
            objects.append(VsanObject(start[1]))
        elif objects:
            _take(line, objects[-1])
    return objects


def _take(line: str, one: VsanObject) -> None:
    """Put a line into the object it is about."""
    raid = _RAID.fullmatch(line)
    if raid is not None:
        one.levels.append(raid[1])
        return
    pieces = dict(_PIECES.findall(line))
    if pieces and one.parts:
        part = one.parts[-1]
        part.state = pieces.get("Component State", part.state).strip()
        part.host = pieces.get("Host Name", part.host).strip()
        device = _PARTITION.sub("", pieces.get("Disk Name", part.device).strip())
        part.device = "" if device == "N/A" else device
        return
    match = _LINE.fullmatch(line)
    if match is None:
        return
    name, value = match[1], match[2] or ""
    if name in ("Component", "Witness"):
        one.parts.append(VsanPart(name == "Witness"))
    elif name in _COUNTS and _DIGITS.fullmatch(value):
        one.settings[_COUNTS[name]] = int(value)
    elif name == "forceProvisioning" and value in ("0", "1"):
        one.settings["vsan_force_provisioning"] = value == "1"
    elif name == "Health":
        one.health = value
    elif name == "Type":
        one.kind = value
    elif name == "Path":
        one.path = value
