"""TCP sends many segments again: packets are lost on the way between the machine and its clients.

Finds:
    1 % or more of the segments that the machine's connections send were sent before, for 5 s or more in sum, and ten a
    second or more segments in all. Medium severity.

Why:
    A lost segment is sent again after a round trip at best, after 200 ms or more where nothing follows it, and each
    further loss doubles that. A transaction of a few messages then takes hundreds of milliseconds, while the server,
    its disks and its network card are idle. A link that is too narrow loses what does not fit its queue.

Do:
    Look at drops and errors of every port on the way: the network card, the virtual switch, uplinks, physical
    switches, firewalls. Compare both directions with iperf3, and the path's packet size with `ping -M do -s 8972`.
    Then fewer ways: statements in one batch, procedures, a pool nearby.

When it is wrong:
    Segments that only overtake each other are sent again too (reordering over several links); then DSACKs come back and
    nothing was lost. A backup or a replica far away may lose segments that the clients do not: look at which
    connections have a growing `retrans`.

Sources:
    ss(8); RFC 6298 (retransmission timer, 1 s at first, doubled), RFC 8985 (RACK).
    Judgement: below 1 % a connection over a local network is hardly slowed; 5 s is what a user calls a standstill.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows, sample_bounds
from leadline.estate.language.templates import SCORE_MAX
from leadline.rules._families.changes import LONGER_TRANSACTIONS

_GAP_S = 5.0  # Judgement: losses a few seconds apart are one trouble

META = RuleMeta(
    code="NET143",
    layer=Layer.NETWORK,
    severity=Severity.MEDIUM,
    needs=("net_tcp_retransmits_per_s",),
    uses=("net_tcp_segments_per_s",),
    thresholds={
        "share": Threshold(1.0, "pct", "Judgement: less is hardly felt over a local network"),
        "least": Threshold(10.0, "per_s", "Judgement: of fewer segments one that is lost is many per cent"),
        "duration": Threshold(5.0, "s", "Judgement: what a user calls a standstill"),
    },
    explains=(*LONGER_TRANSACTIONS, "db-transactions-held-open", "net-time-outside-server", "net-client-server-wait"),
    clears=False,
    causes=("network-loss", "network-narrow"),
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    for group in context.of("net_tcp_retransmits_per_s", EntityKind.GUEST):
        sent = context.aligned(group, "net_tcp_segments_per_s")
        if sent is None:
            continue
        starts, ends = sample_bounds(group)
        for entity, again, all_sent in zip(group.entities, group.values, sent, strict=True):
            with np.errstate(invalid="ignore", divide="ignore"):
                share = np.where(all_sent >= context.limit("least"), 100.0 * again / all_sent, np.nan)
                lossy = np.flatnonzero(share >= context.limit("share"))
            if (ends - starts)[lossy].sum() / 1e9 < context.limit("duration"):
                continue
            median = float(np.median(share[lossy]))
            evidence = Evidence(
                f"{show(median, 'pct')} of the segments sent again, peak {show(float(share[lossy].max()), 'pct')}, of "
                f"{show(float(np.median(all_sent[lossy])), 'per_s')}",
                metric=group.metric,
                entity=entity,
                statistic="median",
                value=float(np.median(again[lossy])),
                unit="per_s",
                source=context.source_name(group),
            )
            windows = [Window(int(starts[place]), int(ends[place])) for place in lossy]
            yield context.finding(
                entity,
                f"{entity.label()} sends {show(median, 'pct')} of its TCP segments again",
                [evidence],
                windows=joined_windows(windows, _GAP_S),
                score=min(median / context.limit("share"), SCORE_MAX),
            )
