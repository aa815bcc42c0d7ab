"""FC, iSCSI, NFS and NVMe over fabrics side by side.

Answers:
    How many cores of a host the operations of its VMs take with each storage protocol, how many requests are then
    outstanding, what of it was measured and when, and from which vSphere on there is the protocol.

Method:
    Cores = operations per second x CPU of an operation over FC x what the protocol takes of FC's. Latency = that over
    FC x what the protocol has of FC's; requests outstanding = operations x latency (Little's law). Where a range was
    published its upper end counts. A protocol without a published figure is shown as not known, not as FC.

Assumptions:
    CPU grows with operations, not with their size. The figures of CPU are of 2008, with 1 Gbit/s Ethernet and ESX 3.5:
    adapters with offloads and later stacks take less, so they are an upper end. 10 us of CPU for an operation over FC
    is a judgement. From a recording:
    the operations of the busiest host's devices (95th percentile) and the latency below the hypervisor.

Bends:
    A version that does not have a protocol. Figures that are not of the versions planned for.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): FC has the least latency.
    VMware, "Comparison of storage protocol performance", ESX 3.5 (2008): FC is first in throughput, latency and CPU;
    iSCSI and NFS reach wire speed too. NetApp TR-3697 (2008), after blog.scottlowe.org: software iSCSI takes 40 to 80 %
    more CPU than FC, NFS less than iSCSI, both have 9 to 10 % less throughput. NetApp TR-3916, vSphere 4.1 (2011),
    after dasher.com: latency within 4 % of FC. blocksandfiles.com, NVMe-oF (2022): TCP adds 80 to 100 us to RDMA.
    vSphere 7.0 and 7.0 U3 release notes: NVMe over FC and RDMA, then over TCP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

from pydantic import Field, field_validator

from leadline.core.contracts.planner import Bend, Figure, Plan, PlanContext, PlanInput, PlannerMeta, Sheet
from leadline.core.model.versions import vsphere_version
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.recorded_loads import (
    OPERATIONS,
    RecordedInput,
    by_owner,
    device_latency,
    filled,
    of_each,
    series_of,
)

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture

LITTLE = "Little 1961"
CPU_2008, LATENCY_2011 = "NetApp TR-3697 (2008)", "NetApp TR-3916 (2011)"
FABRICS = "blocksandfiles.com, NVMe-oF (2022)"

META = PlannerMeta(
    about="FC, iSCSI, NFS and NVMe over fabrics side by side: cores, latency, since when.",
    example={"iops": 50_000.0, "latency_ms": 0.5},
    reads="operations and latency of hosts' devices",
    grows=(("iops", "cores over FC"), ("iops", "cores over software iSCSI"), ("latency_ms", "outstanding over FC")),
)


class Protocols(PlanInput):
    """What a host's VMs do, and what an operation takes."""

    iops: Annotated[float, Field(gt=0, le=1e8, description="Operations per second of a host's VMs at peak.")] = 50_000.0
    latency_ms: Annotated[float, Field(gt=0, le=1e4, description="Latency over FC, ms: adapter, fabric and array.")] = (
        0.5
    )
    fc_cpu_us: Annotated[
        float, Field(gt=0, le=1e4, description="CPU of an operation over FC on the host, us; measure yours.")
    ] = 10.0
    version: Annotated[str, Field(description="vSphere version, as 7.0U3.")] = "8.0"

    @field_validator("version", mode="before")
    @classmethod
    def _is_version(cls, given: object) -> object:
        """Return a version as people write it; YAML takes 8.0 for a number."""
        text = str(given) if isinstance(given, int | float) and not isinstance(given, bool) else given
        if isinstance(text, str) and vsphere_version(text) is None:
            message = f"{text!r} is no version as 6.7U3, 7.0 U3 or 8.0"
            raise ValueError(message)
        return text


MODEL = Protocols


@dataclass(frozen=True, slots=True)
class StorageProtocol:
    """A protocol: CPU and latency by those of FC, None where not published, and since which vSphere it is there."""

    name: str
    cpu_times: float | None
    latency_times: float | None
    since: str
    source: str


PROTOCOLS = (
    StorageProtocol("FC", 1.0, 1.0, "", "the others are compared with it"),
    StorageProtocol("software iSCSI", 1.8, 1.04, "", f"{CPU_2008}; {LATENCY_2011}"),
    StorageProtocol("NFS", 1.8, 1.04, "", f"less CPU than iSCSI, {CPU_2008}; {LATENCY_2011}"),
    StorageProtocol("NVMe over FC", None, None, "7.0", "no figure"),
    StorageProtocol("NVMe over RDMA", None, None, "7.0", "no figure"),
    StorageProtocol("NVMe over TCP", None, None, "7.0U3", f"80 to 100 us more than RDMA, {FABRICS}"),
)


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return cores and outstanding requests of each protocol, and what of it was measured when."""
    inputs, evidence = _known(cast("Protocols", inputs), context.capture)  # read with MODEL
    fc, iscsi = cores(inputs, PROTOCOLS[0]), cores(inputs, PROTOCOLS[1])
    figures = []
    for protocol in PROTOCOLS:
        if protocol.cpu_times is None or protocol.latency_times is None:
            continue
        arithmetic = f"{inputs.iops:,.0f} x {inputs.fc_cpu_us:g} us x {protocol.cpu_times:g}"
        used = round(cores(inputs, protocol), 3)
        figures.append(Figure(f"cores over {protocol.name}", used, "cores", arithmetic, CPU_2008))
        latency = inputs.latency_ms * protocol.latency_times
        waiting, arithmetic = round(inputs.iops * latency / 1000.0, 1), f"{inputs.iops:,.0f} x {latency:.4g} ms"
        figures.append(Figure(f"outstanding over {protocol.name}", waiting, "requests", arithmetic, LITTLE))
    return Plan(
        headline=f"Software iSCSI takes up to {iscsi:.3g} cores where FC takes {fc:.3g}, by figures of 2008; their "
        "latency differed by 4 % at most in 2011.",
        figures=tuple(figures),
        sheets=(_sheet(inputs),),
        assumptions=("FC's adapter does in hardware what software iSCSI and NFS do on the host's cores.",),
        bends=tuple(_bends(inputs)),
        evidence=evidence,
    )


def _known(inputs: Protocols, capture: Capture | None) -> tuple[Protocols, tuple[str, ...]]:
    """Return the inputs completed from a recording: operations of the busiest host's devices, and their latency."""
    if capture is None:
        return inputs, ()
    groups = series_of(capture, OPERATIONS, EntityKind.DEVICE)
    loads = of_each(capture, by_owner(groups, lambda device: device.ancestor(EntityKind.HOST)))
    values = []
    if loads:
        host = max(loads, key=lambda one: (loads[one].peak, str(one)))
        values.append(RecordedInput("iops", loads[host].peak, f"{host.label()}, {loads[host].origin}"))
    below = device_latency(capture)
    if below is not None and below.mean > 0:
        values.append(RecordedInput("latency_ms", below.mean, f"average of {below.origin}"))
    return filled(inputs, values)


def cores(inputs: Protocols, protocol: StorageProtocol) -> float:
    """Return the cores of a host that a protocol takes; 0 where no figure was published."""
    return inputs.iops * inputs.fc_cpu_us * (protocol.cpu_times or 0.0) / 1e6


def _sheet(inputs: Protocols) -> Sheet:
    rows = tuple(
        (
            protocol.name,
            "not known" if protocol.cpu_times is None else f"{cores(inputs, protocol):.3g}",
            "not known" if protocol.latency_times is None else f"{inputs.latency_ms * protocol.latency_times:.3g}",
            protocol.since or "all",
            protocol.source,
        )
        for protocol in PROTOCOLS
    )
    return Sheet("Protocols", ("protocol", "cores", "ms", "vSphere", "by"), rows)


def _bends(inputs: Protocols) -> list[Bend]:
    release = vsphere_version(inputs.version) or (0, 0, 0)
    missing = [one.name for one in PROTOCOLS if one.since and release < (vsphere_version(one.since) or (0, 0, 0))]
    bends = [Bend("figures are of your versions", "CPU is of ESX 3.5 with 1 Gbit/s: measure yours", CPU_2008)]
    if missing:
        bends.append(Bend("the version has the protocol", f"{inputs.version} has no {', '.join(missing)}"))
    return bends
