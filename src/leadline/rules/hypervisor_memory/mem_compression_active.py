"""The hypervisor compresses a VM's memory.

Finds:
    Compression or decompression of a VM's pages at more than 0 MiB/s for at least 15 s (medium). Pages that only lie
    in the compression cache, without being moved, are low: a past shortage.

Why:
    Compression starts when ballooning did not free enough and comes before swapping. A compressed page must be
    unpacked before it can be read, which costs CPU and time; above all it tells that the host has run out of memory.

Do:
    As for ballooning: reserve the database VM's memory, take memory limits off it, reduce the overcommitment of the
    host.

When it is wrong:
    The cache keeps pages nobody has touched since a shortage that may lie days back: a size without rates harms
    nobody now.

Sources:
    Yellow-Bricks esxtop thresholds: anything above 0.
    Judgement: the numbers are common knowledge of the field, not re-read at their source; a size without rates is put
    one step lower because it is history. 15 s is three samples of esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_any, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="MEM103",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.MEDIUM,
    causes=("memory-short",),
    needs=("memory_zip_mib_per_s|memory_unzip_mib_per_s|memory_compressed_mib",),
    thresholds={
        "warn": Threshold(0.0, "mib_per_s", "Yellow-Bricks esxtop thresholds"),
        "cache": Threshold(0.0, "mib", "Yellow-Bricks esxtop thresholds"),
        "duration": THREE_SAMPLES,
    },
    explains=("mem-latency-high",),
    clears=False,  # without compression a host may still balloon or swap
    judgement=True,
)

_RATES = (
    Over("memory_zip_mib_per_s", "memory compression", kinds=(EntityKind.VM,)),
    Over("memory_unzip_mib_per_s", "memory decompression", kinds=(EntityKind.VM,)),
)
_CACHE = Over("memory_compressed_mib", "compressed memory", kinds=(EntityKind.VM,), warn="cache")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM: rates first; the cache's size only where there are none."""
    moving = list(over_any(context, _RATES))
    yield from moving
    reported = {finding.entity for finding in moving}
    for finding in over_threshold(context, _CACHE):
        if finding.entity not in reported:
            yield replace(finding, severity=Severity.LOW)
