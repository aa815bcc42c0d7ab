"""Second readers of what load tools and databases print."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from statistics import mean

from tests.importers.independent.reading import NAN, Reading

Results = dict[tuple[str, str], dict[str, float]]
Series = dict[tuple[str, str], list[float]]
NS_PER_MS, US_PER_MS = 1e6, 1e3


def fio_json(path: Path) -> Reading:
    """Each job and direction of ``fio --output-format=json``, of fio 2 (microseconds) and fio 3 (nanoseconds)."""
    results: Results = {}
    for job in json.loads(path.read_text())["jobs"]:
        for name in ("read", "write"):
            row = job[name]
            if not row["total_ios"]:
                continue
            suffix, scale = ("_ns", NS_PER_MS) if "clat_ns" in row else ("", US_PER_MS)
            clat = row["clat" + suffix]
            results[job["jobname"], name] = {
                "per_s": row["iops"],
                "count": row["total_ios"],
                "bytes_per_s": row.get("bw_bytes", row["bw"] * 1024),
                "mean": row["lat" + suffix]["mean"] / scale,
                "clat_mean": clat["mean"] / scale,
                "p50": clat["percentile"]["50.000000"] / scale,
                "p99": clat["percentile"]["99.000000"] / scale,
                "max": row["lat" + suffix]["max"] / scale,
            }
    return Reading(results=results)


def fio_bandwidth_log(path: Path) -> Reading:
    """The KiB/s of a bandwidth log, all of writes."""
    rows = list(csv.reader(path.read_text().splitlines(), skipinitialspace=True))
    assert {row[2] for row in rows} == {"1"}
    job = f"job:{path.name.removesuffix('_bw.1.log')}.1"
    return Reading({("job_mib_per_s_write", job): [float(row[1]) / 1024 for row in rows]})


def fio_iops_log(path: Path) -> Reading:
    """The requests a second of a log of reads."""
    rows = list(csv.reader(path.read_text().splitlines(), skipinitialspace=True))
    assert {row[2] for row in rows} == {"0"}
    job = f"job:{path.name.removesuffix('_iops.64.log')}.64"
    return Reading({("job_iops_read", job): [float(row[1]) for row in rows]})


def hammerdb(path: Path) -> Reading:
    """The rates of the ten tests, which have one job, in order; the 99th percentiles of new orders in between."""
    series: Series = {("db_latency_ms_p99", "guest:guest/job:hammerdb neword"): []}
    rates: Results = {}
    for line in path.read_text().splitlines():
        words = line.split()
        if "|neword|MIN-" in line:
            numbers = dict(cell.rpartition("-")[::2] for cell in line.split("|")[2:] if "-" in cell)
            series["db_latency_ms_p99", "guest:guest/job:hammerdb neword"].append(float(numbers["P99%"]) / US_PER_MS)
        elif "TEST RESULT" in line:
            place = f"TPROC-C#{len(rates) // 2}"
            rates[place, "transaction"] = {"per_s": float(words[words.index("TPM") - 2]) / 60}
            rates[place, "new order"] = {"per_s": float(words[words.index("NOPM") - 1]) / 60}
    return Reading(series, rates)


def ioping(path: Path) -> Reading:
    """Each request's time, and the summaries."""
    scale = {"us": 1e-3, "ms": 1.0, "s": 1e3}
    series: Series = defaultdict(list)
    results: Results = {}
    for line in path.read_text().splitlines():
        words = line.split()
        if "request=" in line:
            amount = line.rpartition("time=")[2].split()
            series["job_latency_ms_read", f"job:{words[3]}"].append(float(amount[0]) * scale[amount[1]])
        elif line.startswith("--- "):
            target = words[1]
        elif line.startswith("min/avg/max/mdev"):
            numbers = [each.split() for each in line.partition("=")[2].split("/")]
            low, average, high, deviation = (float(number) * scale[unit] for number, unit in numbers)
            results[target, "read"] = {"min": low, "mean": average, "max": high, "stddev": deviation}
    for (_, entity), values in series.items():
        results[entity.removeprefix("job:"), "read"]["count"] = len(values)
    return Reading(dict(series), results)


def iperf3(path: Path) -> Reading:
    """The interval sums and the totals of both ends."""
    document = json.loads(path.read_text())
    job = f"iperf3 tcp to {document['start']['connected'][0]['remote_host']}"
    entity = f"guest:{document['start']['system_info'].split()[1]}/job:{job}"
    sums = [interval["sum"] for interval in document["intervals"]]
    series = {
        ("job_mbit_per_s", entity): [each["bits_per_second"] / 1e6 for each in sums],
        ("net_tcp_retransmits_count", entity): [float(each["retransmits"]) for each in sums],
        ("net_tcp_window_bytes", entity): [float(i["streams"][0]["snd_cwnd"]) for i in document["intervals"]],
    }
    end = document["end"]
    results = {
        (job, "sent"): {"bytes_per_s": end["sum_sent"]["bits_per_second"] / 8},
        (job, "received"): {"bytes_per_s": end["sum_received"]["bits_per_second"] / 8},
    }
    return Reading(series, results)


def pgbench_init(path: Path) -> Reading:
    """The last line of ``pgbench -i``: seconds of each step."""
    steps = re.findall(r"([a-z -]+?) (\d+\.\d\d) s[,)]", path.read_text().splitlines()[-1].partition("(")[2])
    results = {("initialise", name.strip()): {"total": float(took) * 1000} for name, took in steps}
    assert len(results) == 4
    return Reading(results=results)


def pgbench(path: Path) -> Reading:
    """The summary of a run; the rate without the time to connect is the one that counts."""
    keys = dict(line.replace(" = ", ": ").split(": ", 1) for line in path.read_text().splitlines() if "tps" not in line)
    rates = {"includ" in line: float(line.split()[2]) for line in path.read_text().splitlines() if "tps" in line}
    job = keys["transaction type"]
    transactions = {
        "per_s": rates[False],
        "count": float(keys["number of transactions actually processed"]),
        "mean": float(keys["latency average"].split()[0]),
    }
    connecting = {"per_s": rates[True]}
    return Reading(results={(job, "transaction"): transactions, (job, "transaction including connecting"): connecting})


def pgbench_tools(path: Path) -> Reading:
    """Rows of (second, value, metric)."""
    columns: dict[str, list[float]] = defaultdict(list)
    with path.open(newline="") as stream:
        for row in csv.DictReader(stream):
            columns[row["metric"]].append(float(row["value"]))
    names = {"avg_latency": "db_latency_ms", "max_latency": "db_latency_ms_max", "rate": "db_tps"}
    return Reading({(metric, "guest:guest/database:postgresql"): columns[name] for name, metric in names.items()})


def postgresql_log(path: Path) -> Reading:
    """The mean duration of commits, and of all else, in the one second of the log."""
    commits: list[float] = []
    others: list[float] = []
    for line in path.read_text().splitlines():
        if " LOG:  duration: " in line:
            milliseconds = float(line.partition("duration: ")[2].split()[0])
            (commits if line.endswith("COMMIT") else others).append(milliseconds)
    database = "guest:guest/database:postgresql"
    return Reading(
        {
            ("db_logged_commit_ms", database): [mean(commits)],
            ("db_logged_statement_ms", database): [mean(others)],
            ("db_logged_statements_per_s", database): [float(len(others))],
            ("db_errors_per_s", database): [0.0],
        }
    )


def sysbench(path: Path) -> Reading:
    """The summary of a run with its latencies in milliseconds."""
    numbers = {
        name.strip(): [float(each) for each in re.findall(r"\d+\.?\d*", rest)]
        for name, separator, rest in (line.partition(":") for line in path.read_text().splitlines())
        if separator
    }
    transactions = {
        "count": numbers["transactions"][0],
        "per_s": numbers["transactions"][1],
        "mean": numbers["avg"][0],
        "max": numbers["max"][0],
        "p95": numbers["95th percentile"][0],
    }
    queries = {"count": numbers["queries"][0], "per_s": numbers["queries"][1]}
    return Reading(results={("oltp", "transaction"): transactions, ("oltp", "query"): queries})


def vdbench_flatfile(path: Path) -> Reading:
    """The intervals of all runs; rows of averages are the results."""
    rows = [line.split() for line in path.read_text().splitlines() if not line.startswith("*")]
    heading = next(row for row in rows if row[:1] == ["tod"])
    names = {"rate": "job_iops", "MB/sec": "job_mib_per_s", "resp": "job_latency_ms", "resp_max": "job_latency_ms_max"}
    series: Series = defaultdict(list)
    results: Results = {}
    for row in (dict(zip(heading, each, strict=True)) for each in rows if len(each) == len(heading)):
        if row["Interval"].isdigit():
            for name, metric in names.items():
                series[metric, "guest:guest/job:vdbench"].append(float(row[name]))
        elif row["Interval"].startswith("avg"):
            results[row["Run"], "io"] = {"per_s": float(row["rate"]), "mean": float(row["resp"])}
    return Reading(dict(series), results)


def vdbench_summary(path: Path) -> Reading:
    """The intervals of a file system run by position: number, operations, response, ..., MB/s."""
    columns: dict[str, list[float]] = defaultdict(list)
    results: Results = {}
    places = {"job_iops": 2, "job_latency_ms": 3, "job_iops_write": 9, "job_mib_per_s": 13}
    for words in (line.split() for line in path.read_text().splitlines()):
        if len(words) > 14 and words[1].isdigit() and words[0].count(":") == 2:
            row = {metric: float(words[index]) for metric, index in places.items()}
            for metric, value in row.items():
                columns[metric].append(NAN if metric == "job_latency_ms" and not row["job_iops"] else value)
        elif len(words) > 14 and words[1].startswith("avg_"):
            results["format_for_rd1", "io"] = {"per_s": float(words[2]), "mean": float(words[3])}
    return Reading({(metric, "guest:guest/job:vdbench summary"): values for metric, values in columns.items()}, results)


class _Text(HTMLParser):
    """The text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_data(self, data: str) -> None:
        self.text += data


def vdbench_histogram(path: Path) -> Reading:
    """The requests of each run and direction, counted over all buckets."""
    page = _Text()
    page.feed(path.read_text())
    names = {"Reads and writes:": "io", "Reads:": "read", "Writes:": "write"}
    results: Results = {}
    for line in page.text.splitlines():
        words = line.replace("<", " ").split()
        if "Starting RD=" in line:
            run = line.partition("RD=")[2].partition(";")[0]
        elif line.strip() in names:
            operation = names[line.strip()]
            results[f"{run} wd wd50", operation] = {"count": 0.0}
        elif len(words) > 3 and words[2].isdigit():
            results[f"{run} wd wd50", operation]["count"] += float(words[2])
    return Reading(results=results)


def postgresql_conf(path: Path) -> Reading:
    """Lines of ``name = value``; the parameters are one fact."""
    parameters: dict[str, object] = {}
    for line in path.read_text().splitlines():
        name, separator, value = line.partition("#")[0].partition("=")
        if separator:
            bare = value.strip().strip("'")
            parameters[name.strip()] = float(bare) if re.fullmatch(r"\d+(\.\d+)?", bare) else bare
    return Reading(facts={("guest:guest/database:postgresql", "parameters"): parameters})
