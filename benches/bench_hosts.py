"""Percentiles of many hosts against the raw samples of all, with real fio servers, one of them 20 times slower.

``python -m benches.bench_hosts [--hosts N] [--seconds N] [--iops N]`` starts that many fio servers on loopback ports,
each reading a disk of its own behind a throttle group of qemu-storage-daemon, the last one with a twentieth of the rate
of the others, and loads them as `leadline bench hosts` does. fio logs the latency of every single request on the way;
the logs of all hosts are pooled, and their percentiles are set beside those Leadline prints from merged histograms and
beside the mean of the hosts' percentiles, as averaging tools print it.

It exits with 1 when a pooled percentile is off by more than 1 %, when requests are missing in a log, or when the slow
host is not the one that is named.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benches.throttled import missing, throttled_disk
from leadline.app.measure.hosts import Host, HostsOptions, HostsResult, load_hosts
from leadline.core.model.run import PERCENTILES
from leadline.core.model.workload import parse_workload
from tests.fio_servers import end, free_ports, start, wait_for

ERROR_PCT = 1.0
SLOWER = 20
SIZE_BYTES = 16 * 2**20
WORKLOAD = """\
name: pooled
io_settings: {{working_set: 16m}}
io: [{{name: data, block: 4k, read_pct: 100, oio: 4}}]
timing: {{warm_up_s: 0, measure_s: {seconds}, rounds: 1}}
"""


def raw_ms(folder: Path) -> NDArray[np.float64]:
    """Completion latencies (ms) of all requests of all hosts, float64 [n].

    Source: fio, Log File Formats: time (ms), value (ns), direction, block size, offset, priority.
    """
    logs = sorted(folder.glob("host-*-round-1_clat.*.log"))
    return np.concatenate([np.loadtxt(log, delimiter=",", usecols=1, ndmin=1) for log in logs]) / 1e6


def loaded(count: int, seconds: float, iops: int, folder: Path) -> tuple[HostsResult, str]:
    """Load so many servers; what came out, and the address of the slow one."""
    with ExitStack() as stack:
        hosts = []
        for index, port in enumerate(free_ports(count)):
            own = folder / f"disk-{index}"
            own.mkdir()
            limit = iops // SLOWER if index == count - 1 else iops
            disk = stack.enter_context(throttled_disk(own, limit, SIZE_BYTES))
            # The server answers reads of holes without asking the throttle group.
            (own / "disk.raw").write_bytes(np.random.default_rng(index).bytes(SIZE_BYTES))
            process: subprocess.Popen[bytes] = start(own, port)
            stack.callback(end, process)
            wait_for(port)
            hosts.append(Host(f"127.0.0.1,{port}", disk))
        workload = parse_workload(WORKLOAD.format(seconds=seconds), "pooled")
        options = HostsOptions(raw_latencies=True)
        done = load_hosts(workload, hosts, folder, seed=1, say=_say, options=options)
    return done, hosts[-1].address


def report(done: HostsResult, raw: NDArray[np.float64], slow: str) -> bool:
    """Print the comparison; whether all is within its budget."""
    if any(own.error for own in done.hosts):
        for own in done.hosts:
            print(f"{own.host.address}: {own.error or 'fine'}")
        return False
    total = 0 if done.histogram is None else done.histogram.total
    named = [own.host.address for own in done.outliers()]
    print(f"{len(done.hosts)} hosts; {total:,} requests in histograms, {len(raw):,} in logs; {done.start_sentence()}")
    print(f"slow: {slow}; named: {', '.join(named) or 'nobody'}")
    print(f"{'':8}{'raw ms':>10}{'pooled ms':>11}{'error':>9}{'averaged':>10}{'error':>9}")
    fine = total == len(raw) and named == [slow]
    for name, (ms, _) in done.percentiles_ms().items():
        true = float(np.quantile(raw, PERCENTILES[name], method="inverted_cdf"))
        each = [own.histogram.quantile(PERCENTILES[name]) for own in done.hosts if own.histogram is not None]
        averaged = float(np.mean(each))
        errors = [100.0 * (value / true - 1.0) for value in (ms, averaged)]
        print(f"{name:8}{true:10.3f}{ms:11.3f}{errors[0]:+8.2f}%{averaged:10.3f}{errors[1]:+8.0f}%")
        fine = fine and abs(errors[0]) <= ERROR_PCT
    return fine


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--iops", type=int, default=400)
    asked = parser.parse_args()
    absent = missing()
    if absent is not None:
        print(f"not measured: {absent}")
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-hosts-") as name:
        folder = Path(name)
        done, slow = loaded(asked.hosts, asked.seconds, asked.iops, folder)
        return 0 if report(done, raw_ms(folder), slow) else 1


if __name__ == "__main__":
    sys.exit(main())
