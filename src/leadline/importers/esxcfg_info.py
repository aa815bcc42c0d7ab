r"""esxcfg-info: the hardware of an ESXi host, and whether its BIOS lets VMs use it.

Reads:
    The tree that ``esxcfg-info`` prints, whole (``-a``), of the hardware (``-w``) or single lines cut out of it with
    ``grep``. Of its many thousand lines these become settings of the host: HV Support, processors, hyper-threading,
    memory, power policy, vendor, model and BIOS.

Sample:
    .. code-block:: text

        +Host :
           \==+Hardware Info :
              |----BIOS Version.............................................2.6.0
              |----BIOS ReleaseDate.........................................2017-10-31T00:00:00
              |----Product Name.............................................PowerEdge R630
              |----Vendor Name..............................................Dell Inc.
              \==+CPU Info :
                 |----Num Packages..........................................2
                 |----HV Support............................................3

Lost:
    Everything else: PCI devices, storage, network, worlds, advanced options (``esxcli system settings advanced list``
    has them). The tree as XML (``-F xml``). It does not name its host: outside of a support bundle it is ``esxi``.

Units:
    Memory is printed in bytes. HV Support: 0 absent, 1 not supported, 2 off in the BIOS, 3 on.

Sources:
    Outputs of ESXi 5.1 to 8.0, and what HV Support means, in public notes of others.
"""

from __future__ import annotations

import re
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.esxcli import UNNAMED_HOST, host_of_bundle

META = ImporterMeta(
    tool="esxcfg-info",
    marks=("|----",),
    layers=(Layer.HOST,),
    record="esxcfg-info -w > hardware.txt",
)

_LINE = re.compile(r"[ \t]{0,80}\|----([A-Z][A-Za-z ]{2,40}?)\.{2,80}([^.\s][^\n]{0,200})")
_COUNT = re.compile(r"[1-9]\d{0,4}")
_BYTES = re.compile(r"([1-9]\d{6,15}) bytes")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)T[\d:]{5,8}")
_POLICIES = {
    "high performance": "high-performance",
    "balanced": "balanced",
    "low power": "low-power",
    "custom": "custom",
}
_FLAGS = {"true": True, "false": False}
_COUNTS = {"Num Packages": "socket_count", "Num Cores": "core_count", "Num Threads": "thread_count"}
_SWITCHES = {"Hyperthreading Active": "hyperthreading", "Hyperthreading Supported": "hyperthreading_available"}
_STATES = frozenset("0123")  # of HV Support
_MIB = 2**20
_VENDOR, _PRODUCT = "Vendor Name", "Product Name"
_LINES_MAX = 4000  # the first 64 KiB have no more


def sniff(source: Source) -> int:
    """Sure by one of its lines that is known."""
    lines = source.head_text.splitlines()[:_LINES_MAX]
    return 93 if any(_setting(match[1], match[2].strip()) for line in lines if (match := _LINE.fullmatch(line))) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts of one host.

    Raises:
        InputError: no line of the hardware.
    """
    del request
    builder = CaptureBuilder(source.name, "esxcfg-info", META.tool)
    name = host_of_bundle(source.name)
    host = Entity(EntityKind.HOST, name or UNNAMED_HOST)
    known: dict[str, Any] = {}
    product = ""
    for line in source.lines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        value = match[2].strip()
        settings = _setting(match[1], value)
        # PCI devices have a vendor, too; the host's stands below its product.
        if match[1] == _VENDOR and product:
            settings = {"model": product, "vendor": value}
        for setting, settled in settings.items():
            known.setdefault(setting, settled)  # the tree begins with the host; parts further down repeat names
        product = value if match[1] == _PRODUCT else ""
    if not known:
        raise InputError(
            source.name,
            found="no line of the host's hardware",
            expected="lines such as |----HV Support....3 and |----Num Packages....2",
            advice=f"Record on the host: {META.record}",
        )
    if not name:
        builder.warn("no-host", "the tree does not name its host: taken as one called esxi")
    builder.inventory.add(host, source.name, **known)
    return builder.build(host=name or None)


def _setting(name: str, value: str) -> dict[str, Any]:
    """The setting that a line gives; empty where it is none or its value is not of its kind."""
    if name in _COUNTS and _COUNT.fullmatch(value):
        return {_COUNTS[name]: int(value)}
    if name in _SWITCHES and value in _FLAGS:
        return {_SWITCHES[name]: _FLAGS[value]}
    if name == "HV Support" and value in _STATES:
        return {"hv_support": int(value)}
    if name == "Physical Mem" and (size := _BYTES.fullmatch(value)):
        return {"memory_mib": int(size[1]) / _MIB}
    if name == "Current Policy" and value.casefold() in _POLICIES:
        return {"power_policy": _POLICIES[value.casefold()]}
    if name == "BIOS ReleaseDate" and (day := _DATE.fullmatch(value)):
        return {"bios_date": day[1]}
    return {"bios_version": value} if name == "BIOS Version" and value else {}
