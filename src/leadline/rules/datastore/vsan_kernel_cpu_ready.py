"""The hypervisor's own vSAN threads wait for a CPU.

Finds:
    Ready time of vSAN's kernel worlds on a host above 1 % (medium) or 5 % (high) for at least 60 s.

Why:
    vSAN computes checksums, parity and compression and moves every packet on the host's CPUs. When its threads queue
    behind VMs, I/O of the whole cluster waits for that host, while its disks and network look idle.

Do:
    Relieve the host's CPUs: move VMs, take vCPUs from oversized ones, set the power policy to high performance, add
    cores. Clear this before blaming disks or network of that host.

When it is wrong:
    A short burst at the start of a rebuild is no lasting lack. Thread and metric names differ between versions; the
    highest of them is used.

Sources:
    VMware Aria Operations, vSAN contention dashboard: limits for ready time of vSAN's worlds.
    Judgement: 60 s is two samples of 30 s.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

_ARIA = "VMware Aria Operations vSAN contention dashboard"

META = RuleMeta(
    code="DST110",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    causes=("cpu-taken",),
    needs=("vsan_kernel_ready_pct",),
    thresholds={
        "warn": Threshold(1.0, "pct", _ARIA),
        "crit": Threshold(5.0, "pct", _ARIA),
        "duration": TWO_SAMPLES,
    },
    explains=(
        "vsan-net-drops",
        "vsan-client-latency-high",
        "vsan-latency-stddev-high",
        "vsan-oio-high",
        *GUEST_WAITS_FOR_DISK,
    ),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    yield from over_threshold(context, Over("vsan_kernel_ready_pct", "CPU ready time of vSAN's kernel worlds"))
