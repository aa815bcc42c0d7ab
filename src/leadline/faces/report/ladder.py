"""The latency ladder: what each layer measured of one I/O's way down, from the database to the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.units import UNITS, factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.faces.report.figures import inside_windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Diagnosis, Finding, Window

_DISK_LAYERS = {Layer.STORAGE_PATH, Layer.DATASTORE}
_DISK_KINDS = {EntityKind.BLOCK_DEVICE, EntityKind.VIRTUAL_DISK, EntityKind.DEVICE, EntityKind.DATASTORE}
BUSY_SHARE_MIN = 0.1  # Judgement: two reads in a minute of writes say nothing of that minute
TRANSACTION = "Transaction"
_DEVICE = (EntityKind.DEVICE,)

# name, what it means, metrics (the slowest counts), kinds (all when empty), what records it
STEPS: tuple[tuple[str, str, tuple[str, ...], tuple[EntityKind, ...], str], ...] = (
    (TRANSACTION, "what a client waits, many I/Os long", ("db_latency_ms",), (), "pgbench, HammerDB, sysbench"),
    ("Log write", "what a commit waits for", ("db_log_write_latency_ms",), (), "the database's own statistics"),
    (
        "Guest await",
        "in the guest, its queue included",
        ("guest_disk_await_ms", "guest_disk_await_ms_read", "guest_disk_await_ms_write"),
        (),
        "iostat, sar",
    ),
    (
        "Virtual disk",
        "at the VM's virtual disk",
        ("virtual_disk_latency_ms_read", "virtual_disk_latency_ms_write"),
        (),
        "esxtop",
    ),
    (
        "Datastore",
        "as the VM sees the datastore",
        ("datastore_latency_ms", "datastore_guest_latency_ms", "vsan_client_latency_us_read"),
        (),
        "vCenter, vSAN performance service",
    ),
    ("GAVG", "hypervisor and device together", ("disk_guest_latency_ms",), _DEVICE, "esxtop"),
    ("KAVG", "in the hypervisor's kernel, queue included", ("disk_kernel_latency_ms",), _DEVICE, "esxtop"),
    ("QAVG", "of it, waiting in the kernel's queue", ("disk_queue_latency_ms",), _DEVICE, "esxtop"),
    ("DAVG", "below it: adapter, fabric, array or disk", ("disk_device_latency_ms",), _DEVICE, "esxtop"),
)


@dataclass(frozen=True, slots=True)
class Rung:
    """One layer's latency in milliseconds; NaN is "not measured", and then ``entity`` is None.

    Medians are of samples in which there was I/O: tools print 0 for a latency of nothing.
    """

    name: str
    meaning: str
    entity: Entity | None
    metric: str | None
    inside_ms: float
    outside_ms: float
    peak_ms: float
    recorded_by: str


@dataclass(frozen=True, slots=True)
class Ladder:
    """Rungs from the top down, and which disk finding they are about."""

    rungs: tuple[Rung, ...]
    about: Finding | None

    @property
    def has_windows(self) -> bool:
        """Whether the recording is told apart into the finding's windows and the rest."""
        return self.about is not None

    @property
    def inside_name(self) -> str:
        """What the main number is about."""
        return "while it happened" if self.has_windows else "whole recording"

    @property
    def is_measured(self) -> bool:
        """Whether any layer's latency was recorded."""
        return any(rung.entity is not None for rung in self.rungs)


def latency_ladder(diagnosis: Diagnosis, capture: Capture) -> Ladder:
    """The ladder of the first finding about a disk, else of the slowest of each layer over the whole recording.

    Of each layer the entity that belongs to that disk is taken, and of several the slowest.
    """
    about = next((f for f in diagnosis.findings if _is_about_disks(f) and f.windows), None)
    rungs: list[Rung] = []
    device: Entity | None = None  # the first device rung chooses it: numbers of two devices are not to be compared
    for step in STEPS:
        rungs.append(_rung(step, capture, about, device))
        device = device or _device(rungs[-1].entity)
    return Ladder(tuple(rungs), about)


def _device(entity: Entity | None) -> Entity | None:
    return entity if entity is not None and entity.kind is EntityKind.DEVICE else None


def _is_about_disks(finding: Finding) -> bool:
    return finding.layer in _DISK_LAYERS or any(entity.kind in _DISK_KINDS for entity in finding.entity.lineage())


def _rung(step: tuple[Any, ...], capture: Capture, about: Finding | None, device: Entity | None) -> Rung:
    name, meaning, metrics, kinds, recorded_by = step
    candidates = [
        (group, row)
        for metric in metrics
        for group in capture.of(metric, *kinds)
        for row in range(len(group.entities))
        if np.isfinite(group.values[row]).any()
    ]
    if kinds == _DEVICE and device is not None:
        candidates = [c for c in candidates if c[0].entities[c[1]] == device]
    elif about is not None:
        candidates = [c for c in candidates if _belongs(capture, c[0].entities[c[1]], about.entity)]
    windows = () if about is None else about.windows
    measured = [_marks(group, row, windows) for group, row in candidates]
    best = max(measured, key=lambda m: -1.0 if np.isnan(m[2]) else m[2], default=None)
    if best is None or (np.isnan(best[2]) and np.isnan(best[3])):
        return Rung(name, meaning, None, None, np.nan, np.nan, np.nan, recorded_by)
    return Rung(name, meaning, *best, recorded_by)


def _belongs(capture: Capture, candidate: Entity, entity: Entity) -> bool:
    """Whether a layer's entity is on the way of the finding's disk: another disk of the same machine is not."""
    if candidate == entity:
        return True
    if candidate.kind is entity.kind and candidate.kind in _DISK_KINDS:
        return False
    return capture.inventory.related(candidate, entity)


def _marks(group: SeriesGroup, row: int, windows: tuple[Window, ...]) -> tuple[Entity, str, float, float, float]:
    """Entity, metric, median in the windows (or of all), median otherwise, highest; milliseconds."""
    scale = factor(group.unit, "ms") if UNITS[group.unit].dimension == "time" else float("nan")
    values: NDArray[Any] = np.asarray(group.values[row], dtype=np.float64) * scale
    busy = np.isfinite(values) & (values > 0)
    inside = inside_windows(group.times_ns, windows) if windows else np.ones(len(values), dtype=bool)
    return (
        group.entities[row],
        group.metric,
        _median(values[busy & inside], int(inside.sum())),
        _median(values[busy & ~inside], int((~inside).sum())),
        float(values[busy].max()) if busy.any() else float("nan"),
    )


def _median(values: NDArray[Any], sample_count: int) -> float:
    """The median, or NaN where I/O was seen in too few samples for one to mean anything."""
    enough = len(values) >= BUSY_SHARE_MIN * sample_count
    return float(np.median(values)) if len(values) and enough else float("nan")
