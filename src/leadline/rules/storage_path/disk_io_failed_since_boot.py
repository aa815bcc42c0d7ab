"""Reads and writes of a device have failed since the host booted.

Finds:
    Devices of which more than one read or write in 100,000 failed since boot (medium: more than one in 1,000), by the
    counters of `esxcli storage core device stats get`. Fewer than 10 failures are left out.

Why:
    A failed read or write is sent again or down another path, after a timeout of seconds where nothing answered. To the
    database it is one request that took that long; and a path, a port or a disk that fails some requests usually fails
    more of them later.

Do:
    Read the counters twice, an hour apart, to learn whether they still grow. Then look for the reason in
    `grep -E "failed H:0x|ScsiDeviceIO" /var/log/vmkernel.log`, where H:, D: and P: say who refused: the adapter, the
    array or the multipathing.

When it is wrong:
    The counters say nothing about when: all failures may be of one planned failover, or of a week before the trouble.
    Commands that a device does not know are not counted among reads and writes.

Sources:
    vSphere ESXCLI reference, storage core device stats get. VMware KB 289902, host, device and plug-in status codes.
    Judgement: one in 100,000 is 80 times what a sound array of a public example showed (53 of 436 million is 1 in 8
    million); ten failures are no pattern.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="STO205",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    needs=("device.failed_io_count", "device.io_count"),
    thresholds={
        "warn": Threshold(0.001, "pct", "Judgement: one of 100,000"),
        "crit": Threshold(0.1, "pct", "Judgement: one of 1,000"),
        "failures": Threshold(10.0, "count", "Judgement: fewer are no pattern"),
    },
    clears=False,  # counters since boot do not say that nothing failed in the incident
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""

    def judge(device: Entity, fact: Fact) -> tuple[str, Severity] | None:
        done = context.inventory.get(device, "io_count")
        failed = fact.value
        if not done or failed < context.limit("failures"):
            return None
        share_pct = 100.0 * failed / (done + failed)
        if share_pct <= context.limit("warn"):
            return None
        severity = META.severity if share_pct > context.limit("crit") else META.severity.lowered()
        return f"{failed:,} reads and writes of {device.label()} have failed since boot, {share_pct:.2g} %", severity

    yield from by_setting(context, EntityKind.DEVICE, "failed_io_count", judge, ("io_count",))
