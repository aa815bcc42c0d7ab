"""Tasks stood still in the kernel for more than two minutes.

Finds:
    Messages "task NAME blocked for more than 120 seconds" of the kernel. Of high severity where a call trace shows that
    one of the tasks waits for a disk; of low severity where all wait for a file server, for a lock, or for what cannot
    be told.

Why:
    Such a task cannot even be killed. The kernel only logs it after 120 s: a disk, a file server or a lock did not
    answer for that long. Tasks that wait for a lock mostly wait for another one that waits for the disk.

Do:
    Look for the disk: I/O errors, timeouts and aborts in the same log, latency and queue of each disk (iostat -x 1) and
    what the hypervisor says of it. Where the trace names nfs_ or rpc_, look for the file server. Record the stacks
    while it lasts: echo w > /proc/sysrq-trigger.

    Where much memory is written back at once (dirty pages, a backup): lower vm.dirty_bytes.

When it is wrong:
    A task may be idle by design: kernel threads of some drivers, tasks of a frozen or suspended machine. The kernel
    stops after ten such messages (kernel.hung_task_warnings): later ones are missing.

Sources:
    Linux source, kernel/hung_task.c; Documentation/admin-guide/sysctl/kernel.rst: hung_task_timeout_secs, 120.
    Judgement: what a task waits for is read from the names of the functions in its trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.units import several
from leadline.core.model.vocabulary import Blames, Layer, Severity
from leadline.rules._families.kernel_messages import Logged, logged

META = RuleMeta(
    code="GST165",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    causes=("disk-stalled",),
    needs=("guest_stuck_tasks_count",),
    uses=("guest_stuck_on_disk_tasks_count",),
    thresholds={"warn": Threshold(0.0, "count", "Linux source, kernel/hung_task.c: logged after 120 s")},
    explains=("guest-blocked-processes", "guest-load-average-per-core"),
    accuses=Blames.SOME_DISK,
    clears=False,
    is_wait=True,
)
_KINDS = ("task-stuck-disk", "task-stuck", "task-stuck-lock", "task-stuck-server")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    of_disks = {finding.entity: finding for finding in _findings(context, of_disks=True)}
    for finding in _findings(context, of_disks=False):
        of_disk = of_disks.get(finding.entity)
        yield replace(finding, severity=Severity.LOW) if of_disk is None else of_disk


def _findings(context: RuleContext, *, of_disks: bool) -> Iterator[Finding]:
    def says(seen: Logged) -> tuple[str, Severity]:
        who = sorted({text.partition(" (")[0] for text in seen.texts if not of_disks or " for a disk" in text})
        named = f" ({', '.join(who[:3])}{', ...' if len(who) > 3 else ''})" if who else ""
        tasks = several(round(seen.count), "task")
        waiting = ", waiting for a disk" if of_disks else ""
        summary = f"{tasks} of {seen.entity.label()}{named} stood still in the kernel for over 2 minutes{waiting}"
        return summary, META.severity

    metric = "guest_stuck_on_disk_tasks_count" if of_disks else "guest_stuck_tasks_count"
    yield from logged(context, metric, _KINDS, says, "stuck tasks")
