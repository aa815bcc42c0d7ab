"""Inputs of the planner of vSAN."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from leadline.core.contracts.planner import PlanInput
from leadline.core.model.versions import vsphere_version
from leadline.planners._vsan.measured import measured_reduction

Engine = Literal["sqlserver", "oracle", "postgresql"]
Tier = Literal["oltp-tier-1", "tier-2", "data-warehouse"]
Method = Literal["auto", "mirror", "erasure"]
Interface = Literal["unknown", "sata", "sas", "nvme"]
Size = Annotated[float, Field(gt=0, le=1e9)]
Rate = Annotated[float, Field(ge=0, le=1e9)]
BEFORE_LARGE_BUFFERS, LARGE_BUFFERS = (8, 0, 0), 1600.0
BUFFER_GB = 600.0
TEN_PERCENT_UNTIL = (6, 7, 0)  # Source: mrvsan.com, cache sizing: all-flash goes by what is written from 6.7 on


class Vsan(PlanInput):
    """Databases, what they do, and what hosts are made of. Sizes are decimal, as devices are sold."""

    engine: Annotated[Engine, Field(description="Database engine: sqlserver, oracle, postgresql.")] = "sqlserver"
    tier: Annotated[Tier, Field(description="oltp-tier-1, tier-2 or data-warehouse.")] = "oltp-tier-1"
    architecture: Annotated[Literal["osa", "esa"], Field(description="Original or Express architecture.")] = "osa"
    media: Annotated[Literal["all-flash", "hybrid"], Field(description="all-flash or hybrid.")] = "all-flash"
    version: Annotated[str, Field(description="vSAN version, as 7.0U3.")] = "7.0U3"
    is_large_buffer: Annotated[
        bool, Field(description="Whether write buffers up to 1.6 TB are switched on (OSA from 8.0; off by default).")
    ] = False
    machines: Annotated[int, Field(ge=1, le=10_000, description="Database machines.")] = 1
    data_gb: Annotated[Size, Field(description="Data disks of a machine together, GB.")] = 2000.0
    data_disks: Annotated[int, Field(ge=1, le=60, description="Disks the data of a machine is split over.")] = 4
    log_gb: Annotated[Size, Field(description="Log, redo or WAL disk of a machine, GB.")] = 200.0
    temp_gb: Annotated[Size, Field(description="Temporary space of a machine, GB.")] = 200.0
    system_gb: Annotated[Size, Field(description="System disk of a machine, GB.")] = 100.0
    used_pct: Annotated[
        float, Field(gt=0, le=100, description="Of the disks in use, %; caches that are sized by it take it.")
    ] = 100.0
    working_set_gb: Annotated[
        Size | None, Field(description="Data used again and again, all machines, GB; unset, a tenth of what is used.")
    ] = None
    write_mb_per_s: Annotated[
        Rate | None, Field(description="Peak writes of all machines, MB/s; unset, of the recording.")
    ] = None
    read_mb_per_s: Annotated[
        Rate | None, Field(description="Peak reads of all machines, MB/s; unset, of the recording.")
    ] = None
    write_iops: Annotated[Rate | None, Field(description="Peak writes per second; unset, of the recording.")] = None
    read_iops: Annotated[Rate | None, Field(description="Peak reads per second; unset, of the recording.")] = None
    write_mean_mb_per_s: Annotated[
        Rate | None, Field(description="Writes on average over days, MB/s; unset, of the recording, else the peak.")
    ] = None
    burst_s: Annotated[float, Field(ge=0, le=86_400, description="How long a peak of writes lasts, s.")] = 1800.0
    fill_pct: Annotated[float, Field(ge=0, le=100, description="Fill of write buffers when a peak begins, %.")] = 30.0
    log_write_pct: Annotated[float, Field(ge=0, le=100, description="Of written bytes to the log, %.")] = 30.0
    small_write_pct: Annotated[
        float, Field(ge=0, le=100, description="Of written bytes smaller than a stripe of an erasure code, %.")
    ] = 100.0
    ftt: Annotated[int, Field(ge=0, le=3, description="Failures to tolerate; of each site when stretched.")] = 1
    data_method: Annotated[Method, Field(description="Protection of data: auto, mirror, erasure.")] = "auto"
    log_method: Annotated[Method, Field(description="Protection of logs: auto (mirror), mirror, erasure.")] = "auto"
    stripes: Annotated[int, Field(ge=1, le=12, description="Disk stripes per object.")] = 1
    space_reservation_pct: Annotated[
        float | None, Field(ge=0, le=100, description="Object space reservation, %; unset, by tier.")
    ] = None
    efficiency: Annotated[
        Literal["auto", "none", "compression", "dedup"], Field(description="auto, none, compression, dedup.")
    ] = "auto"
    reduction: Annotated[
        float,
        Field(ge=1, le=20, description="What it saves: bytes before by bytes after, or a file of bench reduction."),
    ] = 1.0
    iops_limit: Annotated[
        int | None, Field(ge=1, description="Limit of a data disk, operations of 32 KiB per second.")
    ] = None
    hosts: Annotated[int | None, Field(ge=1, le=64, description="Hosts; unset, as few as do.")] = None
    spare_hosts: Annotated[int, Field(ge=0, le=3, description="Hosts beyond what policies need.")] = 1
    groups: Annotated[int | None, Field(ge=1, le=5, description="Disk groups of a host; unset, 2 to 5.")] = None
    devices: Annotated[
        int | None, Field(ge=1, le=24, description="Capacity devices of a group, of a host with ESA; unset, sized.")
    ] = None
    cache_gb: Annotated[Size, Field(description="Size of a cache device, GB.")] = 800.0
    cache_mb_per_s: Annotated[Size, Field(description="Writes a cache device takes, MB/s.")] = 2000.0
    device_gb: Annotated[Size, Field(description="Size of a capacity device, GB.")] = 3840.0
    device_mb_per_s: Annotated[Size, Field(description="Writes a capacity device takes, MB/s.")] = 490.0
    device_read_mb_per_s: Annotated[Size, Field(description="Reads a capacity device gives, MB/s.")] = 530.0
    device_access_ms: Annotated[
        Size,
        Field(description="What a read keeps a capacity device busy beside its bytes, ms: about 8 of a disk."),
    ] = 0.01
    device_interface: Annotated[Interface, Field(description="Of capacity devices: sata, sas, nvme, if known.")] = (
        "unknown"
    )
    cache_interface: Annotated[Interface, Field(description="Of cache devices: sata, sas, nvme, if known.")] = "unknown"
    controllers: Annotated[
        int | None, Field(ge=1, le=8, description="Storage controllers of a host; unset, one for each disk group.")
    ] = None
    cache_tbw: Annotated[Size | None, Field(description="Endurance of a cache device, TB written, if known.")] = None
    slack_pct: Annotated[
        float | None, Field(ge=0, lt=100, description="Space kept free, %; unset, 30, from 7.0U1 on 25.")
    ] = None
    nic_gbit: Annotated[Size | None, Field(description="vSAN link of a host, Gbit/s; unset, sized.")] = None
    switch_buffers: Annotated[
        Literal["deep", "shared"], Field(description="Buffers of the switches: deep (per port), or shared.")
    ] = "deep"
    switch_buffer_mb: Annotated[
        Size | None, Field(description="Buffer of a port if deep, of the whole switch if shared, MB, if known.")
    ] = None
    incast_kib: Annotated[
        Size, Field(description="What a host sends another at once, KiB; 1024, a large read or resync, is a judgement.")
    ] = 1024.0
    is_stretched: Annotated[bool, Field(description="Whether the cluster is stretched over two sites.")] = False
    site_rtt_ms: Annotated[Rate, Field(description="Round trip between the sites, ms.")] = 1.0
    witness_rtt_ms: Annotated[Rate, Field(description="Round trip to the witness, ms.")] = 20.0
    site_gbit: Annotated[Size, Field(description="Link between the sites, Gbit/s.")] = 10.0

    @field_validator("version", mode="before")
    @classmethod
    def _is_version(cls, given: object) -> object:
        """A version as people write it; YAML takes 8.0 for a number."""
        text = str(given) if isinstance(given, int | float) and not isinstance(given, bool) else given
        if isinstance(text, str) and vsphere_version(text) is None:
            message = f"{text!r} is no version as 6.7U3, 7.0 U3 or 8.0"
            raise ValueError(message)
        return text

    @field_validator("reduction", mode="before")
    @classmethod
    def _of_measurement(cls, given: object, info: ValidationInfo) -> object:
        """Take the ratio of a measurement where a file is named; what counts depends on architecture and services."""
        if not isinstance(given, str):
            return given
        if info.data.get("architecture") == "esa":
            return measured_reduction(given, "esa")
        return measured_reduction(given, "dedup" if info.data.get("efficiency") == "dedup" else "compression")

    @model_validator(mode="after")
    def _fits(self) -> Vsan:
        mean, peak = self.write_mean_mb_per_s, self.write_mb_per_s
        if mean is not None and peak is not None and mean > peak:
            message = f"writes of {mean:g} MB/s on average, above their peak of {peak:g}"
            raise ValueError(message)
        return self

    @property
    def release(self) -> tuple[int, int, int]:
        """Major, minor and update."""
        return vsphere_version(self.version) or (0, 0, 0)

    @property
    def is_esa(self) -> bool:
        """Whether there is no cache tier."""
        return self.architecture == "esa"

    @property
    def is_all_flash(self) -> bool:
        """Whether capacity devices are flash."""
        return self.media == "all-flash"

    @property
    def is_cache_by_size(self) -> bool:
        """Whether the cache is sized by what is stored: for reads, and before 6.7; else by what is written."""
        return not self.is_esa and (not self.is_all_flash or self.release < TEN_PERCENT_UNTIL)

    @property
    def sites(self) -> int:
        """Sites that hold data."""
        return 2 if self.is_stretched else 1

    @property
    def buffer_max_gb(self) -> float:
        """What a group buffers of writes at most, GB."""
        return LARGE_BUFFERS if self.release >= BEFORE_LARGE_BUFFERS and self.is_large_buffer else BUFFER_GB

    @property
    def provisioned_gb(self) -> float:
        """Disks of all machines, GB."""
        return self.machines * (self.data_gb + self.log_gb + self.temp_gb + self.system_gb)

    @property
    def used_gb(self) -> float:
        """Of it in use, before copies."""
        return self.provisioned_gb * self.used_pct / 100.0

    @property
    def working_gb(self) -> float:
        """The working set. Source: Hogan 2015, a tenth for most applications."""
        return 0.1 * self.used_gb if self.working_set_gb is None else self.working_set_gb
