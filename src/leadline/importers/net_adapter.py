r"""Get-NetAdapterRss, Get-NetAdapterAdvancedProperty: receive side scaling and receive buffers of Windows adapters.

Reads:
    Text of the two PowerShell commands, as lists (``| fl``) and as tables (``| ft -AutoSize``), also of several
    computers asked with ``-CimSession``. They become the settings ``rss_enabled``, ``rx_small_buffers_count``,
    ``rx_ring_count`` and ``type`` of the guest's network adapters.

Sample:
    .. code-block:: text

        Name                                            : Ethernet0
        InterfaceDescription                            : vmxnet3 Ethernet Adapter
        Enabled                                         : True
        NumberOfReceiveQueues                           : 8
        RssProcessorArray: [Group:Number/NUMA Distance] : 0:0/0  0:1/0  0:2/0  0:3/0
                                                          0:4/0  0:5/0  0:6/0  0:7/0

Lost:
    Queues, processors and the indirection table of receive side scaling; every other property of the driver. Values
    that a table cuts off (``...``) are left out: lists have them whole. Without ``PSComputerName`` the text does not
    name its computer.

Units:
    Counts of buffers; flags.

Sources:
    Microsoft, Windows PowerShell: Get-NetAdapterRss, Get-NetAdapterAdvancedProperty; Performance Tuning Network
    Adapters (the list of receive side scaling). VMware KB 2039495 (Small Rx Buffers, Rx Ring #1 Size). Outputs in
    public notes of others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer

META = ImporterMeta(
    tool="Get-NetAdapter",
    marks=("numberofreceivequeues", "interfacedescription", "displayvalue"),
    layers=(Layer.GUEST,),
    record='powershell -c "Get-NetAdapterRss | fl; Get-NetAdapterAdvancedProperty | fl" > adapters.txt',
)

_ENTRY = re.compile(r"([A-Z]\w{1,60})\s{0,60}:(?:\s{1,8}(\S.{0,300}))?\s{0,80}")
_DASHES = re.compile(r"\s{0,8}-{2,80}(?:\s{1,200}-{2,80}){1,20}\s{0,80}")
_PROPERTIES = frozenset({"Name", "InterfaceDescription", "Enabled", "DisplayName", "DisplayValue", "PSComputerName"})
# Of which the columns or lines are those of one of the two commands.
_SIGNS = (frozenset({"Name", "Enabled"}), frozenset({"Name", "DisplayName", "DisplayValue"}))
_MARKS = frozenset({"NumberOfReceiveQueues", "InterfaceDescription", "DisplayValue", "MaxProcessors"})
_FLAGS = {"true": True, "false": False, "enabled": True, "disabled": False}
_COUNTS = {"small rx buffers": "rx_small_buffers_count", "rx ring #1 size": "rx_ring_count"}
_SCALING = frozenset({"receive side scaling", "rss"})
_COUNT = re.compile(r"[1-9]\d{0,6}")
# Words of the adapter's description -> the type of virtual adapter that it is; the first that fits counts.
_TYPES = (
    ("vmxnet3", "vmxnet3"),
    ("82574l", "e1000e"),
    ("pro/1000 mt", "e1000"),
    ("virtio", "virtio-net"),
)
_CUT = ("...", "\u2026")


def sniff(source: Source) -> int:
    """Sure by the lines or columns of one of the two commands."""
    names = {name for record in _records(source.head_text) for name in record}
    return 93 if names & _MARKS and any(sign <= names for sign in _SIGNS) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only: what is set of each adapter.

    Raises:
        InputError: no adapter of which the text says something.
    """
    del request
    builder = CaptureBuilder(source.name, "net-adapter", META.tool)
    known: dict[Entity, dict[str, Any]] = {}
    cut_count = 0
    for record in _records(source.text()):
        settings = _settings(record)
        name = record.get("Name", "")
        cut_count += name.endswith(_CUT)
        if not settings or not name or name.endswith(_CUT):
            continue
        computer = record.get("PSComputerName", "")
        guest = Entity(EntityKind.GUEST, computer) if computer else UNNAMED_GUEST
        known.setdefault(Entity(EntityKind.NIC, name, guest), {}).update(settings)
    if not known:
        raise InputError(
            source.name,
            found="no network adapter with a name and one of the settings",
            expected="Name and Enabled, or Name, DisplayName and DisplayValue, in English",
            advice=f"Record it again: {META.record}",
        )
    for nic, settings in known.items():
        builder.inventory.add(nic, source.name, **settings)
    if any(nic.parent == UNNAMED_GUEST for nic in known):
        builder.warn("no-guest", "the text does not name its computer: taken as one called guest")
    if cut_count:
        builder.warn("left-out", "adapters whose name the table cuts off were left out; use | fl", cut_count)
    return builder.build()


def _settings(record: dict[str, str]) -> dict[str, Any]:
    """What one record says of its adapter."""
    settings: dict[str, Any] = {}
    description = record.get("InterfaceDescription", "").casefold()
    kind = next((ours for word, ours in _TYPES if word in description), None)
    if "DisplayName" in record:
        name, value = record["DisplayName"].casefold(), record.get("DisplayValue", "")
        if name in _COUNTS and _COUNT.fullmatch(value):
            settings[_COUNTS[name]] = int(value)
        elif name in _SCALING and value.casefold() in _FLAGS:
            settings["rss_enabled"] = _FLAGS[value.casefold()]
    elif record.get("Enabled", "").casefold() in _FLAGS:
        settings["rss_enabled"] = _FLAGS[record["Enabled"].casefold()]
    return {**settings, "type": kind} if settings and kind else settings


def _records(text: str) -> Iterator[dict[str, str]]:
    """The records of lists and tables: properties by name."""
    record: dict[str, str] = {}
    columns: list[tuple[str, int]] = []
    before = ""
    for line in text.splitlines():
        if _DASHES.fullmatch(line):
            columns = _columns(before, line)
        elif not line.strip():
            columns = []
        elif columns:
            yield _cells(line, columns)
        elif entry := _ENTRY.fullmatch(line):
            name, value = entry[1], (entry[2] or "").strip()
            if name in record and (name == "Name" or name in _PROPERTIES):
                yield record
                record = {}
            record[name] = value
        before = line
    if record:
        yield record


def _columns(heading: str, dashes: str) -> list[tuple[str, int]]:
    """Names of a table's columns and where they begin; none where a column without a name is among them."""
    starts = [match.start() for match in re.finditer(r"-+", dashes)]
    ends = [*starts[1:], max(len(heading), len(dashes))]
    names = [heading[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    is_of_ours = any(sign <= set(names) for sign in _SIGNS)
    return list(zip(names, starts, strict=True)) if is_of_ours else []


def _cells(line: str, columns: list[tuple[str, int]]) -> dict[str, str]:
    """The cells of a row by column; numbers end where their heading does and so never begin before it."""
    ends = [*(start for _, start in columns[1:]), len(line)]
    return {name: line[start:end].strip() for (name, start), end in zip(columns, ends, strict=True)}
