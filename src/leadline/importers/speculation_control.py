r"""Fixes of the processor in Windows: what ``Get-SpeculationControlSettings`` prints.

Reads:
    Text of the PowerShell module SpeculationControl: the lines it writes to the console, the list of its object, or
    that object as JSON; also of several computers, asked with ``Invoke-Command``. They become the setting
    ``cpu_vulnerabilities`` of guests, in the words of Linux.

Sample:
    .. code-block:: text

        Speculation control settings for CVE-2017-5754 [rogue data cache load]

        Hardware requires kernel VA shadowing: True
        Windows OS support for kernel VA shadow is present: True
        Windows OS support for kernel VA shadow is enabled: False

        KVAShadowRequired                   : True
        KVAShadowWindowsSupportEnabled      : False

Lost:
    Suggested actions, bits of page table entries, what the hypervisor says of L1TF. What an old version of the module
    does not ask stays unknown. Without ``PSComputerName`` the text does not name its computer.

Units:
    Flags.

Sources:
    Microsoft KB 4074629 (what each line means), KB 4072698; SpeculationControl 1.0.14 to 1.0.19 (which line belongs to
    which property of the object).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer

META = ImporterMeta(
    tool="SpeculationControl",
    marks=("speculation control settings", "kernel va shadow", "kvashadow", "btihardwarepresent"),
    layers=(Layer.GUEST,),
    record='powershell -c "Install-Module SpeculationControl; Get-SpeculationControlSettings *> fixes.txt"',
)

_HEADING = re.compile(r"\s{0,8}Speculation control settings for [A-Z].{2,80}")
_LINE = re.compile(r'[\s"]{0,12}([A-Z][\w -]{2,120}?)"?\s{0,40}:\s{0,8}(true|false)\b.{0,80}', re.IGNORECASE)
_COMPUTER = re.compile(r'[\s"]{0,12}PSComputerName"?\s{0,40}:\s{0,8}"?([\w.-]{1,253})[",\s]{0,4}')
_BTI = "Windows OS support for branch target injection mitigation is"
# A line of the console -> the property of the object that says the same.
_CONSOLE = {
    "Hardware support for branch target injection mitigation is present": "BTIHardwarePresent",
    f"{_BTI} present": "BTIWindowsSupportPresent",
    f"{_BTI} enabled": "BTIWindowsSupportEnabled",
    f"{_BTI} disabled by system policy": "BTIDisabledBySystemPolicy",
    f"{_BTI} disabled by absence of hardware support": "BTIDisabledByNoHardwareSupport",
    "Hardware requires kernel VA shadowing": "KVAShadowRequired",
    "Windows OS support for kernel VA shadow is enabled": "KVAShadowWindowsSupportEnabled",
    "Windows OS support for PCID performance optimization is enabled": "KVAShadowPcidEnabled",
    "Windows OS support for PCID optimization is enabled": "KVAShadowPcidEnabled",
    "Hardware is vulnerable to speculative store bypass": "SSBDHardwareVulnerable",
    "Windows OS support for speculative store bypass disable is enabled system-wide": (
        "SSBDWindowsSupportEnabledSystemWide"
    ),
    "Hardware is vulnerable to L1 terminal fault": "L1TFHardwareVulnerable",
    "Windows OS support for L1 terminal fault mitigation is enabled": "L1TFWindowsSupportEnabled",
    "Hardware is vulnerable to MDS": "MDSHardwareVulnerable",
    "Windows OS support for MDS mitigation is enabled": "MDSWindowsSupportEnabled",
    "Hardware is vulnerable to SBDR": "SBDRSSDPHardwareVulnerable",
    "Windows OS support for SBDR mitigation is enabled": "FBClearWindowsSupportEnabled",
    "Hardware is vulnerable to FBSDP": "FBSDPHardwareVulnerable",
    "Windows OS support for FBSDP mitigation is enabled": "FBClearWindowsSupportEnabled",
    "Hardware is vulnerable to PSDP": "PSDPHardwareVulnerable",
    "Windows OS support for PSDP mitigation is enabled": "FBClearWindowsSupportEnabled",
}
_PROPERTIES = frozenset(_CONSOLE.values()) | {"BTIKernelRetpolineEnabled", "RdclHardwareProtected"}
_MMIO = ("SBDRSSDPHardwareVulnerable", "FBSDPHardwareVulnerable", "PSDPHardwareVulnerable")
_NOT_AFFECTED, _VULNERABLE = "Not affected", "Vulnerable"
_SIGNS_MIN = 2  # lines of the module, so that one word in another file is not taken for it

Flags = Mapping[str, bool]


def sniff(source: Source) -> int:
    """Sure by the module's heading beside its lines, or by several properties of its object."""
    lines = source.head_text.splitlines()
    if not any(mark in source.head_text.casefold() for mark in META.marks):
        return 0
    names = {flag[0] for line in lines if (flag := _flag(line)) is not None}
    if len(names) >= _SIGNS_MIN or (names and any(_HEADING.fullmatch(line) for line in lines)):
        return 95
    return 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only.

    Raises:
        InputError: nothing in the file says whether a vulnerability is fixed.
    """
    del request
    builder = CaptureBuilder(source.name, "speculation-control", META.tool)
    is_named = True
    for computer, flags in _by_computer(source.text()).items():
        states = _states(flags)
        if states:
            guest = Entity(EntityKind.GUEST, computer) if computer else UNNAMED_GUEST
            builder.inventory.add(guest, source.name, cpu_vulnerabilities=states)
            is_named = is_named and bool(computer)
    if not builder.inventory.facts:
        raise InputError(
            source.name,
            found="no line that says whether a vulnerability is fixed",
            expected="the output of Get-SpeculationControlSettings",
            advice=f"Record it again: {META.record}",
        )
    if not is_named:
        builder.warn("no-guest", "the text does not name its computer: taken as one called guest")
    return builder.build()


def _by_computer(text: str) -> dict[str, dict[str, bool]]:
    """Properties by computer; "" is one that is not named. The name follows the properties of its computer."""
    by_computer: dict[str, dict[str, bool]] = {}
    flags: dict[str, bool] = {}
    for line in text.splitlines():
        if (flag := _flag(line)) is not None:
            flags[flag[0]] = flag[1]
        elif (named := _COMPUTER.fullmatch(line)) and flags:
            by_computer.setdefault(named[1], {}).update(flags)
            flags = {}
    if flags:
        by_computer.setdefault("", {}).update(flags)
    return by_computer


def _flag(line: str) -> tuple[str, bool] | None:
    """The property that a line of the console or of the object gives, and its value."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    name = _CONSOLE.get(match[1].strip(), match[1].strip())
    return (name, match[2].casefold() == "true") if name in _PROPERTIES else None


def _states(flags: Flags) -> dict[str, str]:
    """The vulnerabilities of which something is known, each in the words of Linux."""
    is_mmio = [flags[name] for name in _MMIO if name in flags]
    needs_shadow = False if flags.get("RdclHardwareProtected") else flags.get("KVAShadowRequired")
    shadow = "KVA shadow, PCID" if flags.get("KVAShadowPcidEnabled") else "KVA shadow"
    states = {
        "meltdown": _state(needs_shadow, flags.get("KVAShadowWindowsSupportEnabled"), shadow),
        "spectre_v2": _spectre(flags),
        "l1tf": _state(flags.get("L1TFHardwareVulnerable"), flags.get("L1TFWindowsSupportEnabled"), "PTE Inversion"),
        "mds": _state(flags.get("MDSHardwareVulnerable"), flags.get("MDSWindowsSupportEnabled"), "Clear CPU buffers"),
        "mmio_stale_data": _state(
            any(is_mmio) if is_mmio else None, flags.get("FBClearWindowsSupportEnabled"), "Clear CPU buffers"
        ),
        "spec_store_bypass": _store_bypass(flags),
    }
    return {name: words for name, words in states.items() if words}


def _state(is_affected: bool | None, is_enabled: bool | None, fix: str) -> str:
    """The words for a vulnerability; "" where it is not known whether it is there or fixed."""
    if is_affected is False:
        return _NOT_AFFECTED
    if is_affected is None or is_enabled is None:
        return ""
    return f"Mitigation: {fix}" if is_enabled else _VULNERABLE


def _spectre(flags: Flags) -> str:
    if flags.get("BTIWindowsSupportEnabled") is None:
        return ""
    if flags["BTIWindowsSupportEnabled"]:
        retpolines = flags.get("BTIKernelRetpolineEnabled")
        return "Mitigation: Retpolines" if retpolines else "Mitigation: branch target injection"
    if flags.get("BTIDisabledByNoHardwareSupport") or flags.get("BTIHardwarePresent") is False:
        return f"{_VULNERABLE}: no hardware support"
    return f"{_VULNERABLE}: disabled by system policy" if flags.get("BTIDisabledBySystemPolicy") else _VULNERABLE


def _store_bypass(flags: Flags) -> str:
    """Windows leaves this fix off unless asked, and so it counts as neither on nor missing (KB 4074629)."""
    if flags.get("SSBDHardwareVulnerable") is False:
        return _NOT_AFFECTED
    if flags.get("SSBDWindowsSupportEnabledSystemWide") is None:
        return ""
    on = flags["SSBDWindowsSupportEnabledSystemWide"]
    return "Mitigation: Speculative Store Bypass disabled" if on else "Off by default: not enabled system-wide"
