"""The time passes between the clients and the server: everything in the server is idle, and less is sent.

Finds:
    Fewer than half of the transactions end, and no more than half of what was usual is sent over the network, while the
    CPUs are used less than half as much (0.6), the database reads and writes less (0.7), the disks are less busy
    (0.9), and a transaction costs the server what it cost before.

Why:
    When each transaction costs the server the same and the server has less of everything to do, it waits for its
    clients: each message of a transaction takes longer on its way, or the clients ask later. A transaction of thirty
    statements waits thirty times.

Do:
    Measure the way itself from the application's machine: ping, `ss -ti` (rtt, retrans), iperf3; look at drops and
    errors of ports and switches between them. Then fewer ways: statements in one batch, procedures, a pool nearby.

When it is wrong:
    Clients that stopped asking (a deployment, a stopped queue) look the same, but then no transaction takes longer.

Sources:
    Little's law; ss(8).
    Judgement: half of the transactions is an incident; the shares of CPU and disk leave room for background work.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.rules._families.changes import LONGER_TRANSACTIONS, changed, cpu_used, ratio, shown, throughput

META = RuleMeta(
    code="NET142",
    layer=Layer.NETWORK,
    severity=Severity.HIGH,
    needs=("db_tps|db_qps", "net_tx_mbit_per_s", "guest_cpu_busy_pct|guest_cpu_user_pct"),
    uses=("guest_cpu_system_pct", "db_page_reads_per_s", "db_page_writes_per_s", "guest_disk_util_pct"),
    thresholds={
        "done": Threshold(0.5, "ratio", "Judgement: half of the transactions lost is an incident"),
        "sent": Threshold(0.5, "ratio", "Judgement: as many messages fewer as transactions"),
        "cpu": Threshold(0.6, "ratio", "Judgement: leaves room for background work"),
        "pages": Threshold(0.7, "ratio", "Judgement: leaves room for background work"),
        "disk": Threshold(0.9, "ratio", "Judgement: leaves room for background work"),
    },
    explains=(*LONGER_TRANSACTIONS, "db-transactions-held-open"),
    clears=False,
    causes=("network-latency", "network-loss", "network-narrow", "client-slow"),
    of_incident=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the interface that sends most."""
    done, sent, cpu = throughput(context), context.change("net_tx_mbit_per_s"), cpu_used(context)
    if done is None or sent is None or cpu is None:
        return
    reads, writes = context.change("db_page_reads_per_s"), context.change("db_page_writes_per_s")
    disk = context.change("guest_disk_util_pct", EntityKind.BLOCK_DEVICE)
    limited = ((done, "done"), (sent, "sent"), (cpu, "cpu"), (reads, "pages"), (writes, "pages"), (disk, "disk"))
    if all(change is None or ratio(change) < context.limit(limit) for change, limit in limited):
        summary = f"The server waits for its clients: {shown(sent)} sent, and all it does became less"
        yield changed(context, sent.entity, summary, (sent, done, cpu, reads, writes, disk))
