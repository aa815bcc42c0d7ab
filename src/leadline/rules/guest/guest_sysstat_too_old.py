"""The guest's iostat is too old to write what it measures exactly.

Finds:
    A sysstat older than version 12.

Why:
    Old versions write text only, in the language of the session and with the columns of their time: service time that
    means nothing, no separate await of reads and writes in the oldest, no flushes. Recordings are harder to compare.

Do:
    Install sysstat 12 from the distribution or its backports, or record with what is there: the text is read as well.
    `iostat -x -t -o JSON 10 60` is the recording to prefer.

When it is wrong:
    It does not slow anything down; it limits what can be found.

Sources:
    Cloud4Y, disk subsystem diagnosis with iostat, fio and ioping: JSON only in 12.x. sysstat's list of changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST149",
    layer=Layer.GUEST,
    severity=Severity.LOW,
    needs=("guest.sysstat_version",),
    thresholds={"warn": Threshold(12.0, "count", "Cloud4Y, disk subsystem diagnosis: JSON only in 12.x")},
    clears=False,
)
_MAJOR = re.compile(r"\d+")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""

    def judge(guest: Entity, fact: Fact) -> tuple[str, Severity] | None:
        major = _MAJOR.search(str(fact.value))
        if major is None or float(major[0]) >= context.limit("warn"):
            return None
        return f"{guest.label()} has sysstat {fact.value}, which writes no JSON", META.severity

    yield from by_setting(context, EntityKind.GUEST, "sysstat_version", judge)
