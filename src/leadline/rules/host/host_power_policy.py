"""The processors of a host are not allowed to run at full speed.

Finds:
    Hosts whose power management saves energy at the price of speed: a BIOS profile that is neither "maximum
    performance" nor "OS controlled", or, where the BIOS leaves it to the hypervisor or is not known, a policy of the
    hypervisor other than "high performance" (medium; low where VMs are known and none looks like a database).
    Measured: busy physical CPUs whose effective clock is below 80 % (low) or 50 % (medium) of nominal for 60 s.

Why:
    Power management lowers the clock of cores that look idle, and a database that waits for its disk every few
    hundred microseconds looks idle. Each wake-up costs time, and the work in between runs at half speed; CPU
    percentages inside the guest do not show it.

Do:
    BIOS: "OS controlled" or "maximum performance". Hypervisor: `esxcli system settings advanced set -o
    /Power/CpuPolicy -s "High Performance"`, or Host, Configure, Power Management. Keep C-states on: turbo needs idle
    cores (host-c1e-deep-cstates).

When it is wrong:
    "Balanced" is the default and some checklists expect it: on hosts without latency-critical work it is a fair
    choice. With maximum performance in the BIOS the hypervisor's policy has nothing to decide, and is not looked at.
    The clock falls as well when a server is too hot or short of power.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): maximum performance in
    the BIOS. Performance Best Practices for VMware vSphere: OS controlled, high performance. EsxtopDrill c_map.csv:
    80 % and 50 % of aperf/mperf. vCheck for vSphere expects the default policy.
    Judgement: a CPU counts as busy at half of its time, so that cores that idle slowly are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.database_vms import likely_database_vms
from leadline.estate.language.templates import Over, joined, of_facts, over_threshold

META = RuleMeta(
    code="HST104",
    layer=Layer.HOST,
    severity=Severity.MEDIUM,
    needs=("host.power_policy|host.bios_power_profile|host_cpu_aperf_pct",),
    uses=("host_cpu_util_pct",),
    thresholds={
        "warn": Threshold(80.0, "pct", "EsxtopDrill c_map.csv"),
        "crit": Threshold(50.0, "pct", "EsxtopDrill c_map.csv"),
        "busy": Threshold(50.0, "pct", "Judgement: idle cores may be slow"),
        "duration": Threshold(60.0, "s", "Judgement: the clock follows the load with a delay"),
    },
)
_FULL_POLICY = frozenset({"highperformance", "static"})
_FULL_BIOS = frozenset({"maxperformance", "maximumperformance", "staticmax"})
_LEFT_TO_SYSTEM = frozenset({"oscontrolled", "oscontrol"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host; what was measured and what is set in one."""
    spec = Over(
        "host_cpu_aperf_pct", "effective clock", (EntityKind.PCPU,), below=True, value=_busy, roll_up=EntityKind.HOST
    )
    findings_by_host = {finding.entity: [finding] for finding in over_threshold(context, spec)}
    databases = likely_database_vms(context.inventory)
    for host in context.inventory.of_kind(EntityKind.HOST):
        fault = _fault(context, host)
        if fault is not None:
            vms = context.inventory.children(host, EntityKind.VM)
            matters = not vms or any(vm in databases for vm in vms)
            facts = [(host, "power_policy"), (host, "bios_power_profile")]
            set_so = of_facts(context, host, fault, facts, severity=META.severity if matters else Severity.LOW)
            findings_by_host.setdefault(host, []).append(set_so)
    for findings in findings_by_host.values():
        yield joined(findings, context.limit("duration"))


def _fault(context: RuleContext, host: Entity) -> str | None:
    """What is wrong with a host's power settings; None when nothing is, or nothing is known."""
    policy = context.inventory.get(host, "power_policy")
    bios = context.inventory.get(host, "bios_power_profile")
    if bios is not None and _plain(bios) in _FULL_BIOS:
        return None
    if bios is not None and _plain(bios) not in _LEFT_TO_SYSTEM:
        return f"the BIOS of {host.label()} saves power ({bios})"
    if policy is not None and _plain(policy) not in _FULL_POLICY:
        return f"the power policy of {host.label()} is {policy}"
    return None


def _plain(name: object) -> str:
    return "".join(c for c in str(name).casefold() if c.isalnum())


def _busy(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """Effective clock [k, n] of CPUs while they are busy; NaN where they are not, or it is not known."""
    used = context.aligned(group, "host_cpu_util_pct")
    if used is None:
        return np.full(group.values.shape, np.nan)
    return np.where(np.nan_to_num(used, nan=0.0) >= context.limit("busy"), group.values, np.nan)
