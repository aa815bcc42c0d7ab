"""The HTML report: what is embedded, what is drawn, what is escaped, and how it behaves in a real browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.compare.comparing import Comparison, compare
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import Imported, import_paths
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.finding import Diagnosis, Window
from leadline.core.model.profile import Profile
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.report import write_report
from leadline.faces.report.anonymize import Replacer, anonymized
from leadline.faces.report.downsample import POINTS_PER_BUCKET, m4_indices, thinned
from leadline.faces.report.figures import LINES_MAX, finding_charts, inside_windows, series_chart
from leadline.faces.report.ladder import latency_ladder
from leadline.faces.report.packing import pack, statistics
from leadline.faces.report.page import environment
from leadline.faces.report.timeline import ticks
from leadline.faces.words.answers import headline
from leadline.faces.words.findings import Quotes
from tests.command_line import leadline as run
from tests.conftest import ROOT
from tests.faces.report_samples import HOSTILE, NS, group_of, renamed

if TYPE_CHECKING:
    from numpy.typing import NDArray

INCIDENT = ROOT / "examples" / "incidents" / "throttled-wal-disk"


@pytest.fixture(scope="module")
def incident() -> tuple[Diagnosis, Imported]:
    imported = import_paths([INCIDENT])
    return diagnose(imported.capture), imported


# --- what is embedded ---


def series_values() -> st.SearchStrategy[list[float]]:
    return st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))), min_size=1, max_size=300)


@given(series_values(), st.integers(1, 20))
def test_thinning_keeps_every_buckets_extremes_ends_and_gaps(values: list[float], buckets: int) -> None:
    whole = np.array([values])
    kept = thinned(whole, buckets)[0]
    assert (np.diff(kept) > 0).all()
    if len(values) <= buckets * POINTS_PER_BUCKET:
        assert len(kept) == len(values)
        return
    width = -(-len(values) // buckets)
    for start in range(0, len(values), width):
        bucket = whole[0, start : start + width]
        own = whole[0, kept[(kept >= start) & (kept < start + width)]]
        known = bucket[np.isfinite(bucket)]
        if not len(known):
            assert len(own)
            assert np.isnan(own).all()  # a gap stays a gap
            continue
        measured = own[np.isfinite(own)]
        assert (measured.min(), measured.max()) == (known.min(), known.max())
        assert (measured[0], measured[-1]) == (known[0], known[-1])


def test_thinning_of_a_long_series_is_four_points_a_bucket_at_most() -> None:
    values = np.random.default_rng(3).normal(size=(5, 10_000))
    indices = m4_indices(values, 100)
    assert indices.shape == (5, 400)
    assert indices.max() < 10_000


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text), -15)


def planes(raw: bytes, count: int, width: int) -> NDArray[np.int64]:
    by_place = np.frombuffer(raw[: count * width], dtype=np.uint8).reshape(width, count).astype(np.int64)
    whole: NDArray[np.int64] = sum((by_place[k] << (8 * k) for k in range(width)), np.zeros(count, dtype=np.int64))
    return whole


def test_what_is_packed_is_what_was_recorded_to_three_digits() -> None:
    random = np.random.default_rng(5)
    values = np.exp(random.normal(0.0, 3.0, size=(300, 90)))
    values[7, 3] = np.nan
    group = group_of(values)
    packed = pack([group], origin_ns=int(group.times_ns[0]), points=1000)
    catalogue = json.loads(unpacked(packed.catalogue))
    assert packed.series_count == 300
    assert len(packed.blocks) == 2  # 256 series, then the rest
    first = planes(unpacked(packed.blocks[0]), 256 * 90, 2).astype(np.uint16).view(np.float16)
    scale = np.ldexp(1.0, np.array(catalogue["columns"]["exponent"][:256]))
    read = first.astype(np.float64).reshape(256, 90) * scale[:, np.newaxis]
    assert np.isnan(read[7, 3])
    # Half precision has 11 significant bits; far below the largest value of a series it has fewer.
    size = np.nanmax(values[:256], axis=1, keepdims=True)
    assert np.nanmax(np.abs(read - values[:256]) / np.maximum(values[:256], size * 1e-8)) <= 2.0**-11
    ticks_ms = np.cumsum(planes(unpacked(packed.times), 90, 4))
    assert ticks_ms.tolist() == [5000 * k for k in range(90)]


def test_a_series_of_nothing_is_left_out_and_counted() -> None:
    packed = pack([group_of([[np.nan] * 4, [1.0, 2.0, np.inf, 3.0]])], origin_ns=0, points=100)
    assert (packed.series_count, packed.empty_count) == (1, 1)
    assert json.loads(unpacked(packed.catalogue))["columns"]["max"] == [3.0]  # not infinity


def test_months_between_samples_fit() -> None:
    group = group_of([[1.0, 2.0]], step_s=90 * 86_400.0)
    packed = pack([group], origin_ns=int(group.times_ns[0]), points=100)
    tick = json.loads(unpacked(packed.catalogue))["tick_ms"]
    assert (np.cumsum(planes(unpacked(packed.times), 2, 4)) * tick).tolist() == [0, 90 * 86_400_000]


def test_statistics_leave_nan_out() -> None:
    marks = statistics(np.array([[1.0, np.nan, 3.0, 2.0], [np.nan] * 4, [5.0] * 4]))
    assert marks["median"][[0, 2]].tolist() == [2.0, 5.0]
    assert (marks["min"][0], marks["max"][0], marks["mean"][0]) == (1.0, 3.0, 2.0)
    assert np.isnan([marks[name][1] for name in ("min", "median", "p95", "max", "mean")]).all()
    assert marks["spread"][2] == 0.0


# --- charts ---


def test_a_finding_is_drawn_with_its_limit_and_windows(generated: tuple[Diagnosis, Imported]) -> None:
    diagnosis, imported = generated
    finding = next(f for f in diagnosis.findings if f.rule == "cpu-ready-high")
    chart = finding_charts(finding, imported.capture, {"warn": 5.0})[0]
    assert chart.metric == "cpu_ready_pct"
    assert [(limit.value, limit.label) for limit in chart.limits] == [(5.0, "limit 5 %")]
    assert chart.windows == finding.windows
    assert {line.entities[0].parent for line in chart.lines} == {finding.entity}
    inside = next(row for row in chart.summary(imported.capture) if row["span"] == "while it happened")
    assert float(inside["median"].rstrip("%")) > 5.0


def test_what_a_rule_computed_is_drawn_as_reads_and_writes(incident: tuple[Diagnosis, Imported]) -> None:
    diagnosis, imported = incident
    finding = next(f for f in diagnosis.findings if f.rule == "vm-iops-limit-hit")
    chart = finding_charts(finding, imported.capture)[0]
    assert chart.metric == "disk_iops"
    assert chart.labels(imported.capture) == ["db01 loop1 reads", "db01 loop1 writes"]


def test_a_setting_has_no_chart(generated: tuple[Diagnosis, Imported]) -> None:
    diagnosis, imported = generated
    assert finding_charts(replace(diagnosis.findings[0], windows=()), imported.capture) == []


def test_a_chart_of_many_series_has_as_many_lines_as_can_be_told_apart(
    generated: tuple[Diagnosis, Imported],
) -> None:
    groups = list(generated[1].capture.of("disk_device_latency_ms", EntityKind.DEVICE))
    chart = series_chart(groups)
    assert len(chart.lines) == LINES_MAX < sum(len(group.entities) for group in groups)
    assert chart.unit == "ms"
    highest = [np.nanmax(line.values) for line in chart.lines]
    assert highest[0] == max(np.nanmax(group.values) for group in groups)
    assert highest == sorted(highest, reverse=True)


def test_a_sample_belongs_to_the_interval_that_ends_at_its_time() -> None:
    inside = inside_windows(np.array([10, 20, 30]), (Window(10, 20),))
    assert inside.tolist() == [False, True, False]


def test_the_ladder_is_of_one_device_and_adds_up(generated: tuple[Diagnosis, Imported]) -> None:
    diagnosis, imported = generated
    ladder = latency_ladder(diagnosis, imported.capture)
    rungs = {rung.name: rung for rung in ladder.rungs}
    assert ladder.about is not None
    gavg, kavg, davg = (rungs[name] for name in ("GAVG", "KAVG", "DAVG"))
    assert gavg.entity == kavg.entity == davg.entity == ladder.about.entity
    assert gavg.inside_ms == pytest.approx(kavg.inside_ms + davg.inside_ms, rel=0.1)
    assert davg.inside_ms > 5 * davg.outside_ms
    assert rungs["Guest await"].entity is None
    assert np.isnan(rungs["Guest await"].inside_ms)


def test_few_samples_with_io_make_no_rung() -> None:
    group = replace(group_of([[0.0] * 99 + [50.0]], metric="disk_device_latency_ms"))
    ladder = latency_ladder(diagnose(Capture()), Capture(groups=[group]))
    assert not ladder.is_measured


@pytest.mark.parametrize(("seconds", "labels"), [(12, 6), (600, 5), (86_400, 4), (40 * 86_400, 6)])
def test_ticks_are_round_and_few(seconds: int, labels: int) -> None:
    start = 1_700_000_003 * NS
    found = ticks((start, start + seconds * NS))
    assert 2 <= len(found) <= labels + 1
    assert all(0.0 <= float(x.rstrip("%")) <= 100.0 for x, _, _ in found)


# --- the file ---


def test_the_page_stands_alone(report: Path) -> None:
    html = report.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert "default-src 'none'; script-src 'sha256-" in unescape(html)
    loaded = re.findall(r"<(?:link|img|iframe|script[^>]*\ssrc)[^>]*>|@import|url\(", html)
    assert loaded == []
    assert re.findall(r"\sstyle=|\son\w+=", html) == []  # the page's own policy would refuse them
    assert len(html) < 500_000


def test_the_page_says_how_it_came_about(generated: tuple[Diagnosis, Imported], tmp_path: Path) -> None:
    diagnosis, imported = generated
    site = Profile(limits={"cpu-ready-high": {"warn": 3.5}}, path="leadline.toml")
    write_report(tmp_path / "r.html", diagnosis, imported, site)
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert headline(diagnosis, Quotes()) in html
    assert "the site's profile, instead of 5 %" in html
    assert all(f'<th scope="row">{skipped.rule}</th>' in html for skipped in diagnosis.skipped)
    assert all(name in html for name in ("cap.csv", "leadline.toml"))
    for finding in diagnosis.findings:
        assert finding.code in html


def test_a_report_of_nothing_is_a_report(tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", diagnose(Capture()), Imported(Capture()))
    assert "No finding of weight" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_names_are_text_never_markup(hostile: Path) -> None:
    html = hostile.read_text(encoding="utf-8")
    assert HOSTILE not in html
    assert "<img" not in html
    assert "&lt;/script&gt;&lt;img" in html


@pytest.mark.parametrize("kind", ["folder", "missing folder", "file as folder"])
def test_a_path_that_cannot_be_written_is_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = {
        "folder": tmp_path,
        "missing folder": tmp_path / "no" / "r.html",
        "file as folder": tmp_path / "file" / "r.html",
    }[kind]
    with pytest.raises(UsageError, match=r"--html .*; expected a (plain )?file in a folder"):
        write_report(path, diagnose(Capture()), Imported(Capture()))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_a_failed_write_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.html"
    write_report(path, diagnose(Capture()), Imported(Capture()))
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ToolError, match="No space left"):
        write_report(path, diagnose(Capture()), Imported(Capture()))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def compared(generated: tuple[Diagnosis, Imported]) -> Comparison:
    """Against the same capture before vm002 was there under that name and while its host was twice as busy."""
    diagnosis, imported = generated
    before = renamed(imported.capture, "vm002", "Old-Orders")
    before.groups = [replace(g, values=g.values * 2) if g.metric == "host_cpu_used_pct" else g for g in before.groups]
    return compare(imported.capture, before, diagnosis, diagnose(before))


def test_a_comparison_is_told(generated: tuple[Diagnosis, Imported], tmp_path: Path) -> None:
    comparison = compared(generated)
    assert comparison.gone
    assert comparison.changes
    write_report(tmp_path / "r.html", *generated, comparison=comparison)
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    section = html[
        html.index('<section id="comparison"') : html.index("</section>", html.index('id="comparison-title"'))
    ]
    assert comparison.gone[0].summary in section
    directions = sum(section.count(f'<td class="{word}">') for word in ("better", "worse", "changed"))
    assert directions == len(comparison.changes[:25])


def test_a_comparison_is_anonymous_too(generated: tuple[Diagnosis, Imported], tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", *generated, comparison=compared(generated), anonymize=True)
    text = everything_in(tmp_path / "r.html").casefold()
    assert "old-orders" not in text
    assert "vm002" not in text


def test_a_name_that_is_no_unicode_is_written(tmp_path: Path) -> None:
    group = replace(group_of([1.0, 2.0]), entities=[Entity(EntityKind.DEVICE, "disk\udcff")])
    write_report(tmp_path / "r.html", diagnose(Capture()), Imported(Capture(groups=[group])))
    assert r"disk\udcff" in everything_in(tmp_path / "r.html")


# --- anonymous ---


def everything_in(path: Path) -> str:
    """The page's text and, unpacked, the names of its series."""
    html = path.read_text(encoding="utf-8")
    packs = re.findall(r'id="\w+-catalogue">([^<]*)<', html)
    assert len(packs) == 2
    return html + "".join(unpacked(text).decode() for text in packs)


def test_an_anonymous_report_has_no_name_of_the_site(incident: tuple[Diagnosis, Imported], tmp_path: Path) -> None:
    diagnosis, imported = incident
    write_report(tmp_path / "r.html", diagnosis, imported, anonymize=True)
    text = everything_in(tmp_path / "r.html")
    names = {e.name for e in imported.capture.inventory.facts if e.kind in (EntityKind.GUEST, EntityKind.VM)}
    names |= {source.name for source in imported.capture.sources} | {Path(n).name for n in imported.unrecognised}
    assert "db01" in names
    assert [name for name in names if name.casefold() in text.casefold()] == []
    assert "guest-1" in text
    assert "loop1" in text  # a kernel's name tells nobody's


def test_an_anonymous_report_says_the_same(generated: tuple[Diagnosis, Imported]) -> None:
    diagnosis, imported = generated
    masked, other, _ = anonymized(diagnosis, imported)
    assert [f.rule for f in masked.findings] == [f.rule for f in diagnosis.findings]
    assert [f.windows for f in masked.findings] == [f.windows for f in diagnosis.findings]
    numbers = [[e.value for e in f.evidence] for f in diagnosis.findings]
    assert [[e.value for e in f.evidence] for f in masked.findings] == numbers
    assert masked.findings[0].remedy == diagnosis.findings[0].remedy
    kinds = {entity.kind: entity.name for group in other.capture.groups for entity in group.entities}
    assert kinds[EntityKind.HOST] == "host-1"
    assert re.fullmatch(r"vm-\d", kinds[EntityKind.VM])
    assert other.capture.sources[0].name == "file-1.csv"
    drawn = finding_charts(masked.findings[0], other.capture)
    assert len(drawn) == len(finding_charts(diagnosis.findings[0], imported.capture))


def test_files_without_an_ending_are_named_anew_and_tools_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "Contoso"
    folder.mkdir()
    for name in ("iostat", "contoso-iostat"):
        (folder / name).write_bytes((INCIDENT / "iostat.txt").read_bytes())
    imported = import_paths([folder / "iostat", folder / "contoso-iostat"])
    write_report(tmp_path / "r.html", diagnose(imported.capture), imported, anonymize=True)
    text = everything_in(tmp_path / "r.html")
    assert "contoso" not in text.casefold()
    assert "<td>iostat</td>" in text


def test_one_name_has_one_alias_everywhere() -> None:
    replacer = Replacer()
    assert replacer.add("Orders-DB", "vm") == "vm-1"
    assert replacer.add("orders", "vm") == "vm-2"
    assert replacer.add("orders-db", "guest") == "vm-1"
    text = "ORDERS-DB waits for orders (orders-db_1.vmdk); borders do not"
    assert replacer.text(text) == "vm-1 waits for vm-2 (vm-1_1.vmdk); name-1 do not"


def test_addresses_are_replaced_and_times_are_not() -> None:
    replacer = Replacer()
    text = "10.1.2.3 and fe80::1 and 00:50:56:ab:cd:ef and naa.6001405000 at 23:49:48, 10.1.2.3 again, 15.4 ms"
    expected = "ip-1 and ip-2 and mac-1 and device-1 at 23:49:48, ip-1 again, 15.4 ms"
    assert replacer.text(text) == expected


def test_names_of_machines_making_stay() -> None:
    replacer = Replacer()
    for name in ("sda1", "nvme0n1", "scsi0:1", "vmhba2", "postgres[123]", "0", "eth0"):
        assert replacer.add(name, "x") == name
    assert replacer.add("postgres: alice shop", "process") == "process-1"


def test_a_machine_called_like_a_word_does_not_garble_sentences() -> None:
    replacer = Replacer()
    replacer.add("latency", "vm")
    assert replacer.alias("latency") == "vm-1"
    assert replacer.text("latency of the disk") == "latency of the disk"


# --- the command ---


def test_diagnose_writes_a_report_and_still_prints(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    done = run("diagnose", INCIDENT / "iostat.txt", "--html", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Yes, it is the disk: ")
    assert re.search(r"^report: .*report\.html \(\d+\.\d MB\)$", done.stderr, re.MULTILINE)
    assert path.stat().st_size > 50_000


def test_wrong_options_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    done = run("diagnose", tmp_path / "not-there.csv", "--html", tmp_path / "no" / "r.html")
    assert done.returncode == 2
    assert "--html" in done.stderr
    assert "not-there" not in done.stderr


@pytest.mark.parametrize("how", [[], ["--json"], ["--all"]])
def test_without_a_report_what_is_printed_is_anonymous(how: list[str]) -> None:
    done = run("diagnose", INCIDENT, "--anonymize", *how)
    assert done.returncode == 0, done.stderr
    assert "db01" not in (done.stdout + done.stderr).casefold()
    assert "guest-1" in done.stdout


def test_what_stands_between_backticks_is_a_command() -> None:
    template = environment().from_string("{{ text|coded }}")
    assert template.render(text="Run `a <b>` now") == "Run <code>a &lt;b&gt;</code> now"
    assert template.render(text="one ` alone <i>") == "one ` alone &lt;i&gt;"
