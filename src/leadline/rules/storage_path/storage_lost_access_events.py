"""A host lost access to storage.

Finds:
    Events of a host that say all paths to a device were down (APD), the device was lost for good (PDL), a volume could
    not be reached or every path failed: any during the recording or in the 24 h before it. Without a recording every
    event in the inventory counts.

Why:
    During an outage of storage commands neither succeed nor fail: guests hang, databases time out, clusters fail over.
    What is measured afterwards, such as queues that drain or rebuilds, is the outage's tail, not its cause.

Do:
    Take it as an outage, not as slowness: compare the time with the array's and the switches' logs, repair the path
    or the array, and check that each host has two paths over separate fabrics. Set the response of vSphere HA to APD
    and PDL, so that VMs are restarted elsewhere.

When it is wrong:
    A planned failover test, an unmapped LUN that was not detached first, and a rebooted array log the same events.

Sources:
    vCheck-vSphere, plug-in on lost access to volumes. VMware KB 2004684: APD and PDL; an APD is given up after 140 s.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.events import Happened, events_of
from leadline.core.model.finding import Evidence, Finding, Window, iso
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import SCORE_MAX
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK, SLOW_DEVICE

META = RuleMeta(
    code="STO145",
    layer=Layer.STORAGE_PATH,
    severity=Severity.CRITICAL,
    causes=("disk-stalled",),
    needs=("host.events",),
    thresholds={
        "warn": Threshold(1.0, "count", "vCheck-vSphere: any"),
        "before": Threshold(24.0 * 3600.0, "s", "vCheck-vSphere: looks back a day"),
        "lasts": Threshold(140.0, "s", "VMware KB 2004684: default of Misc.APDTimeout"),
    },
    explains=(
        "disk-aborts",
        "disk-resets",
        "disk-failed-commands",
        *SLOW_DEVICE,
        "disk-gavg-high",
        "disk-max-total-latency",
        *GUEST_WAITS_FOR_DISK,
    ),
)
_KINDS = {
    "storage-apd": "all paths down",
    "storage-pdl": "a device lost for good",
    "storage-lost-access": "access to a volume lost",
    "storage-path-lost": "no path left to a device",
}
_EVIDENCE_COUNT_MAX = 4
_NS_PER_S = 1_000_000_000


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    span = context.capture.span_ns()
    for host in context.inventory.of_kind(EntityKind.HOST):
        events = events_of(context.inventory, host, _KINDS)
        if span is not None:
            first = span[0] - round(context.limit("before") * _NS_PER_S)
            events = [event for event in events if first <= event.time_ns <= span[1]]
        if len(events) >= context.limit("warn"):
            yield _finding(context, host, events, timed=span is not None)


def _finding(context: RuleContext, host: Entity, events: list[Happened], *, timed: bool) -> Finding:
    lasts_ns = round(context.limit("lasts") * _NS_PER_S)
    kinds = ", ".join(dict.fromkeys(_KINDS[event.kind] for event in events))
    shown = events[-_EVIDENCE_COUNT_MAX:]
    evidence = [
        Evidence(
            f"{iso(event.time_ns)}: {_KINDS[event.kind]}{f', {event.text}' if event.text else ''}",
            entity=host,
            source=event.source,
        )
        for event in shown
    ]
    if len(events) > len(shown):
        evidence.append(Evidence(f"and {len(events) - len(shown)} before these"))
    return context.finding(
        host,
        f"{host.name} lost access to storage: {kinds}, {len(events)} event{'s' if len(events) > 1 else ''}",
        evidence,
        windows=[Window(event.time_ns, event.time_ns + lasts_ns) for event in events] if timed else (),
        score=min(float(len(events)), SCORE_MAX),
    )
