"""A storage driver of the host logged that it gave up on commands or reset something.

Finds:
    Lines of a storage driver (qla, lpfc, nvme, ahci, megaraid, hpsa and others) with an abort or a reset: high severity
    where three or more came within ten minutes, medium for fewer.

Why:
    A command that is not answered for seconds is aborted; then the LUN, the target or the bus is reset. The guest waits
    all that time, and what was under way is sent again.

Do:
    Find out who did not answer: the array's or disk's log for the same seconds, error counters of the adapter's and the
    switch's ports, the driver and firmware against the compatibility list. A local disk behind ahci or a RAID
    controller: its SMART values, its cache and its battery.

When it is wrong:
    A backup that unmounts its LUNs and a cluster's resets at a failover log the same.

Sources:
    Lines of ESX 3.5 to ESXi 8 in public logs.
    Judgement: three lines within ten minutes are no single event.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind
from leadline.rules._families.logged_events import logged, logged_meta

META = logged_meta("STO203", "disk_logged_aborts_per_s")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per adapter."""
    yield from logged(
        context,
        "disk_logged_aborts_per_s",
        EntityKind.ADAPTER,
        "The driver of {where} aborted commands or reset {times}",
    )
