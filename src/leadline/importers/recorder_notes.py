"""leadline recorder: what the script could not record on that machine.

Reads:
    ``not-recorded.txt`` of the archive that a script of ``leadline recorder`` writes: a heading, then one line for each
    thing that was missing there.

Sample:
    .. code-block:: text

        # leadline recorder: not recorded
        programs: neither pidstat (sysstat) nor procps' top is here

Lost:
    Nothing: each line becomes a note of the recording.

Units:
    None; the file holds no numbers.

Sources:
    The scripts of ``leadline recorder``.
"""

from __future__ import annotations

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.vocabulary import Layer

_HEADING = "# leadline recorder: not recorded"

META = ImporterMeta(
    tool="leadline recorder",
    marks=(_HEADING,),
    layers=(Layer.GUEST,),
    record="leadline recorder linux > record.sh",
)


def sniff(source: Source) -> int:
    """Sure by its heading."""
    return 95 if source.head_text.lstrip("\ufeff").startswith(_HEADING) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture without series: its notes say what was not recorded."""
    builder = CaptureBuilder(source.name, "recorder-notes", META.tool)
    for line in dict.fromkeys(line.strip() for line in source.lines()[1:]):
        if line:
            builder.warn("not-recorded", f"not recorded: {line}")
    return builder.build()
