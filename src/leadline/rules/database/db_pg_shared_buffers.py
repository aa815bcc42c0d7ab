"""PostgreSQL's shared buffers are out of proportion to the memory of the machine.

Finds:
    shared_buffers below 15 % or above 40 % of the memory the guest sees, or its VM is configured with.

Why:
    Too small a cache sends reads to the kernel that the server could have answered itself and writes dirty pages out
    again and again. Too large a one leaves little for the page cache, for sorts and for backends, and keeps many pages
    twice.

Do:
    Start with a quarter of the memory, measure the hit rate and the evictions (pg_stat_io, pg_buffercache) and change
    it in one step at a time. Check that the hypervisor reserves what the guest is given.

When it is wrong:
    A machine that does more than this database needs another share. A database smaller than the cache gains nothing by
    more, and some loads do best with much more than 40 %.

Sources:
    PostgreSQL documentation, shared_buffers: 25 % as a start, more than 40 % unlikely to work better.
    Judgement: 15 % as the lower end.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.database_settings import by_parameter, memory_bytes, postgresql_bytes

META = RuleMeta(
    code="DBS112",
    layer=Layer.DATABASE,
    severity=Severity.LOW,
    needs=("database.parameters", "guest.memory_mib|vm.memory_mib"),
    thresholds={
        "share_min": Threshold(15.0, "pct", "Judgement: well below the quarter the documentation starts with"),
        "share_max": Threshold(40.0, "pct", "PostgreSQL documentation, shared_buffers"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per PostgreSQL server whose machine's memory is known."""
    least, most = context.limit("share_min"), context.limit("share_max")

    def judge(database: Entity, value: str | float) -> tuple[str, Severity] | None:
        share = 100.0 * postgresql_bytes("shared_buffers", value) / (memory_bytes(context.inventory, database) or 1.0)
        if not (share < least or share > most):
            return None
        side = f"below {show(least, 'pct')}" if share < least else f"above {show(most, 'pct')}"
        return f"Shared buffers of {database.label()} are {show(share, 'pct')} of its memory, {side}", META.severity

    yield from by_parameter(context, "postgresql", "shared_buffers", judge)
