"""A host could not write its heartbeat to a datastore in time.

Finds:
    Lines "Waiting for timed out HB" and "Reclaimed timed out heartbeat" of a VMFS datastore: high severity where three
    or more came within ten minutes, medium for fewer.

Why:
    A host writes a few bytes to each VMFS datastore every three seconds. When that takes longer than sixteen, commands
    to its device were not answered for as long, and no VM on it got an answer either.

Do:
    Look at the device below the datastore for the same seconds: the array's log, failed paths, resets, reservation
    conflicts. Put the times beside those in which databases stood still.

When it is wrong:
    A host that was itself stopped for seconds, as a nested one is, writes its heartbeat late with healthy storage.

Sources:
    Broadcom KB 326437 (formerly 2113956): a host loses its connection to a VMFS datastore.
    Judgement: three lines within ten minutes are no single event.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.rules._families.logged_events import logged, logged_meta

META = logged_meta("STO204", "datastore_heartbeat_timeouts_per_s", Layer.DATASTORE)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per datastore."""
    yield from logged(
        context,
        "datastore_heartbeat_timeouts_per_s",
        EntityKind.DATASTORE,
        "A host could not write its heartbeat to {where} in time, {times}",
    )
