"""A file server did not answer the guest for a time that its kernel's log tells.

Finds:
    Spans from "nfs: server NAME not responding" to "nfs: server NAME OK", or to the end of the log; and SMB servers
    that "has not responded in 180 seconds".

Why:
    Whoever reads or writes a mount of that server waits in the kernel and cannot be killed. The line comes only after
    the repeats of the mount (timeo, retrans: one to three minutes with TCP), so that the wait began before it.

Do:
    Look at the server and the network between in these minutes: load and log of the filer, a failover, dropped packets
    and errors of the switch ports (ip -s link), a firewall that forgot the connection. Check the mount's options
    (nfsstat -m): hard, TCP. nfsiostat 5 shows how long requests take before they fail.

    Where the mount holds only backups or home folders: databases that do not touch it were not hurt.

When it is wrong:
    A server that was taken down on purpose logs the same. Where the log ends before the server is back, the end of the
    log is taken as the end.

Sources:
    Linux source, net/sunrpc/clnt.c (call_timeout, rpc_check_timeout), nfs(5): timeo and retrans.
    Judgement: any span counts, since the line comes after a minute or more without an answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.kernel_messages import Logged, logged
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

META = RuleMeta(
    code="STO194",
    layer=Layer.STORAGE_PATH,
    severity=Severity.CRITICAL,
    causes=("disk-stalled",),
    needs=("file_server_silent_pct",),
    thresholds={"warn": Threshold(0.0, "pct", "Judgement: any, since it is logged after a minute or more")},
    explains=("guest-tasks-stuck", "guest-disk-stalled", *GUEST_AND_DATABASE_WAIT_FOR_DISK),
    clears=False,
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per file server."""

    def says(seen: Logged) -> tuple[str, Severity]:
        guest = seen.entity.parent.name if seen.entity.parent is not None else "the guest"
        lasted = f" for {seen.seconds:,.3g} s" if seen.seconds > 1 else ""  # of one message nothing tells how long
        return f"File server {seen.entity.name} did not answer {guest}{lasted}", META.severity

    events = ("file-server-silent", "file-server-given-up", "file-server-back")
    yield from logged(context, "file_server_silent_pct", events, says, "silence")
