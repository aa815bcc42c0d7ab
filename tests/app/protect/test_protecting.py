"""Shards survive what their scheme says, no more; what is measured is what was written; nothing is left behind."""

from __future__ import annotations

import ctypes
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.app.measure.nbd import Export, NbdServer
from leadline.app.protect import shards as protecting_shards
from leadline.app.protect.failures import COMBINATIONS_MAX, Trials, failed_sets
from leadline.app.protect.nodes import MARK, FolderNode, Workspace, left_behind
from leadline.app.protect.protecting import ProtectionRequest, RateEstimate, clean, make_plan, run_protection, size_of
from leadline.app.protect.shards import Coder, ProtectionScheme, aligned, library_version
from leadline.app.protect.streams import StreamPhase, StreamSource, WriteLoad, Writers
from leadline.core.model.errors import ToolError, UsageError

KIB, MIB = 1024, 1024**2
UNIT = 16 * KIB

needs_servers = pytest.mark.skipif(
    shutil.which("qemu-storage-daemon") is None or shutil.which("setpriv") is None,
    reason="needs qemu-storage-daemon and setpriv",
)


@st.composite
def losses(draw: st.DrawFn) -> tuple[ProtectionScheme, tuple[int, ...], int]:
    """A scheme, shards to lose that it tolerates, a seed."""
    k, m = draw(st.integers(1, 12)), draw(st.integers(0, 5))
    count = draw(st.integers(0, m))
    lost = draw(st.sets(st.integers(0, k + m - 1), min_size=count, max_size=count))
    return ProtectionScheme(k, m), tuple(sorted(lost)), draw(st.integers(0, 2**32))


def stripe_of(scheme: ProtectionScheme, unit: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    if scheme.data_count == 1:
        return [rng.integers(0, 256, unit, dtype=np.uint8)] * scheme.shard_count
    shards = [aligned(unit) for _ in range(scheme.shard_count)]
    for shard in shards[: scheme.data_count]:
        shard[:] = rng.integers(0, 256, unit, dtype=np.uint8)
    return shards


@given(losses())
@settings(max_examples=150, deadline=None)
def test_any_tolerated_loss_is_restored(case: tuple[ProtectionScheme, tuple[int, ...], int]) -> None:
    scheme, lost, seed = case
    coder = Coder(scheme, 4096)
    shards = stripe_of(scheme, 4096, seed)
    coder.encode(shards)
    present = [i for i in range(scheme.shard_count) if i not in lost]
    sources = coder.sources(present)
    out = [aligned(4096) for _ in lost]
    coder.restore(sources, [shards[i] for i in sources], lost, out)
    for index, made in zip(lost, out, strict=True):
        assert np.array_equal(made, shards[index])


@pytest.mark.parametrize("text", ["3+2", "4+3", "10+4"])
def test_parity_is_the_bytes_that_pyeclib_makes(text: str) -> None:
    driver = pytest.importorskip("pyeclib.ec_iface").ECDriver
    scheme = ProtectionScheme.parse(text)
    shards = stripe_of(scheme, 4096, 7)
    Coder(scheme, 4096).encode(shards)
    other = driver(k=scheme.data_count, m=scheme.parity_count, ec_type="isa_l_rs_cauchy")
    made = other.encode(b"".join(shard.tobytes() for shard in shards[: scheme.data_count]))
    assert [shard[-4096:] for shard in made] == [shard.tobytes() for shard in shards]


def test_one_shard_too_few_is_lost() -> None:
    with pytest.raises(ValueError, match="2 of 5 shards left, 3 needed"):
        Coder(ProtectionScheme(3, 2), 4096).sources([1, 4])


@pytest.mark.parametrize("text", ["0+2", "3", "x", "0x", "200+100", "3+", "-1+2"])
def test_a_scheme_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="For example 3\\+2"):
        ProtectionScheme.parse(text)


def test_schemes_are_named_as_they_are_given() -> None:
    assert [str(ProtectionScheme.parse(text)) for text in ("3+2", "3x", "1x", "4+0")] == ["3+2", "3x", "1x", "4+0"]
    assert ProtectionScheme.parse("3+2").amplification == pytest.approx(5 / 3)


def test_without_isa_l_copies_work_and_coding_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(protecting_shards, "_candidates", lambda: iter(["/nonexistent/libisal.so"]))
    protecting_shards.isal.cache_clear()
    try:
        with pytest.raises(ToolError, match=r"pip install 'leadline\[protect\]', or apt-get install libisal2"):
            make_plan(small(tmp_path))
        assert run_protection(make_plan(small(tmp_path, "2x", fail_count=1))).survivals[0].survived
    finally:
        protecting_shards.isal.cache_clear()


def test_the_version_of_isa_l_is_told() -> None:
    assert library_version()[0].isdigit() or library_version() == "before 2.31"


def test_a_stream_is_made_again_and_no_block_of_it_twice() -> None:
    one, again, other = (aligned(3 * MIB) for _ in range(3))
    StreamSource(5, 3 * MIB).fill(2, 9, one)
    StreamSource(5, 3 * MIB).fill(2, 9, again)
    StreamSource(6, 3 * MIB).fill(2, 9, other)
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    source, blocks = StreamSource(5, 3 * MIB), set()
    for stream in range(4):
        for stripe in range(8):
            source.fill(stream, stripe, one)
            blocks |= {block.tobytes() for block in one.reshape(-1, 4096)}
    assert len(blocks) == 4 * 8 * 768


@pytest.mark.parametrize("written", [1, 4, 5, 8, 11])
def test_a_slot_holds_its_latest_stripe(written: int) -> None:
    load = WriteLoad(ProtectionScheme(1, 1), 1, UNIT, 4 * UNIT, 1.0, 1)
    phase = StreamPhase(load, [written], [0])
    held: dict[int, int] = {}
    for stripe in range(written):
        held[stripe % load.slot_count] = stripe
    assert {slot: phase.latest(0, slot) for slot in held} == held


def small(folder: Path, *schemes: str, **changes: object) -> ProtectionRequest:
    request = ProtectionRequest(
        tuple(ProtectionScheme.parse(text) for text in schemes or ("3+2", "3x")),
        (1, 3),
        on=folder,
        node_count=5,
        unit_bytes=UNIT,
        size_bytes=12 * UNIT,
        repeat_count=2,
    )
    return replace(request, **changes)  # type: ignore[arg-type] # fields by name


def test_both_schemes_survive_the_same_two_failures_at_their_cost(tmp_path: Path) -> None:
    outcome = run_protection(make_plan(small(tmp_path)))
    assert outcome.is_complete
    found = outcome.to_dict()
    coded, copies = (one for one in found["failures"])
    assert [one["failed"] for one in coded["combinations"]] == [list(pair) for pair in combinations(range(5), 2)]
    assert [one["failed"] for one in copies["combinations"]] == [one["failed"] for one in coded["combinations"]]
    for one in (coded, copies):
        assert one["survived"]
        assert all(part["stripe_count"] > 0 and part["wrong_count"] == 0 for part in one["combinations"])
        assert not one["one_more_than_tolerated"]["survived"]
        assert one["one_more_than_tolerated"]["lost_count"] > 0
        assert one["rebuild"]["proof"]["survived"]
    # 3 VMs of 4 stripes of 3+2: one of two lost nodes' shards per stripe is read three times over, two are written.
    assert coded["rebuild"]["read_bytes"] == 3 * 4 * 3 * UNIT
    assert coded["rebuild"]["written_bytes"] == 3 * 4 * 2 * UNIT
    cost = {cell["scheme"]: cell for cell in found["cells"] if cell["vms"] == 3}
    assert cost["3+2"]["written_per_byte"] == pytest.approx(5 / 3)
    assert cost["3x"]["written_per_byte"] == 3.0
    assert cost["3+2"]["stored_per_byte"] == pytest.approx(5 / 3, rel=0.1)  # a file system rounds small files up
    assert cost["3x"]["stored_per_byte"] == pytest.approx(3.0, rel=0.1)
    assert cost["3+2"]["sent_per_byte_encoder_on_first_node"] == pytest.approx(1 + 4 / 3)
    assert cost["3x"]["sent_per_byte_encoder_on_first_node"] == 3.0
    assert all(len(cell["node_bytes_per_s"]) == 5 for cell in found["cells"])
    assert all(cell["data_bytes_per_s"]["low"] > 0 for cell in found["cells"])
    assert list(tmp_path.iterdir()) == []


def test_more_failures_than_tolerated_are_data_loss(tmp_path: Path) -> None:
    outcome = run_protection(make_plan(small(tmp_path, "3+2", "4+1", "2x", fail_count=2)))
    assert [str(one.scheme) for one in outcome.lost] == ["4+1", "2x"]
    assert all(reading.lost_count for reading in outcome.lost[0].readings)
    assert all(one.rebuild is None for one in outcome.lost)


def test_a_timed_round_goes_around_and_still_reads_back(tmp_path: Path) -> None:
    outcome = run_protection(make_plan(small(tmp_path, "3+2", seconds=0.15, vm_counts=(2,), node_count=7)))
    phase = outcome.cells[0].phases[-1]
    assert min(phase.stripes) > phase.load.slot_count  # the ring was overwritten
    assert phase.kept_bytes == 2 * phase.load.slot_count * phase.load.stripe_bytes
    assert outcome.survivals[0].survived
    assert len(outcome.survivals[0].readings) == 21
    assert outcome.cells[0].to_dict()["stored_per_byte"] == pytest.approx(5 / 3, rel=0.1)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[Trials, Path]]:
    nodes = [FolderNode(f"n{i}", tmp_path / f"n{i}") for i in range(5)]
    load = WriteLoad(ProtectionScheme(3, 2), 2, UNIT, 12 * UNIT, None, 1)
    source, stop = StreamSource(1, load.stripe_bytes), threading.Event()
    phase = Writers(nodes, source, stop).run(load)
    yield Trials(nodes, source, phase, stop), tmp_path
    for node in nodes:
        node.remove()
    assert list(tmp_path.iterdir()) == []


def test_every_set_of_failed_nodes_is_tried_and_told(written: tuple[Trials, Path]) -> None:
    trials, _ = written
    for count in range(6):
        for failed in failed_sets(5, count, 1):
            assert trials.read_without(failed).survived == (count <= 2), failed


def test_a_changed_byte_is_found(written: tuple[Trials, Path]) -> None:
    trials, folder = written
    path = folder / "n0" / "vm-0000.shards"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    reading = trials.read_without(())
    assert (reading.wrong_count, reading.lost_count, reading.survived) == (1, 0, False)


def test_a_shard_cut_short_is_restored_from_others(written: tuple[Trials, Path]) -> None:
    trials, folder = written
    path = folder / "n0" / "vm-0000.shards"
    path.write_bytes(path.read_bytes()[:UNIT])
    reading = trials.read_without(())
    assert reading.survived
    assert reading.restored_count > 0


def test_many_nodes_fail_in_drawn_sets() -> None:
    drawn = failed_sets(20, 3, 1)
    assert len(drawn) == COMBINATIONS_MAX == len(set(drawn))
    assert drawn == failed_sets(20, 3, 1)
    assert (0, 1, 2) in drawn


def test_a_node_that_refuses_writes_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        return 0

    monkeypatch.setattr("leadline.app.protect.nodes.os.pwrite", full)
    with pytest.raises(ToolError, match=r"node-\d: writing failed: 0 of 16384 bytes written"):
        run_protection(make_plan(small(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_an_estimate_of_one_round_has_no_interval() -> None:
    one = RateEstimate.of([4.0])
    assert one.mean == 4.0
    assert isnan(one.low)
    assert isnan(one.variation)
    many = RateEstimate.of([4.0, 5.0, 6.0, 5.0])
    assert many.low < many.mean == 5.0 < many.high
    assert many.variation == pytest.approx(np.std([4, 5, 6, 5], ddof=1) / 5)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"size_bytes": 2**60}, "GB for what is held at a time"),
        ({"node_count": 4}, "at least 5: one for each shard"),
        ({"fail_count": 6}, "at most 5, the nodes there are"),
        ({"unit_bytes": 1000}, "a multiple of 4096"),
        ({"vm_counts": (0,)}, "numbers from 1"),
        ({"repeat_count": 0}, "1 or more"),
        ({"seconds": 0.0}, "more than 0"),
        ({"schemes": (ProtectionScheme(1, 1), ProtectionScheme(1, 1))}, "distinct schemes"),
        ({"targets": ("/dev/null",) * 5}, "one node twice"),
        ({"destroy": frozenset({"nbd://a/b"})}, "no NBD node of that very name"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    changes: dict[str, object], part: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=part):
        make_plan(small(tmp_path, **changes))
    assert list(tmp_path.iterdir()) == []


def test_files_and_devices_are_no_nodes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    folders = tuple(str(tmp_path / name) for name in "abcd")
    for name in folders:
        Path(name).mkdir()
    with pytest.raises(UsageError, match="a file; expected an existing folder"):
        make_plan(small(tmp_path, targets=(*folders, str(tmp_path / "file"))))
    assert (tmp_path / "file").read_text() == "mine"


def test_folders_of_ones_own_keep_what_they_hold(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abcde"]
    for folder in folders:
        folder.mkdir()
        (folder / "precious").write_text(folder.name)
    outcome = run_protection(make_plan(small(tmp_path, targets=tuple(map(str, folders)))))
    assert all(one.survived for one in outcome.survivals)
    for folder in folders:
        assert [(file.name, file.read_text()) for file in folder.iterdir()] == [("precious", folder.name)]


def test_only_folders_of_dead_runs_are_removed(tmp_path: Path) -> None:
    living = Workspace.make([tmp_path])
    dead = tmp_path / "leadline-protect-1-abc"
    dead.mkdir()
    (dead / MARK).write_text('{"leadline_protect": 1}')
    (dead / "node-0").mkdir()
    foreign = tmp_path / "leadline-protect-notes"
    foreign.mkdir()
    (foreign / MARK).write_text("not ours")
    (foreign / "precious").write_text("mine")
    (tmp_path / "leadline-protect-link").symlink_to(dead)
    assert left_behind(tmp_path) == [dead]
    assert make_plan(small(tmp_path)).left_behind == (dead,)
    assert clean(tmp_path) == [dead]
    assert living.folders[0].is_dir()
    assert (foreign / "precious").exists()
    living.remove()
    assert clean(tmp_path) == []


@pytest.mark.parametrize(("text", "size"), [("4096", 4096), ("64K", 65536), ("1.5GiB", 3 * 2**29), ("2mb", 2**21)])
def test_sizes(text: str, size: int) -> None:
    assert size_of(text, "--unit") == size


@pytest.mark.parametrize("text", ["", "M", "many", "1X"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="For example 64K"):
        size_of(text, "--unit")


@pytest.mark.real
@needs_servers
def test_killed_nbd_servers_lose_nothing(tmp_path: Path) -> None:
    outcome = run_protection(make_plan(small(tmp_path, is_nbd=True, repeat_count=1, vm_counts=(2,))))
    assert all(one.survived and one.beyond is not None and not one.beyond.survived for one in outcome.survivals)
    assert all(one.rebuild and one.rebuild.proof and one.rebuild.proof.survived for one in outcome.survivals)
    cost = outcome.cells[0].to_dict()
    assert cost["sent_per_byte"] == pytest.approx(5 / 3 * (1 + 28 / UNIT))  # with the header of each request
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[list[NbdServer]]:
    """Servers that Leadline did not start."""
    servers = [NbdServer(f"s{i}", tmp_path / f"s{i}.img", 4 * MIB) for i in range(3)]
    yield servers
    for server in servers:
        server.remove()


@pytest.mark.real
@needs_servers
def test_an_export_with_data_is_refused_until_it_is_named(foreign: list[NbdServer], tmp_path: Path) -> None:
    data = np.frombuffer(b"somebody's data".ljust(4096), dtype=np.uint8)
    export = Export(foreign[1].uri)
    export.write(MIB + 8192, data)
    export.close()
    uris = tuple(server.uri for server in foreign)
    request = small(tmp_path, "2+1", targets=uris, node_count=0, fail_count=1, repeat_count=1)
    with pytest.raises(UsageError, match=f"{uris[1]}: the export holds data; expected zeros"):
        run_protection(make_plan(request))
    outcome = run_protection(make_plan(replace(request, destroy=frozenset({uris[1]}))))
    assert outcome.survivals[0].survived
    assert isnan(outcome.cells[0].to_dict()["stored_per_byte"])  # another's export does not say
    for uri in uris:
        export = Export(uri)
        content = np.empty(4 * MIB, dtype=np.uint8)
        export.read(0, content)
        export.close()
        assert not content.any()


@pytest.mark.real
@needs_servers
def test_an_export_too_small_or_not_there_is_told(foreign: list[NbdServer], tmp_path: Path) -> None:
    uris = tuple(server.uri for server in foreign)
    large = small(tmp_path, "3x", targets=uris, size_bytes=8 * MIB, fail_count=1)
    with pytest.raises(UsageError, match=r"0\.00 GB; expected at least 0\.03 GB"):
        run_protection(make_plan(large))
    foreign[2].kill()
    with pytest.raises(ToolError, match="expected an NBD export"):
        run_protection(make_plan(replace(large, size_bytes=4 * UNIT)))


def test_without_libnbd_an_address_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from leadline.app.measure import nbd as protecting_nbd

    def missing(_: str) -> ctypes.CDLL:
        raise OSError

    protecting_nbd._libnbd.cache_clear()
    monkeypatch.setattr("leadline.app.measure.nbd.ctypes.CDLL", missing)
    uris = tuple(f"nbd://127.0.0.1:{port}/x" for port in (1, 2))
    with pytest.raises(ToolError, match="apt-get install libnbd0"):
        run_protection(make_plan(small(tmp_path, "2x", targets=uris, fail_count=1)))
    monkeypatch.undo()
    protecting_nbd._libnbd.cache_clear()
