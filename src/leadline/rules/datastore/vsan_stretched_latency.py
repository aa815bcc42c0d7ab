"""The links between the sites of a stretched vSAN cluster are too slow.

Finds:
    Round trips between data sites above 5 ms (medium) or 10 ms (high); to the witness above 200 ms, 100 ms from 11
    hosts per site on, 500 ms for two hosts (medium); less than 10 Gbit/s between data sites, less than the write
    throughput of its VMs needs, or less than 2 Mbit/s per 1000 components to the witness (medium).

Why:
    In a stretched cluster a write is finished when the other site has it: the round trip is in every commit. A link
    that is full delays all writes, and a rebuild after an outage fills it.

Do:
    Fix the route or the link, reserve bandwidth for vSAN, or keep the copies of the databases in one site (site
    affinity) and let the database replicate. Bandwidth needed: write throughput x 1.4 for data and metadata x 1.25 for
    resync.

When it is wrong:
    Round trips must be measured with the packet size and priority of vSAN traffic. The need for bandwidth counts the
    peak of writes the inventory gives.

Sources:
    vSAN Stretched Cluster Bandwidth Sizing: formula and limits of round trip and bandwidth.
    vmgu.ru articles on vSphere, vSAN and StarWind performance: the latency between sites dominates.
    Judgement: the factors 1.4 and 1.25 are known, not read again.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import hosts_of

_SOURCE = "vSAN Stretched Cluster Bandwidth Sizing"
_KNOWN = "Judgement: known of vSAN Stretched Cluster Bandwidth Sizing, not read again"

META = RuleMeta(
    code="DST142",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    catalogue=("vsan-stretched-bandwidth",),
    needs=(
        "cluster.site_round_trip_ms|cluster.site_bandwidth_mbit_per_s|cluster.witness_round_trip_ms"
        "|cluster.witness_bandwidth_mbit_per_s",
    ),
    thresholds={
        "warn": Threshold(5.0, "ms", _SOURCE),
        "crit": Threshold(10.0, "ms", _SOURCE),
        "witness": Threshold(200.0, "ms", _SOURCE),
        "witness_large": Threshold(100.0, "ms", _SOURCE),
        "witness_two_hosts": Threshold(500.0, "ms", _SOURCE),
        "large": Threshold(20.0, "count", f"{_SOURCE}: more than 10 hosts per site"),
        "bandwidth_min": Threshold(10_000.0, "mbit_per_s", _SOURCE),
        "witness_bandwidth_min": Threshold(2.0, "mbit_per_s", f"{_SOURCE}: per 1000 components"),
        "data_factor": Threshold(1.4, "ratio", _KNOWN),
        "resync_factor": Threshold(1.25, "ratio", _KNOWN),
    },
    clears=False,
)
_TWO_HOSTS = 2
_MBIT_PER_MIB = 8.0 * 1024**2 / 1e6
_PER_COMPONENTS = 1000.0

Complaint = tuple[Severity, str, float, float, str]


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per cluster with all that is wrong; the worst gives the severity."""
    for cluster in context.inventory.of_kind(EntityKind.CLUSTER):
        complaints = [*_round_trips(context, cluster), *_bandwidths(context, cluster)]
        if not complaints:
            continue
        evidence = [
            Evidence(statement, entity=cluster, value=value, threshold=limit, unit=unit)
            for _, statement, value, limit, unit in complaints
        ]
        worst = max(complaints, key=_severity)
        yield context.finding(cluster, f"{cluster.label()}: {worst[1]}", evidence, severity=worst[0])


def _round_trips(context: RuleContext, cluster: Entity) -> Iterator[Complaint]:
    inventory, severity = context.inventory, context.meta.severity
    sites = inventory.get(cluster, "site_round_trip_ms")
    warn, crit = context.limit("warn"), context.limit("crit")
    if sites is not None and sites > warn:
        statement = f"round trip between sites {sites:g} ms (limit {warn:g} ms)"
        yield severity if sites > crit else severity.lowered(), statement, float(sites), warn, "ms"
    witness = inventory.get(cluster, "witness_round_trip_ms")
    limit = context.limit(_witness_limit(context, cluster))
    if witness is not None and witness > limit:
        statement = f"round trip to the witness {witness:g} ms (limit {limit:g} ms)"
        yield severity.lowered(), statement, float(witness), limit, "ms"


def _witness_limit(context: RuleContext, cluster: Entity) -> str:
    count = context.inventory.get(cluster, "host_count") or len(hosts_of(context.inventory, cluster))
    if count == _TWO_HOSTS:
        return "witness_two_hosts"
    return "witness_large" if count > context.limit("large") else "witness"


def _bandwidths(context: RuleContext, cluster: Entity) -> Iterator[Complaint]:
    inventory = context.inventory
    mild = context.meta.severity.lowered()
    writes = inventory.get(cluster, "vsan_write_mib_per_s") or 0.0
    wanted = writes * _MBIT_PER_MIB * context.limit("data_factor") * context.limit("resync_factor")
    components = inventory.get(cluster, "vsan_component_count")
    needs = {"site_bandwidth_mbit_per_s": ("sites", max(context.limit("bandwidth_min"), wanted))}
    if components is not None:
        least = context.limit("witness_bandwidth_min") * components / _PER_COMPONENTS
        needs["witness_bandwidth_mbit_per_s"] = ("site and witness", least)
    for setting, (ends, least) in needs.items():
        bandwidth = inventory.get(cluster, setting)
        if bandwidth is not None and bandwidth < least:
            statement = f"bandwidth between {ends} {bandwidth:g} Mbit/s, {least:.0f} are needed"
            yield mild, statement, float(bandwidth), least, "mbit_per_s"


def _severity(complaint: Complaint) -> Severity:
    return complaint[0]
