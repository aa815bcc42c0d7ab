"""vdbench's reports. vdbench is a Java program the project does not run: these follow what three generations print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import import_paths
from leadline.core.model.errors import InputError
from leadline.importers import vdbench, vdbench_histogram
from tests.importers.load_tools import (
    chosen,
    entities,
    operation,
    read,
    read_text,
    sample_files,
    seed,
    times_s,
    values,
    warned,
)

FLAT_1 = seed("vdbench-flatfile-5.00.html")
FLAT_3 = seed("vdbench-flatfile-5.04.07.html")
SUMMARY = seed("vdbench-summary.html")
HOST = "Host summary report(s) for host=n1\n" + SUMMARY[SUMMARY.index("<a name") :]
STORAGE = "SD summary report for sd=sd1\n" + SUMMARY[SUMMARY.index("<a name") :]
FILES = seed("vdbench-file-system.html")
HISTOGRAM = seed("vdbench-histogram.html")


def folder(tmp_path: Path, **files: str) -> Path:
    output = tmp_path / "output"
    output.mkdir()
    for name, text in files.items():
        (output / f"{name}.html").write_text(text)
    return output


def test_flat_file_of_the_first_generation(tmp_path: Path) -> None:
    capture = read_text(vdbench, tmp_path, FLAT_1, date="2010-02-20")
    assert entities(capture) == {"guest:guest/job:vdbench"}
    assert values(capture, "job_iops") == [2219, 0]
    assert values(capture, "job_iops_write") == [2219, 0]
    assert values(capture, "job_mib_per_s")[0] == 8.668
    assert values(capture, "job_latency_ms")[0] == 2.8169
    assert np.isnan(values(capture, "job_latency_ms")[1]), "no I/O took 0 ms"
    assert values(capture, "job_latency_ms_read") == []
    assert values(capture, "raw.vdbench.ks_rate") == [4443.6575, 603.9581]
    assert times_s(capture, "job_iops")[0] == pytest.approx(1266663420.106, abs=1e-6)
    assert warned(capture) == ["no-date", "no-zone"]
    assert not capture.sources[0].clock_known
    assert capture.results[0].workload == {"rate_per_s": "max", "block_size_bytes": 4096, "thread_count": 8}


def test_flat_file_of_the_third_generation_over_midnight(tmp_path: Path) -> None:
    capture = read_text(vdbench, tmp_path, FLAT_3)
    begin = 1552064399  # 2019-03-08T23:59:59+07:00
    assert times_s(capture, "job_iops") == pytest.approx([begin + 0.068, begin + 1.016, begin + 2.012], abs=1e-6)
    assert capture.sources[0].clock_known
    assert warned(capture) == []
    assert values(capture, "job_iops_read") == [3000, 4800, 2600]
    assert np.isnan(values(capture, "job_latency_ms_write")[1]), "nothing was written"
    (result,) = capture.results
    assert result.job == "rw"
    assert result.duration_s == pytest.approx(2 * 0.972)
    assert operation(result, "io").latency_ms == {"mean": 1.75, "max": 60.0}
    assert operation(result, "read").per_s == 3750
    assert operation(result, "io").bytes_per_s == pytest.approx(39.0625 * 1024**2)


def test_flat_file_as_csv(tmp_path: Path) -> None:
    body = FLAT_3[FLAT_3.index("         tod") :]
    text = "".join(",".join(line.split()) + "\n" for line in body.splitlines())
    text = text.replace("\n00:00:01.020", "\n\n--- Averages ---\n00:00:01.020")
    plain, saved = read_text(vdbench, tmp_path, FLAT_3), read_text(vdbench, tmp_path, text)
    assert values(saved, "job_latency_ms") == values(plain, "job_latency_ms")
    assert operation(saved.results[0], "io").per_s == operation(plain.results[0], "io").per_s == 5000


def test_flat_file_with_decimal_commas(tmp_path: Path) -> None:
    capture = read_text(vdbench, tmp_path, FLAT_1.replace(".0000", ",0000").replace("2.8169", "2,8169"))
    assert values(capture, "job_latency_ms")[0] == 2.8169


def test_flat_file_takes_its_date_from_the_summary_beside_it(tmp_path: Path) -> None:
    second = FLAT_3.replace("timestamp ", "")
    for stamp in ("03/08/2019-23:59:59-ICT ", "03/09/2019-00:00:00-ICT ", "03/09/2019-00:00:01-ICT "):
        second = second.replace(stamp, "")
    output = folder(tmp_path, flatfile=second, summary=SUMMARY)
    capture = read(vdbench, output / "flatfile.html")
    assert times_s(capture, "job_iops")[0] == pytest.approx(1552064399.068, abs=1e-6)
    assert capture.sources[0].clock_known


def test_undated_run_over_midnight_ends_on_the_day_of_the_last_change(tmp_path: Path) -> None:
    undated = FLAT_1.replace("10:57:00.106", "23:59:59.106").replace("10:57:01.035", "00:00:00.035")
    capture = read_text(vdbench, tmp_path, undated)
    day = (tmp_path / "x.txt").stat().st_mtime_ns // (86_400 * 10**9) * 86_400
    assert times_s(capture, "job_iops") == pytest.approx([day - 0.894, day + 0.035], abs=1e-5)


def test_summary(tmp_path: Path) -> None:
    capture = read_text(vdbench, tmp_path, SUMMARY, "summary.html")
    assert entities(capture) == {"guest:guest/job:vdbench summary"}
    assert times_s(capture, "job_iops")[:2] == pytest.approx([1552064399.061, 1552064400.014], abs=1e-6)
    assert values(capture, "job_iops") == [4000, 4800, 5200]
    assert values(capture, "job_latency_ms_max") == [90.5, 60, 30], "the worse of reads and writes"
    assert values(capture, "job_outstanding_count") == [10, 9.5, 9]
    assert operation(capture.results[0], "io").latency_ms["max"] == 60


def test_zone_of_the_summary_may_be_known_by_its_two_times(tmp_path: Path) -> None:
    capture = read_text(vdbench, tmp_path, SUMMARY.replace("ICT", "CST"), "summary.html")
    assert capture.sources[0].clock_known
    lone = SUMMARY.replace("ICT (16:59:35 Mar 08 2019 UTC)", "CST")
    assert warned(read_text(vdbench, tmp_path, lone, "summary.html")) == ["no-zone"]


def test_folder_yields_the_same_numbers_once(tmp_path: Path) -> None:
    output = folder(
        tmp_path, flatfile=FLAT_3, summary=SUMMARY, totals=SUMMARY, n1=HOST, sd1=STORAGE, histogram=HISTOGRAM
    )
    found = import_paths([output])
    names = {entity.name for group in found.capture.groups for entity in group.entities}
    assert names == {"vdbench", "vdbench host n1"}, "one host of two is a part, the only SD is the whole"
    repeated = [s.name for s in found.capture.sources if any(w.code == "repeated" for w in s.warnings)]
    assert sorted(Path(name).name for name in repeated) == ["sd1.html", "summary.html", "totals.html"]
    assert [result.job for result in found.capture.results] == ["rw", "rw", "rw host n1"]


def test_summary_alone_is_read(tmp_path: Path) -> None:
    output = folder(tmp_path, summary=SUMMARY)
    assert {e.name for g in import_paths([output]).capture.groups for e in g.entities} == {"vdbench summary"}


def test_file_system_workload(tmp_path: Path) -> None:
    capture = read_text(vdbench, tmp_path, FILES)
    assert values(capture, "job_iops") == [39.1, 40]
    assert values(capture, "job_iops_read") == [16, 20]
    assert values(capture, "job_latency_ms_write") == [143.61, 200]
    assert values(capture, "job_mib_per_s_read") == [16, 20]
    assert operation(capture.results[0], "write").bytes_per_s == pytest.approx(21.6 * 1024**2)


def test_standard_deviations_and_maxima_of_a_file_system_run_are_passed_over(tmp_path: Path) -> None:
    """They leave most columns blank, which is no damage. Source: vdbench 5.04.07, summary.html."""
    average = FILES.splitlines()[7]
    others = [
        "17:17:21.080  std_1-2     0.6  30.43" + 33 * " " + "2.1  28.20",
        "17:17:21.080  max_1-2    40.0 143.61" + 33 * " " + "23.1 200.00",
    ]
    capture = read_text(vdbench, tmp_path, FILES.replace(average, "\n".join([average, *others])))
    assert values(capture, "job_iops") == [39.1, 40]
    assert operation(capture.results[0], "io").per_s == 39.6
    assert warned(capture) == warned(read_text(vdbench, tmp_path, FILES))


def test_stopped_run_has_no_result(tmp_path: Path) -> None:
    stopped = FLAT_3[: FLAT_3.index("00:00:01.012") + 40]
    capture = read_text(vdbench, tmp_path, stopped)
    assert values(capture, "job_iops") == [4000, 4800]
    assert (capture.results, warned(capture)) == ([], ["cut", "no-summary"])


@pytest.mark.parametrize(
    ("text", "old", "new", "line"),
    [
        (FLAT_3, "4800 37.5", "48x0 37.5", 5),
        (FLAT_3, "4800 37.5", "4800", 5),
        (FLAT_3, "03/09/2019-00:00:00-ICT", "03/39/2019-00:00:00-ICT", 5),
        (FLAT_3, "00:00:00.016", "00:60:00.016", 5),
        (SUMMARY, "4800.0", "48OO.0", 15),
        (SUMMARY, "resp  queue  cpu%  cpu%\n", "resp  queue  cpu%\n", 10),
    ],
)
def test_damage_in_the_middle_is_an_error(tmp_path: Path, text: str, old: str, new: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        read_text(vdbench, tmp_path, text.replace(old, new))
    assert caught.value.where.endswith(f":{line}")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<title>Vdbench output/errorlog.html</title><pre>\nVdbench error log, created 1\n", "the error log"),
        ("<pre>\n13:48:08.587 line: hd=default\n13:48:08.587 keyw: hd=default\n", "the scan of the parameters"),
        ("<pre>\nVdbench distribution: vdbench50407\n" + SUMMARY, "the log"),
        ("Workload skew report\n", "the skew report"),
        (":date 1\n:vdbench503_vdbench_data_for_swat303\n", "data for Swat"),
        ("* Contents of parameter file: /srv/x\n", "a setting"),
    ],
)
def test_files_without_results_say_what_they_are(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        read_text(vdbench, tmp_path, text)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "flatfile.html").write_text(FLAT_3)
    (tmp_path / "more" / "other.html").write_text(text)
    found = import_paths([tmp_path / "more"])
    assert [Path(name).name for name in found.unrecognised] == ["other.html"], "in a folder they are only left out"


def test_histogram(tmp_path: Path) -> None:
    capture = read_text(vdbench_histogram, tmp_path, HISTOGRAM)
    (result,) = capture.results
    assert [known.name for known in result.operations] == ["io", "read", "write"]
    whole = operation(result, "io").histogram
    assert whole is not None
    assert whole.total == 754632
    assert whole.quantile_bounds(0.5) == (0.2, 0.4)
    assert whole.quantile_bounds(1.0) == (2000.0, np.inf)
    assert operation(result, "read").count == 700_000


@pytest.mark.parametrize("separator", [".", "\xa0", "\u202f", "’"])
def test_histogram_of_other_languages(tmp_path: Path, separator: str) -> None:
    text = HISTOGRAM.replace(",", separator)
    assert operation(read_text(vdbench_histogram, tmp_path, text).results[0], "write").count == 21032


def test_histogram_of_one_kind_and_one_part(tmp_path: Path) -> None:
    only = HISTOGRAM[: HISTOGRAM.index("Reads:")].replace("Reads and writes:", "Only writes done for this workload:")
    only = only.replace("Total response", "wd=wd50 response")
    (result,) = read_text(vdbench_histogram, tmp_path, only).results
    assert (result.job, [known.name for known in result.operations]) == ("rw wd wd50", ["write"])


def test_damaged_histogram(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_text(vdbench_histogram, tmp_path, HISTOGRAM.replace("733,597", "73x,597"))
    assert caught.value.where.endswith(":10")
    assert warned(read_text(vdbench_histogram, tmp_path, HISTOGRAM.rstrip()[:-12])) == ["cut"]


WITHOUT_RESULTS = ("errorlog", "logfile", "parmscan", "parmfile", "skew", "swat_mon")


@pytest.mark.parametrize("path", sample_files("vdbench/*"))
def test_samples(path: Path) -> None:
    if any(word in path.name for word in WITHOUT_RESULTS):
        assert chosen(path) == "vdbench"
        with pytest.raises(InputError, match="of vdbench; expected results"):
            read(vdbench, path)
        return
    expected = "vdbench-histogram" if "histogram" in path.name else "vdbench"
    assert chosen(path) == expected
    assert read(vdbench_histogram if "histogram" in path.name else vdbench, path).results


def test_sample_values(samples: Path) -> None:
    kinds = samples / "vdbench"
    flat = read(vdbench, kinds / "masakioui__vdb__output_flatfile.html")
    assert values(flat, "job_iops")[:2] == [27913, 43889]
    assert times_s(flat, "job_iops")[0] == pytest.approx(1552043499.068, abs=1e-6)  # 18:11:39 ICT is 11:11:39 UTC
    (result,) = flat.results
    assert operation(result, "io").per_s == 15773.1017
    long = read(vdbench, kinds / "masakioui__vdb__40hour_summary.html")
    assert len(values(long, "job_iops")) == 2400
    span = times_s(long, "job_iops")
    assert span[-1] - span[0] == pytest.approx(2399 * 60, abs=1), "forty hours pass midnight twice"
    assert np.diff(span).min() > 59
    old = read(vdbench, kinds / "jfritzen__VdbenchExplorer__VdbenchFlatfile.html")
    assert [len(r.operations) for r in old.results] == [3] * 8
    assert operation(old.results[0], "write").per_s == 327.4444
    assert values(old, "job_latency_ms_max")[:2] == [363.053, 1464.434]
    part = read(vdbench_histogram, kinds / "masakioui__vdb__output_histogram.html").results[0]
    assert operation(part, "write").count == 930613


def test_the_flat_file_of_a_file_system_run(tmp_path: Path) -> None:
    header = "tod timestamp Run Interval Xfersize Threads Reqrate Rate Rate_std Rate_max Resp Resp_std Resp_max MB/sec"
    header += " MB_read MB_write Read_rate Read_resp Write_rate Write_resp"
    rows = [
        f"10:00:{5 * n:02}.010 11/20/2026-10:00:{5 * n:02}-UTC rd1 {n} 4096 n/a 9999988 {100 * n} 0 0 2.5 0.5 9.5"
        f" 40 30 10 {70 * n} 2.0 {30 * n} 3.5"
        for n in (1, 2, 3)
    ]
    rows.append(
        "10:00:15.020 11/20/2026-10:00:15-UTC rd1  avg_2-3 4096 n/a 9999988 250 5 300 2.5 0.5 9.5 40 30 10 175 2 75 3.5"
    )
    path = tmp_path / "flatfile.html"
    path.write_text(
        "\n".join(["<title>Vdbench a/flatfile.html</title><pre>", "* words", f"    {header}", *rows]) + "\n"
    )
    capture = import_paths([path]).capture
    (rate,), (moved,) = capture.of("job_iops"), capture.of("job_mib_per_s_read")
    assert rate.values[0].tolist() == [100, 200, 300]
    assert moved.values[0].tolist() == [30, 30, 30]
    assert {op.name: op.per_s for op in capture.results[0].operations} == {"io": 250, "read": 175, "write": 75}
