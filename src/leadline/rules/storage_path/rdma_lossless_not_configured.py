"""RDMA over Converged Ethernet runs on a network that may lose packets.

Finds:
    Network cards that use RoCE where neither priority flow control nor congestion notification is set up.

Why:
    RoCE has no quick way to repair a loss: the card sends everything since the lost packet again, or gives up the
    connection. Storage traffic then stalls for milliseconds under just that load RDMA was bought for.

Do:
    Set up priority flow control or ECN (DCQCN) for the storage class at every card and switch port of the path, with
    the card maker's current driver and firmware; on Windows inbox drivers lack Network Direct. Then test latency and
    bandwidth with ib_send_lat and ib_write_bw, or rPerf, under load.

When it is wrong:
    Cards with selective repeat tolerate some loss, and a direct cable between two hosts loses nothing. iWARP runs over
    TCP and needs no such network.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: rPerf needs Network Direct and lossless RDMA, and the
    maker's drivers.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="STO149",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    needs=("nic.rdma", "nic.rdma_lossless"),
    clears=False,  # a lossless network says nothing about the storage behind it
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per network card."""

    def judge(nic: Entity, fact: Fact) -> tuple[str, Severity] | None:
        protocol = str(context.inventory.get(nic, "rdma") or "").casefold()
        if fact.value is not False or not protocol.startswith("roce"):
            return None
        return f"{nic.label()} uses {protocol} without flow control or congestion notification", META.severity

    yield from by_setting(context, EntityKind.NIC, "rdma_lossless", judge, ("rdma",))
