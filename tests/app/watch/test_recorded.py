"""What recorders and others append to is read on together: each sample once, and the whole equals one recording."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from leadline.app.read.importing import import_paths
from leadline.app.watch import recorded
from leadline.app.watch.recorded import RecordedFiles
from leadline.app.watch.window import LiveWindow
from leadline.core.model.capture import Capture
from leadline.core.system.addresses import Address

IOSTAT = """Linux 6.1.0 (db01) \t11/26/26 \t_x86_64_\t(2 CPU)

"""


def report(second: int, await_ms: float) -> str:
    return (
        f"2026-11-26T12:00:{second:02d}+0000\n"
        "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await "
        "wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util\n"
        f"sda              0.00      0.00     0.00   0.00    0.00     0.00   10.00    100.00     0.00   0.00 "
        f"{await_ms:7.2f} "
        "   10.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00    0.00    0.10   5.00\n\n"
    )


def test_a_file_that_somebody_else_writes_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "iostat.txt"
    path.write_text(IOSTAT + report(0, 1.0) + report(1, 1.0))
    files = RecordedFiles(tmp_path / "work")
    files.follow("disks", path)
    window = LiveWindow(600.0, [])
    for second in range(2, 30):
        with path.open("a") as stream:
            stream.write(report(second, float(second)))
        capture = files.read()
        if capture is not None:
            window.take(capture)
    (group,) = window.capture.of("guest_disk_await_ms_write")
    values = group.values[0]
    assert group.times_ns.tolist() == sorted(set(group.times_ns.tolist()))
    assert values[-1] == 28.0  # the last report may not be whole
    assert len(values) >= 26
    assert [info.name for info in window.capture.sources] == ["disks/iostat.txt"]


def test_our_own_recorder_is_read_on_as_it_would_be_read_at_once(tmp_path: Path) -> None:
    files = RecordedFiles(tmp_path)
    sampler = files.recorder("me", "linux", Address(""), {})()
    window = LiveWindow(600.0, [])
    for number in range(12):
        sampler.sample()
        if number % 3 == 2:
            capture = files.read()
            assert capture is not None
            window.take(capture)
        time.sleep(0.02)
    sampler.close()
    (recorded,) = (tmp_path / "files").iterdir()
    whole = import_paths([recorded]).capture
    live, at_once = samples_of(window.capture), samples_of(whole)
    assert live.keys() == at_once.keys()
    assert len(live) > 1000
    assert list(live.values()) == pytest.approx([at_once[key] for key in live], rel=1e-6)


def samples_of(capture: Capture) -> dict[tuple[str, str, int], float]:
    """What was measured, by metric, entity and time."""
    return {
        (group.metric, str(entity), int(time_ns)): float(value)
        for group in capture.groups
        for entity, row in zip(group.entities, group.values, strict=True)
        for time_ns, value in zip(group.times_ns, row, strict=True)
        if not np.isnan(value)
    }


def test_a_recorder_that_is_opened_again_goes_on(tmp_path: Path) -> None:
    files = RecordedFiles(tmp_path)
    opened = files.recorder("me", "linux", Address(""), {})
    window = LiveWindow(600.0, [])
    for _ in range(2):
        sampler = opened()
        for _ in range(3):
            sampler.sample()
            time.sleep(0.02)
        capture = files.read()
        assert capture is not None
        window.take(capture)
        sampler.close()
    (load,) = window.capture.of("guest_load_1m")
    assert len(load.times_ns) == 6


def test_facts_of_this_machine_belong_to_its_guest(tmp_path: Path) -> None:
    files = RecordedFiles(tmp_path)
    sampler = files.recorder("me", "linux", Address(""), {})()
    files.add_facts("me")
    for _ in range(3):
        sampler.sample()
        time.sleep(0.02)
    capture = files.read()
    sampler.close()
    assert capture is not None
    guests = {entity.name for entity in capture.inventory.facts if entity.kind.value == "guest"}
    assert len(guests) == 1
    assert all(
        not fact.source.startswith(str(tmp_path))
        for facts in capture.inventory.facts.values()
        for fact in facts.values()
    )


PG = "now,datid,datname,numbackends,xact_commit,xact_rollback,blks_read\n"


@dataclass
class Written:
    """A recorder of a server that counts its transactions."""

    folder: Path
    rate: int
    second: int = 0
    notes: list[str] = field(default_factory=list)

    def sample(self) -> None:
        row = f"2026-11-26 12:00:{self.second:02d}+00,1,orders,3,{self.second * self.rate},0,0\n"
        with (self.folder / "pg_stat_database.csv").open("a") as stream:
            stream.write((PG if not self.second else "") + row)
        self.second += 1

    def close(self) -> None:
        pass


def test_two_servers_are_told_apart_and_a_remote_one_has_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {"host=/a": 10, "host=/b": 20, "host=db9": 30}
    meta = SimpleNamespace(counts=frozenset())
    unit = SimpleNamespace(META=meta, record=lambda target, folder, **_: Written(folder, rates[target.text]))
    monkeypatch.setattr(recorded, "load_unit", lambda *_: unit)
    files = RecordedFiles(tmp_path)
    targets = {"first": "host=/a", "second": "host=/b", "far": "host=db9"}
    samplers = [files.recorder(name, "postgresql", Address(target), {})() for name, target in targets.items()]
    for _ in range(4):
        for sampler in samplers:
            sampler.sample()
    capture = files.read()
    assert capture is not None
    seen = {
        str(entity): float(row[-1])
        for group in capture.of("db_tps")
        for entity, row in zip(group.entities, group.values, strict=True)
    }
    assert "guest:db9/database:orders" in seen
    assert {name.rpartition("/")[2]: rate for name, rate in seen.items()} == {
        "database:first.orders": 10.0,
        "database:second.orders": 20.0,
        "database:orders": 30.0,
    }


SESSIONS = "now,pid,backend_type,state,wait_event_type,wait_event,query_id,query,xact_age_s,query_age_s,blocked_by\n"


def test_whoever_is_not_in_a_sample_counts_zero(tmp_path: Path) -> None:
    """As the whole recording has it: what waits now did not wait before, and what waited does not now."""
    path = tmp_path / "grown" / "pg_active_sessions.csv"
    path.parent.mkdir()
    files, window = RecordedFiles(tmp_path / "work"), LiveWindow(600.0, [])
    files.follow("db", path)
    with path.open("w", buffering=1) as stream:
        stream.write(SESSIONS)
        for second in range(40):
            event = "Lock,transactionid" if 15 <= second < 25 else "IO,DataFileRead"
            stream.write(f"2026-11-26 12:00:{second:02d}+00,7,client backend,active,{event},1,SELECT 1,0.1,0.1,\n")
            if second % 3 == 2:
                capture = files.read()
                if capture is not None:
                    window.take(capture)
    stream_end = window.capture.span_ns()
    assert stream_end is not None
    whole = samples_of(import_paths([path.parent]).capture.between(0, stream_end[1] + 1))
    live = samples_of(window.capture)
    waits = {key: value for key, value in live.items() if key[0] == "db_wait_event_sessions_count"}
    assert waits == {key: value for key, value in whole.items() if key[0] == "db_wait_event_sessions_count"}
    assert 0.0 in waits.values()
    assert 1.0 in waits.values()


def test_facts_of_this_machine_are_not_those_of_another(tmp_path: Path) -> None:
    files = RecordedFiles(tmp_path)
    files.recorder("far", "linux", Address("ssh://me@db9"), {})
    files.add_facts("far")
    assert list((tmp_path / "copies").rglob("facts.json")) == []
