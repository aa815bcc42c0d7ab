"""vdbench's reports. vdbench is a Java program the project does not run: these follow what three generations print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.app.importing import import_paths
from leadline.core.errors import InputError
from leadline.importers import vdbench, vdbench_histogram
from tests.importers.load_tools import (
    chosen,
    damaged,
    entities,
    operation,
    read,
    read_text,
    sample_files,
    survives,
    times_s,
    values,
    warned,
)

FLAT_1 = """<pre>
* Run       : Name of run from RD=
         tod        Run   Interval    reqrate       rate     MB/sec   bytes/io      read%       resp   resp_max   resp_std   \
xfersize    threads    version    ks_rate   cpu_used
10:57:00.106        rnd          1 999988.0000  2219.0000     8.6680       4096     0.0000     2.8169   363.0530    21.7697       \
4096          8        n/a  4443.6575     1.5615
10:57:01.035        rnd          2 999988.0000     0.0000     0.0000       4096     0.0000     0.0000     0.0000     0.0000       \
4096          8        n/a   603.9581        n/a
10:57:02.037        rnd    avg_2-2 999988.0000     0.0000     0.0000       4096     0.0000     0.0000     0.0000     0.0000       \
4096          8        n/a   603.9581        n/a
"""  # noqa: E501 - lines as vdbench prints them
FLAT_3 = """<title>Vdbench output/flatfile.html</title><pre>
*
         tod               timestamp Run Interval reqrate rate MB/sec bytes/io read% resp read_resp write_resp \
resp_max queue_depth
23:59:59.068 03/08/2019-23:59:59-ICT rw 1 5000 4000 31.25 8192 75 2.5 3 1 90.5 10
00:00:00.016 03/09/2019-00:00:00-ICT rw 2 5000 4800 37.5 8192 100 2 2 0 60 9.5
00:00:01.012 03/09/2019-00:00:01-ICT rw 3 5000 5200 40.625 8192 50 1.5 2 1 30 9
00:00:01.020 03/09/2019-00:00:01-ICT rw  avg_2-3 5000 5000 39.0625 8192 75 1.75 2 1 60 9.25
"""
SUMMARY = """<title>Vdbench output/summary.html</title><pre>
Vdbench summary report, created 23:59:35 Mar 08 2019 ICT (16:59:35 Mar 08 2019 UTC)

Link to HOST reports:            <A HREF="n1.html">n1</A>       <A HREF="n3.html">n3</A>
Link to SD reports:              <A HREF="sd1.html">sd1</A>

<a name="_9"></a><i><b>23:59:58.002 Starting RD=rw; I/O rate: 5000; elapsed=3; For loops: None</b></i>


Mar 08, 2019    interval        i/o   MB/sec   bytes   read     resp     read    write     read    write     resp  queue  cpu%  cpu%
                               rate  1024**2     i/o    pct     time     resp     resp      max      max   stddev  depth sys+u   sys
23:59:59.061           1     4000.0    31.25    8192  75.00    2.500    3.000    1.000    90.50     6.63    0.179   10.0   1.9   0.3
Mar 09, 2019    interval        i/o   MB/sec   bytes   read     resp     read    write     read    write     resp  queue  cpu%  cpu%
                               rate  1024**2     i/o    pct     time     resp     resp      max      max   stddev  depth sys+u   sys
00:00:00.014           2     4800.0    37.50    8192 100.00    2.000    2.000    0.000    60.00     0.00    1.526    9.5   0.7   0.2
00:00:01.011           3     5200.0    40.63    8192  50.00    1.500    2.000    1.000    30.00    20.00    4.219    9.0   0.7   0.2
00:00:01.020     avg_2-3     5000.0    39.06    8192  75.00    1.750    2.000    1.000    60.00    20.00    4.030    9.3   0.2   0.1
00:00:02.752 Vdbench execution completed successfully
"""  # noqa: E501 - lines as vdbench prints them
HOST = "Host summary report(s) for host=n1\n" + SUMMARY[SUMMARY.index("<a name") :]
STORAGE = "SD summary report for sd=sd1\n" + SUMMARY[SUMMARY.index("<a name") :]
FILES = """<pre>
12:00:00.001 Starting RD=fs1; elapsed=2; fwdrate=max. For loops: None

Jun 08, 2019 .Interval. .ReqstdOps... ...cpu%...  read ....read..... ....write.... ..mb/sec... mb/sec .xfer.. ...mkdir....
                          rate   resp total  sys   pct   rate   resp   rate   resp  read write  total    size  rate   resp
17:17:20.077       1     39.1 143.61  24.5 7.77  40.0   16.0  2.500   23.1 143.61  16.0 23.10  39.10 1048576   0.0  0.000
17:17:21.077       2     40.0 100.00  24.5 7.77  50.0   20.0  1.500   20.0 200.00  20.0 20.00  40.00 1048576   0.0  0.000
17:17:21.080  avg_1-2    39.6 121.00  24.5 7.77  45.0   18.0  2.000   21.6 172.00  18.0 21.60  39.60 1048576   0.0  0.000
"""  # noqa: E501 - lines as vdbench prints them
HISTOGRAM = """<title>Vdbench output/histogram.html</title><pre>
Total response time histogram.

<a name="_9"></a><i><b>18:11:38.001 Starting RD=rw; I/O rate: 5000; elapsed=60; For loops: None</b></i>

Reads and writes:
  min(ms) <     max(ms)         count       %%    cum%%  '+': Individual%; '+-': Cumulative%

    0.100 <       0.200        21,032   2.2600   2.2600  +
    0.200 <       0.400       733,597  78.8294  81.0895  +++++
 2000.000 <         max             3   0.0000 100.0000  -----
Reads:
  min(ms) <     max(ms)         count       %%    cum%%  '+': Individual%; '+-': Cumulative%

    0.200 <       0.400       700,000  78.8294  81.0895  +++++
Writes:
  min(ms) <     max(ms)         count       %%    cum%%  '+': Individual%; '+-': Cumulative%

    0.100 <       0.200        21,032   2.2600   2.2600  +
"""


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
        ("* Contents of parameter file: /root/x\n", "a setting"),
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


@given(data=damaged([text.encode() for text in (FLAT_1, FLAT_3, SUMMARY, HOST, FILES)]))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_never_ends_in_a_traceback(tmp_path: Path, data: bytes) -> None:
    survives(vdbench, tmp_path, data)


@given(data=damaged([HISTOGRAM.encode()]) | st.binary(max_size=200))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_histograms_never_end_in_a_traceback(tmp_path: Path, data: bytes) -> None:
    survives(vdbench_histogram, tmp_path, data)
    survives(vdbench, tmp_path, data)


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
