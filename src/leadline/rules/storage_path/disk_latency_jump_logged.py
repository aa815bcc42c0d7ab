"""The host logged that a device or datastore became much slower.

Finds:
    Lines of the host's log that say "performance has deteriorated" with a latency of 50 ms or more. High severity from
    200 ms in two lines or more, low where one line alone tells of less than that.

Why:
    ESXi compares each device's latency with its long average and logs when it rises far above it. The log keeps what
    happened when nobody was recording, to the second, with the latency before and after.

Do:
    Put these times beside those in which the database was slow. Where they agree, look below the host in the same
    seconds: the array's or filer's log and latency, a failover, a backup or a rebuild on it, errors on switch ports.
    Several hosts with the same device in the same second accuse the array; one host alone accuses its path. Record
    `esxtop -b -a -d 5 -n 120 > esxtop.csv` while it is slow: DAVG and KAVG tell device from queue.

When it is wrong:
    A device that does a few commands an hour is compared with few: one slow command makes a line. Backups at night
    slow a device down on purpose.

Sources:
    VMware KB 2007236: meaning of the message.
    Judgement: 50 ms is twice the limit of DAVG in Yellow-Bricks' esxtop thresholds (25 ms), since a line tells of
    moments; 200 ms no device takes that works; a line stands for a minute, and lines ten minutes apart are one trouble.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.finding import Evidence, Finding, Window, iso
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows
from leadline.estate.language.templates import SCORE_MAX
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK, WAITS_FOR_DEVICE

META = RuleMeta(
    code="STO190",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    needs=("disk_logged_latency_ms",),
    uses=("disk_logged_latency_ms_usual",),
    thresholds={
        "warn": Threshold(50.0, "ms", "Judgement: twice Yellow-Bricks' limit of DAVG, as a line tells of moments"),
        "crit": Threshold(200.0, "ms", "Judgement: no device takes so long that works"),
        "lasts": Threshold(60.0, "s", "Judgement: a line stands for a minute where none says that it ended"),
        "gap": Threshold(600.0, "s", "Judgement: lines ten minutes apart are one trouble"),
    },
    explains=(*WAITS_FOR_DEVICE, *GUEST_AND_DATABASE_WAIT_FOR_DISK),
    clears=False,
    examines="disks",
)
_LINES_MIN = 2  # one line may tell of one slow command
_SHOWN_MAX = 4
_NS_PER_S = 1e9


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device and datastore."""
    for group in context.of("disk_logged_latency_ms", EntityKind.DEVICE, EntityKind.DATASTORE):
        usual = context.aligned(group, "disk_logged_latency_ms_usual")
        for row in range(len(group.entities)):
            before = np.full(len(group.times_ns), np.nan) if usual is None else usual[row]
            finding = _finding(context, group, row, np.asarray(before, dtype=np.float64))
            if finding is not None:
                yield finding


def _finding(
    context: RuleContext, group: SeriesGroup, row: int, usual: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> Finding | None:
    entity, values = group.entities[row], group.values[row]
    with np.errstate(invalid="ignore"):
        rose = (values >= context.limit("warn")) & ~(values <= usual)
    places = np.flatnonzero(rose)
    if not places.size:
        return None
    worst = int(places[np.argmax(values[places])])
    is_often = places.size >= _LINES_MIN
    severity = Severity.HIGH if values[worst] >= context.limit("crit") else Severity.MEDIUM
    shown = places[np.argsort(-values[places], kind="stable")][:_SHOWN_MAX]
    evidence = [
        Evidence(
            f"{iso(int(group.times_ns[place]))}: latency of {entity.label()} rose{_rise(usual[place], values[place])}",
            metric=group.metric,
            entity=entity,
            statistic="max",
            value=float(values[place]),
            threshold=context.limit("warn"),
            unit="ms",
            source=context.source_name(group),
        )
        for place in sorted(shown.tolist())
    ]
    if places.size > len(evidence):
        evidence.append(Evidence(f"and {places.size - len(evidence)} lines more"))
    times = f" ({places.size} lines of the host's log)" if is_often else " (one line of the host's log)"
    return context.finding(
        entity,
        f"Latency of {entity.label()} jumped{_rise(usual[worst], values[worst])}{times}",
        evidence,
        severity=severity if is_often else severity.lowered(),
        windows=_windows(context, group, row, places.tolist()),
        score=min(float(values[worst]) / context.stated_limit("warn"), SCORE_MAX),
    )


def _rise(usual_ms: float, now_ms: float) -> str:
    start = f" from {show(float(usual_ms), 'ms')}" if np.isfinite(usual_ms) else ""
    return f"{start} to {show(float(now_ms), 'ms')}"


def _windows(context: RuleContext, group: SeriesGroup, row: int, places: list[int]) -> tuple[Window, ...]:
    """From each line to the next of the same device, where that is near, else as long as a line stands for."""
    known = np.flatnonzero(np.isfinite(group.values[row]))
    lasts_ns, gap_ns = (round(context.stated_limit(name) * _NS_PER_S) for name in ("lasts", "gap"))
    spans = []
    for place in places:
        start = int(group.times_ns[place])
        following = known[known > place]
        end = int(group.times_ns[following[0]]) if following.size else start + lasts_ns
        spans.append(Window(start, end if end - start <= gap_ns else start + lasts_ns))
    return joined_windows(spans)
