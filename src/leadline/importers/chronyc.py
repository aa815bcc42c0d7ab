"""chronyc tracking: how far the clock of a Linux guest is from its reference.

Reads:
    Text of ``chronyc tracking``, once or again and again; the last one counts. It becomes the settings
    ``clock_synchronised``, ``clock_offset_s`` and ``time_services`` of the guest.

Sample:
    .. code-block:: text

        Reference ID    : C0A8091E (ntp1.example.org)
        Stratum         : 4
        Ref time (UTC)  : Thu Dec 28 15:19:42 2023
        System time     : 0.000072261 seconds fast of NTP time
        Last offset     : +0.000203388 seconds
        Leap status     : Normal

Lost:
    Stratum, frequency, root delay and dispersion; the reference's name. Of a clock that is not synchronised the offset
    says nothing and is left out. The text does not name its computer.

Units:
    Seconds; a clock that is fast is positive.

Sources:
    chronyc(1), tracking: System time, Leap status. Outputs of chrony 3 and 4 in public notes of others.
"""

from __future__ import annotations

import re

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer

META = ImporterMeta(
    tool="chronyc",
    marks=("leap status",),
    layers=(Layer.GUEST,),
    record="chronyc tracking > clock.txt",
)

_OFFSET = re.compile(r"System time\s{1,20}: (\d{1,12}(?:\.\d{1,12})?) seconds (slow|fast) of NTP time\s{0,20}")
_LEAP = re.compile(r"Leap status\s{1,20}: (Normal|Insert second|Delete second|Not synchronised)\s{0,20}")
_UNSYNCHRONISED = "Not synchronised"


def sniff(source: Source) -> int:
    """Sure by the lines of the system's time and of the leap status together."""
    lines = [line.strip() for line in source.head_text.splitlines()]
    return 95 if all(any(one.fullmatch(line) for line in lines) for one in (_OFFSET, _LEAP)) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only: the state of the clock.

    Raises:
        InputError: no report with the system's time and the leap status.
    """
    del request
    builder = CaptureBuilder(source.name, "chronyc", META.tool)
    offset_s: float | None = None
    state: tuple[bool, float] | None = None
    for line in source.lines():
        if (offset := _OFFSET.fullmatch(line.strip())) is not None:
            offset_s = float(offset[1]) * (1 if offset[2] == "fast" else -1)
        elif (leap := _LEAP.fullmatch(line.strip())) is not None and offset_s is not None:
            state, offset_s = (leap[1] != _UNSYNCHRONISED, offset_s), None
    if state is None:
        raise InputError(
            source.name,
            found="no report with the system's time and the leap status",
            expected="the output of chronyc tracking, from Reference ID to Leap status",
            advice=f"Record it again: {META.record}",
        )
    is_synchronised, last_s = state
    builder.inventory.add(UNNAMED_GUEST, source.name, clock_synchronised=is_synchronised, time_services=["chronyd"])
    if is_synchronised:
        builder.inventory.add(UNNAMED_GUEST, source.name, clock_offset_s=last_s)
    builder.warn("no-guest", "the text does not name its computer: taken as one called guest")
    return builder.build()
