"""The sample store: what is appended is there, once, whatever happens."""

from __future__ import annotations

import math
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, EntityColumn, Inventory
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.stores import samples
from leadline.stores._samples import compaction
from leadline.stores._samples.catalogue import SampleCatalogue
from leadline.stores._samples.compaction import Compaction
from leadline.stores._samples.files import CATALOGUE, StoreFiles
from leadline.stores._samples.turns import holding_turn
from leadline.stores.samples import Retention, SampleStore

START_NS = 1_789_948_800 * 10**9  # the beginning of a day, UTC
S = 10**9
EVER = (0, 2**62)
FOR_EVER = Retention(raw_s=1e9)
VMS = EntityColumn([Entity(EntityKind.VM, f"vm{i}", Entity(EntityKind.HOST, "esx")) for i in range(5)])


def capture_of(
    values: Any, times_s: Any, metric: str = "cpu_ready_pct", vms: Any = VMS, inventory: Inventory | None = None
) -> Capture:
    array = np.asarray(values, dtype=np.float32)
    times_ns = START_NS + np.asarray(times_s, dtype=np.int64) * S
    group = SeriesGroup(metric, vms, times_ns, array, 20.0)
    return Capture([group], [SourceInfo("vc", "vcenter", "vCenter", host="vc1")], inventory or Inventory())


def series(store: SampleStore, metric: str = "cpu_ready_pct", **chosen: Any) -> dict[tuple[str, int], float]:
    """Every measured sample: (VM, second) -> value; fails on one that is there twice."""
    samples: dict[tuple[str, int], float] = {}
    for group in store.read(*EVER, metrics=[metric], **chosen).groups:
        for row, entity in enumerate(group.entities):
            for time_ns, value in zip(group.times_ns.tolist(), group.values[row].tolist(), strict=True):
                if not math.isnan(value):
                    key = (entity.name, (time_ns - START_NS) // S)
                    assert key not in samples
                    samples[key] = value
    return samples


def reopened(store: SampleStore) -> SampleStore:
    store.close()
    return SampleStore(store.folder)


AWKWARD = [0.0, 1.0, -3.0, 0.1, 12.34, 1e-30, 3e38, float("inf"), -float("inf"), 1 / 3, 2.0**31, 123456.789, 5e-45]


@pytest.mark.parametrize("whole", [False, True])
def test_values_come_back_exactly(tmp_path: Path, whole: bool) -> None:
    rng = np.random.default_rng(1)
    rows = [rng.permutation(AWKWARD), np.arange(13), np.arange(13) / 100, np.full(13, np.nan), rng.normal(size=13)]
    values = np.asarray(rows, dtype=np.float32)
    values[2, 3] = np.nan
    with SampleStore(tmp_path) as store:
        store.append(capture_of(values, 20 * np.arange(13)))
        if whole:
            store.maintain(whole=True)
            assert store.status().segment_count > 0
        expected = {
            (VMS[row].name, 20 * column): float(values[row, column])
            for row, column in zip(*np.nonzero(~np.isnan(values)), strict=True)
        }
        assert series(store) == expected
        part = store.read(START_NS + 20 * S, START_NS + 60 * S, entities=[VMS[1]])
        assert [list(group.entities) for group in part.groups] == [[VMS[1]]]
        assert part.groups[0].values.tolist() == [[1.0, 2.0]]
        assert part.groups[0].interval_s == 20.0
        assert part.sources[0].host == "vc1"
        assert store.read(*EVER, metrics=["other"]).groups == []
        assert store.metrics() == ["cpu_ready_pct"]
        assert store.span_ns() == (START_NS, START_NS + 240 * S)


@pytest.mark.parametrize("steps", [(), (0, 1, 2, 3), (3,), (1,)])
def test_samples_are_kept_once(tmp_path: Path, steps: tuple[int, ...]) -> None:
    """Given twice, late, after the clock went back, with other VMs: the first measured value stays."""
    some = EntityColumn(VMS[3:])
    captures = [
        capture_of([[1, 2], [1, 2], [np.nan, 2], [1, 2], [1, 2]], [100, 120]),
        capture_of([[9, 3], [9, 3], [7, 3], [9, 3], [9, 3]], [120 - 20, 140]),
        capture_of([[5], [5]], [20], vms=some),
        capture_of([[8, 8, 6], [8, 8, 6]], [20, 100, 4000], vms=some),
    ]
    store = SampleStore(tmp_path)
    for step, capture in enumerate(captures):
        store.append(capture)
        if step in steps:
            store.maintain(whole=True)
    for _ in range(2):
        values = series(store)
        for vm in range(5):
            expected = {100: 7.0 if vm == 2 else 1.0, 120: 2.0, 140: 3.0} | ({20: 5.0, 4000: 6.0} if vm >= 3 else {})
            assert {second: value for (name, second), value in values.items() if name == f"vm{vm}"} == expected
        store = reopened(store)
    store.close()


def test_an_entity_that_is_named_twice_is_kept_once(tmp_path: Path) -> None:
    with SampleStore(tmp_path) as store:
        store.append(capture_of([[1], [2]], [0], vms=[VMS[0], VMS[0]]))
        assert series(store) == {("vm0", 0): 1.0}


def test_facts_keep_their_last_value(tmp_path: Path) -> None:
    inventory = Inventory()
    inventory.add(VMS[0], "vc", vcpu_count=4, power_state="on")
    inventory.add(VMS[1], "vc")
    inventory.links[Entity(EntityKind.GUEST, "g")] = VMS[0]
    store = SampleStore(tmp_path)
    store.append(capture_of(np.zeros((5, 1)), [0], inventory=inventory))
    size = (tmp_path / "log" / "0000000001.log").stat().st_size
    store.append(capture_of(np.zeros((5, 1)), [20], inventory=inventory))
    assert (tmp_path / "log" / "0000000001.log").stat().st_size - size < size
    inventory.facts[VMS[0]].clear()
    inventory.add(VMS[0], "vc", vcpu_count=8)
    store.append(Capture([], [], inventory))
    for _ in range(3):
        known = store.read(*EVER).inventory
        assert known.get(VMS[0], "vcpu_count") == 8
        assert known.get(VMS[0], "power_state") == "on"
        assert VMS[1] in known.facts
        assert known.links == {Entity(EntityKind.GUEST, "g"): VMS[0]}
        store.maintain(whole=True)
        store = reopened(store)
    store.close()


def test_events_are_added_to_those_that_are_known(tmp_path: Path) -> None:
    store = SampleStore(tmp_path)
    for kinds in (["vmotion"], ["vmotion", "snapshot"], ["alarm"]):
        inventory = Inventory()
        inventory.add(VMS[0], "vc", events=[{"time": "2026-09-21T00:00:00", "kind": kind} for kind in kinds])
        store.append(Capture([], [], inventory))
        store = reopened(store)
    events = store.read(*EVER).inventory.get(VMS[0], "events")
    assert [event["kind"] for event in events] == ["vmotion", "snapshot", "alarm"]
    store.close()


def vm_on(host: str, gone: Entity | None = None, **settings: Any) -> Inventory:
    """What a vCenter says of a VM that runs on a host, and of what it was before."""
    inventory = Inventory()
    vm = Entity(EntityKind.VM, "db", Entity(EntityKind.HOST, host))
    inventory.add(Entity(EntityKind.VIRTUAL_DISK, "disk 1", vm), "vc", size_gib=100)
    inventory.add(vm, "vc", **settings)
    inventory.links[Entity(EntityKind.GUEST, "g")] = vm
    if gone is not None:
        inventory.gone = dict.fromkeys([gone, Entity(EntityKind.VIRTUAL_DISK, "disk 1", gone)], "vc")
    return inventory


@pytest.mark.parametrize("is_opened_anew", [False, True])
def test_a_vm_that_moved_is_on_one_host_and_was_on_the_other(tmp_path: Path, *, is_opened_anew: bool) -> None:
    here, there = (Entity(EntityKind.VM, "db", Entity(EntityKind.HOST, name)) for name in ("esx1", "esx2"))

    def hosts(start_s: int) -> dict[str, object]:
        inventory = store.read(START_NS + start_s * S, 2**62).inventory
        return {vm.parent.name: inventory.get(vm, "vcpu_count") for vm in inventory.of_kind(EntityKind.VM) if vm.parent}

    store = SampleStore(tmp_path / "store", keep=FOR_EVER)
    store.append(capture_of(np.zeros((5, 1)), [0], inventory=vm_on("esx1", vcpu_count=4)))
    store.append(capture_of(np.zeros((5, 1)), [100], inventory=vm_on("esx2", here, vcpu_count=4)))
    if is_opened_anew:
        store.close()
        store = SampleStore(tmp_path / "store", keep=FOR_EVER)
    assert hosts(50) == {"esx1": 4, "esx2": 4}
    assert hosts(200) == {"esx2": 4}
    assert len(store.read(START_NS + 200 * S, 2**62).inventory.of_kind(EntityKind.VIRTUAL_DISK)) == 1
    assert store.read(*EVER).inventory.links == {Entity(EntityKind.GUEST, "g"): there}
    # It comes back, and is all there.
    store.append(capture_of(np.zeros((5, 1)), [300], inventory=vm_on("esx1", there, vcpu_count=4)))
    assert hosts(400) == {"esx1": 4}
    store.maintain(whole=True)
    assert hosts(400) == {"esx1": 4}
    store.close()


def test_a_limit_that_was_taken_away_is_no_more(tmp_path: Path) -> None:
    vm = Entity(EntityKind.VM, "db", Entity(EntityKind.HOST, "esx1"))
    store = SampleStore(tmp_path)
    store.append(Capture([], [], vm_on("esx1", vcpu_count=4, cpu_limit_mhz=2000)))
    assert store.read(*EVER).inventory.get(vm, "cpu_limit_mhz") == 2000
    for _ in range(2):
        store.append(Capture([], [], vm_on("esx1", vm, vcpu_count=4)))
        assert store.read(*EVER).inventory.get(vm, "cpu_limit_mhz") is None
        store = reopened(store)
    store.append(Capture([], [], vm_on("esx1", vm, vcpu_count=4, cpu_limit_mhz=2000)))
    assert store.read(*EVER).inventory.get(vm, "cpu_limit_mhz") == 2000
    store.close()


def test_what_is_gone_for_longer_than_samples_are_kept_is_forgotten(tmp_path: Path) -> None:
    here = Entity(EntityKind.VM, "db", Entity(EntityKind.HOST, "esx1"))
    with SampleStore(tmp_path / "store", keep=Retention(raw_s=3600)) as store:
        store.append(capture_of(np.zeros((5, 1)), [0], inventory=vm_on("esx1", vcpu_count=4)))
        store.append(capture_of(np.zeros((5, 1)), [100], inventory=vm_on("esx2", here, vcpu_count=4)))
        store.maintain(whole=True)
        catalogue = store._files.catalogue
        assert any(fact[0] == str(here) for fact in catalogue.facts())
        store.append(capture_of(np.zeros((5, 1)), [3 * 86_400]))
        store.maintain(whole=True)
        assert not any(fact[0].startswith("host:esx1") for fact in catalogue.facts() if "/" in fact[0])


@pytest.mark.parametrize("damage", ["cut", "flip", "zeros"])
def test_a_torn_end_of_the_log_is_cut(tmp_path: Path, damage: str) -> None:
    store = SampleStore(tmp_path)
    store.append(capture_of(np.full((5, 1), 1.0), [0]))
    path = tmp_path / "log" / "0000000001.log"
    size = path.stat().st_size
    store.append(capture_of(np.full((5, 1), 2.0), [20]))
    store.close()
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[: (size + len(content)) // 2]
    elif damage == "flip":
        content[-1] ^= 1
    else:
        content[size:] = bytes(len(content) - size)
    path.write_bytes(content)
    with SampleStore(tmp_path) as again:
        assert series(again) == {(f"vm{i}", 0): 1.0 for i in range(5)}
        again.append(capture_of(np.full((5, 1), 3.0), [40]))
        again.maintain(whole=True)
        assert len(series(again)) == 10


def test_two_writers_are_refused(tmp_path: Path) -> None:
    with SampleStore(tmp_path) as store:
        store.append(capture_of(np.ones((5, 1)), [0]))
        with pytest.raises(UsageError, match=rf"process {os.getpid()} writes to this store; expected one writer"):
            SampleStore(tmp_path)
        with SampleStore(tmp_path, read_only=True) as reader:
            assert len(series(reader)) == 5
            with pytest.raises(UsageError, match="opened for reading"):
                reader.append(capture_of(np.ones((5, 1)), [0]))
    SampleStore(tmp_path).close()


def test_there_must_be_a_store_to_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sample store"):
        SampleStore(tmp_path, read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_files_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with SampleStore(folder) as store:
        store.append(capture_of(np.ones((5, 1)), [0]))
        store.maintain(whole=True)
        store.append(capture_of(np.ones((5, 1)), [20]))
        assert {path.stat().st_mode & 0o077 for path in (folder, *folder.rglob("*"))} == {0}


_WRITER = """
import os, struct, sys
from pathlib import Path
import numpy as np
from tests.stores.test_samples import VMS, capture_of
from leadline.stores.samples import SampleStore
first = int(sys.argv[2])
store = SampleStore(Path(sys.argv[1]))
for number in range(first, first + 100000):
    store.append(capture_of(np.full((5, 1), number % 1000), [20 * number]))
    os.write(1, struct.pack("<q", number))
    if number % 7 == 0:
        store.maintain(whole=True)
"""


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_a_kill_loses_nothing_acknowledged(tmp_path: Path, kills: int) -> None:
    acknowledged: list[int] = []
    folder = tmp_path / "store"
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for kill in range(kills):
        words = [sys.executable, "-c", _WRITER, str(folder), str(kill * 900)]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            received = child.stdout.read(8)
            threading.Timer(rng.uniform(0, 0.15), child.send_signal, [signal.SIGKILL]).start()
            received += child.stdout.read()
        whole = received[: len(received) // 8 * 8]
        assert whole, f"seed {seed}"
        acknowledged += [number for (number,) in struct.iter_unpack("<q", whole)]
        with SampleStore(folder, read_only=True) as reader:
            assert_acknowledged(reader, acknowledged, seed)
    with SampleStore(folder) as store:
        store.maintain(whole=True)
        assert_acknowledged(store, acknowledged, seed)
        counted = {path.name for path in (folder / "segments").iterdir()}
        assert len(counted) == store.status().segment_count
        assert list((folder / "log").iterdir()) == []


def assert_acknowledged(store: SampleStore, acknowledged: list[int], seed: int) -> None:
    samples = series(store)
    missing = [n for n in acknowledged for vm in range(5) if samples.get((f"vm{vm}", 20 * n)) != n % 1000]
    assert missing == [], f"seed {seed}"


def test_a_full_disk_stops_and_goes_on(tmp_path: Path) -> None:
    """The kernel refuses to let a file grow, as a full disk does; later it lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with SampleStore(tmp_path) as store:
        store.append(capture_of(np.full((5, 1), 1.0), [0]))
        size = (tmp_path / "log" / "0000000001.log").stat().st_size
        try:
            for attempt, room in enumerate((1, 100, 1000)):
                resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, hard))
                with pytest.raises(ToolError, match="cannot be used"):
                    store.append(capture_of(np.full((5, 100), 2.0), 20 + np.arange(100)))
                assert len(series(store)) == 5
                assert store.status().refusals == attempt + 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, handler)
        store.append(capture_of(np.full((5, 1), 3.0), [40]))
        assert len(series(store)) == 10
    with SampleStore(tmp_path) as store:
        assert len(series(store)) == 10


def test_a_full_disk_during_compaction_changes_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with SampleStore(tmp_path) as store:
        store.append(capture_of(np.random.default_rng(1).random((5, 300)), np.arange(300)))
        before = series(store)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
            with pytest.raises(ToolError, match="cannot be used"):
                store.maintain(whole=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, handler)
        assert list((tmp_path / "segments").iterdir()) == []
        assert series(store) == before
        store.maintain(whole=True)
        assert series(store) == before
        assert store.status().segment_count == 1


_READER = """
import sys
from pathlib import Path
from tests.stores.test_samples import EVER, series
from leadline.stores.samples import SampleStore
before = 0
with SampleStore(Path(sys.argv[1]), read_only=True) as reader:
    print("open", flush=True)
    while True:
        samples = series(reader)
        seconds = {second for _, second in samples}
        assert len(samples) == 5 * len(seconds), "half a capture"
        assert len(seconds) >= before, "samples went away"
        assert not seconds or len(seconds) == max(seconds) // 20 + 1, "a hole"
        before = len(seconds)
        if before >= 300:
            break
"""


def test_a_reader_sees_whole_captures_while_the_store_is_compacted(tmp_path: Path) -> None:
    with SampleStore(tmp_path) as store:
        words = [sys.executable, "-c", _READER, str(tmp_path)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
            assert reader.stdout is not None and reader.stderr is not None
            reader.stdout.readline()
            for number in range(300):
                store.append(capture_of(np.full((5, 1), number), [20 * number]))
                if number % 5 == 0:
                    store.maintain(whole=True)
            errors = reader.stderr.read()
        assert reader.returncode == 0, errors.decode()


def test_a_reader_that_is_slower_than_the_compactions_comes_to_its_end(tmp_path: Path) -> None:
    is_over = threading.Event()

    def maintain() -> None:
        number = 0
        while not is_over.is_set():
            store.append(capture_of(np.full((5, 1), number), [20 * number]))
            store.maintain(whole=True)
            number += 1

    def slowly() -> int:
        before = files.catalogue.state("generation")
        time.sleep(0.5)
        changed.append(files.catalogue.state("generation") - before)
        return 1

    changed: list[int] = []
    with SampleStore(tmp_path) as store:
        maintainer = threading.Thread(target=maintain)
        maintainer.start()
        files = StoreFiles(tmp_path, SampleCatalogue(tmp_path / CATALOGUE, read_only=True))
        try:
            assert files.consistently(slowly) == 1
        finally:
            is_over.set()
            maintainer.join()
            files.catalogue.close()
    assert min(changed[:-1]) > 0, "the writer did not disturb it: nothing is shown"
    assert changed[-1] == 0


def test_a_reader_that_was_stopped_holds_up_no_compaction_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "holding_turn", partial(holding_turn, wait_s=0.1))
    with SampleStore(tmp_path) as store, holding_turn(tmp_path) as is_mine:
        assert is_mine
        store.append(capture_of(np.ones((5, 1)), [0]))
        store.maintain(whole=True)
        assert store.status().segment_count == 1


def test_a_gap_is_told(tmp_path: Path) -> None:
    with SampleStore(tmp_path) as store:
        store.append(capture_of(np.ones((5, 30)), 20 * np.arange(30)))
        store.maintain(whole=True)
        store.append(capture_of(np.ones((5, 30)), 3600 + 20 * np.arange(30)))
        gap = (START_NS + 600 * S, START_NS + 3600 * S)
        assert store.status().gaps_ns == (gap,)
        warnings = store.read(*EVER).sources[-1].warnings
        assert [warning.code for warning in warnings] == ["gap"]
        assert "2026-09-21T00:10:00 to 2026-09-21T01:00:00" in warnings[0].message


def test_a_thread_appends_and_reads_while_another_maintains(tmp_path: Path) -> None:
    """Every sample is there once, at any moment; columns of entities change so that both threads number them."""
    count, is_over = 80, threading.Event()
    errors: list[Exception] = []

    def maintain() -> None:
        try:
            while not is_over.is_set():
                store.maintain(whole=True)
        except Exception as error:
            errors.append(error)

    with SampleStore(tmp_path, keep=FOR_EVER) as store:
        maintainer = threading.Thread(target=maintain)
        maintainer.start()
        for number in range(count):
            vms = [Entity(EntityKind.VM, f"{name}{number % 3}") for name in "abc"]
            store.append(capture_of(np.full((3, 1), number), [number * 10_800], vms=vms))
            if number % 20 == 0:
                assert len(series(store)) == 3 * (number + 1)
                assert store.status().sample_count >= 3 * (number + 1)
        is_over.set()
        maintainer.join()
        assert errors == []
    with SampleStore(tmp_path) as store:
        expected = {(f"{name}{n % 3}", n * 10_800): float(n) for n in range(count) for name in "abc"}
        assert series(store) == expected


def test_a_store_that_is_closed_ends_the_maintenance_of_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SampleStore(tmp_path, keep=FOR_EVER)
    for number in range(30):
        store.append(capture_of(np.full((5, 1), number), [number * 86_400]))
    is_at_work, compact_days = threading.Event(), Compaction.compact_days

    def announced(self: Compaction, now_ns: int) -> None:
        is_at_work.set()
        compact_days(self, now_ns)

    monkeypatch.setattr(Compaction, "compact_days", announced)
    maintainer = threading.Thread(target=store.maintain, kwargs={"whole": True})
    maintainer.start()
    assert is_at_work.wait(30)
    store.close()
    maintainer.join()
    with SampleStore(tmp_path, keep=FOR_EVER) as again:
        again.maintain(whole=True)
        assert len(series(again)) == 150


def test_a_log_that_another_thread_begins_is_not_compacted_while_it_is_appended_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log becomes full just when a maintenance lists those that it compacts."""
    store, list_logs, appenders = SampleStore(tmp_path), StoreFiles.logs, list[threading.Thread]()

    def slowly(files: StoreFiles) -> list[Path]:
        if not appenders:
            monkeypatch.setattr(samples, "FILE_BYTES_MAX", 1)
            appenders.append(threading.Thread(target=store.append, args=(capture_of(np.ones((5, 1)), [20]),)))
            appenders[0].start()
            appenders[0].join(0.5)
        return list_logs(files)

    store.append(capture_of(np.ones((5, 1)), [0]))
    monkeypatch.setattr(StoreFiles, "logs", slowly)
    store.maintain()
    appenders[0].join()
    monkeypatch.undo()
    store.append(capture_of(np.ones((5, 1)), [40]))
    store = reopened(store)
    assert len(series(store)) == 15
    store.close()
