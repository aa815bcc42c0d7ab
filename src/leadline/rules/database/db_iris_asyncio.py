"""IRIS writes to flash without asynchronous I/O.

Finds:
    wduseasyncio at 0, or asyncwij at -1, while the instance's data lies on flash, as the inventory says of the disk or
    of the LUN or datastore below it.

Why:
    Flash is quick with many requests at once. A write daemon that waits for each write before the next uses a fraction
    of it: write cycles get long, and updates wait for the cycle to end.

Do:
    Set wduseasyncio = 1 in [config] and asyncwij to 8 or more, as the vendor's support advises for the array, and
    restart the instance.

When it is wrong:
    Some filesystems and virtual disks turn asynchronous requests into synchronous ones; measure the write cycle before
    and after. 0 leaves asyncwij to the instance and is not judged.

Sources:
    yaspe documentation (IRIS KPI reference, sp_check).
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Role, Severity
from leadline.estate.derived.disks import uses
from leadline.estate.knowledge.database_settings import disks_of, finding_of_parameters, number_of, of_engine, parameter

META = RuleMeta(
    code="DBS144",
    layer=Layer.DATABASE,
    severity=Severity.LOW,
    needs=("database.parameters", "block-device.medium|device.medium|datastore.medium"),
    clears=False,
)

_OFF = {"wduseasyncio": 0.0, "asyncwij": -1.0}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per IRIS instance with data on flash."""
    known = uses(context)
    for database in of_engine(context.inventory, "iris"):
        disks = disks_of(context.inventory, known, database, Role.DATA)
        values = {name: parameter(context.inventory, database, name) for name in _OFF}
        off = {name: v for name, v in values.items() if v is not None and number_of(v) == _OFF[name]}
        flash = [disk.name for disk, use in disks.items() if use.medium == "flash"]
        if off and flash:
            summary = f"{database.label()} writes to flash ({flash[0]}) without asynchronous I/O: {', '.join(off)}"
            yield finding_of_parameters(context, database, (summary, META.severity), off)
