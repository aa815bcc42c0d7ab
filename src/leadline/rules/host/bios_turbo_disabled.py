"""Turbo is off in the BIOS of a host.

Finds:
    Hosts whose turbo mode (Intel Turbo Boost, AMD Core Performance Boost) is off.

Why:
    A database session runs on one core at a time: how fast a query is depends on the clock of that core. Turbo raises
    it by a third and more as long as there is power and cooling to spare, which is most of the time.

Do:
    Turn turbo on in the BIOS, together with a power profile that lets the processor use it (host-power-policy).

When it is wrong:
    Measurements that must be repeatable are made without turbo. Some clouds of fixed performance switch it off.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): turn on turbo mode in
    the BIOS. Performance Best Practices for VMware vSphere.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import flag_is

META = RuleMeta(
    code="HST103",
    layer=Layer.HOST,
    severity=Severity.MEDIUM,
    needs=("host.bios_turbo",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    yield from flag_is(context, (EntityKind.HOST, "bios_turbo"), bad=False, says="turbo of {name} is off in the BIOS")
