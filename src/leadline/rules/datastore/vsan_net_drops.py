"""The network between vSAN hosts loses packets.

Finds:
    Packet loss, TCP retransmits and errors, drops at the virtual switch's port, or pauses above 1 per mille (low) or 10
    per mille (medium) of the packets of a host's vSAN network for at least 60 s, while it carries 1 MB/s or more where
    throughput was recorded.

Why:
    Every write of vSAN goes over the network to another host. A lost packet is sent again only after a timeout of
    milliseconds to hundreds of milliseconds, so one in a thousand is enough to spoil the latency of all.

Do:
    Clear the hosts' CPU first (vsan-kernel-cpu-ready): a host without CPU drops packets of a sound network. Then look
    at the switch's buffers and port errors, the same MTU on every hop, cabling and transceivers, and firmware and
    driver of the NIC. Use switches with large buffers that ports do not share.

When it is wrong:
    Pauses are flow control at work, a sign of a full buffer rather than loss. A few packets on an idle link make a
    large share: the least throughput filters that.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: when the disk group is well, host network and VMkernel
    are next.
    vSAN Management API reference, VsanPerfStatsUnitType: the unit is per mille.
    Judgement: the limits are starting points. VMware Aria Operations has them in its vSAN contention dashboard.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_any
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

_METRICS = {
    "vsan_net_loss_permille": "vSAN packet loss",
    "vsan_net_retransmit_permille": "vSAN TCP retransmits and errors",
    "vsan_net_port_drops_permille": "vSAN drops at the switch port",
    "vsan_net_pause_permille": "vSAN flow control pauses",
}

META = RuleMeta(
    code="DST109",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    causes=("network-loss",),
    needs=("|".join(_METRICS),),
    uses=("vsan_net_bytes_per_s",),
    thresholds={
        "warn": Threshold(1.0, "permille", "Judgement: a starting point"),
        "crit": Threshold(10.0, "permille", "Judgement: a starting point"),
        "load_min": Threshold(1e6, "bytes_per_s", "Judgement: a share of few packets says nothing"),
        "duration": TWO_SAMPLES,
    },
    explains=("vsan-client-latency-high", "vsan-latency-stddev-high", "vsan-oio-high", *GUEST_WAITS_FOR_DISK),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host or network card; all four kinds are one finding."""
    load = ("vsan_net_bytes_per_s",)
    yield from over_any(context, (Over(metric, noun, load=load) for metric, noun in _METRICS.items()))
