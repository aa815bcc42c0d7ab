"""A source of a watch that is down for an hour: what is kept, what is missing, and what is said of it.

``python -m benches.bench_away [--minutes 60] [--before 60] [--after 60]``

A PostgreSQL server of its own and this machine are watched, one sample a second. The server is stopped, and started
again with the same data. Then the store is read: each source's samples, each time once; the hole of the server's
samples against the times when it was stopped and answered again, and against the gap that the watch reports; this
machine's samples without a hole. It exits with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.app.watch.sources import BACK_OFF_S
from leadline.app.watch.state import FILE
from leadline.core.system.tools import require_program
from leadline.stores.samples import SampleStore

S = 1_000_000_000
EVERY_S = 1.0
SLACK_S = 2.5  # a sample is taken once a second; one may be under way at either end
HOLE_S = 5.0  # of this machine's own samples: the host may take the processor away for a while
SETTINGS = """\
store: {{folder: {folder}/store}}
sources:
  - {{name: this-machine, collector: linux}}
  - {{name: db, collector: postgresql, target: "host={folder} port=5432 user=postgres dbname=postgres"}}
page: {{listen: ""}}
"""


class Server:
    """A cluster of its own in a folder, which is stopped and started by PostgreSQL's own program."""

    def __init__(self, folder: Path) -> None:
        """Make the cluster."""
        self._data = folder / "data"
        self._log = folder / "postgresql.log"
        self._become: list[str] = []
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            self._become = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--init-groups", "--"]
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "postgres", "--no-sync")
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(f"listen_addresses = ''\nunix_socket_directories = '{folder}'\n")

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._run("pg_ctl", "-D", str(self._data), "-l", str(self._log), "-w", "start")

    def stop(self) -> None:
        """Stop it and wait until it is gone; one that does not run is left alone."""
        if (self._data / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", str(self._data), "-m", "fast", "-w", "stop")

    def _run(self, program: str, *words: str) -> None:
        path = require_program(program, "PostgreSQL's server programs", "postgresql")
        subprocess.run([*self._become, path, *words], check=True, stdout=subprocess.DEVNULL, cwd="/")


def times_of(store: Path, importer: str) -> tuple[NDArray[np.int64], int]:
    """The moments that have a sample of a collector, and how many samples stand there twice."""
    with SampleStore(store, read_only=True) as samples:
        capture = samples.read(0, 2**62)
    groups = [group for group in capture.groups if capture.sources[group.source].importer == importer]
    series: dict[tuple[str, object], list[int]] = {}
    for group in groups:
        for row, entity in enumerate(group.entities):
            measured = group.times_ns[~np.isnan(group.values[row])]
            series.setdefault((group.metric, entity), []).extend(measured.tolist())
    doubled = sum(len(times) - len(set(times)) for times in series.values())
    return np.unique(np.concatenate([group.times_ns for group in groups])), doubled


def widest(times_ns: NDArray[np.int64]) -> tuple[int, int]:
    """The longest pause between two samples."""
    place = int(np.argmax(np.diff(times_ns)))
    return int(times_ns[place]), int(times_ns[place + 1])


def state_of(store: Path) -> dict[str, Any]:
    """What the watch last wrote of itself."""
    return dict(json.loads((store / FILE).read_text()))


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until something is so, at most so long."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.2)


def watched(folder: Path, options: argparse.Namespace, stack: ExitStack) -> tuple[int, int]:
    """Watch while the server is away; when it was stopped and when it answered again, UTC nanoseconds."""
    server = Server(folder)
    stack.callback(server.stop)
    server.start()
    settings = folder / "watch.yaml"
    settings.write_text(SETTINGS.format(folder=folder))
    words = [str(Path(sys.executable).with_name("leadline")), "watch", "run", "-s", str(settings)]
    with (folder / "watch.log").open("wb") as log:
        watch = subprocess.Popen(words, stdout=log, stderr=log)
    stack.callback(watch.wait)
    stack.callback(watch.send_signal, signal.SIGTERM)
    time.sleep(options.before)
    stopped_ns = time.time_ns()
    server.stop()
    time.sleep(options.minutes * 60.0)
    server.start()
    started_ns = time.time_ns()
    wait_for(lambda: all(one["is_up"] for one in state_of(folder / "store")["sources"]), BACK_OFF_S[-1] + 20.0)
    time.sleep(options.after)
    return stopped_ns, started_ns


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long the server is away")
    parser.add_argument("--before", type=float, default=60.0, help="seconds of watching before it")
    parser.add_argument("--after", type=float, default=60.0, help="seconds of watching after it")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="leadline-away-") as name:
        folder = Path(name)
        with ExitStack() as stack:
            stopped_ns, started_ns = watched(folder, options, stack)
        wrong = told(folder, stopped_ns, started_ns)
    if wrong:
        raise SystemExit("\n".join(wrong))


def told(folder: Path, stopped_ns: int, started_ns: int) -> list[str]:
    """Print what was kept and what was said; what is not as it must be."""
    state = state_of(folder / "store")
    health = {one["name"]: one for one in state["sources"]}
    wrong = []
    for name, importer in (("this-machine", "psi"), ("db", "pg-stat")):
        times_ns, doubled = times_of(folder / "store", importer)
        start_ns, end_ns = widest(times_ns)
        one = health[name]
        print(
            f"{name}: {one['sample_count']:,} samples taken, {len(times_ns):,} moments kept, {doubled} twice; longest "
            f"pause {(end_ns - start_ns) / S:.1f} s; {one['failure_count']} failures, {one['gap_count']} gaps of "
            f"{one['gap_s']:.1f} s"
        )
        # The first sample has no rates; the watch may be ended with one under way.
        if doubled or len(times_ns) < one["sample_count"] - 2:
            wrong.append(f"{name}: samples are missing or there twice")
        if name == "this-machine" and (end_ns - start_ns) / S > HOLE_S:
            wrong.append(f"{name}: a pause of {(end_ns - start_ns) / S:.1f} s while it was up")
    away_s = (started_ns - stopped_ns) / S
    hole = ((start_ns - stopped_ns) / S, (end_ns - started_ns) / S)
    gaps = [tuple(gap) for gap in health["db"]["gaps_ns"]]
    print(
        f"the server was away for {away_s:.1f} s; the last sample before that is {-hole[0]:.1f} s older, the first one "
        f"after it {hole[1]:.1f} s younger (a source that is down is tried every {BACK_OFF_S[-1]:g} s)"
    )
    if not (-SLACK_S <= hole[0] <= SLACK_S and 0.0 <= hole[1] <= BACK_OFF_S[-1] + SLACK_S):
        wrong.append("db: the hole is not where the server was away")
    if not any(max(abs(gap[0] - start_ns), abs(gap[1] - end_ns)) <= SLACK_S * S for gap in gaps):
        wrong.append(f"db: no gap is reported for the hole; reported: {gaps}")
    for event in state["events"]:
        print(f"  {event['time']} {event['about']}: {event['text']}")
    return wrong


if __name__ == "__main__":
    main()
