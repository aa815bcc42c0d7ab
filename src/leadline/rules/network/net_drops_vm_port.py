"""A VM's port on the virtual switch drops packets.

Finds:
    Received or outbound packets dropped at a VM's port, above 0 % (medium) or 1 % (high) for at least 15 s, while the
    port passes at least 100 packets per second.

Why:
    Dropped packets are sent again after a timeout: a query that takes 1 ms then takes 200 ms, and replication falls
    behind. Received packets are dropped when the guest does not fetch them in time, because its receive ring is small
    or because its vCPUs wait for a core.

Do:
    Rule out CPU contention first (cpu-ready-high, cpu-costop-high). Then raise the receive ring and the number of
    queues of the vmxnet3 adapter in the guest, check traffic shaping on the port group, and look at the uplink.

When it is wrong:
    Multicast and broadcast that no one in the guest asked for may be counted as dropped. A nearly silent port shows
    large percentages for single packets; the least packet rate leaves it out.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): look at received and
    transmitted drops, rule out CPU first. Broadcom KB 312565: where such packets are dropped, and why.
    Yellow-Bricks esxtop thresholds and EsxtopDrill c_map.csv: anything above 0; 1 % critical.
    Judgement: 100 packets/s, so that one dropped packet is not a percentage; 15 s is three samples of esxtop.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_any
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="NET101",
    layer=Layer.NETWORK,
    severity=Severity.HIGH,
    causes=("network-loss",),
    needs=("net_rx_dropped_pct|net_tx_dropped_pct",),
    uses=("net_rx_packets_per_s", "net_tx_packets_per_s"),
    thresholds={
        "warn": Threshold(0.0, "pct", "Yellow-Bricks esxtop thresholds"),
        "crit": Threshold(1.0, "pct", "EsxtopDrill c_map.csv"),
        "load_min": Threshold(100.0, "per_s", "Judgement: below it a single packet is a percentage"),
        "duration": THREE_SAMPLES,
    },
    clears_with=("net_tcp_rtt_us",),
)


def _of_vm(context: RuleContext, port: Entity) -> bool:
    del context
    return port.ancestor(EntityKind.VM) is not None


_PACKETS = ("net_rx_packets_per_s", "net_tx_packets_per_s")
_SPECS = (
    Over("net_rx_dropped_pct", "dropped received packets", (EntityKind.PORT,), load=_PACKETS, keep=_of_vm),
    Over("net_tx_dropped_pct", "dropped outbound packets", (EntityKind.PORT,), load=_PACKETS, keep=_of_vm),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per port that belongs to a VM; both directions in one."""
    yield from over_any(context, _SPECS)
