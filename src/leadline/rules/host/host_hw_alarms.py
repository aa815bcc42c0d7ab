"""A hardware sensor of a host raises an alarm.

Finds:
    Hosts with a sensor that is red (critical) or yellow (high).

Why:
    A failed power supply or fan makes the server lower its clock; memory that corrects errors all the time is slow
    and about to fail; a battery of a RAID controller that is dead turns its write cache off, and with it the quick
    commits of a database.

Do:
    Look at the sensor in the server's management controller and its event log, and replace the part. Move VMs off the
    host first when it concerns memory, temperature or power.

When it is wrong:
    A redundant power supply left unplugged on purpose. Sensors that are unknown were not read and are left out. Some
    firmware reports a yellow for ever: look whether it is new.

Sources:
    vCheck for vSphere: hardware status of hosts must be green.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

META = RuleMeta(
    code="HST108",
    layer=Layer.HOST,
    severity=Severity.CRITICAL,
    needs=("host.sensors",),
)
_BAD = ("red", "yellow")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host; all its sensors that are not green in one."""
    for host in context.inventory.of_kind(EntityKind.HOST):
        fact = context.inventory.fact(host, "sensors")
        states = {} if fact is None else {name: str(state).casefold() for name, state in fact.value.items()}
        bad = {colour: sorted(name for name, state in states.items() if state == colour) for colour in _BAD}
        worst = next((colour for colour in _BAD if bad[colour]), None)
        if fact is None or worst is None:
            continue
        evidence = [
            Evidence(f"{name} of {host.label()} is {colour}", entity=host, source=fact.source)
            for colour in _BAD
            for name in bad[colour]
        ]
        summary = f"{host.label()} has {', '.join(bad[worst])} {worst}"
        severity = META.severity if worst == "red" else META.severity.lowered()
        yield context.finding(host, summary, evidence, severity=severity)
