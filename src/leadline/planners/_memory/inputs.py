"""What the planner ``memory`` is asked."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from leadline.core.contracts.planner import PlanInput

Engine = Literal["postgresql", "sqlserver", "oracle", "intersystems"]


class Memory(PlanInput):
    """A database, its sessions, the hosts it runs on, what else runs there, and where memory may lie."""

    engine: Annotated[Engine, Field(description="Database engine.")] = "postgresql"
    working_set_gib: Annotated[float, Field(gt=0, description="Data that is used again and again, GiB.")] = 48.0
    sessions: Annotated[int, Field(ge=1, description="Sessions at peak.")] = 200
    session_mib: Annotated[
        float, Field(gt=0, description="Memory of a session at peak, MiB: sorts, hashes, private areas.")
    ] = 32.0
    other_gib: Annotated[float, Field(ge=0, description="Other services on the machine, GiB.")] = 0.0
    huge_page_mib: Annotated[float, Field(gt=0, description="Size of a huge page, MiB.")] = 2.0
    vcpus: Annotated[int, Field(ge=1, description="vCPUs of the machine.")] = 8
    host_gib: Annotated[float, Field(gt=0, description="Memory of a host, GiB.")] = 512.0
    host_own_gib: Annotated[
        float, Field(ge=0, description="What the host needs itself: hypervisor, vSAN or storage machine, GiB.")
    ] = 16.0
    numa_nodes: Annotated[int, Field(ge=1, description="NUMA nodes of a host.")] = 2
    cores: Annotated[int, Field(ge=1, description="Physical cores of a host.")] = 32
    machines: Annotated[
        int, Field(ge=0, description="Such machines in all, beside those of an inventory; with one, 0 if left out.")
    ] = 4
    hosts: Annotated[int, Field(ge=1, description="Hosts.")] = 2
    spare_hosts: Annotated[int, Field(ge=0, description="Hosts that may fail.")] = 1
    cluster: Annotated[str, Field(description="Cluster of the inventory; empty for the only one.")] = ""
    others_gib: Annotated[
        float, Field(ge=0, description="Memory configured for other VMs of the hosts in all, not reserved, GiB.")
    ] = 0.0
    overcommit: Annotated[
        float | None,
        Field(gt=0, description="Memory configured for all VMs by what hosts have for VMs; none: from others_gib."),
    ] = None
    others_active_pct: Annotated[
        float, Field(ge=0, le=100, description="Share of other VMs' memory that they use again and again, percent.")
    ] = 50.0
    far: Annotated[
        Literal["none", "rdma", "ssd"],
        Field(description="Where part of the machine's memory may lie: none, rdma (another host's), ssd (local NVMe)."),
    ] = "none"
    far_us: Annotated[
        float | None,
        Field(ge=0.01, le=1e6, description="From a fault to its page, us; none for the simulator's (rdma 5, ssd 85)."),
    ] = None
    pattern: Annotated[
        Literal["sequential", "uniform", "zipf", "quicksort", "growing"],
        Field(description="How memory is touched: in a loop, all alike, popular pages, as a sort, while it grows."),
    ] = "zipf"
    touch_us: Annotated[
        float, Field(ge=0.01, le=1e6, description="Work between two touches of pages with all memory local, us.")
    ] = 5.0
    tolerable_slowdown: Annotated[
        float, Field(ge=1, description="How many times as long as with all memory local is tolerable.")
    ] = 1.1
    persistent: Annotated[
        Literal["none", "nvdimm-n", "optane"],
        Field(
            description="Persistent memory of hosts: none, nvdimm-n (16 GB modules), optane (128 to 512; ended 2022)."
        ),
    ] = "none"
    persistent_gib: Annotated[
        float, Field(gt=0, description="Persistent memory of a machine, GiB; where hosts have any.")
    ] = 256.0
