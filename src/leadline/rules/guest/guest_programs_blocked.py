"""A program was blocked, and its stacks say by what.

Finds:
    For each guest the wait of one program that makes up at least 30 % of the time for which programs were blocked by
    something (medium: at least half of it, and 5 s), by offcputime. Waits for work to do do not count, nor those that
    may be a lock or idleness. Less than 1 s is left out.

Why:
    A thread that is not on a CPU cannot work. The function of the kernel in which it sleeps says for what it waits,
    whatever the monitoring calls it: the sync of a log, a read, a slot in the disk's queue, a lock, memory, a CPU.

Do:
    The sync of a file, the disk, its queue: look at the disk (`iostat -x 1`, flush latency). Room for dirty pages:
    lower `vm.dirty_background_bytes`, so that writing back begins earlier. The journal of the file system: put the log
    on a separate file system. A lock: find its holder in the database. Memory: give it more. A CPU: see who uses
    them.

When it is wrong:
    Threads in the background may wait long without anybody noticing, and the times of all threads are added up. Compare
    with the same trace while it is fast.

Sources:
    bcc, tools/offcputime_example.txt. B. Gregg, Off-CPU Analysis.
    Judgement: a third of all blocked time is worth naming; 5 s are more than an accident.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

META = RuleMeta(
    code="GST180",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=("guest.off_cpu_s",),
    thresholds={
        "warn": Threshold(30.0, "pct", "Judgement: a third is worth naming"),
        "crit": Threshold(50.0, "pct", "Judgement: half of it is the first thing to look at"),
        "least": Threshold(1.0, "s", "Judgement: less is felt by nobody"),
        "long": Threshold(5.0, "s", "Judgement: more than an accident"),
    },
    clears=False,
    judgement=True,
)
_NOT_BLOCKED = ("work to do", "a lock or work to do")
_SHOWN = 4


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    for guest in context.inventory.of_kind(EntityKind.GUEST):
        fact = context.inventory.fact(guest, "off_cpu_s")
        if fact is not None:
            yield from _judged(context, guest, fact)


def _judged(context: RuleContext, guest: Entity, fact: Fact) -> Iterator[Finding]:
    waits_s = {name: float(wait) for name, wait in fact.value.items() if not name.endswith(_NOT_BLOCKED)}
    total_s = sum(waits_s.values())
    ordered = sorted(waits_s.items(), key=lambda item: -item[1])
    if not ordered or ordered[0][1] < context.limit("least"):
        return
    name, longest_s = ordered[0]
    share_pct = 100.0 * longest_s / total_s
    if share_pct < context.limit("warn"):
        return
    program, _, reason = name.rpartition(": ")
    is_clear = share_pct >= context.limit("crit") and longest_s >= context.limit("long")
    evidence = [
        Evidence(f"{each}: {show(wait_s, 's')}", entity=guest, value=wait_s, unit="s", source=fact.source)
        for each, wait_s in ordered[:_SHOWN]
    ]
    share = f"{share_pct:.0f} % of all blocked time"
    yield context.finding(
        guest,
        f"{program} was blocked for {show(longest_s, 's')} by its wait for {reason}, {share}",
        evidence,
        severity=META.severity if is_clear else META.severity.lowered(),
        score=share_pct / context.limit("warn"),
    )
