r"""systeminfo: what a Windows guest runs on: version, memory, processors, hypervisor.

Reads:
    Text of ``systeminfo`` in English, as the list it prints and as a table (``/fo csv``, also of several computers).
    Memory, version, processor packages, the hypervisor, the time of the last boot and the number of hotfixes become
    settings of the guest.

Sample:
    .. code-block:: text

        Host Name:                 SQL01
        OS Name:                   Microsoft Windows Server 2019 Datacenter
        OS Version:                10.0.17763 N/A Build 17763
        System Boot Time:          3/20/2021, 2:12:55 AM
        System Manufacturer:       VMware, Inc.
        System Model:              VMware7,1
        Processor(s):              2 Processor(s) Installed.
                                   [01]: Intel64 Family 6 Model 85 Stepping 7 GenuineIntel ~2993 Mhz
        Total Physical Memory:     32,767 MB
        Hotfix(s):                 30 Hotfix(s) Installed.

Lost:
    Free memory, page files, domain, owner, product ID, network cards and their addresses. Processors are packages, not
    cores. A hypervisor that Windows itself runs (Hyper-V, security by virtualisation) is not told from one below it, so
    it counts only where the maker of the machine is one of virtual machines.

Units:
    MB are MiB, whole numbers with the separators of the user's region. The time of the boot has the order of day and
    month of that region and stays as printed.

Sources:
    Microsoft, Windows commands: systeminfo. Outputs of Windows 7 to Server 2022 in public notes of others.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer

META = ImporterMeta(
    tool="systeminfo",
    marks=("host name", "]: kb"),
    layers=(Layer.GUEST,),
    record="systeminfo > systeminfo.txt",
)

_LINE = re.compile(r"([A-Z][A-Za-z()\- ]{2,40}):\s{1,60}(\S.{0,300})")
_HOTFIX = re.compile(r"\s{8,60}\[\d{2,3}\]: KB\d{6,7}\s{0,200}")
_NAME = re.compile(r"[\w.-]{1,253}")
_SIZE = re.compile(r"(\d{1,3}(?:[.,' \u00a0\u202f\ufffd]?\d{3}){0,4}) MB")
_FIRST_COUNT = re.compile(r"(\d{1,4}) (?:Processor|Hotfix)\(s\) Installed\..{0,4000}", re.DOTALL)
_SIGNS = frozenset({"Host Name", "OS Name", "OS Version", "Total Physical Memory"})
_NEEDED = frozenset({"OS Name", "Total Physical Memory"})
_OTHER_LANGUAGE_MIN = 2
_ROW_MAX = 65_000  # characters; a computer with hundreds of hotfixes has a tenth of it
# What the machine's maker or model says of the hypervisor; the first that fits counts.
_MAKERS = (
    ("vmware", "vmware"),
    ("microsoft corporation virtual machine", "hyperv"),
    ("xen", "xen"),
    ("qemu", "kvm"),
    ("kvm", "kvm"),
    ("amazon ec2", "kvm"),
    ("google compute engine", "kvm"),
    ("openstack", "kvm"),
    ("nutanix", "kvm"),
    ("red hat", "kvm"),
    ("virtualbox", "other"),
    ("innotek", "other"),
    ("parallels", "other"),
)


def sniff(source: Source) -> int:
    """Sure by its lines or the heading of its table; by shape where a list of hotfixes is in another language."""
    for record in _records(source.head_text):
        if record.keys() >= _SIGNS - {"Total Physical Memory"} or record.keys() >= _NEEDED:
            return 95
    hotfixes = sum(_HOTFIX.fullmatch(line) is not None for line in source.head_text.splitlines()[:400])
    return 60 if hotfixes >= _OTHER_LANGUAGE_MIN and "Microsoft Windows" in source.head_text else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only: what each computer says of itself.

    Raises:
        InputError: no computer with a system and its memory.
    """
    del request
    builder = CaptureBuilder(source.name, "systeminfo", META.tool)
    is_named = True
    for record in _records(source.text()):
        settings = _settings(record)
        if not settings:
            continue
        name = record.get("Host Name", "")
        is_named = is_named and _NAME.fullmatch(name) is not None
        guest = Entity(EntityKind.GUEST, name if _NAME.fullmatch(name) else "guest")
        builder.inventory.add(guest, source.name, **settings)
    if not builder.inventory.facts:
        raise InputError(
            source.name,
            found="no line with the system or its memory",
            expected="the English output of systeminfo, with OS Name and Total Physical Memory",
            advice=f"Record it under an English Windows display language: {META.record}",
        )
    if not is_named:
        builder.warn("no-guest", "the text does not name its computer: taken as one called guest")
    return builder.build()


def _settings(record: Mapping[str, str]) -> dict[str, Any]:
    """The settings of one computer that are known."""
    memory = _SIZE.fullmatch(record.get("Total Physical Memory", ""))
    hotfixes = record.get("Hotfix(s)", "")
    settings: dict[str, Any] = {
        "guest_os": record.get("OS Name"),
        "kernel_version": record.get("OS Version"),
        "memory_mib": int(re.sub(r"\D", "", memory[1])) or None if memory else None,
        "socket_count": _count(record.get("Processor(s)", "")) or None,
        "boot_time": record.get("System Boot Time"),
        "hotfix_count": 0 if hotfixes == "N/A" else _count(hotfixes),
        "virtualisation": _hypervisor(record),
    }
    return {name: value for name, value in settings.items() if value not in (None, "", "N/A")}


def _count(text: str) -> int | None:
    match = _FIRST_COUNT.fullmatch(text)
    return int(match[1]) if match else None


def _hypervisor(record: Mapping[str, str]) -> str | None:
    """The hypervisor by the machine's maker; "none" where Windows lists what Hyper-V would need of the hardware."""
    machine = f"{record.get('System Manufacturer', '')} {record.get('System Model', '')}".casefold()
    maker = next((ours for words, ours in _MAKERS if words in machine), None)
    return maker or (
        "none" if record.get("Hyper-V Requirements", "").startswith("VM Monitor Mode Extensions") else None
    )


def _records(text: str) -> Iterator[dict[str, str]]:
    """Of each computer: the first value of each line or cell by its name."""
    heading: list[str] = []
    record: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith('"'):
            if len(line) > _ROW_MAX:
                continue
            cells = next(csv.reader([line.rstrip()]), [])
            if set(cells) >= _SIGNS:
                heading = cells
            elif heading and len(cells) == len(heading):
                yield dict(zip(heading, (cell.strip() for cell in cells), strict=True))
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        if match[1] == "Host Name" and record:
            yield record
            record = {}
        record.setdefault(match[1], match[2].strip())
    if record:
        yield record
