"""iostat of sysstat: text of all options and locales, JSON, logs with a time before each line."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from benches.bench_iostat import write_recording
from leadline.app.read.importing import import_paths, recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import iostat
from tests.conftest import FIXTURES, SAMPLES
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

GUEST = "guest:db01"
VDA = "guest:db01/block-device:vda"
LOOP = "guest:db01/block-device:loop0"
SDA = "guest:db01/block-device:sda"
BANNER = "Linux 6.1.0 (db01) \t11/20/26 \t_x86_64_\t(8 CPU)\n\n"
CPU = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n      6.50    0.00    1.00    2.00    0.50   90.00\n\n"
DISKS = "Device            r/s     rkB/s  r_await  %util\nsda              1.50   2048.00     5.25   3.26\n\n"
REPORT = CPU + DISKS
RECORDINGS = sorted(path.name for path in (FIXTURES / "iostat").iterdir())


def read_fixture(name: str, request: Request | None = None) -> Capture:
    return iostat.read(Source(name, FIXTURES / "iostat" / name), request or Request())


def read_text(folder: Path, text: str | bytes, request: Request | None = None) -> Capture:
    return iostat.read(source_of(folder, text), request or Request())


def utc(capture: Capture, metric: str, entity: str) -> list[str]:
    times = seconds(group_of(capture, metric, entity))
    return [datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S") for moment in times]


@pytest.mark.parametrize("name", RECORDINGS)
def test_own_recordings_are_recognised(name: str) -> None:
    known = recognise(Source(name, FIXTURES / "iostat" / name), load_units("importer"))
    assert known is not None
    assert known[0] == "iostat"


def test_extended_report_in_canonical_units() -> None:
    capture = read_fixture("x-t-iso.txt")
    assert values_of(capture, "disk_reads_per_s", VDA)[:2] == pytest.approx([1408.67, 400.0])
    assert values_of(capture, "disk_read_mib_per_s", VDA)[:2] == pytest.approx([9473.05 / 1024, 3.125])
    assert values_of(capture, "guest_disk_io_size_kib_write", VDA)[1] == pytest.approx(8.03)
    assert values_of(capture, "guest_disk_write_merged_pct", LOOP)[0] == pytest.approx(33.2)
    assert values_of(capture, "raw.iostat.dareq-sz", LOOP)[0] == pytest.approx(1048578.0)
    assert values_of(capture, "guest_cpu_idle_pct", GUEST)[:2] == pytest.approx([85.86, 94.9])
    assert values_of(capture, "guest_cpu_busy_pct", GUEST)[0] == pytest.approx(100 - 85.86 - 2.69)
    assert utc(capture, "disk_reads_per_s", VDA)[0] == "2026-11-20 22:57:04"
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_banner_tells_of_the_guest() -> None:
    inventory = read_fixture("x-t-iso.txt").inventory
    guest = Entity(EntityKind.GUEST, "db01")
    assert inventory.get(guest, "cpu_count") == 2
    assert inventory.get(guest, "os_release") == "Linux 6.18.44-fc-v657"


@pytest.mark.parametrize("name", ["x-t-de.txt", "x-t-ru.txt", "x-t-en-us.txt", "x-t-c.txt", "x-t.json", "x-t-iso.txt"])
def test_locales_and_json_agree(name: str) -> None:
    capture = read_fixture(name)
    assert values_of(capture, "disk_reads_per_s", LOOP)[0] == pytest.approx(27.85)
    assert values_of(capture, "guest_cpu_user_pct", GUEST)[0] == pytest.approx(4.7)
    assert utc(capture, "disk_reads_per_s", LOOP)[:2] == ["2026-11-20 22:57:04", "2026-11-20 22:57:05"]


def test_first_report_is_since_boot_and_not_measured() -> None:
    capture = read_fixture("x-t-iso.txt")
    assert group_of(capture, "disk_writes_per_s", VDA).since_boot
    (group,) = capture.of("guest_disk_await_ms_write")
    assert len(group.times_ns) == 3


@pytest.mark.parametrize("name", ["x-y-t.txt"])
def test_y_has_no_report_since_boot(name: str) -> None:
    assert not any(group.since_boot for group in read_fixture(name).groups)


def test_y_in_json_is_seen_by_its_blank_line(tmp_path: Path) -> None:
    text = (FIXTURES / "iostat" / "x-t-iso.json").read_text()
    skipped = text.replace('"statistics": [\n', '"statistics": [\n\n', 1)
    assert not any(group.since_boot for group in read_text(tmp_path, skipped).groups)
    assert all(group.since_boot for group in read_text(tmp_path, text).groups)


def test_await_without_requests_is_not_measured() -> None:
    capture = read_fixture("x-t-iso.txt")
    (reads,) = [g for g in capture.groups if g.metric == "guest_disk_await_ms_read"]
    loop = values_of(capture, "guest_disk_await_ms_read", LOOP)
    assert loop[0] == pytest.approx(2.25)
    assert np.isnan(loop[1:]).all()
    assert not np.isnan(values_of(capture, "guest_disk_await_ms_read", VDA)).any()
    assert reads.unit == "ms"


def test_asking_for_an_await_alone_gives_the_same(tmp_path: Path) -> None:
    del tmp_path
    capture = read_fixture("x-t-iso.txt", Request(metrics=frozenset({"guest_disk_await_ms_read"})))
    assert capture.metrics() == ["guest_disk_await_ms_read"]
    assert np.isnan(values_of(capture, "guest_disk_await_ms_read", LOOP)[1:]).all()


def test_human_units_are_undone() -> None:
    capture = read_fixture("x-human.txt")
    assert values_of(capture, "disk_read_mib_per_s", LOOP)[0] == pytest.approx(290.1 / 1024)
    assert values_of(capture, "disk_read_mib_per_s", VDA)[0] == pytest.approx(9.3)
    assert values_of(capture, "raw.iostat.dareq-sz", LOOP)[0] == pytest.approx(1024**2)
    assert values_of(capture, "guest_cpu_idle_pct", GUEST)[0] == pytest.approx(85.9)


def test_megabytes_blocks_and_sectors(tmp_path: Path) -> None:
    assert values_of(read_fixture("x-m.txt"), "disk_read_mib_per_s", VDA)[0] == pytest.approx(9.25)
    assert values_of(read_fixture("d-m.txt"), "disk_write_mib_per_s", VDA)[0] == pytest.approx(7.23)
    old = "Device:  tps  Blk_read/s  Blk_wrtn/s  Blk_read  Blk_wrtn\nsda  1.00  2048.00  4096.00  2048  4096\n\n"
    assert values_of(read_text(tmp_path, BANNER + old), "disk_write_mib_per_s", SDA) == pytest.approx([2.0])
    older = "Device:  rsec/s avgrq-sz avgqu-sz  await  svctm\nsda  2048.00  16.00  0.50  3.00  1.00\n\n"
    capture = read_text(tmp_path, BANNER + older)
    assert values_of(capture, "disk_read_mib_per_s", SDA) == pytest.approx([1.0])
    assert values_of(capture, "guest_disk_io_size_kib", SDA) == pytest.approx([8.0])
    assert values_of(capture, "guest_disk_service_ms", SDA) == pytest.approx([1.0])


def test_short_report_has_one_rate_for_all() -> None:
    capture = read_fixture("x-s-narrow.txt")
    assert values_of(capture, "guest_disk_busy_mib_per_s", VDA)[0] == pytest.approx(18969.64 / 1024)
    assert values_of(capture, "guest_disk_await_ms", VDA)[0] == pytest.approx(0.06)


def test_cpu_report_alone() -> None:
    capture = read_fixture("c-only.txt")
    assert {entity.kind for group in capture.groups for entity in group.entities} == {EntityKind.GUEST}
    assert codes(capture) == ["no-zone"]


def test_devices_left_out_by_z_are_not_measured() -> None:
    capture = read_fixture("x-t-z.txt")
    assert np.isnan(values_of(capture, "disk_reads_per_s", LOOP)[1:]).all()
    assert codes(capture) == ["absent-devices"]


def test_group_sums_are_left_out() -> None:
    capture = read_fixture("x-group.txt")
    assert {e.name for e in capture.inventory.of_kind(EntityKind.BLOCK_DEVICE)} == {"loop0", "vda"}
    assert codes(capture) == ["group-rows"]


def test_without_times_the_interval_comes_from_totals(tmp_path: Path) -> None:
    table = "Device  tps  kB_read/s  kB_read\nsda  1.00  {:.2f}  {}\n\n"
    text = BANNER + table.format(3.0, 900_000) + table.format(200.0, 1000) + table.format(100.0, 500)
    capture = read_text(tmp_path, text)
    group = group_of(capture, "disk_iops", SDA)
    assert group.interval_s == 5.0
    assert group.times_ns[-1] == MTIME_NS
    assert codes(capture) == ["no-times"]
    assert not capture.sources[0].clock_known


@pytest.mark.parametrize(
    ("stamps", "first"),
    [
        (("20/11/2026 22:57:04", "20/11/2026 22:57:09"), "2026-11-20 22:57:04"),
        (("05/06/2026 22:57:04", "05/06/2026 22:57:09"), "2026-06-05 22:57:04"),
        (("05/06/2026 10:57:04 PM", "05/06/2026 10:57:09 PM"), "2026-05-06 22:57:04"),
        (("05/06/26 22:57:04", "05/06/26 22:57:09"), "2026-05-06 22:57:04"),
        (("05/06/26 23:59:58", "06/06/26 00:00:03"), "2026-06-05 23:59:58"),
        (("2026-11-20T22:57:04+0100", "2026-11-20T22:57:09+0100"), "2026-11-20 21:57:04"),
        (("2026年11月20日 22時57分04秒", "2026年11月20日 22時57分09秒"), "2026-11-20 22:57:04"),
        (("20.11.2026 22.57.04", "20.11.2026 22.57.09"), "2026-11-20 22:57:04"),
        (("Time: 22:57:04", "Time: 22:57:09"), "2026-11-20 22:57:04"),
        (("Time: 11:59:58 PM", "Time: 12:00:03 AM"), "2026-11-20 23:59:58"),
    ],
)
def test_times_of_any_locale(tmp_path: Path, stamps: tuple[str, str], first: str) -> None:
    day = stamps[0].split()[0] if "/" in stamps[0] else "11/20/26"
    banner = BANNER.replace("11/20/26", day)
    capture = read_text(tmp_path, banner + "".join(f"{stamp}\n{REPORT}" for stamp in stamps))
    assert utc(capture, "disk_reads_per_s", SDA)[0] == first
    assert group_of(capture, "disk_reads_per_s", SDA).interval_s == 5.0


def test_a_date_that_may_mean_two_days_is_said_and_can_be_decided(tmp_path: Path) -> None:
    text = f"{BANNER.replace('11/20/26', '05/06/26')}05/06/26 22:57:04\n{REPORT}"
    assert codes(read_text(tmp_path, text)) == ["date-order", "no-zone"]
    decided = read_text(tmp_path, text, Request(date="2026-06-05", timezone="Europe/Berlin"))
    assert codes(decided) == []
    assert decided.sources[0].clock_known
    assert utc(decided, "disk_reads_per_s", SDA) == ["2026-06-05 20:57:04"]


def test_appended_recordings_keep_their_own_first_report_and_host(tmp_path: Path) -> None:
    one = f"{BANNER}11/20/26 22:57:04\n{REPORT}11/20/26 22:57:09\n{REPORT}"
    other = one.replace("db01", "db02").replace("22:57", "23:57")
    capture = read_text(tmp_path, one + other)
    groups = [group for group in capture.groups if group.metric == "disk_reads_per_s"]
    assert [str(group.entities[0]) for group in groups] == [SDA, SDA.replace("db01", "db02")]
    assert all(group.since_boot and len(group.times_ns) == 2 for group in groups)


def test_restart_of_the_machine_begins_a_new_run(tmp_path: Path) -> None:
    text = f"{BANNER}11/20/26 22:57:04\n{REPORT}22:58:00   LINUX RESTART\n\n11/20/26 22:59:04\n{REPORT}"
    groups = [group for group in read_text(tmp_path, text).groups if group.metric == "disk_reads_per_s"]
    assert [(len(group.times_ns), group.since_boot) for group in groups] == [(1, True), (1, True)]


def test_a_clock_put_back_is_said_and_times_ascend(tmp_path: Path) -> None:
    stamps = ("22:57:04", "22:57:09", "22:56:14", "22:56:19")
    capture = read_text(tmp_path, BANNER + "".join(f"11/20/26 {stamp}\n{REPORT}" for stamp in stamps))
    assert codes(capture) == ["no-zone", "clock-back"]
    group = group_of(capture, "disk_reads_per_s", SDA)
    assert (np.diff(group.times_ns) > 0).all()
    assert (len(group.times_ns), group.since_boot) == (3, False)


def test_a_file_cut_in_its_last_report_loses_it(tmp_path: Path) -> None:
    whole = (FIXTURES / "iostat" / "x-t-iso.txt").read_bytes()
    capture = read_text(tmp_path, whole[: len(whole) - 60])
    assert len(group_of(capture, "disk_reads_per_s", VDA).times_ns) == 3
    assert codes(capture) == ["cut-report"]


def test_json_cut_in_its_last_report_loses_it(tmp_path: Path) -> None:
    whole = (FIXTURES / "iostat" / "x-t-iso.json").read_bytes()
    capture = read_text(tmp_path, whole[: whole.rindex(b'"w/s"')])
    assert len(group_of(capture, "disk_reads_per_s", VDA).times_ns) == 2
    assert codes(capture) == ["cut-report"]


def test_damage_in_the_middle_is_an_error_with_its_line(tmp_path: Path) -> None:
    text = (FIXTURES / "iostat" / "x-t-iso.txt").read_text().splitlines(keepends=True)
    text[8] = text[8][:60] + "\n"
    with pytest.raises(InputError, match=r"recording.txt:9: fewer numbers"):
        read_text(tmp_path, "".join(text))


def test_damaged_json_is_an_error_with_its_line(tmp_path: Path) -> None:
    text = (FIXTURES / "iostat" / "x-t-iso.json").read_text().replace('"avg-cpu":', '"avg-cpu"', 1)
    with pytest.raises(InputError, match=r"recording.txt:13: JSON that breaks"):
        read_text(tmp_path, text)


def test_a_number_that_is_none_in_json_is_an_error(tmp_path: Path) -> None:
    text = (FIXTURES / "iostat" / "x-t-iso.json").read_text().replace('"user": 4.70', '"user": "much"', 1)
    with pytest.raises(InputError, match=r"recording.txt:11: a report whose ValueError"):
        read_text(tmp_path, text)


def test_json_with_decimal_commas_and_groups(tmp_path: Path) -> None:
    text = (FIXTURES / "iostat" / "x-t-iso.json").read_text()
    localised = re.sub(r"(\": \d+)\.(\d\d)(?=[,}])", r"\1,\2", text).replace('"loop0"', '" all"')
    capture = read_text(tmp_path, localised)
    assert values_of(capture, "guest_cpu_user_pct", GUEST)[0] == 4.7
    assert {e.name for e in capture.inventory.of_kind(EntityKind.BLOCK_DEVICE)} == {"vda"}
    assert codes(capture) == ["group-rows"]


def test_a_run_without_times_among_runs_with_times_is_left_out(tmp_path: Path) -> None:
    text = f"{BANNER}{REPORT}{BANNER}11/20/26 22:57:04\n{REPORT}"
    capture = read_text(tmp_path, text, Request(timezone="UTC"))
    assert utc(capture, "disk_reads_per_s", SDA) == ["2026-11-20 22:57:04"]
    assert codes(capture) == ["no-times"]


def test_a_time_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the time '11/20/26 29:57:04'"):
        read_text(tmp_path, f"{BANNER}11/20/26 29:57:04\n{REPORT}")


@pytest.mark.parametrize("text", [BANNER, "avg-cpu:  %user\n", '{"sysstat": {"hosts": []}}'])
def test_no_report_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="no complete report"):
        read_text(tmp_path, text)


def test_utf16_and_windows_line_ends(tmp_path: Path) -> None:
    text = f"{BANNER}11/20/26 22:57:04\n{REPORT}".replace("\n", "\r\n")
    for content in (text.encode(), text.encode("utf-16"), b"\xef\xbb\xbf" + text.encode()):
        assert values_of(read_text(tmp_path, content), "disk_reads_per_s", SDA) == pytest.approx([1.5])


def test_a_wide_number_is_kept_exactly(tmp_path: Path) -> None:
    table = "Device r/s\nsda {}\n\n"
    text = BANNER + table.format("0.10") + table.format("167772.17")
    assert values_of(read_text(tmp_path, text), "disk_reads_per_s", SDA).tolist() == [0.1, 167772.17]


def test_the_benchmark_imports_what_it_writes(tmp_path: Path) -> None:
    paths = [tmp_path / "one.txt", tmp_path / "other.txt"]
    sizes = {write_recording(path, reports=80, disks=5) for path in paths}
    assert len(sizes) == 1
    assert paths[0].read_bytes() == paths[1].read_bytes()
    capture = import_paths([paths[0]]).capture
    (reads,) = [group for group in capture.groups if group.metric == "disk_reads_per_s"]
    assert reads.values.shape == (5, 80)
    assert reads.interval_s == 5.0
    assert codes(capture) == []


def sample_files() -> list[str]:
    folder = SAMPLES / "sysstat"
    names = [path.name for path in folder.glob("*iostat*")] if folder.is_dir() else []
    return sorted(name for name in names if not any(word in name for word in ("zpool", "darwin", "golden"))) or [""]


@pytest.mark.parametrize("name", sample_files())
def test_every_sample_is_read(samples: Path, name: str) -> None:
    source = Source(name, samples / "sysstat" / name)
    known = recognise(source, load_units("importer"))
    assert known is not None
    assert known[0] == "iostat"
    capture = iostat.read(source, Request())
    assert capture.series_count > 0
    assert capture.sources[0].host in {
        "rising",
        "hero",
        "toy",
        "localhost.localdomain",
        "kbrazil-ubuntu",
        "ubuntu",
        "bozo",
        "SYSSTAT.TEST",
    }


PGBENCH_TOOLS = "gregs1104__pgbench-tools__pgbenchtools_"
SAMPLE_VALUES = [
    (f"{PGBENCH_TOOLS}480_iostat.log", "rising/block-device:nvme2n1", "disk_read_mib_per_s", 0, 67.78),
    (f"{PGBENCH_TOOLS}iostat-ubuntu-20.04.log", "rising/block-device:nvme0n1", "guest_disk_queue_count", 0, 0.29),
    (
        "kellyjonbrazil__jc__centos77_iostat-mx.out",
        "localhost.localdomain/block-device:sda",
        "guest_disk_io_size_kib",
        0,
        52.51 / 2,
    ),
    ("performancecopilot__pcp__iostat-x", "bozo/block-device:sdb", "disk_write_mib_per_s", 1, 754.82 / 2048),
    ("performancecopilot__pcp__iostat-t.ISO", "bozo/block-device:sda", "disk_iops", 0, 0.52),
    (
        "sysstat__sysstat__expected.iostat-pretty",
        "SYSSTAT.TEST/block-device:sda9",
        "disk_write_mib_per_s",
        0,
        19.89 / 1024,
    ),
    (
        "sysstat__sysstat__expected.iostat-x-p-ALL-JSON",
        "SYSSTAT.TEST/block-device:sda",
        "disk_read_mib_per_s",
        0,
        222.14 / 1024,
    ),
]


@pytest.mark.parametrize(("name", "entity", "metric", "index", "value"), SAMPLE_VALUES)
def test_sample_values_read_by_eye(
    samples: Path, name: str, entity: str, metric: str, index: int, value: float
) -> None:
    capture = iostat.read(Source(name, samples / "sysstat" / name), Request())
    assert values_of(capture, metric, f"guest:{entity}")[index] == pytest.approx(value)


def test_pgbench_tools_reads_the_same_numbers(samples: Path) -> None:
    """The program that wrote the log has its own reader; its result for this log is kept beside it."""
    folder, prefix = samples / "sysstat", PGBENCH_TOOLS
    capture = iostat.read(Source("iostat.log", folder / f"{prefix}iostat.log"), Request())
    metrics = {name: field.metric for name, field in iostat.META.fields.items()}
    compared = 0
    with (folder / f"{prefix}golden_iostat.csv").open() as stream:
        for entry in csv.DictReader(stream):
            disk, _, column = entry["metric"].partition("_")
            metric = metrics.get(column)
            if metric is None or column == "avgrq-sz" or float(entry["value"]) == 0:
                continue
            group = group_of(capture, metric, f"guest:toy/block-device:{disk}")
            collected = datetime.fromisoformat(entry["collected"]).replace(tzinfo=UTC).timestamp()
            nearest = int(np.argmin(np.abs(np.array(seconds(group)) - collected)))
            assert group.values[0][nearest] == pytest.approx(float(entry["value"]))
            compared += 1
    assert compared > 60


@pytest.mark.parametrize(
    ("command", "apart"), [("iostat -x 5", 5), ("sudo iostat -x -p sda 10 3", 10), ("iostat -x", 1)]
)
def test_the_interval_is_that_of_the_command_above(command: str, apart: int, tmp_path: Path) -> None:
    report = "Device: r/s w/s rkB/s wkB/s await %util\nsda 1.00 2.00 3.00 4.00 5.00 6.00\n\n"
    text = f"$ {command}\nLinux 4.10.0 (db01) \t08/13/2018 \t_x86_64_\t(4 CPU)\n\n{report * 3}"
    group = iostat.read(source_of(tmp_path, text), Request()).groups[0]
    assert np.diff(seconds(group)).tolist() == [apart] * 2
