"""A stand-in for the program vdbench, which the project may not ship and never ran.

It takes ``-f FILE -o FOLDER``, and writes the files and rows that vdbench 5.04.07 writes, in the shape of the real
captures that the importer's seeds follow. Its seconds pass at once: a second is ``STAND_IN_SECOND`` of real time. As
the Java of vdbench does, it works in a process of its own, which inherits no descriptor. It works where it is told:
what it was asked to do is counted from real requests.

``STAND_IN_FAULT``: ``java`` (no Java), ``stack`` (fails as vdbench does), ``slow`` (does half the rate), ``other``
(writes to a file that nobody named), ``no-histogram`` (makes the file without a histogram), ``stopped`` (no average).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

RATE, RESP_MS, MAX_MS = 1000.0, 0.25, 4.5
FAULT = os.environ.get("STAND_IN_FAULT", "")
SECOND = float(os.environ.get("STAND_IN_SECOND", "0.02"))
COLUMNS = (
    "Run Interval reqrate rate MB/sec bytes/io read% resp read_resp write_resp resp_max read_max write_max resp_std "
    "read_std write_std xfersize threads rdpct rhpct whpct seekpct lunsize version compratio dedupratio queue_depth"
).split()
HEAD = (
    "{date}    interval        i/o   MB/sec   bytes   read     resp     read    write     read    write     resp"
    "  queue  cpu%  cpu%\n"
    "                               rate  1024**2     i/o    pct     time     resp     resp      max      max   stddev"
    "  depth sys+u   sys"
)
BUCKETS = ((0.1, 0.2, 0.4), (0.2, 0.4, 0.55), (2.0, 4.0, 0.04), (4.0, 6.0, 0.01))


def parameters(path: str) -> dict[str, dict[str, str]]:
    """The definitions of a parameter file by their first word."""
    parsed: dict[str, dict[str, str]] = {}
    for line in Path(path).read_text().splitlines():
        if line.startswith("*") or not line.strip():
            continue
        words = line.replace("(", "\0").split(",")
        pairs: dict[str, str] = {}
        name = ""
        for word in words:
            key, mark, text = word.partition("=")
            if mark:
                name = key
            pairs[name] = pairs[name] + "," + word if not mark else text
        parsed[line.partition("=")[0]] = {key: text.strip("\0)") for key, text in pairs.items()}
    return parsed


class StandInClock:
    """The time of day that is printed: a second later after each interval, however short that is."""

    def __init__(self) -> None:
        self._began, self.intervals = time.time(), 0

    def now(self) -> time.struct_time:
        """The moment as it is printed."""
        return time.gmtime(self._began + self.intervals)


clock = StandInClock()


def put(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - it is a program


def say(text: str) -> str:
    stamp = time.strftime("%H:%M:%S", clock.now())
    put(f"{stamp}.000 {text}")
    return f"{stamp}.000 {text}"


def fail(text: str) -> None:
    put(f"\n{text}\njava.lang.RuntimeException: {text}\n\tat Vdb.common.failure(common.java:350)")
    sys.exit(157)


def size_of(disk: dict[str, str]) -> int:
    """Bytes of a device by its name in /proc/partitions, of another path by its length, as vdbench 5.04.06 does."""
    if not disk["lun"].startswith("/dev/"):
        return Path(disk["lun"]).stat().st_size
    if disk.get("openflags") != "o_direct":
        fail(f"On Linux 'openflags=o_direct' is required for any lun starting with '/dev/': {disk['lun']}")
    rows = [line.split() for line in Path("/proc/partitions").read_text().splitlines()[2:]]
    return next((int(row[2]) * 1024 for row in rows if f"/dev/{row[3]}" == disk["lun"]), 0)


def slave(lun: str, size: int, writes: bool, whole: bool) -> None:
    """Open the target by its name, as a Java that inherited nothing does, and read or write it."""
    descriptor = os.open(lun, os.O_RDWR if writes else os.O_RDONLY)
    block = os.urandom(1024**2)
    for offset in range(0, size if whole else 1024**2, 1024**2):
        if writes:
            os.pwrite(descriptor, block, offset)
        else:
            os.pread(descriptor, len(block), offset)
    os.close(descriptor)


def main() -> None:
    """One run."""
    given = parameters(sys.argv[sys.argv.index("-f") + 1])
    out = Path(sys.argv[sys.argv.index("-o") + 1])
    if FAULT == "java":
        put(f"{sys.argv[0]}: line 71: java: command not found")
        sys.exit(127)
    put("Vdbench distribution: vdbench50407 Tue June 05  9:49:29 MDT 2018")
    put("For documentation, see 'vdbench.pdf'.\n")
    disk, load, run = given["sd"], given["wd"], given["rd"]
    size, writes, fills = int(disk["size"]), load["rdpct"] != "100", load["seekpct"] == "eof"
    if FAULT == "stack" or size_of(disk) < size:
        fail(f"Open for lun '{disk['lun']}' failed")
    if FAULT == "other":
        stray = Path(os.environ["STAND_IN_OTHER"]).open("w")
        time.sleep(3.0)
        stray.close()
    out.mkdir()
    words = ["slave", disk["lun"], str(size), str(int(writes)), str(int(fills))]
    subprocess.run([sys.executable, __file__, *words], check=True, close_fds=True)
    if not fills:
        intervals(out, given, load, run)
    say(f"Vdbench execution completed successfully. Output directory: {out} ")


def intervals(out: Path, given: dict[str, dict[str, str]], load: dict[str, str], run: dict[str, str]) -> None:
    monitor = Path(given["monitor"]["monitor"]) if "monitor" in given else out / "no-monitor"
    monitor.write_text("")
    name, warm = run["rd"], int(run["warmup"])
    rate = RATE if run["iorate"] == "max" else float(run["iorate"])
    rate *= 0.5 if FAULT == "slow" else 1.0
    read_pct, sizes = float(load["rdpct"]), [float(number) for number in load["xfersize"].split(",")]
    mean = sizes[0] if len(sizes) == 1 else sum(a * b for a, b in zip(sizes[::2], sizes[1::2], strict=True)) / 100.0
    title = f"Starting RD={name}; I/O rate: {run['iorate']}; elapsed={run['elapsed']} warmup={warm}; For loops: None"
    say(title)
    head = HEAD.format(date=time.strftime("%b %d, %Y", clock.now()))
    put("\n" + head)
    shown: list[str] = []
    rows: list[str] = []
    last = 0
    for interval in range(1, int(run["elapsed"]) + warm + 1):
        time.sleep(SECOND)
        last = clock.intervals = interval
        rows.append(row(given, interval, rate, mean, read_pct))
        shown.append(say(f"{interval:11d} {summary_cells(rate, mean, read_pct)}"))
        if monitor.read_text().strip() == "end_rd":
            say("User requested early shutdown of this run.")
            monitor.write_text("")
            break
    if FAULT != "stopped":
        rows.append(row(given, f"avg_{warm + 1}-{last}", rate, mean, read_pct))
        shown.append(say(f"{f'avg_{warm + 1}-{last}':>11} {summary_cells(rate, mean, read_pct)}"))
    comment = "*\n* 'flatfile.html' contains Vdbench generated information in a column by column ASCII format. \n*\n"
    header = f"{'tod':>12} {'timestamp':>24} {' '.join(COLUMNS)}"
    flat = f"<title>Vdbench {out}/flatfile.html</title><pre>\n{comment}{header}\n"
    (out / "flatfile.html").write_text(flat + "\n".join(rows) + "\n")
    now = time.strftime("%H:%M:%S %b %d %Y", clock.now())
    created = f"Vdbench summary report, created {now} UTC ({now} UTC)\n\n"
    starting = f'<a name="_9"></a><i><b>12:00:00.001 {title}</b></i>\n\n'
    (out / "summary.html").write_text("\n".join([created + starting + head, *shown, ""]))
    text = f"<title>Vdbench {out}/histogram.html</title><pre>\nTotal response time histogram.\n\n"
    if FAULT != "no-histogram":
        text += starting + histograms(rate * (last - warm), read_pct)
    (out / "histogram.html").write_text(text)


def summary_cells(rate: float, mean: float, read_pct: float) -> str:
    """The columns of the console and of the summary."""
    times = f"{RESP_MS:8.3f} {RESP_MS:8.3f} {RESP_MS:8.3f} {MAX_MS:8.2f} {MAX_MS:8.2f} {0.1:8.3f}"
    shares = f"{mean:7.0f} {read_pct:6.2f}"
    return (
        f"{rate:10.1f} {rate * mean / 2**20:8.2f} {shares} {times} {rate * RESP_MS / 1000:6.1f} {1.5:5.1f} {0.4:5.1f}"
    )


def row(given: dict[str, dict[str, str]], step: int | str, rate: float, mean: float, read_pct: float) -> str:
    """A row of the flat file; only columns that are read have figures, the others are not known."""
    values = {
        "Run": given["rd"]["rd"], "Interval": step, "reqrate": 9999988, "rate": f"{rate:.4f}",
        "MB/sec": f"{rate * mean / 2**20:.4f}", "bytes/io": f"{mean:.0f}", "read%": f"{read_pct:.4f}",
        "resp": RESP_MS, "read_resp": RESP_MS if read_pct else 0, "write_resp": RESP_MS if read_pct < 100 else 0,
        "resp_max": MAX_MS, "resp_std": 0.1, "threads": given["sd"]["threads"], "rdpct": f"{read_pct:g}",
        "seekpct": given["wd"]["seekpct"], "queue_depth": f"{rate * RESP_MS / 1000:.4f}",
    }  # fmt: skip
    moment = clock.now()
    stamp = time.strftime("%m/%d/%Y-%H:%M:%S-UTC", moment)
    tod = time.strftime("%H:%M:%S", moment)
    return f"{tod}.000 {stamp} {' '.join(str(values.get(column, 'n/a')) for column in COLUMNS)}"


def histograms(count: float, read_pct: float) -> str:
    """One for each direction and one for both; where a single direction was done, one."""
    both = {"Reads and writes:": 1.0, "Reads:": read_pct / 100.0, "Writes:": 1.0 - read_pct / 100.0}
    only = {100.0: "Only reads done for this workload:", 0.0: "Only writes done for this workload:"}
    sections = {only[read_pct]: 1.0} if read_pct in only else both
    text = ""
    for title, share in sections.items():
        text += f"{title}\n  min(ms) <     max(ms)         count       %%    cum%%  '+': Individual%\n\n"
        for low, high, part in BUCKETS:
            lines = (
                f" {low:8.3f} < {high:11.3f} {round(count * share * part):12,} {100 * part:8.4f} {100 * part:8.4f}  +"
            )
            text += f"{lines}\n"
        text += "\n"
    return text


if __name__ == "__main__":
    if sys.argv[1] == "slave":
        slave(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1", sys.argv[5] == "1")
    else:
        main()
