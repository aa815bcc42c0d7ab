"""The kernel killed a process because memory had run out.

Finds:
    Messages "Out of memory: Killed process", of the whole machine or of a control group (a container, a service with
    MemoryMax).

Why:
    The kernel kills the process with the most memory, which on a database server is the database. All its sessions end,
    and recovery follows. In the minutes before, the guest reads its own programs from disk again and again, so that
    disks look slow.

Do:
    Look who grew: the table of tasks in the log before the line, or resident memory over time. Lower what the database
    may take (connections times work memory, buffers), move other programs away, or add memory. Give the guest a little
    swap. Set vm.overcommit_memory=2 where PostgreSQL runs.

    Where the limit of a control group was reached: raise MemoryMax or the container's limit; the machine has memory.

When it is wrong:
    A job that is limited on purpose and repeats is no trouble of the database.

Sources:
    Linux source, mm/oom_kill.c. PostgreSQL documentation, "Linux Memory Overcommit".
    Judgement: any counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.kernel_messages import Logged, logged

META = RuleMeta(
    code="GST167",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    causes=("memory-short",),
    needs=("guest_processes_killed_per_s",),
    thresholds={
        "warn": Threshold(0.0, "per_s", "Judgement: any, since the kernel kills only when nothing else is left")
    },
    explains=("guest-swap-activity",),
    clears=False,
)
_OF_GROUP = "control group"


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest; of medium severity where only limits of control groups were reached."""

    def says(seen: Logged) -> tuple[str, Severity]:
        who = sorted({text.partition(" (")[0] for text in seen.texts})
        named = f" {', '.join(who[:3])}{', ...' if len(who) > 3 else ''}" if who else ""
        processes = "" if seen.count <= 1 else f" ({round(seen.count):,} times)"
        named = named or " a process"
        if seen.texts and all(_OF_GROUP in text for text in seen.texts):
            where = "a control group had no memory left"
            return f"The kernel of {seen.entity.label()} killed{named}{processes}: {where}", META.severity.lowered()
        return f"The kernel of {seen.entity.label()} killed{named}{processes}: no memory was left", META.severity

    yield from logged(context, "guest_processes_killed_per_s", ("process-killed",), says, "kill")
