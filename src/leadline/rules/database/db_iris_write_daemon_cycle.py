"""A cycle of IRIS's write daemon takes too long.

Finds:
    A single write cycle of 80 s (warning) or 90 s (critical) and more.

Why:
    A cycle starts every 80 s, or sooner when much was changed. When one is not over by then, changed blocks pile up,
    and at last updates wait for the cycle to end: the application stands still though reads are quick.

Do:
    Look at the write path under databases and WIJ at that time: await of writes, limits in IOPS or MB/s, the write
    buffer of the array or vSAN, a rebuild, a backup. Judge the queue (WDQsz) by whether it grows from cycle to cycle,
    not by its floor. Then enlarge asyncwij and the throughput of the storage.

When it is wrong:
    A bulk load changes more in a minute than any storage writes in one. A snapshot that stopped the VM stretches the
    cycle it fell in.

Sources:
    yaspe documentation (IRIS KPI reference).
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

_YASPE = "yaspe documentation (IRIS KPI reference)"

META = RuleMeta(
    code="DBS152",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("disk-slow", "checkpoints"),
    needs=("db_iris_write_daemon_phase_s",),
    thresholds={
        "warn": Threshold(80.0, "s", _YASPE),
        "crit": Threshold(90.0, "s", _YASPE),
        "duration": Threshold(0.0, "s", f"{_YASPE}: a single cycle counts"),
    },
    explains=("db-iris-glorefs-drop", "db-component-response-time"),
    clears=False,
    is_wait=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per instance."""
    spec = Over("db_iris_write_daemon_phase_s", "write daemon cycle", inclusive=True)
    yield from over_threshold(context, spec)
