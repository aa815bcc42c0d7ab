"""The firmware of a host is old.

Finds:
    Hosts whose BIOS was released more than 24 months (low) or 48 months (medium) before the recording, or before today
    where there is no recording. Storage adapters of hosts with older firmware than an adapter of the same model in the
    same inventory (low).

Why:
    Firmware fixes microcode, memory errors, power management and PCIe. New versions of the hypervisor are tested with
    recent firmware, and their drivers expect it of adapters too.

Do:
    Update BIOS, adapters and management controller together, with the vendor's bundle for the version of the
    hypervisor, host by host in maintenance mode.

When it is wrong:
    A server at the end of its life gets no newer firmware. The date of the release is not the date it was installed.
    Versions are compared number by number; a maker may count otherwise. Adapters that are all
    equally old are not found.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): firmware up to date.
    VMware Compatibility Guide.
    Judgement: 24 and 48 months; a version that another host already runs is taken for the current one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import of_facts

_S_PER_DAY = 86_400.0
_DAYS_PER_MONTH = 365.25 / 12.0

META = RuleMeta(
    code="HST107",
    layer=Layer.HOST,
    severity=Severity.MEDIUM,
    needs=("host.bios_date|adapter.firmware",),
    thresholds={
        "warn": Threshold(24 * _DAYS_PER_MONTH * _S_PER_DAY, "s", "Judgement: 24 months"),
        "crit": Threshold(48 * _DAYS_PER_MONTH * _S_PER_DAY, "s", "Judgement: 48 months"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host and adapter."""
    yield from _old_bios(context)
    yield from _old_adapters(context)


def _old_bios(context: RuleContext) -> Iterator[Finding]:
    span = context.capture.span_ns()
    now = datetime.now(UTC).date() if span is None else datetime.fromtimestamp(span[1] // 10**9, UTC).date()
    for host in context.inventory.of_kind(EntityKind.HOST):
        released = _released(context, host)
        age_s = 0.0 if released is None else (now - released).days * _S_PER_DAY
        if released is None or age_s <= context.limit("warn"):
            continue
        months = age_s / _S_PER_DAY / _DAYS_PER_MONTH
        summary = f"the BIOS of {host.label()} is of {released.isoformat()}, {months:.0f} months old"
        severity = META.severity if age_s > context.limit("crit") else META.severity.lowered()
        yield of_facts(context, host, summary, [(host, "bios_date"), (host, "bios_version")], severity=severity)


def _released(context: RuleContext, host: Entity) -> date | None:
    """The day the BIOS was released; None when not known or not an ISO date."""
    try:
        return date.fromisoformat(str(context.inventory.get(host, "bios_date"))[:10])
    except ValueError:
        return None


def _old_adapters(context: RuleContext) -> Iterator[Finding]:
    """Yield a finding for each adapter whose firmware is older than that of another adapter of the same model."""
    inventory = context.inventory
    by_model: dict[str, list[tuple[tuple[int, ...], Entity]]] = {}
    for adapter in inventory.of_kind(EntityKind.ADAPTER):
        model, version = inventory.get(adapter, "model"), _version(inventory.get(adapter, "firmware"))
        if model is not None and version and adapter.ancestor(EntityKind.HOST) is not None:
            by_model.setdefault(str(model).strip().casefold(), []).append((version, adapter))
    for adapters in by_model.values():
        newest, current = max(adapters, key=lambda pair: pair[0])
        for version, adapter in adapters:
            if version < newest:
                summary = (
                    f"Adapter {adapter.label()} has firmware {inventory.get(adapter, 'firmware')}; "
                    f"{current.label()} of the same model has {inventory.get(current, 'firmware')}"
                )
                facts = [(adapter, "model"), (adapter, "firmware"), (current, "firmware")]
                yield of_facts(context, adapter, summary, facts, severity=META.severity.lowered())


def _version(firmware: object) -> tuple[int, ...]:
    """Return the numbers of a version without trailing zeros; empty when it has none."""
    numbers = [int(digits) for digits in re.findall(r"\d+", str(firmware or ""))]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
