"""Jobs the inventory tells of: how their windows are made of events, and what a backup explains."""

from __future__ import annotations

import numpy as np

from leadline.app.diagnose.diagnosing import diagnose
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.finding import Window
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.jobs import job_windows

VM = Entity.parse("host:esx01/vm:db01")
START_S = 1_700_000_000
HOUR_S = 3600


def event(hour: float, kind: str) -> dict[str, str]:
    moment = np.datetime64(int(START_S + hour * HOUR_S), "s")
    return {"time": f"{moment}Z", "kind": kind}


def windows_of(*events: dict[str, str]) -> list[tuple[float, float]]:
    inventory = Inventory()
    inventory.add(VM, "test", events=list(events))
    return [
        ((w.start_ns / 1e9 - START_S) / HOUR_S, (w.end_ns / 1e9 - START_S) / HOUR_S)
        for w in job_windows(inventory, VM, "backup")
    ]


def test_a_window_is_from_a_start_to_the_next_end() -> None:
    assert windows_of(event(5, "backup-end"), event(1, "backup-start"), event(3, "antivirus-end")) == [(1.0, 5.0)]


def test_ends_without_start_and_starts_without_end_are_left_out() -> None:
    assert windows_of(event(1, "backup-end"), event(2, "backup-start")) == []
    assert windows_of(event(2, "backup-start"), event(2, "backup-end")) == []


def test_a_start_told_twice_is_one_job() -> None:
    assert windows_of(event(1, "backup-start"), event(2, "backup-start"), event(3, "backup-end")) == [(1.0, 3.0)]


def test_a_backup_in_busy_hours_explains_the_slow_lun() -> None:
    builder = CaptureBuilder("capture", "test", "test")
    times = (START_S + 600 * np.arange(1, 145, dtype=np.int64)) * 1_000_000_000
    hour = np.arange(1, 145) / 6.0
    lun = Entity(EntityKind.DEVICE, "naa.1", VM.parent)
    during = (hour > 11.0) & (hour <= 11.5)
    builder.add_series("cpu_used_pct", VM, times, np.where((hour > 9.0) & (hour <= 13.0), 80.0, 10.0))
    builder.add_series("disk_device_latency_ms", lun, times, np.where(during, 60.0, 2.0))
    builder.add_series("disk_iops", lun, times, np.full(144, 2000.0))
    builder.inventory.add(VM, "test", events=[event(11, "backup-start"), event(11.5, "backup-end")])
    found = {finding.rule: finding for finding in diagnose(builder.build()).findings}
    backup = found["backup-window-peak-overlap"]
    assert backup.windows == (Window((START_S + 39_600) * 10**9, (START_S + 41_400) * 10**9),)
    assert found["disk-davg-generic"].caused_by == "backup-window-peak-overlap"
