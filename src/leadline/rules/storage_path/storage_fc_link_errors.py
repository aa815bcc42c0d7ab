"""A Fibre Channel port counts link failures or damaged frames.

Finds:
    Ports whose error counters (link failures, losses of synchronisation or signal, invalid CRCs and the like) grew by
    one (medium) or more (high) between two looks.

Why:
    A damaged frame is a command that is lost and repeated after a timeout of seconds. Few such frames are enough to
    make a whole device look slow, and the fabric's other hosts feel it when buffers are held.

Do:
    Clean or replace the transceiver and cable of the port, first those between this port and its switch; look at the
    counters of the switch port at the other end, where errors of this direction are counted. Then watch the growth
    again.

When it is wrong:
    Counters also grow when a switch, array or host is restarted or a cable is moved. Only growth counts: totals since
    boot say nothing.

Sources:
    vCheck-vSphere, plug-in on host bus adapters: any. `esxcli storage san fc stats get`: names of the counters.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="STO144",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    needs=("adapter.fc_errors",),
    thresholds={
        "warn": Threshold(0.0, "count", "vCheck-vSphere: any"),
        "crit": Threshold(1.0, "count", "vCheck-vSphere: more than one"),
    },
    explains=("disk-aborts", "disk-resets", "disk-failed-commands"),
    clears=False,  # a clean link says nothing about the array behind it
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per adapter."""

    def judge(adapter: Entity, fact: Fact) -> tuple[str, Severity] | None:
        grown = {name: count for name, count in fact.value.items() if isinstance(count, int | float) and count > 0}
        total = sum(grown.values())
        if total <= context.limit("warn"):
            return None
        words = ", ".join(f"{name} by {count:g}" for name, count in grown.items())
        severity = META.severity if total > context.limit("crit") else META.severity.lowered()
        return f"Error counters of {adapter.label()} grew: {words}", severity

    yield from by_setting(context, EntityKind.ADAPTER, "fc_errors", judge)
