"""A host runs the first side-channel aware scheduler, which leaves half of the hardware threads unused.

Finds:
    Hosts of ESXi 6.7 Update 2 or later with hyperthreadingMitigation and hyperthreadingMitigationIntraVM both on, and
    hosts of earlier releases, which have only the first scheduler, with hyperthreadingMitigation on (high).
    Medium where the host's utilisation was recorded and stayed below 75 %, or its version is not known.

Why:
    The first scheduler lets only one thread of a core run at a time, for all VMs. At full load that was
    measured to cost up to 30 % of throughput; at three quarters of the load throughput holds, but the host shows more
    CPU use for it. The second version lets threads of the same VM share a core and keeps most of the gain.

Do:
    Where the security policy trusts the VM's own processes with each other, switch to the second version:
    `esxcli system settings kernel set -s hyperthreadingMitigationIntraVM -v FALSE`, and reboot the host.
    A release before 6.7 Update 2 has no second version: update the host first. Processors
    with the flaws fixed in hardware need neither.

When it is wrong:
    A policy may demand the first version, as for VMs that run code of strangers. One very wide VM (192 vCPUs) was
    measured without gain from the second.

Sources:
    vmgu.ru, articles on the side-channel aware scheduler: up to 30 % at full load; the first version came with earlier
    releases, the second with 6.7 Update 2, at least 11 % better.
    Broadcom KB 55806 and KB 67577: settings, versions, planning.
    Judgement: below 75 % utilisation the loss is hidden, so one severity lower.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.timeline import host_groups
from leadline.estate.knowledge.placement import kernel_flag
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="CPU144",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.HIGH,
    needs=("host.kernel_settings",),
    uses=("host_cpu_core_util_pct", "host_cpu_util_pct"),
    thresholds={"busy": Threshold(75.0, "pct", "vmgu.ru: at 75 % load throughput holds")},
    clears=False,
)
_BOTH = ("hyperthreadingMitigation", "hyperthreadingMitigationIntraVM")
_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.\d+)*(?:.*?\b(?:update\s*|u)(\d+))?", re.IGNORECASE)
_BUILD = re.compile(r"build[-\s]*(\d+)", re.IGNORECASE)
_FIRST_RELEASE = (6, 7)
_FIRST_UPDATE = 2
_FIRST_BUILD = 13_006_603  # ESXi 6.7 Update 2, VMware release notes
_QUANTILE = 0.95


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    for host in context.inventory.of_kind(EntityKind.HOST):
        settings = context.inventory.fact(host, "kernel_settings")
        version = context.inventory.get(host, "version")
        offers = None if version is None else _offers_second(str(version))
        names = _BOTH[:1] if offers is False else _BOTH
        if settings is None or not all(kernel_flag(context.inventory, host, name) for name in names):
            continue
        busy = _busy_pct(context, host)
        quiet = offers is None or busy < context.limit("busy")
        finding = of_facts(
            context,
            host,
            f"{host.label()} runs the first side-channel aware scheduler: up to 30% is lost at full load",
            [(host, "version"), (host, "cpu_model")],
            severity=META.severity.lowered() if quiet else META.severity,
        )
        on = [Evidence(f"{name} of {host.label()} is on", entity=host, source=settings.source) for name in names]
        finding = replace(finding, evidence=(*on, *finding.evidence))
        if offers is None:
            finding = replace(finding, guessed=(*finding.guessed, f"that {host.label()} is at least ESXi 6.7 Update 2"))
        if not np.isnan(busy):
            finding = replace(finding, evidence=(*finding.evidence, _utilisation(context, host, busy)))
        yield finding


def _offers_second(version: str) -> bool | None:
    """Whether a release has the second scheduler (6.7 Update 2 or later); None when the text does not say."""
    release, build = _RELEASE.search(version), _BUILD.search(version)
    if release is None:
        return None
    number = (int(release[1]), int(release[2]))
    if number != _FIRST_RELEASE:
        return number > _FIRST_RELEASE
    if build is not None:
        return int(build[1]) >= _FIRST_BUILD
    return None if release[3] is None else int(release[3]) >= _FIRST_UPDATE


def _busy_pct(context: RuleContext, host: Entity) -> float:
    """95th percentile of the host's utilisation in percent; NaN when it was not recorded."""
    busy_pct = float("nan")
    for metric in ("host_cpu_core_util_pct", "host_cpu_util_pct"):
        for group in host_groups(context, metric):
            row = group.row(host)
            if row is not None and np.isfinite(row).any():
                busy_pct = float(np.fmax(busy_pct, np.nanquantile(row, _QUANTILE)))
    return busy_pct


def _utilisation(context: RuleContext, host: Entity, busy: float) -> Evidence:
    return Evidence(
        f"utilisation of {host.label()}: 95th percentile {show(busy, 'pct')}",
        entity=host,
        statistic="p95",
        value=busy,
        threshold=context.limit("busy"),
        unit="pct",
    )
