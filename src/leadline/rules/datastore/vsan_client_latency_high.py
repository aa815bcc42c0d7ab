"""VMs wait long for vSAN.

Finds:
    Read or write latency as vSAN's clients, the VMs, see it above 10 ms (warning) or 20 ms (critical) for at least
    60 s; on rotating capacity disks above 30 ms or 60 ms. Writes count from 5 ms where a disk with the role WAL lies on
    that vSAN. Only samples with 50 or more operations per second count, where the rate was recorded.

Why:
    This is the latency the guest gets: network, remote copies, cache and capacity tier together. A write is finished
    when every copy has it, so the slowest host of the cluster is in every commit.

Do:
    Go down in order: the guest's own load, the cluster, the host, the disk group, then network and kernel. Compare
    with the latency of the backend: if the backend is quick, the network or a limit adds the rest. Findings of
    congestion, device latency, resync, loss or CPU on the same hosts name the cause.

When it is wrong:
    Latency follows block size: backups and scans with 512 KiB requests are slow and well. An IOPS limit makes latency
    that is none (vsan-iops-limit-latency-artifact). Whether the capacity tier is rotating is taken from the inventory.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: latency at the guest is the symptom to start from, read
    by block size and pattern.
    VMware Aria Operations, vSAN contention dashboard, and RVC vSAN Observer graphs.js: limits.
    Judgement: on rotating disks critical is twice the warning, as on flash; 60 s is two samples of 30 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.derived import Recorded, Upkeep, derived
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.derived.series import mean_of
from leadline.estate.knowledge.vsan import capacity_medium, cluster_of, database_disks
from leadline.estate.language.templates import Over, over_any
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

_SOURCE = "VMware Aria Operations vSAN contention dashboard; RVC vSAN Observer graphs.js"

# What the same operations took further down.
_BELOW = {
    "vsan_backend_latency_us_read": "reads of the backend",
    "vsan_backend_latency_us_write": "writes of the backend",
    "vsan_net_rdt_latency_us": "vSAN's own transport (RDT)",
}

META = RuleMeta(
    code="DST102",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    needs=("vsan_client_latency_us_read|vsan_client_latency_us_write",),
    uses=("vsan_client_iops", *_BELOW),
    thresholds={
        "warn": Threshold(10_000.0, "us", _SOURCE),
        "crit": Threshold(20_000.0, "us", _SOURCE),
        "warn_log": Threshold(5_000.0, "us", _SOURCE),
        "warn_hybrid": Threshold(30_000.0, "us", _SOURCE),
        "crit_hybrid": Threshold(60_000.0, "us", "Judgement: twice the warning, as on flash"),
        "load_min": Threshold(50.0, "per_s", "Judgement: an average of few operations says nothing"),
        "duration": TWO_SAMPLES,
    },
    explains=("vsan-oio-high", *GUEST_WAITS_FOR_DISK),
    examines="disks",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster and host; reads and writes are one finding."""
    inventory = context.inventory

    def hybrid(_: RuleContext, entity: Entity) -> bool:
        return capacity_medium(inventory, entity) == "hdd"

    def quick(_: RuleContext, entity: Entity) -> bool:
        return not hybrid(context, entity)

    def with_log(_: RuleContext, entity: Entity) -> bool:
        return quick(context, entity) and (cluster_of(inventory, entity) or entity) in context.table(_with_logs)

    def without_log(_: RuleContext, entity: Entity) -> bool:
        return quick(context, entity) and not with_log(context, entity)

    load = ("vsan_client_iops",)
    read, write = "vsan_client_latency_us_read", "vsan_client_latency_us_write"
    reads, writes = "read latency of vSAN", "write latency of vSAN"
    rotating = Over(read, reads, load=load, keep=hybrid, warn="warn_hybrid", crit="crit_hybrid")
    findings = over_any(
        context,
        (
            Over(read, reads, load=load, keep=quick),
            rotating,
            Over(write, writes, load=load, keep=without_log),
            Over(write, writes, load=load, keep=with_log, warn="warn_log"),
            replace(rotating, metric=write, noun=writes),
        ),
    )
    for finding in findings:
        yield replace(finding, evidence=(*finding.evidence, *_below(context, finding)))


@derived(upkeep=Upkeep.WHOLE)
def _with_logs(reader: Recorded) -> frozenset[Entity]:
    """The clusters, and hosts without one, on whose vSAN a database has its log."""
    inventory = reader.inventory
    owners = {cluster_of(inventory, host) or host for host in inventory.of_kind(EntityKind.HOST)}
    owners.update(inventory.of_kind(EntityKind.CLUSTER))
    return frozenset(owner for owner in owners if database_disks(inventory, owner, Role.WAL))


def _below(context: RuleContext, finding: Finding) -> Iterator[Evidence]:
    """How long backend and network of the same entity took over the windows of a finding, where it was recorded."""
    for metric, noun in _BELOW.items():
        mean = mean_of(context, metric, finding.entity, finding.windows)
        if mean is not None:
            statement = f"{noun} took {show(mean, 'us')} on average meanwhile"
            yield Evidence(statement, metric=metric, entity=finding.entity, statistic="mean", value=mean, unit="us")
