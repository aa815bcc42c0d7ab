"""The host doubted the state of a device and probed its paths.

Finds:
    Lines "state in doubt; requested fast path state update" of a device: three or more within ten minutes are of medium
    severity, fewer of low.

Why:
    ESXi writes it when a command to the device came back with an error that may mean a lost path. The command is sent
    again after the paths were probed, which the guest waits for.

Do:
    Look at the failed commands beside these lines: H:0x8, H:0x5, H:0x3 and H:0x1 point to the fabric, the adapter or an
    array that does not answer, D:0x8 and D:0x28 to an array that is overloaded. Check the port's error counters, the
    adapter's driver and firmware, and the array's log for the same seconds.

When it is wrong:
    A planned failover of the array, a firmware upgrade and a rescan make a few such lines.

Sources:
    Lines of ESXi in public logs: "state in doubt; requested fast path state update".
    Judgement: three lines within ten minutes are no single event.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows, sample_bounds
from leadline.estate.language.templates import SCORE_MAX
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK, WAITS_FOR_DEVICE

META = RuleMeta(
    code="STO192",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    needs=("disk_state_doubts_per_s",),
    thresholds={
        "often": Threshold(3.0, "count", "Judgement: fewer lines are a single event"),
        "gap": Threshold(600.0, "s", "Judgement: lines ten minutes apart are one trouble"),
    },
    explains=(*WAITS_FOR_DEVICE, *GUEST_AND_DATABASE_WAIT_FOR_DISK),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""
    for group in context.of("disk_state_doubts_per_s", EntityKind.DEVICE):
        starts, ends = sample_bounds(group)
        lengths_s = (ends - starts) / 1e9
        for row, entity in enumerate(group.entities):
            counts = np.nan_to_num(group.values[row]) * lengths_s
            places = np.flatnonzero(counts > 0).tolist()
            if not places:
                continue
            windows = joined_windows(
                [Window(int(starts[i]), int(ends[i])) for i in places], context.stated_limit("gap")
            )
            sums = [float(counts[(ends > w.start_ns) & (ends <= w.end_ns)].sum()) for w in windows]
            most = round(max(sums))
            total = round(sum(sums))
            statement = f"{total} line{'s' if total > 1 else ''} of the host's log, at most {most} within ten minutes"
            evidence = Evidence(
                f"{entity.label()}: {statement}",
                metric=group.metric,
                entity=entity,
                statistic="sum",
                value=float(total),
                threshold=context.stated_limit("often"),
                unit="count",
                source=context.source_name(group),
            )
            yield context.finding(
                entity,
                f"The host doubted the state of {entity.label()} {total} time{'s' if total > 1 else ''}",
                [evidence],
                severity=Severity.MEDIUM if most >= context.stated_limit("often") else Severity.LOW,
                windows=windows,
                score=min(most / context.stated_limit("often"), SCORE_MAX),
            )
