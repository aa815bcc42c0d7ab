"""Inputs of the planner ``cpu``."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from leadline.core.contracts.planner import STRICT, PlanInput


class Other(BaseModel):
    """Another machine of the cluster."""

    model_config = STRICT

    name: str
    vcpus: Annotated[int, Field(ge=1, le=1024)]
    memory_gib: Annotated[float, Field(gt=0)] = 16.0
    apart: str = ""


class Cpu(PlanInput):
    """A database machine, how it grows, and the hosts."""

    used_cores: Annotated[float, Field(gt=0, le=1024, description="Cores busy at peak today.")] = 6.08
    load: Annotated[float, Field(gt=0, description="Load expected, times today's.")] = 1.0
    months: Annotated[int, Field(ge=0, le=240, description="Months until that load.")] = 12
    start: Annotated[date | None, Field(description="Date of today's load, for dates in the answer.")] = None
    target_pct: Annotated[float, Field(gt=0, le=100, description="Use of the vCPUs at peak, percent.")] = 80.0
    vcpus: Annotated[int | None, Field(ge=1, le=1024, description="vCPUs given; none to have them sized.")] = None
    memory_gib: Annotated[float, Field(gt=0, description="Memory of the machine, GiB.")] = 64.0
    buffers_gib: Annotated[float, Field(ge=0, description="Database buffers in huge pages, GiB.")] = 0.0
    machines: Annotated[int, Field(ge=1, le=200, description="Such machines.")] = 1
    apart: Annotated[bool, Field(description="No two of them on one host (replicas of each other).")] = False
    others: Annotated[
        tuple[Other, ...], Field(description="Other machines: name, vcpus, memory_gib, apart (a group's name).")
    ] = ()
    hosts: Annotated[int, Field(ge=1, le=64, description="Hosts.")] = 2
    spare_hosts: Annotated[int, Field(ge=0, le=8, description="Hosts that may fail.")] = 1
    sockets: Annotated[int, Field(ge=1, le=8, description="Sockets of a host.")] = 2
    socket_cores: Annotated[int, Field(ge=1, le=512, description="Physical cores of a socket.")] = 12
    socket_nodes: Annotated[
        Literal[1, 2, 4], Field(description="NUMA nodes of a socket: AMD with NPS2 or NPS4 has several.")
    ] = 1
    threads: Annotated[Literal[1, 2], Field(description="Threads of a core.")] = 2
    core_mhz: Annotated[int, Field(ge=100, description="Clock of a core, MHz.")] = 2600
    host_memory_gib: Annotated[float, Field(gt=0, description="Memory of a host, GiB.")] = 256.0
    host_own_gib: Annotated[float, Field(ge=0, description="Memory the hypervisor needs, GiB.")] = 0.0
    overhead_pct: Annotated[
        float, Field(ge=0, le=100, description="Hypervisor's own CPU for the machines, percent of theirs.")
    ] = 5.0
    storage_cores: Annotated[
        int, Field(ge=0, description="Cores of a host kept for hyperconverged storage, beside the machines.")
    ] = 0
    fixes: Annotated[
        Literal["auto", "included", "added"],
        Field(
            description="CPU fixes (Meltdown, Spectre, MDS): included in the load as measured, or added to it; auto "
            "adds them where facts say they are on and the load is not recorded."
        ),
    ] = "auto"
    vcpus_per_core: Annotated[
        float,
        Field(ge=1, le=20, description="vCPUs per core of an inventory's VMs that are no database and not recorded."),
    ] = 1.0
    hot_add: Annotated[bool, Field(description="CPU hot add of the machine is on.")] = False
    hardware: Annotated[int, Field(ge=4, le=40, description="Virtual hardware version.")] = 21
