"""Datastores, disks and requests: as files have them, and from inventories and recordings."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import BaseModel, Field, model_validator

from leadline.core.contracts.planner import STRICT
from leadline.core.model.capture import NS_PER_S
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Entity

QUANTILE = 0.90  # Source: Gulati et al., "Pesto" (2011), and Storage DRS: decisions on 90th percentiles
SAMPLES_MIN = 10  # Judgement: fewer say nothing about a slope
POINTS_MIN = 2
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


class Datastore(BaseModel):
    """A datastore; what is None is not measured. Nothing is placed on it where ``is_target`` is false."""

    model_config = STRICT

    name: str
    size_gib: Positive
    used_gib: NotNegative | None = None
    intercept_ms: NotNegative | None = None
    slope_ms: NotNegative | None = None
    samples: tuple[tuple[NotNegative, NotNegative], ...] = ()
    outstanding: NotNegative | None = None
    is_target: bool = True

    @model_validator(mode="after")
    def _is_whole(self) -> Datastore:
        if (self.intercept_ms is None) != (self.slope_ms is None):
            message = f"{self.name}: intercept_ms and slope_ms go together"
            raise ValueError(message)
        return self

    @property
    def line(self) -> tuple[float, float]:
        """Intercept, ms, and slope, ms per outstanding operation; NaN where neither is known."""
        if self.intercept_ms is not None and self.slope_ms is not None:
            return self.intercept_ms, self.slope_ms
        pairs = np.array(self.samples, dtype=float).reshape(-1, 2)
        return fitted(pairs[:, 0], pairs[:, 1], POINTS_MIN)


class PlaceDisk(BaseModel):
    """A virtual disk; ``outstanding`` is the 90th percentile of its operations in flight."""

    model_config = STRICT

    vm: str
    name: str = "Hard disk 1"
    datastore: str
    size_gib: Positive
    outstanding: NotNegative | None = None


class PlaceRequest(BaseModel):
    """What is asked for. ``vm`` is the VM that comes or moves; of a clone ``origin`` is what it is cloned from."""

    model_config = STRICT

    kind: Literal["create", "clone", "add-disk", "relocate", "maintenance"] = "create"
    vm: str = ""
    origin: str = ""
    datastore: str = ""
    disks_gib: tuple[Positive, ...] = ()
    outstanding: NotNegative | None = None
    keep_together: bool = True

    @model_validator(mode="after")
    def _is_whole(self) -> PlaceRequest:
        needed = {
            "create": ("vm", "disks_gib"),
            "clone": ("vm", "origin"),
            "add-disk": ("vm", "disks_gib"),
            "relocate": ("vm",),
            "maintenance": ("datastore",),
        }[self.kind]
        missing = [key for key in needed if not getattr(self, key)]
        if missing:
            message = f"{self.kind} needs {' and '.join(missing)}"
            raise ValueError(message)
        return self


def fitted(outstanding: NDArray[np.float64], latency_ms: NDArray[np.float64], least: int) -> tuple[float, float]:
    """Intercept and slope by least squares; NaN with too few samples, one load only, or a slope below zero.

    >>> fitted(np.array([1.0, 3.0]), np.array([2.0, 3.0]), 2)
    (1.5, 0.5)
    """
    kept = np.isfinite(outstanding) & np.isfinite(latency_ms)
    x, y = outstanding[kept], latency_ms[kept]
    if len(x) < least or np.ptp(x) <= 0:
        return float("nan"), float("nan")
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    base = float(y.mean() - slope * x.mean())
    return (max(0.0, base), slope) if slope >= 0 else (float("nan"), float("nan"))


def from_capture(capture: Capture) -> tuple[tuple[Datastore, ...], tuple[PlaceDisk, ...], tuple[str, ...]]:
    """Datastores and disks of the inventory, with 90th percentiles of recordings; and the evidence."""
    inventory = capture.inventory
    busy = _quantiles(capture, "virtual_disk_outstanding_count", EntityKind.VIRTUAL_DISK)
    lines = _lines(capture)
    stores: dict[str, Datastore] = {}
    mounts = {entity: inventory.get(entity, "host_count") for entity in inventory.of_kind(EntityKind.DATASTORE)}
    is_shared = any(count is not None and count > 1 for count in mounts.values())
    for entity in inventory.of_kind(EntityKind.DATASTORE):
        size, free = inventory.get(entity, "capacity_gib"), inventory.get(entity, "free_gib")
        if not size or free is None or inventory.get(entity, "accessible") is False or entity.name in stores:
            continue
        base, slope, level = lines.get(entity.name, (float("nan"),) * 3)
        stores[entity.name] = Datastore(
            name=entity.name,
            size_gib=float(size),
            used_gib=max(0.0, float(size) - float(free)),
            intercept_ms=None if np.isnan(base) else base,
            slope_ms=None if np.isnan(slope) else slope,
            outstanding=None if np.isnan(level) else level,
            is_target=not (is_shared and mounts[entity] == 1),
        )
    disks = []
    for entity in inventory.of_kind(EntityKind.VIRTUAL_DISK):
        vm, size = entity.ancestor(EntityKind.VM), inventory.get(entity, "size_gib")
        store = inventory.get(entity, "datastore")
        if vm is None or not size or store not in stores or inventory.get(entity, "raw_device") is True:
            continue
        name = str(inventory.get(entity, "label") or entity.name)
        outstanding = busy.get(entity)
        disks.append(
            PlaceDisk(vm=vm.name, name=name, datastore=str(store), size_gib=float(size), outstanding=outstanding)
        )
    return tuple(stores.values()), tuple(disks), _evidence(capture, stores, len(disks), len(busy), len(lines))


def latency_threshold(capture: Capture) -> float | None:
    """The threshold that Storage DRS has on every datastore that it balances; None where there is none or several."""
    stores = capture.inventory.of_kind(EntityKind.DATASTORE)
    thresholds = {capture.inventory.get(store, "sdrs_latency_threshold_ms") for store in stores} - {None}
    return float(thresholds.pop()) if len(thresholds) == 1 else None


def _quantiles(capture: Capture, metric: str, kind: EntityKind) -> dict[Entity, float]:
    quantiles: dict[Entity, float] = {}
    for group in capture.of(metric, kind):
        for entity, values in zip(group.entities, group.values, strict=True):
            measured = values[np.isfinite(values)]
            if len(measured):
                quantiles[entity] = float(np.quantile(measured, QUANTILE))
    return quantiles


def _lines(capture: Capture) -> dict[str, tuple[float, float, float]]:
    """Intercept, slope and 90th percentile of outstanding, by Little's law, of datastores recorded."""
    lines = {}
    for waits in capture.of("datastore_latency_ms", EntityKind.DATASTORE):
        for rates in capture.of("datastore_iops", EntityKind.DATASTORE):
            if not np.array_equal(waits.times_ns, rates.times_ns):
                continue
            for entity, latency in zip(waits.entities, waits.values, strict=True):
                rate = rates.row(entity)
                if rate is None:
                    continue
                outstanding = np.asarray(rate * latency / 1000.0, dtype=float)
                known = outstanding[np.isfinite(outstanding)]
                level = float(np.quantile(known, QUANTILE)) if len(known) else float("nan")
                line = fitted(outstanding, np.asarray(latency, dtype=float), SAMPLES_MIN)
                lines[entity.name] = (*line, level)
    return lines


def _evidence(capture: Capture, stores: dict[str, Datastore], disks: int, busy: int, lines: int) -> tuple[str, ...]:
    names = ", ".join(sorted({source.name for source in capture.sources})) or "inventory"
    evidence = [f"{len(stores):,} datastores and {disks:,} virtual disks of {names}"]
    local = sum(not store.is_target for store in stores.values())
    if local:
        evidence.append(f"{local:,} datastores are mounted by one host only: nothing is placed on them")
    span = capture.span_ns()
    if span is not None and (busy or lines):
        start, end = (datetime.fromtimestamp(ns / NS_PER_S, UTC).isoformat(timespec="seconds") for ns in span)
        evidence.append(f"90th percentiles of {busy:,} disks and {lines:,} datastores from {start} to {end}")
    return tuple(evidence)
