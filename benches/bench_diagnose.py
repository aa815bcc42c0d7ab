"""What a whole diagnosis costs, beside polars reading the same file: CPU seconds and peak memory of the process.

``python -m benches.bench_diagnose [--scale X] [--repeat N] [--only NAME ...] [--before FOLDER]`` makes a host of 150
VMs that is healthy and one on which all is red, an esxtop capture of 61,500 columns, 200 disks for an hour, 5,000
files, and a day of one machine with four recorders, and diagnoses each as the command line does. Polars reads a CSV as
such and another text as lines. With ``--before`` another checkout of Leadline, built, diagnoses the same files. It
exits with 1 when a recording of the full size takes more CPU than its budget.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from benches.bench_estate import red_host
from benches.bench_folder import write_folder
from benches.bench_iostat import START, write_recording
from leadline.app.generating import generate
from leadline.generators.esxtop import shape_for_width
from leadline.generators.host_model import CaptureShape

_DIAGNOSE = "from leadline.faces.cli.main import run; run()"
_POLARS_CSV = "import polars; polars.read_csv({path!r})"
_POLARS_LINES = (
    "import pathlib, polars\nfor path in sorted(pathlib.Path({path!r}).rglob('*')) or [pathlib.Path({path!r})]:\n"
    "    path.is_dir() or polars.read_csv(path, separator='\\x01', has_header=False, quote_char=None)"
)
_FRAME = """
import atexit, resource, sys
def told():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    # Not ru_maxrss: across fork and exec it keeps the parent's peak.
    peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    sys.stderr.write(f"\\n{{usage.ru_utime + usage.ru_stime}} {{peak}}\\n")
atexit.register(told)
{code}
"""
_CPUS, _PROCESSES = 8, 12


@dataclass(frozen=True, slots=True)
class Case:
    """A recording: what writes it at a scale (1 is its full size), and the CPU seconds it may take."""

    name: str
    write: Callable[[Path, float], None]
    budget_s: float
    is_csv: bool = True


def healthy(path: Path, scale: float) -> None:
    """A host of 150 VMs for half an hour."""
    generate(CaptureShape(vm_count=max(int(150 * scale), 2), disks_per_vm=4, sample_count=360), [], path)
    Path(f"{path}.truth.yaml").unlink(missing_ok=True)


def red(path: Path, scale: float) -> None:
    """The same with every counter beyond its limits."""
    red_host(path, max(int(150 * scale), 2), 360)


def wide(path: Path, scale: float) -> None:
    """61,500 columns, an hour."""
    generate(shape_for_width(max(int(61_500 * scale), 400), 720), [], path)
    Path(f"{path}.truth.yaml").unlink(missing_ok=True)


def many_disks(path: Path, scale: float) -> None:
    """Iostat of 200 disks, every 5 s for an hour."""
    write_recording(path, reports=720, disks=max(int(200 * scale), 2))


def many_files(path: Path, scale: float) -> None:
    """Iostat of 5,000 machines."""
    write_folder(path, files=max(int(5_000 * scale), 4), reports=12)


def long_day(path: Path, scale: float) -> None:
    """A day of one machine, a sample a second: iostat, vmstat, mpstat and pidstat."""
    seconds = max(int(86_400 * scale), 60)
    path.mkdir()
    write_recording(path / "iostat.txt", reports=seconds, disks=3, interval_s=1)
    random_ = random.Random(5)
    usage = [f"{random_.random() * 30:.2f}" for _ in range(4096)]
    day = [f"{START + timedelta(seconds=i):%H:%M:%S}" for i in range(seconds + 1)]
    _vmstat(path / "vmstat.txt", seconds, day)
    host = f"Linux 6.1.0 (db01) \t{START:%m/%d/%y} \t_x86_64_\t({_CPUS} CPU)\n\n"
    columns = "%usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle"
    zeros = "   0.00    1.00    1.00    0.00    0.00    0.00    0.00    0.00"
    with (path / "mpstat.txt").open("w", encoding="ascii") as stream:
        stream.write(host)
        for i in range(seconds):
            stream.write(f"{day[i]}     CPU    {columns}\n")
            for cpu in ("all", *range(_CPUS)):
                used = usage[random_.randrange(4096)]
                stream.write(f"{day[i + 1]} {cpu:>7} {used:>7} {zeros} {98.0 - float(used):>7.2f}\n")
            stream.write("\n")
    with (path / "pidstat.txt").open("w", encoding="ascii") as stream:
        stream.write(host)
        for i in range(seconds):
            stream.write(f"{day[i]}      UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command\n")
            for process in range(_PROCESSES):
                used = usage[random_.randrange(4096)]
                numbers = f"{used:>7}    0.50    0.00    0.10 {used:>7}     1"
                stream.write(f"{day[i + 1]}      999 {4000 + process:>9} {numbers}  postgres\n")
            stream.write("\n")


def _vmstat(path: Path, seconds: int, day: list[str]) -> None:
    random_ = random.Random(6)
    with path.open("w", encoding="ascii") as stream:
        stream.write("procs -----------memory---------- ---swap-- -----io---- -system-- ----cpu---- -timestamp-\n")
        stream.write(
            " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC\n"
        )
        for i in range(seconds):
            busy = random_.randrange(30)
            moved = f"{busy * 10}  {busy * 8}  900 1800 {busy}  3 {95 - busy}  2  0"
            stream.write(f" 1  0      0 812344  20480 9123456    0    0   {moved} {START:%Y-%m-%d} {day[i + 1]}\n")


CASES = (
    Case("healthy", healthy, 0.4),
    Case("red", red, 1.0),
    Case("wide", wide, 1.0),
    Case("disks", many_disks, 1.0, is_csv=False),
    Case("files", many_files, 10.0, is_csv=False),
    Case("day", long_day, 10.0, is_csv=False),
)


def cost(code: str, *words: str, source: Path | None = None) -> tuple[float, float]:
    """CPU seconds and peak MiB of a piece of Python in a process of its own; of another checkout where one is named."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if source is not None:
        environment["PYTHONPATH"] = str(source / "src")
    command = [sys.executable, "-c", _FRAME.format(code=code), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    cpu_s, peak_kib = done.stderr.splitlines()[-1].split()
    return float(cpu_s), float(peak_kib) / 1024.0


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=3, help="processes per measurement, the cheapest counts")
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES])
    parser.add_argument("--before", type=Path, help="another checkout of Leadline to measure beside this one")
    options = parser.parse_args(arguments)
    missed = []
    heads = ("recording", "MB", "CPU s", "MiB", "polars s", "MiB", *(("before s", "MiB") if options.before else ()))
    print("".join(f"{head:>11}" for head in heads))
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        for case in CASES:
            if options.only and case.name not in options.only:
                continue
            path = Path(folder) / f"{case.name}{'.csv' if case.is_csv else ''}"
            case.write(path, options.scale)
            size = sum(one.stat().st_size for one in ([path] if path.is_file() else path.iterdir())) / 1e6
            words = ("diagnose", "--quiet", str(path))
            polars = (_POLARS_CSV if case.is_csv else _POLARS_LINES).format(path=str(path))
            jobs: list[tuple[Path | None, str, tuple[str, ...]]] = [(None, _DIAGNOSE, words), (None, polars, ())]
            jobs += [(options.before, _DIAGNOSE, words)] if options.before else []
            for source, code, some in jobs:
                cost(code, *some, source=source)  # what is compiled once is not counted
            runs = [[cost(code, *some, source=source) for source, code, some in jobs] for _ in range(options.repeat)]
            best = [(min(one[i][0] for one in runs), max(one[i][1] for one in runs)) for i in range(len(jobs))]
            told = "".join(f"{cpu:>11.2f}{mib:>11.0f}" for cpu, mib in best)
            print(f"{case.name:>11}{size:>11.0f}{told}", flush=True)
            if options.scale >= 1.0 and best[0][0] > case.budget_s:
                missed.append(f"{case.name} takes {best[0][0]:.2f} s of CPU, more than {case.budget_s:g}")
    if missed:
        raise SystemExit("\n".join(missed))


if __name__ == "__main__":
    main()
