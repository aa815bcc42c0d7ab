"""The load fio really makes: what it is told, what it cannot do, and whether an option that it drops is seen."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.bench_loads import KEYS, matrix, table
from leadline.app.measure import benching
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.honoured import StreamLoad
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import InputError, ToolError, UsageError
from leadline.core.model.workload import Workload, parse_workload
from leadline.formats.fio.load import last_report, loads_of, over_time, ticks_of
from leadline.stores.runs import RunStore

NEEDS_FIO = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
WHOLE = re.compile(r"\d+(?:us|ms)?|\d+,\d+|\d+/\d+(?::\d+/\d+)*")
WORDS = re.compile(r"[a-z][a-z0-9_-]*")  # engines, kinds of load
LISTS = ("percentile_list", "filename")


def workload(streams: str, more: str = "{working_set: 8m}") -> Workload:
    return parse_workload(f"name: t\nio_settings: {more}\nio: {streams}\n", "t.yaml")


def lines(own: Workload, folder: Path) -> list[tuple[str, str]]:
    made = fio.plan(own, Target(str(folder)))
    text = fio.job_file(made, Step("round-1", 5.4321, 7))
    return [(key, value) for key, mark, value in (line.partition("=") for line in text.splitlines()) if mark]


def options(streams: str, folder: Path, more: str = "{working_set: 8m}") -> dict[str, str]:
    return dict(lines(workload(streams, more), folder))


SHARES = st.floats(0.0, 100.0)
TIMES = st.floats(1e-7, 900.0)


@settings(max_examples=60, deadline=None)
@given(SHARES, SHARES, SHARES, SHARES, TIMES, TIMES, st.floats(100.0, 5000.0), st.booleans(), st.integers(1, 40))
def test_every_number_fio_is_given_is_whole_and_has_its_unit(  # noqa: PLR0917 - one for each kind of number
    tmp_path_factory: pytest.TempPathFactory,
    read: float,
    random: float,
    compress: float,
    dedupe: float,
    on_s: float,
    off_s: float,
    rate: float,
    even: bool,
    jobs: int,
) -> None:
    """Fio 3.33 reads ``3.0s`` as 3 us, ``70.5`` as 70, and says nothing."""
    stream = {"read_pct": read, "random_pct": random, "jobs": jobs, "burst": {"on_s": on_s, "off_s": off_s}}
    arrivals = {"arrivals": "even"} if even else {}
    rates = {"rate_iops": {"read": round(rate) + (0.25 if even else 0.0)}, "read_pct": 100.0, **arrivals}
    plain = {
        "name": "t",
        "io": [
            {"name": "a", **stream},
            {"name": "b", **rates, "jobs": jobs},
            {"name": "c", "think_time_s": off_s, "block": {4096: 33.3, 8192: 66.7}},
        ],
        "io_settings": {"working_set": 2**20, "compress_pct": compress, "dedupe_pct": dedupe},
    }
    for key, value in lines(Workload.model_validate(plain), tmp_path_factory.mktemp("loads")):
        assert key in LISTS or WHOLE.fullmatch(value) or WORDS.fullmatch(value), f"{key}={value}"


def test_shares_keep_both_directions(tmp_path: Path) -> None:
    for share, given_to_fio in ((0.2, "1"), (99.8, "99"), (70.5, "71"), (69.4, "69")):
        found = options(f"[{{read_pct: {share}, random_pct: {share}}}]", tmp_path)
        assert (found["rw"], found["rwmixread"], found["percentage_random"]) == ("randrw", given_to_fio, given_to_fio)
    made = fio.plan(workload("[{read_pct: 70.5}]"), Target(str(tmp_path)))
    assert made.notes == ("stream io: read_pct is 71 %, as fio takes whole percents",)
    found = options("[{}]", tmp_path, "{working_set: 8m, compress_pct: 0.3, dedupe_pct: 99.9}")
    assert (found["buffer_compress_percentage"], found["dedupe_percentage"]) == ("1", "99")


def rates_of(streams: str, folder: Path, more: str = "{working_set: 8m}") -> list[tuple[int, str]]:
    """Numbers of jobs with their rates."""
    found: list[tuple[int, str]] = []
    jobs = 0
    for key, value in lines(workload(streams, more), folder):
        if key == "numjobs":
            jobs = int(value)
        elif key in ("rate_iops", "rate"):
            found.append((jobs, value))
    return found


def test_rates_of_jobs_add_up_to_the_rate(tmp_path: Path) -> None:
    assert rates_of("[{rate_iops: 10, jobs: 4}]", tmp_path) == [(2, "3,0"), (2, "2,0")]
    assert rates_of("[{rate_iops: 5, jobs: 8}]", tmp_path) == [(5, "1,0")]  # no rate at all is no limit at all
    psync = "{working_set: 8m, engine: psync}"
    assert sum(n * int(r.partition(",")[0]) for n, r in rates_of("[{rate_iops: 301, oio: 64}]", tmp_path, psync)) == 301
    assert rates_of("[{rate_iops: 10.5, jobs: 4, arrivals: even, block: 4k}]", tmp_path) == [(4, "10752,0")]
    text = "\n".join(f"{k}={v}" for k, v in lines(workload("[{rate_iops: 10, jobs: 4}]"), tmp_path))
    assert text.count("new_group=1") == 1  # jobs whose rates differ are reported together


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ("{block: {4k: 99.8, 1m: 0.2}}", "stream io: block: shares of which fio's whole percents make 14,541 bytes"),
        ("{read_pct: 50, sync_every: 4}", "sync_every: reads and writes in one stream"),
        ("{burst: {on_s: 1, off_s: 1}, think_time_s: 1ms}", "burst: a think time as well"),
        ("{burst: {on_s: 1, off_s: 1h}}", "burst: a longer pause; expected at most 2147 s"),
        ("{rate_iops: 1.4}", "rate_iops: 1.4 requests per second with Poisson arrivals"),
    ],
)
def test_what_fio_would_do_otherwise_is_refused(stream: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        fio.plan(workload(f"[{stream}]"), Target(str(tmp_path)))
    with pytest.raises(UsageError, match="verify: reads, of data that was filled without"):
        fio.plan(workload("[{read_pct: 70}]", "{working_set: 8m, verify: true}"), Target(str(tmp_path)))
    made = workload("[{read_pct: 0, sync_every: 4, oio: 4}]", "{working_set: 8m, engine: io_uring}")
    with pytest.raises(UsageError, match=r"sync_every: io_uring with several|does not allow it"):
        fio.plan(made, Target(str(tmp_path)))


def test_rates_and_shares_must_agree() -> None:
    assert workload("[{rate_iops: {read: 30, write: 10}}]").io[0].read_pct == 75.0
    for stream in ("{rate_iops: {read: 30, write: 10}, read_pct: 50}", "{rate_iops: {read: 0}}"):
        with pytest.raises(InputError, match=r"must agree|above 0 in one direction"):
            workload(f"[{stream}]")


def test_a_job_that_thinks_has_one_request_at_a_time(tmp_path: Path) -> None:
    """Fio waits for all a job has in flight before it lets it think: 16 outstanding would be 1."""
    found = options("[{think_time_s: 10ms, oio: 16, jobs: 2}]", tmp_path)
    assert (found["iodepth"], found["numjobs"], found["thinktime"]) == ("1", "32", "10000us")


def test_bursts_begin_one_pause_before_they_are_counted(tmp_path: Path) -> None:
    streams = (
        "[{name: a, burst: {on_s: 1, off_s: 4}}, {name: b, burst: {on_s: 1, off_s: 3}, rate_iops: 100}, {name: c}]"
    )
    own = workload(streams)
    text = fio.job_file(fio.plan(own, Target(str(tmp_path))), Step("round-1", 5.0, 7))
    a, b, c = (section.partition("]")[2] for section in text.split("\n[")[1:])
    assert "ramp_time=4000000us" in a
    assert "startdelay" not in a + c
    assert "ramp_time=3000000us\nstartdelay=1000000us" in b
    assert "rate_ignore_thinktime=1" in b
    assert "ramp_time=4000000us" in c
    assert (fio.lead_s(own), fio.late_s(own)) == (4.0, fio.LATE_S + 8.0)
    assert "ramp_time" not in options("[{}]", tmp_path)


def test_a_target_smaller_than_the_working_set_is_told(tmp_path: Path) -> None:
    held = tmp_path / "held"
    held.write_bytes(b"x" * 2**21)
    made = fio.plan(workload("[{}]"), Target(str(held)))
    assert made.notes == ("stream io: working_set is 2 MiB, all the target has",)


def test_what_fio_counted_becomes_the_load() -> None:
    job = {
        "jobname": "io",
        "job_runtime": 8000,
        "usr_cpu": 4.0,
        "sys_cpu": 6.0,
        "read": {"total_ios": 600, "io_bytes": 600 * 4096, "runtime": 2000, "lat_ns": {"mean": 1e6}},
        "write": {"total_ios": 200, "io_bytes": 200 * 8192, "runtime": 2001, "lat_ns": {"mean": 2e6}},
        "sync": {"lat_ns": {"N": 50, "mean": 4e6}},
        "iodepth_level": {"1": 50.0, "2": 0.0, "16": 75.0, ">=64": 0.0},
    }
    found = loads_of({"jobs": [job]})[0]
    assert (found.reads, found.writes, found.syncs, found.duration_s) == (600, 200, 50, 2.001)
    assert found.jobs == pytest.approx(4.0, abs=0.01)
    assert found.busy_s == pytest.approx(0.6 + 0.4 + 0.2)
    assert found.depth == pytest.approx((10.0, 19.0))
    assert found.cpu_pct == 10.0
    assert [own.name for own in loads_of({"client_stats": [job, {**job, "jobname": "All clients"}]})] == ["io"]


def test_the_last_whole_report_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    reports = [json.dumps({"n": n, "jobs": [{"jobname": "a"}]}, indent=1) for n in (1, 2)]
    path.write_text("note\n" + "\n".join(reports) + '\n{"n": 3, "jobs')
    found = last_report(path)
    assert found is not None
    assert found["n"] == 2
    assert last_report(tmp_path / "none") is None


def test_seconds_come_from_the_logs() -> None:
    own = over_time("500, 10, 0, 0, 0\n1000, 20, 0, 0, 0\n1000, 4, 1, 0, 0\ncut, \n3000, 6, 0, 0, 0\n", 500)
    assert own.counts == (5.0, 12.0, 3.0)
    load = StreamLoad("io", 3.0, reads=20.0, read_bytes=20.0 * 4096, over_time=(own, own))
    assert [(tick.elapsed_s, tick.per_s, tick.bytes_per_s) for tick in ticks_of([load])] == [
        (1.0, 34.0, 34.0 * 4096),
        (2.0, 0.0, 0.0),
        (3.0, 6.0, 6.0 * 4096),
    ]


@NEEDS_FIO
@pytest.mark.real
@pytest.mark.slow
def test_every_key_on_every_engine(tmp_path: Path) -> None:
    cells = matrix(tmp_path, 0.3, ["io_uring", "libaio", "psync", "mmap"], None)
    text = table(cells)
    assert all(cell.honoured for cell in cells), text
    assert {cell.key for cell in cells if not cell.refused} == set(KEYS)
    assert {check.key for cell in cells for check in cell.checks} >= {
        *("block", "read_pct", "random_pct", "oio", "jobs", "rate_iops.read", "rate_iops.write"),
        *("think_time_s", "burst", "sync_every", "measure_s"),
    }


DROPPED = {
    "thinktime=": ("{burst: {on_s: 300ms, off_s: 400ms}}", "burst"),
    "bssplit=": ("{block: {4k: 50, 64k: 50}}", "block"),
    "rwmixread=": ("{read_pct: 80}", "read_pct"),
    "iodepth=": ("{oio: 16}", "oio"),
    "numjobs=": ("{jobs: 3}", "jobs"),
    "rate_iops=": ("{rate_iops: 50}", "rate_iops.read"),
    "fdatasync=": ("{read_pct: 0, random_pct: 0, sync_every: 4}", "sync_every"),
    "thinktime=1": ("{think_time_s: 12ms}", "think_time_s"),
}


@NEEDS_FIO
@pytest.mark.real
@pytest.mark.parametrize("option", DROPPED)
def test_an_option_that_fio_drops_fails_the_run_by_name(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, key = DROPPED[option]
    whole = fio.job_file

    def without(*given: object) -> str:
        text = whole(*given)  # type: ignore[arg-type]
        assert f"\n{option}" in text
        return "\n".join(line for line in text.splitlines() if not line.startswith(option)) + "\n"

    monkeypatch.setattr(fio, "job_file", without)
    seconds = 1.5 if "burst" in stream else 1.0
    text = f"name: t\nio_settings: {{working_set: 8m, engine: libaio}}\nio: [{stream}]\n"
    own = parse_workload(f"{text}timing: {{warm_up_s: 0, measure_s: {seconds}, rounds: 2}}\n", "t.yaml")
    store = RunStore(tmp_path / "store")
    folder = tmp_path / "on"
    folder.mkdir()
    with pytest.raises(ToolError, match=f"workload t: io: {re.escape(key)}: measured .*; expected .* as the workload"):
        benching.run(benching.plan(own, Target(str(folder))), store, seed=1)
    kept = store.get(store.list()[0].id)
    assert kept.state == "failed"
    assert len(kept.rounds) == 1  # what was measured is kept, with the reason
    assert any(note.startswith(f"round-1: load was not honoured: io: {key}") for note in kept.notes)
    assert list(folder.iterdir()) == []


@NEEDS_FIO
@pytest.mark.real
def test_bursts_are_in_the_seconds_of_a_run(tmp_path: Path) -> None:
    """One second with load, two without, as they are stored and drawn."""
    text = "name: t\nio_settings: {working_set: 8m}\nio: [{burst: {on_s: 1, off_s: 2}, oio: 2, jobs: 2}]\n"
    own = parse_workload(f"{text}timing: {{warm_up_s: 0, measure_s: 6, rounds: 1}}\n", "t.yaml")
    kept = benching.run(benching.plan(own, Target(str(tmp_path))), RunStore(tmp_path / "store"), seed=1)
    assert kept.state == "done"
    rates = [tick.per_s for tick in kept.rounds[0].ticks]
    assert len(rates) == 6
    quiet = [rate < 0.2 * max(rates) for rate in rates]
    assert quiet == [False, True, True, False, True, True], rates
    assert len(kept.rounds[0].results) == 1  # what fio did before it began to count is no result


@NEEDS_FIO
@pytest.mark.real
def test_a_stream_beside_one_that_pauses_goes_on(tmp_path: Path) -> None:
    """With reports each second fio stops all jobs while one of them pauses."""
    streams = "[{name: reads, oio: 4}, {name: daemon, read_pct: 0, oio: 2, burst: {on_s: 1, off_s: 3}}]"
    text = f"name: t\nio_settings: {{working_set: 8m}}\nio: {streams}\n"
    own = parse_workload(f"{text}timing: {{warm_up_s: 0, measure_s: 8, rounds: 1}}\n", "t.yaml")
    kept = benching.run(benching.plan(own, Target(str(tmp_path))), RunStore(tmp_path / "store"), seed=1)
    assert not any("--status-interval=1" in words for words in kept.commands)
    ticks = kept.rounds[0].ticks
    assert len(ticks) == 8
    assert all(tick.per_s > 0 for tick in ticks)
    assert {result.job for result in kept.rounds[0].results} == {"reads", "daemon"}
    assert fio.command(parse_workload("name: t\nio: [{think_time_s: 5s}]\n", "t"))[-1] == "--output-format=json+"
    assert fio.command(parse_workload("name: t\nio: [{think_time_s: 5ms}]\n", "t"))[-1] == "--status-interval=1"
