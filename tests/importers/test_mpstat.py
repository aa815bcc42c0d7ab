"""mpstat, and what it shares with the other text of sysstat: banner, clock, locales, midnight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError, UsageError
from leadline.formats.sysstat.text import clock_of, dates, number, parse_banner
from leadline.importers import iostat, mpstat, sar
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

GUEST = "guest:db01"
BANNER = "Linux 6.1.0 (db01) \t2026-11-20 \t_x86_64_\t(8 CPU)\n\n"
HEAD = "{}     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n"
ROW = "{}     {}    0.50    0.00    1.50    3.00    0.00    0.00    0.00    0.00    0.00   95.00\n"


def fixture(fixtures: Path, name: str) -> Source:
    return Source(name, fixtures / "mpstat" / name)


@pytest.mark.parametrize("name", ["p-all.txt", "p-all-iso.txt"])
def test_each_cpu_and_the_guest(fixtures: Path, name: str) -> None:
    capture = mpstat.read(fixture(fixtures, name), Request())
    assert values_of(capture, "guest_cpu_system_pct", GUEST)[0] == 2.54
    assert values_of(capture, "guest_cpu_iowait_pct", f"{GUEST}/cpu:1")[:2].tolist() == [5.21, 2.13]
    assert values_of(capture, "guest_cpu_busy_pct", f"{GUEST}/cpu:1")[0] == pytest.approx(100 - 90.62 - 5.21)
    assert seconds(group_of(capture, "guest_cpu_idle_pct", GUEST))[0] == 1_795_215_472
    assert len(values_of(capture, "guest_cpu_idle_pct", GUEST)) == 4
    entity = group_of(capture, "guest_cpu_idle_pct", GUEST).entities[0]
    assert capture.inventory.get(entity, "cpu_count") == 2
    assert capture.sources[0].host == "db01"


@pytest.mark.parametrize("name", ["p-all-de.txt", "p-all-en-us.txt"])
def test_every_locale_says_the_same(fixtures: Path, name: str) -> None:
    capture = mpstat.read(fixture(fixtures, name), Request())
    assert values_of(capture, "guest_cpu_iowait_pct", f"{GUEST}/cpu:1").tolist() == [5.26, 2.11, 3.12, 3.09]
    assert seconds(group_of(capture, "guest_cpu_idle_pct", GUEST)) == [1_795_215_472 + i for i in range(4)]


def test_json_says_the_same_as_text(fixtures: Path) -> None:
    text = mpstat.read(fixture(fixtures, "p-all.txt"), Request())
    json = mpstat.read(fixture(fixtures, "p-all.json"), Request())
    assert [g.metric for g in text.groups if "guest_cpu" in g.metric] == [
        g.metric for g in json.groups if "guest_cpu" in g.metric
    ]
    for metric in (metric for metric in text.metrics() if not metric.startswith("raw.")):
        one, other = group_of(text, metric, f"{GUEST}/cpu:0"), group_of(json, metric, f"{GUEST}/cpu:0")
        assert one.values.tolist() == other.values.tolist()
        assert one.times_ns.tolist() == other.times_ns.tolist()


def test_interrupts_and_tables_without_metrics(fixtures: Path) -> None:
    capture = mpstat.read(fixture(fixtures, "all-stats.txt"), Request())
    assert values_of(capture, "guest_interrupts_per_s", GUEST).tolist() == [1600, 1474]
    assert values_of(capture, "guest_interrupts_per_s", f"{GUEST}/cpu:1").tolist() == [855, 738]
    assert "raw.mpstat.CPU:LOC/s" in capture.metrics()
    asked = mpstat.read(fixture(fixtures, "all-stats.txt"), Request(metrics=frozenset({"guest_cpu_busy_pct"})))
    assert asked.metrics() == ["guest_cpu_busy_pct"]


def test_averages_are_no_samples(fixtures: Path) -> None:
    capture = mpstat.read(fixture(fixtures, "default.txt"), Request())
    assert values_of(capture, "guest_cpu_system_pct", GUEST).tolist() == [2.54, 0, 0.51, 0]


def test_midnight_is_passed(tmp_path: Path) -> None:
    text = BANNER + HEAD.format("23:59:58") + ROW.format("23:59:59", "all") + ROW.format("00:00:00", "all")
    capture = mpstat.read(source_of(tmp_path, text), Request())
    assert np.diff(seconds(group_of(capture, "guest_cpu_idle_pct", GUEST))).tolist() == [1.0]


def test_report_without_interval_is_since_boot(tmp_path: Path) -> None:
    text = BANNER + HEAD.format("10:57:51") + ROW.format("10:57:51", "all")
    assert group_of(mpstat.read(source_of(tmp_path, text), Request()), "guest_cpu_idle_pct", GUEST).since_boot
    measured = BANNER + HEAD.format("10:57:50") + ROW.format("10:57:51", "all")
    group = group_of(mpstat.read(source_of(tmp_path, measured), Request()), "guest_cpu_idle_pct", GUEST)
    assert not group.since_boot


def test_offline_cpu_is_not_measured(tmp_path: Path) -> None:
    offline = ROW.format("10:57:51", "1").translate(str.maketrans("3595", "0000", "")).replace("1.00", "0.00")
    offline = offline.replace("10:07:01", "10:57:51")
    text = BANNER + HEAD.format("10:57:50") + ROW.format("10:57:51", "0") + offline
    capture = mpstat.read(source_of(tmp_path, text), Request())
    entities = {str(e) for g in capture.groups if g.metric == "guest_cpu_busy_pct" for e in g.entities}
    assert entities == {f"{GUEST}/cpu:0"}


def test_shares_no_number_can_hold_together(tmp_path: Path) -> None:
    """Of a damaged recording: their sum overflows."""
    row = ROW.format("10:57:51", "0").replace("   0.00", " -1e308").replace("  95.00", " -1e308")
    capture = mpstat.read(source_of(tmp_path, BANNER + HEAD.format("10:57:50") + row), Request())
    assert values_of(capture, "guest_cpu_busy_pct", f"{GUEST}/cpu:0").tolist() == [97.0]


def test_zone_is_applied_and_must_exist(fixtures: Path) -> None:
    capture = mpstat.read(fixture(fixtures, "default.txt"), Request(timezone="America/New_York"))
    assert seconds(group_of(capture, "guest_cpu_idle_pct", GUEST))[0] == 1_795_215_472 + 5 * 3600
    assert codes(capture) == []
    with pytest.raises(UsageError, match="IANA"):
        mpstat.read(fixture(fixtures, "default.txt"), Request(timezone="Mars/Base"))


def test_ambiguous_date_is_said_and_can_be_settled(tmp_path: Path) -> None:
    text = BANNER.replace("2026-11-20", "05/06/26") + HEAD.format("10:57:50") + ROW.format("10:57:51", "all")
    capture = mpstat.read(source_of(tmp_path, text), Request(timezone="UTC"))
    assert codes(capture) == ["date-order"]
    assert not capture.sources[0].clock_known
    settled = mpstat.read(source_of(tmp_path, text), Request(timezone="UTC", date="2026-06-05"))
    assert codes(settled) == []
    moved = seconds(group_of(settled, "guest_cpu_idle_pct", GUEST))[0]
    assert moved - seconds(group_of(capture, "guest_cpu_idle_pct", GUEST))[0] == 30 * 86_400


def test_unreadable_date_is_assumed_from_the_file(tmp_path: Path) -> None:
    text = BANNER.replace("2026-11-20", "someday") + HEAD.format("10:57:50") + ROW.format("10:57:51", "all")
    capture = mpstat.read(source_of(tmp_path, text), Request(timezone="UTC"))
    assert codes(capture) == ["no-date"]
    assert seconds(group_of(capture, "guest_cpu_idle_pct", GUEST)) == [1_795_132_800 + 10 * 3600 + 57 * 60 + 51]


def test_second_recording_in_the_file_has_its_own_day(tmp_path: Path) -> None:
    one = BANNER + HEAD.format("10:57:50") + ROW.format("10:57:51", "all")
    text = one + "\n" + one.replace("2026-11-20", "2026-11-21")
    capture = mpstat.read(source_of(tmp_path, text), Request())
    assert np.diff(seconds(group_of(capture, "guest_cpu_idle_pct", GUEST))).tolist() == [86_400]


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_cut_last_line_is_left_out(tmp_path: Path, cut: int) -> None:
    text = BANNER + HEAD.format("10:57:50") + ROW.format("10:57:51", "all") + ROW.format("10:57:52", "all")
    capture = mpstat.read(source_of(tmp_path, text[:-cut]), Request())
    assert len(values_of(capture, "guest_cpu_idle_pct", GUEST)) == 1
    assert "cut" in codes(capture)


def test_garbage_in_the_middle_is_refused_with_its_line(tmp_path: Path) -> None:
    text = BANNER + HEAD.format("10:57:50") + "10:57:51   all  0.5x\n" + ROW.format("10:57:52", "all")
    with pytest.raises(InputError, match=r"recording\.txt:4: .*fits its heading"):
        mpstat.read(source_of(tmp_path, text), Request())


def test_banner_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without a sample"):
        mpstat.read(source_of(tmp_path, BANNER), Request())


def test_json_cut_in_its_last_report_loses_that(fixtures: Path, tmp_path: Path) -> None:
    whole = (fixtures / "mpstat" / "p-all.json").read_text()
    capture = mpstat.read(source_of(tmp_path, whole[:-200]), Request())
    assert len(values_of(capture, "guest_cpu_idle_pct", GUEST)) == 3
    assert "cut" in codes(capture)
    with pytest.raises(InputError, match="breaks"):
        mpstat.read(source_of(tmp_path, whole.replace("idle", 'id"le', 1)), Request())


def test_lone_json_report_may_be_since_boot(fixtures: Path, tmp_path: Path) -> None:
    whole = (fixtures / "mpstat" / "p-all.json").read_text()
    first = whole.index('"timestamp": "22:57:53"')
    text = whole[: whole.rindex("\t\t\t\t},", 0, first)] + "\t\t\t\t}\n\t\t\t]\n\t\t}\n\t]\n}}\n"
    capture = mpstat.read(source_of(tmp_path, text), Request())
    assert group_of(capture, "guest_cpu_idle_pct", GUEST).since_boot
    assert "lone-report" in codes(capture)


@pytest.mark.parametrize(
    ("line", "hour"),
    [
        ("10:57:52 PM  all", 22),
        ("12:57:52 AM  all", 0),
        ("12:57:52 PM  all", 12),
        ("22:57:52     all", 22),
        ("22.57.52     all", 22),
        ("22時57分52秒  all", 22),
        ("下午 10時57分52秒 all", 22),
    ],
)
def test_clocks_of_locales(line: str, hour: int) -> None:
    found = clock_of(line)
    assert found is not None
    assert found[0] == (hour * 3600 + 57 * 60 + 52) * 10**9
    assert found[1].strip() == "all"


@pytest.mark.parametrize("line", ["25:00:00 all", "10:61:00 all", "Average:  all", "all 10:57:52", "", "1.5 2.5 3.5"])
def test_what_is_no_clock(line: str) -> None:
    assert clock_of(line) is None


@pytest.mark.parametrize(
    "text",
    ["11/20/26", "11/20/2026", "20/11/26", "20.11.2026", "2026-11-20", "20-11-2026", "2026年11月20日", "2026. 11. 20."],
)
def test_dates_of_locales(text: str) -> None:
    assert [str(day) for day in dates(text)] == ["2026-11-20"]


@pytest.mark.parametrize("text", ["", "today", "1.2", "99/99/99", "1/2/3/4", "123456/1/1"])
def test_what_is_no_date(text: str) -> None:
    assert dates(text) == ()


def test_banners_old_and_new() -> None:
    new = parse_banner("Linux 6.1.0-13-amd64 (db01.example) \t11/20/26 \t_x86_64_\t(8 CPU)")
    assert new is not None
    assert (new.host, new.machine, new.cpu_count) == ("db01.example", "x86_64", 8)
    old = parse_banner("Linux 2.6.18-308.el5 (db02) \t20.11.2026")
    assert old is not None
    assert (old.host, old.machine, old.cpu_count, str(old.days[0])) == ("db02", None, None, "2026-11-20")
    assert parse_banner("Linux is an operating system") is None


@pytest.mark.parametrize(("token", "value"), [("0,51", 0.51), ("96.2%", 96.2), ("1.5G", 1.5 * 1024**2), ("512B", 0.5)])
def test_numbers_of_locales(token: str, value: float) -> None:
    assert number(token) == value


def test_nothing_is_not_zero() -> None:
    assert np.isnan(number("-"))
    with pytest.raises(ValueError, match="x"):
        number("1.x")


SAMPLES = {
    "kellyjonbrazil__jc__centos77_mpstat-A-2-5.out": ("localhost", 1, None),
    "kellyjonbrazil__jc__centos77_mpstat-A.out": ("localhost", 1, 0.59),
    "kellyjonbrazil__jc__ubuntu1804_mpstat-A.out": ("kbrazil-ubuntu", 1, None),
    "sysstat__sysstat__expected.mpstat-A": ("SYSSTAT.TEST", 9, 17.0),
    "sysstat__sysstat__expected.mpstat-A-JSON": ("SYSSTAT.TEST", 9, 17.0),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(samples: Path, name: str) -> None:
    source = Source(name, samples / "sysstat" / name)
    host, cpu_count, busy = SAMPLES[name]
    chosen = recognise(source, load_units("importer"))
    assert chosen is not None
    assert chosen[0] == "mpstat"
    assert sar.sniff(source) == iostat.sniff(source) == 0
    capture = chosen[1].read(source, Request())
    group = group_of(capture, "guest_cpu_busy_pct", f"guest:{host}")
    assert capture.inventory.get(group.entities[0], "cpu_count") == cpu_count
    assert len(group.times_ns) == (5 if "2-5" in name else len(group.times_ns))
    if busy is not None:
        assert group.values[0][0] == pytest.approx(busy)


def test_a_table_without_the_first_line_is_mpstat_s(tmp_path: Path) -> None:
    path = tmp_path / "paste.txt"
    path.write_text(
        "11:02:01 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n"
        "11:02:02 AM  all   12.00    0.00    4.00   61.00    0.00    0.00    0.00    0.00    0.00   23.00\n"
    )
    source = Source(str(path), path)
    assert (mpstat.sniff(source), sar.sniff(source)) == (90, 0)
    (group,) = mpstat.read(source, Request()).of("guest_cpu_iowait_pct")
    assert group.values[0].tolist() == [61.0]
