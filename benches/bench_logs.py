"""Import of logs that grow with the load: 50 million transactions of pgbench, 1 GB of PostgreSQL's log, a week of nmon.

``python -m benches.bench_logs [--transactions N] [--log-mb N] [--snapshots N] [--only NAME] [--beside-pgbadger]``
writes each file into a temporary folder and imports it in a process of its own. It prints wall time, peak memory of the
whole process, the interpreter and its libraries included, and how many times longer that took than counting the lines
of the file in the same run.

With ``--beside-pgbadger`` that program (of Debian's package) reads the server's log too, on two processors, and what
both counted is compared. It exits with 1 when a file of the full size takes more than its budget, or counts differ.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benches.measure import whole_process
from leadline.app.read.importing import import_paths

TRANSACTIONS, LOG_MB, SNAPSHOTS = 50_000_000, 1000, 120_960
NMON_STEP_S, NMON_DISKS, NMON_CPUS = 5, 30, 16
START = datetime(2026, 11, 20, tzinfo=UTC)
PREFIX = "user=app,db=shop,app=web,client=10.0.0.7"
PER_S = 20_000
BLOCK_BYTES = 1 << 20

_IMPORT = """
from pathlib import Path
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
import_paths([Path({path!r})], Request())
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A file to import: its name, what writes its text, its full size, and what that may take."""

    name: str
    write: Callable[[int], Iterator[str]]
    full_size: int
    budget_s: float
    budget_mib: float


def transactions(count: int) -> Iterator[str]:
    """Lines of ``pgbench -l``: 16 clients, 20,000 transactions a second."""
    random_ = random.Random(1)
    latencies = [int(random_.lognormvariate(6, 1)) for _ in range(1 << 16)]
    for block in range(0, count, PER_S):
        second, offset = int(START.timestamp()) + block // PER_S, random_.randrange(1 << 16)
        yield "".join(
            f"{i % 16} {(block + i) // 16 + 1} {latencies[(offset + i) & 0xFFFF]} 0 {second} {i * 50}\n"
            for i in range(min(PER_S, count - block))
        )


def server_log(size_mb: int) -> Iterator[str]:
    """Lines of a PostgreSQL server: statements with durations, errors, checkpoints, temporary files, lock waits."""
    random_, size, moment = random.Random(2), 0, START
    texts = (
        "LOG:  checkpoint starting: time",
        'ERROR:  duplicate key value violates unique constraint "orders_pkey"',
        'LOG:  temporary file: path "base/pgsql_tmp/pgsql_tmp4492.0", size 7176192',
        "LOG:  process 11 acquired ShareLock on transaction 7 after 3000.300 ms",
    )
    statement = "SELECT o.id, l.price FROM orders o\n\tJOIN lines l ON l.order_id = o.id WHERE o.id ="
    while size < size_mb * 1_000_000:
        moment += timedelta(seconds=1)
        lines = []
        for i in range(100):
            head = f"{moment:%Y-%m-%d %H:%M:%S}.{i * 10:03} UTC [{4000 + i}] {PREFIX} "
            duration = f"LOG:  duration: {random_.random() * 100:.3f} ms  statement: {statement} {i}"
            lines.append(f"{head}{duration if random_.random() < 0.9 else random_.choice(texts)}\n")
        size += sum(map(len, lines))
        yield "".join(lines)


def nmon(snapshots: int) -> Iterator[str]:
    """A recording of nmon, a snapshot every five seconds, of 30 disks and 16 processors."""
    random_ = random.Random(3)
    yield "AAA,progname,nmon\nAAA,version,16n\nAAA,host,db01\nAAA,interval,5\nAAA,OS,Linux,6.1.0,x86_64\n"
    disks = ",".join(f"sd{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(NMON_DISKS))
    tables = ("DISKBUSY", "DISKREAD", "DISKWRITE", "DISKXFER", "DISKBSIZE")
    processors = [f"CPU{i + 1:03}" for i in range(NMON_CPUS)]
    yield "".join(f"{kind},CPU db01,User%,Sys%,Wait%,Idle%,Steal%\n" for kind in processors)
    yield "".join(f"{kind},Disk db01,{disks}\n" for kind in tables)
    rows = [",".join(f"{random_.expovariate(1 / 80):.1f}" for _ in range(NMON_DISKS)) for _ in range(512)]
    usage = [",".join([f"{random_.random() * 20:.1f}" for _ in range(4)] + ["0.0"]) for _ in range(512)]
    for i in range(snapshots):
        moment = START + timedelta(seconds=NMON_STEP_S * i)
        name = f"T{i + 1:04}"
        lines = [f"ZZZZ,{name},{moment:%H:%M:%S},{moment:%d-%b-%Y}\n".upper()]
        lines += [f"{kind},{name},{usage[random_.randrange(512)]}\n" for kind in processors]
        lines += [f"{kind},{name},{rows[random_.randrange(512)]}\n" for kind in tables]
        yield "".join(lines)


def one_pass_s(path: Path) -> float:
    """Seconds that counting the lines of a file takes: one pass over its bytes."""
    begin = time.perf_counter()
    with path.open("rb", buffering=0) as stream:
        while block := stream.read(BLOCK_BYTES):
            block.count(b"\n")
    return time.perf_counter() - begin


def counted(path: Path) -> dict[str, float]:
    """What Leadline counts in a server's log."""
    capture = import_paths([path]).capture

    def total(metric: str) -> float:
        return float(sum(np.nansum(group.values) * group.interval_s for group in capture.of(metric)))

    return {
        "statements": total("db_logged_statements_per_s"),
        "ms of statements": 1000.0 * total("db_logged_statement_sessions_count"),
        "errors": total("db_errors_per_s"),
        "checkpoints": total("db_checkpoints_timed_per_s"),
        "temporary bytes": total("db_temp_bytes_per_s"),
        "ms of lock waits": 1000.0 * total("db_logged_lock_waits_count"),
    }


def counted_by_pgbadger(path: Path) -> tuple[dict[str, float], float, float]:
    """What pgbadger counts in the same file, its wall and CPU seconds."""
    output, before = path.with_suffix(".json"), resource.getrusage(resource.RUSAGE_CHILDREN)
    prefix = "%m [%p] user=%u,db=%d,app=%a,client=%h "
    begin = time.perf_counter()
    command = ["pgbadger", "-q", "-j", "2", "-f", "stderr", "--prefix", prefix, "-o", str(output), str(path)]
    subprocess.run(command, check=True)
    wall_s, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(output.read_bytes())
    of_all = report["overall_stat"]
    locks = report["lock_info"]["postgres"].values()
    counts = {
        "statements": float(of_all["queries_number"]),
        "ms of statements": float(of_all["postgres"]["queries_duration"]["execute"]),
        "errors": float(sum(one["count"] for one in report["error_info"]["postgres"].values())),
        "checkpoints": float(sum(report["checkpoint_info"]["starting"].values())),
        "temporary bytes": float(report["tempfile_info"]["postgres"]["size"]),
        "ms of lock waits": float(sum(one["duration"] for one in locks)),
    }
    return counts, wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compared(path: Path) -> list[str]:
    """Print what Leadline and pgbadger count in a file; what differs by more than the rounding of sums."""
    ours, (theirs, wall_s, cpu_s) = counted(path), counted_by_pgbadger(path)
    print(f"pgbadger     {path.stat().st_size / 1e6:>7.0f} {wall_s:>7.2f} ({cpu_s:.0f} s of CPU, two processors)")
    for name, count in theirs.items():
        print(f"  {name:<18} {ours[name]:>18,.1f} {count:>18,.1f}")
    return [f"{name}: {ours[name]} here" for name in theirs if not math.isclose(ours[name], theirs[name], rel_tol=1e-6)]


CASES = (
    Case("pgbench", transactions, TRANSACTIONS, 30.0, 1000.0),
    Case("postgresql", server_log, LOG_MB, 10.0, 300.0),
    Case("nmon", nmon, SNAPSHOTS, 10.0, 600.0),
)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=TRANSACTIONS)
    parser.add_argument("--log-mb", type=int, default=LOG_MB)
    parser.add_argument("--snapshots", type=int, default=SNAPSHOTS)
    parser.add_argument("--beside-pgbadger", action="store_true", help="compare the server's log with pgbadger")
    parser.add_argument("--only", choices=[case.name for case in CASES])
    options = parser.parse_args(arguments)
    sizes = {"pgbench": options.transactions, "postgresql": options.log_mb, "nmon": options.snapshots}
    print(f"{'log':<12} {'MB':>7} {'wall s':>7} {'peak MiB':>9} {'passes':>7}")
    missed = []
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        for case in (case for case in CASES if options.only in {None, case.name}):
            path = Path(folder) / f"{case.name}.log"
            with path.open("w", encoding="ascii", newline="\n", buffering=BLOCK_BYTES) as stream:
                stream.writelines(case.write(sizes[case.name]))
            passed_s = one_pass_s(path)
            cost = whole_process(_IMPORT.format(path=str(path)), repeat=1)
            megabytes, passes = path.stat().st_size / 1e6, cost.wall_s / passed_s
            print(f"{case.name:<12} {megabytes:>7.0f} {cost.wall_s:>7.2f} {cost.peak_mib:>9.0f} {passes:>7.1f}")
            if sizes[case.name] >= case.full_size and (cost.wall_s > case.budget_s or cost.peak_mib > case.budget_mib):
                missed.append(f"{case.name}: more than {case.budget_s:g} s or {case.budget_mib:g} MiB")
            if options.beside_pgbadger and case.name == "postgresql":
                missed += compared(path)
            path.unlink()
    if missed:
        raise SystemExit("\n".join(missed))


if __name__ == "__main__":
    main()
