"""What the planner of layouts is asked."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from leadline.core.contracts.planner import PlanInput

ADAPTERS_MAX = 4


class LayoutInputs(PlanInput):
    """A database's load and what it can be put on."""

    engine: Annotated[
        Literal["postgresql", "sqlserver", "oracle", "intersystems"], Field(description="Database engine.")
    ] = "postgresql"
    reads_per_s: Annotated[float, Field(ge=0, le=1e9, description="Reads of data at peak.")] = 6000.0
    writes_per_s: Annotated[float, Field(ge=0, le=1e9, description="Writes of data at peak.")] = 2000.0
    data_gib: Annotated[float, Field(gt=0, description="Data, GiB.")] = 2000.0
    log_gib: Annotated[float, Field(gt=0, description="Log kept, GiB.")] = 100.0
    temp_gib: Annotated[float, Field(gt=0, description="Temporary files at most, GiB.")] = 200.0
    backup_gib: Annotated[float, Field(ge=0, description="Backups kept on the machine, GiB; 0 for none.")] = 0.0
    adapters: Annotated[int, Field(ge=1, le=ADAPTERS_MAX, description="Paravirtual SCSI adapters to use.")] = 4
    device_iops: Annotated[float, Field(gt=0, description="Operations per second of one device.")] = 2500.0
    device_gib: Annotated[float, Field(gt=0, description="Size of one device, GiB.")] = 900.0
    device_use_pct: Annotated[
        float, Field(gt=0, le=100, description="Share of a device's operations to plan with, percent.")
    ] = 70.0
    parity_writes_pct: Annotated[
        float, Field(ge=0, le=100, description="Share of writes above which parity is not used, percent.")
    ] = 40.0
    raid: Annotated[
        Literal["best", "raid-10", "raid-5", "raid-6"], Field(description="RAID level of the data; best chooses.")
    ] = "best"
    stripe_kib: Annotated[
        int, Field(ge=4, le=16_384, description="Stripe unit of the RAID or array, KiB; from its vendor.")
    ] = 64
    devices: Annotated[int | None, Field(ge=1, description="Devices there are; none for as many as needed.")] = None
    device_ms: Annotated[
        float | None,
        Field(gt=0, description="Read of an idle device, ms; none for 1000 / device_iops, one read at a time."),
    ] = None
    device_mb_per_s: Annotated[
        float, Field(gt=0, description="Sequential speed of one device, MB/s; a rebuild takes a share of it.")
    ] = 200.0
    rebuild_share_pct: Annotated[
        float, Field(gt=0, lt=100, description="Share of a device that a rebuild takes, percent; a controller setting.")
    ] = 30.0
