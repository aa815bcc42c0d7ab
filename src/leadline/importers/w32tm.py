"""w32tm: whether the time service of Windows keeps the clock of a guest, and how far it is off.

Reads:
    Text of ``w32tm /query /status``, with ``/verbose`` or without, in English; the last one counts. It becomes the
    settings ``clock_synchronised``, ``clock_offset_s`` (only with ``/verbose``) and ``time_services`` of the guest.

Sample:
    .. code-block:: text

        Leap Indicator: 0(no warning)
        Stratum: 4 (secondary reference - syncd by (S)NTP)
        Source: time.windows.com,0x8
        Phase Offset: 0.0061517s
        State Machine: 2 (Sync)

Lost:
    Source, poll interval, root delay and dispersion. The offset is that of the last sample, which may be hours old; of
    a clock that is not synchronised it is left out. The text does not name its computer.

Units:
    Seconds. The sign is kept as printed; only its size is judged.

Sources:
    Microsoft, Windows Time service tools and settings (w32tm /query /status /verbose). Outputs of Windows 10 to Server
    2022 in public notes of others.
"""

from __future__ import annotations

import re

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer

META = ImporterMeta(
    tool="w32tm",
    marks=("leap indicator",),
    layers=(Layer.GUEST,),
    record="w32tm /query /status /verbose > clock.txt",
)

_LEAP = re.compile(r"Leap Indicator: ([0-3]) ?\([^\n]{1,80}")
_STRATUM = re.compile(r"Stratum: \d{1,2} \([^\n]{1,80}")
_OFFSET = re.compile(r"Phase Offset: (-?\d{1,12}[.,]\d{1,9})s\s{0,20}")
_SOURCE = re.compile(r"Source: (\S[^\n]{0,200})")
_UNSYNCHRONISED = "3"  # NTP's leap indicator of an alarm: the clock is not synchronised
# What Windows names as the source while nothing sets its clock.
_ITSELF = ("local cmos clock", "free-running system clock")


def sniff(source: Source) -> int:
    """Sure by the lines of the leap indicator and the stratum together."""
    lines = [line.strip() for line in source.head_text.splitlines()]
    return 95 if all(any(one.fullmatch(line) for line in lines) for one in (_LEAP, _STRATUM)) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only: the state of the clock.

    Raises:
        InputError: no line of the leap indicator.
    """
    del request
    builder = CaptureBuilder(source.name, "w32tm", META.tool)
    is_synchronised: bool | None = None
    offset_s: float | None = None
    for line in source.lines():
        if (leap := _LEAP.fullmatch(line.strip())) is not None:
            is_synchronised, offset_s = leap[1] != _UNSYNCHRONISED, None
        elif (offset := _OFFSET.fullmatch(line.strip())) is not None:
            offset_s = float(offset[1].replace(",", "."))
        elif (reference := _SOURCE.fullmatch(line.strip())) and reference[1].casefold().startswith(_ITSELF):
            is_synchronised = False if is_synchronised is not None else None
    if is_synchronised is None:
        raise InputError(
            source.name,
            found="no line of the leap indicator",
            expected="the English output of w32tm /query /status, from Leap Indicator on",
            advice=f"Record it again: {META.record}",
        )
    builder.inventory.add(UNNAMED_GUEST, source.name, clock_synchronised=is_synchronised, time_services=["w32time"])
    if is_synchronised and offset_s is not None:
        builder.inventory.add(UNNAMED_GUEST, source.name, clock_offset_s=offset_s)
    builder.warn("no-guest", "the text does not name its computer: taken as one called guest")
    return builder.build()
