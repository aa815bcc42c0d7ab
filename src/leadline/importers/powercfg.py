"""powercfg: the power plan that a Windows guest runs with.

Reads:
    Text of ``powercfg /getactivescheme``, ``/list`` (the plan with the asterisk) and ``/query`` (the plan in the first
    line). It becomes the setting ``power_plan`` of the guest. Microsoft's plans are known by GUID in any language;
    other plans by their name, from English output.

Sample:
    .. code-block:: text

        Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Balanced)

Lost:
    The settings inside a plan, as of the processor or the disks. The text does not name its computer.

Units:
    Names of plans in English.

Sources:
    Microsoft, Powercfg command-line options (/list, /query, /getactivescheme); Power Policy Settings (the GUIDs of the
    plans). Outputs of Windows 7 to Server 2022 in public notes of others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer

_PLANS = {
    "381b4222-f694-41f0-9685-ff5bb260df2e": "Balanced",
    "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "High performance",
    "a1841308-3541-4fab-bc81-f71556f20b4a": "Power saver",
    "e9a42b02-d5df-448d-aa00-03f14749eb61": "Ultimate Performance",
}

META = ImporterMeta(
    tool="powercfg",
    marks=("power scheme guid", *_PLANS),
    layers=(Layer.GUEST,),
    record="powercfg /getactivescheme > plan.txt",
)

_ENGLISH = "power scheme guid"
_LINE = re.compile(
    r"\s{0,16}([^\s:(][^:\n(]{3,60}?)\s{0,8}:\s{1,8}"
    r"([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})"
    r"(?:\s{1,8}\(([^\n]{1,120})\))?(\s{0,8}\*)?\s{0,16}"
)
_OTHER_PLAN = re.compile(
    r"[/-]q(?:uery|h)?\s{1,8}(?!scheme_current\b)(scheme_\w{1,40}|[0-9a-f]{8}-[0-9a-f-]{27})", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Scheme:
    """A plan of the listing; a name of a language that is not English is kept only for a plan without a known GUID."""

    guid: str
    name: str
    is_marked: bool


def sniff(source: Source) -> int:
    """Sure by a line of a plan in English, or by the GUID of one of Microsoft's."""
    return 95 if _schemes(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of one fact: the plan in force.

    Raises:
        InputError: the text does not say which plan is in force.
    """
    del request
    builder = CaptureBuilder(source.name, "powercfg", META.tool)
    schemes = _schemes(source.text())
    marked = [scheme for scheme in schemes if scheme.is_marked] or schemes
    other = _OTHER_PLAN.search(source.command)
    if other is not None or len({scheme.guid for scheme in marked}) != 1:
        raise InputError(
            source.name,
            found=f"{len(marked)} power plans, none marked as active"
            if other is None
            else f"the plan {other[1]} alone",
            expected="the plan that Windows runs with",
            advice=f"Record it with: {META.record}",
        )
    name = marked[0].name
    if not name:
        raise InputError(
            source.name,
            found=f"the plan {marked[0].guid} without a name",
            expected="one of Microsoft's plans, or the name of the plan in parentheses",
            advice=f"Record it with: {META.record}",
        )
    builder.inventory.add(UNNAMED_GUEST, source.name, power_plan=name)
    builder.warn("no-guest", "the text does not name its computer: taken as one called guest")
    return builder.build()


def _schemes(text: str) -> list[_Scheme]:
    """The plans that a text lists, in order."""
    schemes: list[_Scheme] = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        guid = match[2].casefold()
        if match[1].casefold() == _ENGLISH or guid in _PLANS:
            schemes.append(_Scheme(guid, _PLANS.get(guid) or (match[3] or "").strip(), match[4] is not None))
    return schemes
