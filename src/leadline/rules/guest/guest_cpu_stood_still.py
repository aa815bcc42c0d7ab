"""A CPU of the guest stood still for many seconds.

Finds:
    Soft and hard lockups, stalls of RCU and clocks that were read late, in the kernel's log.

Why:
    The kernel expects each CPU to come by every few seconds. In a virtual machine it mostly does not because the
    hypervisor did not let the vCPU run: the host is overcommitted, the VM was moved, stopped for a snapshot or
    suspended. Storage that stands still below the hypervisor stops a VM too. Nothing runs meanwhile, and sessions time
    out.

Do:
    Look at the host in the same seconds: ready and co-stop time of the VM (esxtop), load of the host, snapshots, a
    migration ("vm stopped for" in vmware.log). Reserve CPU for the VM or take vCPUs away where the host has too few.

    Where it is no virtual machine: look for a driver or a machine check in the same log.

When it is wrong:
    A machine that was suspended on purpose logs the same when it wakes. Long output to a serial console, and kernels
    with debugging switched on, make lockups too.

Sources:
    Linux source, kernel/watchdog.c (soft lockup: 20 s), Documentation/RCU/stallwarn.rst (21 s). VMware KB 1009996.
    Judgement: any counts, of medium severity, since the log does not tell who kept the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.units import several
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.kernel_messages import Logged, logged

META = RuleMeta(
    code="GST168",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    causes=("cpu-taken",),
    needs=("guest_cpu_standstills_per_s",),
    thresholds={"warn": Threshold(0.0, "per_s", "Judgement: any, since it takes 20 s and more until it is logged")},
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""

    def says(seen: Logged) -> tuple[str, Severity]:
        times = several(round(seen.count), "message")
        return (
            f"CPUs of {seen.entity.label()} stood still for many seconds ({times} in the kernel's log); in a virtual "
            "machine the hypervisor probably did not let them run",
            META.severity,
        )

    yield from logged(context, "guest_cpu_standstills_per_s", ("cpu-stuck",), says, "standstill")
