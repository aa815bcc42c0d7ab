"""A file server, or the network to it, answers the requests of a mount late; or the NFS client holds them back.

Finds:
    A time from sending reads or writes of an NFS mount to their answers (RTT) above 10 ms or 25 ms (warning, critical)
    in most samples for at least 15 s, with two requests a second or more. And requests that wait as long in the
    client's queue (exe - RTT), where that is longer than the answer takes.

Why:
    A database on NFS waits for the network and the filer as it waits for a disk. The client counts both parts of each
    request: until it is sent, and until the answer comes. A long answer is the filer's or the network's, a long wait
    before it the client's: it has more requests than it may send at once, or it sends them again.

Do:
    Look at the filer in these minutes: latency of its volume, its cache, other clients, a snapshot or scrub. Measure
    the network alone: ping with the size of a request, dropped packets and errors of the switch ports (ip -s link).
    If ping takes microseconds and RTT milliseconds, the filer is slow.

    Where the client waits: look at the retransmits first, since each costs the time-out of the mount (timeo). Without
    them the client may send too few at once: mount with nconnect=4 or more, raise the slots of a session
    (nfs.max_session_slots) or sunrpc.tcp_max_slot_table_entries, then mount again. Spread files over several mounts.

When it is wrong:
    RTT is a mean of requests of all sizes: 1 MiB takes 9 ms on a network of 1 Gbit/s alone. Writes of the page cache
    wait in the client by the thousand, when a large file is copied; who does not call fsync does not feel it.

Sources:
    nfsiostat(8): avg RTT, avg exe, rpc bklog. nfs(5): timeo, retrans, nconnect.
    Yellow-Bricks esxtop thresholds: 25 ms; EsxtopDrill c_map.csv: 10 ms, as for any other disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Blames, Layer, Severity
from leadline.estate.derived.series import mean_of
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

META = RuleMeta(
    code="STO199",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    accuses=Blames.DEVICE,
    needs=("file_server_rtt_ms_read|file_server_rtt_ms_write",),
    uses=(
        "file_server_rtt_ms_write",
        "file_server_client_wait_ms_read",
        "file_server_client_wait_ms_write",
        "file_server_retransmits_pct",
        "disk_reads_per_s",
        "disk_writes_per_s",
    ),
    thresholds={
        "warn": Threshold(10.0, "ms", "EsxtopDrill c_map.csv"),
        "crit": Threshold(25.0, "ms", "Yellow-Bricks esxtop thresholds"),
        "load_min": Threshold(2.0, "per_s", "Judgement: the mean of a single request tells little"),
        "duration": THREE_SAMPLES,
    },
    explains=GUEST_AND_DATABASE_WAIT_FOR_DISK,
    clears=False,
    examines="disks",
)
_RATES = {"read": "disk_reads_per_s", "write": "disk_writes_per_s"}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per mount: of the server's answers, else of the client's queue; writes only where reads are quick."""
    reported = set()
    for way, rate in _RATES.items():
        spec = Over(f"file_server_rtt_ms_{way}", f"file server's answer time for {way}s", load=(rate,), mostly=True)
        for finding in over_threshold(context, spec):
            if finding.entity not in reported:
                reported.add(finding.entity)
                yield finding
    for way, rate in _RATES.items():
        metric = f"file_server_client_wait_ms_{way}"
        noun = f"time {way}s wait in the NFS client"
        spec = Over(metric, noun, value=_longer_than_the_answer, load=(rate,), mostly=True)
        for finding in over_threshold(context, spec):
            if finding.entity not in reported:
                reported.add(finding.entity)
                yield replace(_with_repeats(context, finding), remedy=context.advice("Where the client waits"))


def _longer_than_the_answer(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """The client's wait [k, n], ms; NaN where the answer took at least as long, or was not measured."""
    waits = group.values.astype(np.float64)
    answers = context.aligned(group, group.metric.replace("client_wait", "rtt"))
    return np.full(waits.shape, np.nan) if answers is None else np.where(waits > answers, waits, np.nan)


def _with_repeats(context: RuleContext, finding: Finding) -> Finding:
    """The finding with the share of requests that were sent again, where there were any."""
    metric = "file_server_retransmits_pct"
    share = mean_of(context, metric, finding.entity, finding.windows)
    if not share:
        return finding
    sent = f"{show(share, 'pct')} of the requests were sent again"
    evidence = Evidence(sent, metric=metric, entity=finding.entity, statistic="mean", value=share, unit="pct")
    return replace(finding, summary=f"{finding.summary}; {sent}", evidence=(*finding.evidence, evidence))
