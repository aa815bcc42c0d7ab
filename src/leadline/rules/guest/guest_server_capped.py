"""The database server waits for a CPU while CPUs are idle: a limit holds it back.

Finds:
    A process of a database server that waits for a CPU for at least a quarter of a sample, in a fifth of the samples,
    three times as long as it runs, while all programs together use less than three quarters of the machine's CPUs.

Why:
    A process that could run on an idle CPU and does not is held back by a limit: cpu.max of its control group, a
    container's CPU limit, a quota. A server that is stopped again and again takes longer for all it does: what it
    measures of its reads, log writes and locks has the pauses in it, while the disks answer as ever.

Do:
    Read cpu.stat of the server's control group (nr_throttled, throttled_usec) and raise cpu.max, or the container's CPU
    limit, to what it needs at its busiest.

When it is wrong:
    Programs that are pinned to a busy CPU (taskset, cpusets) wait for that one; CPUs of virtual machines that are
    stolen look idle from within.

Sources:
    pidstat(1), %wait; Linux Documentation/admin-guide/cgroup-v2.rst, cpu.max.
    Judgement: a quarter of the time is felt in every answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.capped_programs import NEEDS, THRESHOLDS, USES, capped_program
from leadline.rules._families.programs import DATABASES
from leadline.rules._families.symptoms import DATABASE_WAITS_FOR_DISK

META = RuleMeta(
    code="GST160",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=NEEDS,
    uses=USES,
    thresholds=THRESHOLDS,
    explains=(
        *("db-transactions-held-open", "db-lock-waits", "net-time-outside-server", "net-client-server-wait"),
        *DATABASE_WAITS_FOR_DISK,
    ),
    examines="programs",
    causes=("cpu-capped",),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the guest; the process that waits most is named."""
    finding = capped_program(context, lambda name: DATABASES.match(name) is not None)
    if finding is not None:
        yield finding
