"""The vdbench driver. The program is never run here: a stand-in writes what the documented program writes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.app.fleet import easy_order, order
from leadline.app.fleet.file import read_fleet
from leadline.app.fleet.fleet import WorkerLoad
from leadline.app.measure.benching import DriverCarrier, capture_of, driver_of, plan, run
from leadline.app.measure.guests import workload_in
from leadline.app.measure.rounds import Talk
from leadline.app.measure.workloads import BY_SSH, driven_by, workload_of
from leadline.benchmarks import vdbench
from leadline.benchmarks._vdbench.parameters import VdbenchDisk, run_text, whole_shares
from leadline.benchmarks._vdbench.program import program_path
from leadline.core.contracts.benchmark import Place, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Tick
from leadline.core.model.workload import Stream, Workload, parse_workload
from leadline.core.system.opened import Identity
from leadline.core.system.tools import TOOLS, VDBENCH_PAGE, VDBENCH_VARIABLE, examine
from leadline.formats.vdbench.flatfile import average_of, has_bucket
from leadline.lab.specification import Guest
from leadline.stores.runs import RunStore
from tests.conftest import ROOT

STAND_IN = Path(__file__).with_name("vdbench_stand_in.py")
DISK = VdbenchDisk("/proc/7/fd/9", 2**30, buffered=False)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the user unpacks it: a script `vdbench`, which passes no signal on to what it starts."""
    folder = tmp_path / "vdbench50407"
    folder.mkdir()
    script = folder / "vdbench"
    script.write_text(f'#!/bin/sh\n{shlex.quote(sys.executable)} {shlex.quote(str(STAND_IN))} "$@"\nexit $?\n')
    script.chmod(0o755)
    monkeypatch.setenv(VDBENCH_VARIABLE, str(folder))
    return folder


def workload(stream: str = "", settings: str = "", timing: str = "warm_up_s: 0, measure_s: 3, rounds: 1") -> Workload:
    text = (
        f"name: t\nio: [{{name: oltp, block: 8k{stream}}}]\nio_settings: {{tool: vdbench, working_set: 2m{settings}}}"
    )
    return parse_workload(f"{text}\ntiming: {{{timing}}}\n", "t.yaml")


def lines_of(stream: Stream, seconds: float = 30.0) -> list[str]:
    return run_text(stream, Step("round-1", seconds, 7), DISK, "/x/monitor.txt").splitlines()


def test_a_stream_becomes_a_parameter_file() -> None:
    stream = Stream(name="oltp", read_pct=70.0, random_pct=80.0, oio=16, jobs=2)
    assert lines_of(stream) == [
        "* Written by Leadline.",
        "monitor=/x/monitor.txt",
        "sd=sd1,lun=/proc/7/fd/9,size=1073741824,threads=32,openflags=o_direct",
        "wd=wd1,sd=sd1,xfersize=8192,rdpct=70,seekpct=80",
        "rd=oltp,wd=wd1,iorate=max,elapsed=30,interval=1,warmup=1",
    ]


def test_mixes_rates_and_names_become_those_of_vdbench() -> None:
    mixed = Stream(name="redo-log", block={"4k": 25, "64k": 75}, read_pct=0.4, rate_iops={"read": 2, "write": 498})
    assert lines_of(mixed, 1.0)[3:] == [
        "wd=wd1,sd=sd1,xfersize=(4096,25,65536,75),rdpct=1,seekpct=100",
        "rd=redo_log,wd=wd1,iorate=500,distribution=exponential,elapsed=2,interval=1,warmup=1",
    ]
    even = Stream(name="1st", rate_iops={"read": 0.5}, arrivals="even", random_pct=0.0)
    assert lines_of(even)[-1].startswith("rd=run_1st,wd=wd1,iorate=0.5,distribution=deterministic,")
    assert "openflags" not in VdbenchDisk("/x", 1, buffered=True).line(1)
    assert whole_shares({512: 0.3, 4096: 49.9, 8192: 49.8}) == {512: 1, 4096: 49, 8192: 50}


@pytest.mark.parametrize(
    ("stream", "settings", "key"),
    [
        (", burst: {on_s: 1, off_s: 1}", "", "stream oltp: burst"),
        (", request_burst: {requests: 8, gap_s: 1}", "", "stream oltp: request_burst"),
        (", think_time_s: 1ms", "", "stream oltp: think_time_s"),
        (", read_pct: 0, sync_every: 1", "", "stream oltp: sync_every"),
        (", rate_iops: 999988", "", "stream oltp: rate_iops"),
        (", read_pct: 0", ", verify: true", "io_settings.verify"),
        ("", ", engine: libaio", "io_settings.engine"),
        ("", ", compress_pct: 50", "io_settings.compress_pct"),
        ("", ", dedupe_pct: 50", "io_settings.dedupe_pct"),
        ("", ", cpus: '0'", "io_settings.cpus"),
        ("", ", numa_node: 0", "io_settings.numa_node"),
    ],
)
def test_what_vdbench_cannot_do_is_refused_by_its_key(
    tmp_path: Path, program: Path, stream: str, settings: str, key: str
) -> None:
    with pytest.raises(UsageError, match=r"--tool fio") as caught:
        plan(workload(stream, settings), Target(str(tmp_path)))
    assert caught.value.where == key


def test_several_streams_and_rare_sizes_are_refused(tmp_path: Path, program: Path) -> None:
    text = "name: t\nio: [{name: a}, {name: b}]\nio_settings: {tool: vdbench}\n"
    with pytest.raises(UsageError, match="2 streams"):
        plan(parse_workload(text, "t.yaml"), Target(str(tmp_path)))
    rare = "name: t\nio: [{name: a, block: {512: 99.9, 4m: 0.1}}]\nio_settings: {tool: vdbench}\n"
    with pytest.raises(UsageError, match="whole percents make"):
        plan(parse_workload(rare, "t.yaml"), Target(str(tmp_path)))


def test_without_the_program_one_error_says_where_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(VDBENCH_VARIABLE, raising=False)
    with pytest.raises(ToolError) as caught:
        plan(workload(), Target(str(tmp_path)))
    assert VDBENCH_PAGE in str(caught.value)
    assert VDBENCH_VARIABLE in str(caught.value)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv(VDBENCH_VARIABLE, str(tmp_path / "empty"))
    with pytest.raises(ToolError, match="no script"):
        program_path()


def test_the_program_is_in_the_folder_of_the_variable_or_on_the_path(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = str(program / "vdbench")
    assert program_path() == script
    state = examine(next(tool for tool in TOOLS if tool.name == "vdbench"))
    assert (state.path, state.version) == (script, None), "it would start a Java to answer"
    assert state.install == f"Download it from {VDBENCH_PAGE}"
    monkeypatch.setenv(VDBENCH_VARIABLE, script)
    assert program_path() == script
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "vdbench").symlink_to(script)  # the script looks for its classes beside itself
    monkeypatch.delenv(VDBENCH_VARIABLE)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert program_path() == script


def test_the_tool_of_a_workload_chooses_the_driver() -> None:
    assert driver_of(workload())[0] == "vdbench"
    shipped = workload_of("hci-8k-50-50")
    assert driver_of(shipped)[0] == "fio"
    assert driven_by(shipped, None) is shipped
    assert driver_of(driven_by(shipped, "vdbench"))[0] == "vdbench"
    assert driven_by(driven_by(shipped, "vdbench"), "fio").plain() == shipped.plain()
    with pytest.raises(UsageError, match="expected one of fio, vdbench"):
        driven_by(shipped, "dd")
    with pytest.raises(UsageError, match="kind database"):
        driven_by(workload_of("pgbench"), "vdbench")


def test_a_run_has_the_figures_of_vdbench_and_leaves_nothing(tmp_path: Path, program: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    store = RunStore(tmp_path / "home")
    timing = "warm_up_s: 30, measure_s: 3, rounds: 2"
    done = run(plan(workload(", read_pct: 70", timing=timing), Target(str(folder))), store)
    assert list(folder.iterdir()) == []
    assert done.tool == "vdbench"
    assert done.tool_version == "5.04.07"
    assert done.warm_up is not None
    assert done.warm_up.steady
    assert [len(part.ticks) for part in done.rounds] == [3, 3], "the first second is in no average"
    assert {tick.per_s for part in done.rounds for tick in part.ticks} == {1000.0}
    read, write = done.pooled()
    assert (read.name, write.name) == ("oltp read", "oltp write")
    assert (read.per_s, write.per_s) == pytest.approx((700.0, 300.0))
    assert read.bytes_per_s + write.bytes_per_s == pytest.approx(1000.0 * 8192, rel=1e-4)
    assert read.mean_ms == 0.25
    assert read.count == 2 * 3 * 700
    assert 4.0 <= read.percentiles_ms["p99"][0] <= 6.0 or 2.0 <= read.percentiles_ms["p99"][0] <= 4.0
    assert any("no seed" in note for note in done.notes)
    assert not any("was not honoured" in note for note in done.notes)
    assert {result.tool for result in capture_of(done.id, store).results} == {"vdbench"}
    kept = {path.name for path in store.files_of(done.id).iterdir()}
    assert {"round-1.vdbench", "round-1.txt", "fill.vdbench"} <= kept


def test_one_direction_has_the_longest_response_time_too(tmp_path: Path, program: Path) -> None:
    store = RunStore(tmp_path / "home")
    (tmp_path / "data").write_bytes(bytes(2**21))
    done = run(plan(workload(), Target(str(tmp_path / "data"))), store)
    (result,) = done.rounds[0].results
    (read,) = result.operations
    assert read.latency_ms["max"] == 4.5
    assert read.bytes_per_s == pytest.approx(1000 * 8192, rel=1e-4)
    assert (tmp_path / "data").read_bytes() == bytes(2**21), "a load that reads fills nothing"


def test_without_a_histogram_percentiles_are_not_measured(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_FAULT", "no-histogram")
    (tmp_path / "data").write_bytes(bytes(2**21))
    done = run(plan(workload(), Target(str(tmp_path / "data"))), RunStore(tmp_path / "home"))
    (read,) = done.pooled()
    assert read.percentiles_ms == {}
    assert (read.per_s, read.mean_ms) == (1000.0, 0.25)


def test_data_is_not_overwritten_unless_the_very_same_target_is_named(tmp_path: Path, program: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(bytes(2**21))
    with pytest.raises(UsageError, match="would be overwritten"):
        plan(workload(", read_pct: 50"), Target(str(data)))
    with pytest.raises(UsageError, match="export"):
        plan(workload(), Target("nbd://127.0.0.1/disk"))
    with pytest.raises(UsageError, match="at least 1 MiB"):
        (tmp_path / "tiny").write_bytes(b"x")
        plan(workload(), Target(str(tmp_path / "tiny")))
    assert data.read_bytes() == bytes(2**21)
    run(plan(workload(", read_pct: 50"), Target(str(data), str(data))), RunStore(tmp_path / "home"))
    assert data.read_bytes() != bytes(2**21)
    assert data.stat().st_size == 2**21


def test_a_device_is_named_as_the_kernel_names_it_and_only_if_it_is_the_one_of_the_plan() -> None:
    null = Path("/dev/null")
    place = Place("/dev/null", 2**20, is_made=False, is_device=True, identity=Identity.of(null.stat()))
    assert vdbench._device_name(place) == "/dev/null"
    other = Place("/dev/zero", 2**20, is_made=False, is_device=True, identity=Identity.of(null.stat()))
    with pytest.raises(UsageError, match="device of the plan"):
        vdbench._device_name(other)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    """A block device of 8 MiB."""
    (tmp_path / "backing").write_bytes(bytes(2**23))
    words = ["losetup", "-f", "--show", str(tmp_path / "backing")]
    if shutil.which("losetup") is None:
        pytest.skip("losetup is not installed")
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("no loop device can be made here")
    name = done.stdout.strip()
    yield name
    subprocess.run(["losetup", "-d", name], check=True)


def test_a_device_is_loaded_where_it_is_named(tmp_path: Path, program: Path, device: str) -> None:
    with pytest.raises(UsageError, match="would be overwritten"):
        plan(workload(", read_pct: 50"), Target(device, str(tmp_path / "backing")))
    with pytest.raises(UsageError, match=r"expected direct I/O"):
        plan(workload(settings=", buffered: true"), Target(device))
    store = RunStore(tmp_path / "home")
    link = tmp_path / "by name; of the user"
    link.symlink_to(device)
    done = run(plan(workload(", read_pct: 50"), Target(str(link), str(link))), store)
    assert done.state == "done"
    assert f"lun={device},size=2097152," in (store.files_of(done.id) / "round-1.vdbench").read_text()
    assert (tmp_path / "backing").read_bytes()[: 2**20] != bytes(2**20)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("java", "java: command not found"),
        ("stack", "Open for lun '/proc/"),
        ("stopped", "vdbench failed"),
    ],
)
def test_a_failure_is_one_error_with_the_reason_of_vdbench(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch, fault: str, words: str
) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("STAND_IN_FAULT", fault)
    with pytest.raises(ToolError, match=words):
        run(plan(workload(), Target(str(folder))), RunStore(tmp_path / "home"))
    assert list(folder.iterdir()) == []


def test_a_run_that_writes_elsewhere_is_stopped(tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_FAULT", "other")
    monkeypatch.setenv("STAND_IN_OTHER", str(tmp_path / "precious"))
    (tmp_path / "scratch").mkdir()
    with pytest.raises(ToolError, match="nobody named it"):
        run(plan(workload(), Target(str(tmp_path / "scratch"))), RunStore(tmp_path / "home"))


def test_a_load_that_is_not_the_one_asked_for_fails(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_bytes(bytes(2**21))
    monkeypatch.setenv("STAND_IN_FAULT", "slow")
    monkeypatch.setattr("leadline.app.measure.honouring._cpu_times", lambda: (float("nan"), float("nan")))
    with pytest.raises(ToolError, match=r"rate_iops\.read"):
        run(plan(workload(", rate_iops: 800"), Target(str(tmp_path / "data"))), RunStore(tmp_path / "home"))


def test_ctrl_c_ends_every_process_and_leaves_nothing(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tick(_: Tick) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("STAND_IN_SECOND", "0.3")
    folder = tmp_path / "scratch"
    folder.mkdir()
    store = RunStore(tmp_path / "home")
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(
            plan(workload(timing="warm_up_s: 0, measure_s: 60, rounds: 1"), Target(str(folder))),
            store,
            talk=Talk(lambda _, __: None, tick, lambda _: None),
        )
    assert time.monotonic() - began < 20.0
    assert list(folder.iterdir()) == []
    marks = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
    assert not any(str(program).encode() in mark for mark in marks)


def test_a_warm_up_ends_by_the_monitor_file(tmp_path: Path, program: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(2**21))
    ready = plan(workload(), Target(str(tmp_path / "data")))
    out = tmp_path / "out"
    out.mkdir()
    seen: list[Tick] = []

    def watch(tick: Tick) -> bool:
        seen.append(tick)
        return len(seen) < 3

    try:
        carried = DriverCarrier(vdbench, ready, out).carry(Step("warm-up", 2000.0, 1), watch)
    finally:
        vdbench.clean(ready)
    assert 3 <= len(carried.ticks) < 1000
    assert [tick.elapsed_s for tick in carried.ticks[:3]] == [1.0, 2.0, 3.0]


def test_the_average_is_read_from_every_generation_of_flat_files() -> None:
    seeds = Path(__file__).parent.parent / "importers" / "seeds"
    average = average_of((seeds / "vdbench-flatfile-5.04.07.html").read_text())
    assert (average["seconds"], average["rate"], average["read%"], average["resp"]) == (2.0, 5000.0, 75.0, 1.75)
    old = average_of((seeds / "vdbench-flatfile-5.00.html").read_text())
    assert (old["seconds"], old["rate"]) == (1.0, 0.0)
    assert average_of("<pre>\n*\n") == {}
    assert average_of("tod Run Interval rate\n10:00:00.000 r avg_2-3 x\n") == {}
    assert has_bucket((seeds / "vdbench-histogram.html").read_text())


def test_fio_servers_and_guests_of_a_lab_are_loaded_by_fio_alone(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("name: t\nio_settings: {tool: vdbench}\nio: [{block: 8k}]\n")
    file = read_fleet(ROOT / "examples" / "fleet.yaml")
    problems = list(order._of_load(file, WorkerLoad(workload(), file.load.paths, 8765, 7, 60.0)))
    assert ("tool vdbench", BY_SSH) in {(problem.found, problem.advice) for problem in problems}
    assert not list(order._of_load(file, WorkerLoad(workload(), file.load.paths, 22, 7, 60.0, ssh_user="bench")))
    wish = easy_order.EasyWish("c", "d", "t", profiles=(str(tmp_path / "w.yaml"), "hci-8k-50-50"))
    with pytest.raises(UsageError, match="expected --ssh-user"):
        easy_order._profiles(wish)
    profiles = easy_order._profiles(replace(wish, tool="vdbench", ssh_user="bench"))
    assert {profile.tool for profile in profiles} == {"vdbench"}
    disks = {"adapters": [{"name": "a", "type": "nvme"}], "disks": [{"name": "d", "adapter": "a", "size": "64m"}]}
    load = {"workload": str(tmp_path / "w.yaml"), "disk": "d"}
    guest = Guest.model_validate({"name": "g", **disks, "load": load})
    with pytest.raises(UsageError, match="fio loads the disks of guests"):
        workload_in(guest, {})
