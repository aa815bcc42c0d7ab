"""What it costs to collect the samples of a whole vCenter every 20 s, against govmomi's simulator.

``python -m benches.bench_vcenter [--hosts N] [--vms N] [--cycles N] [--telegraf PROGRAM]``

The simulator is govmomi's, which `make setup-all` installs. ``--vms`` are of each host. It
answers any counter of any object; of a query for every instance it gives one
series. For each cycle it prints wall time, processor time of this process alone and samples, at the end the peak of
memory. With ``--telegraf`` the folder of a program that collects the same with telegraf, which runs after it. The
simulator needs 44 s to build 1,000 VMs.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from leadline.collectors.vcenter import watch
from leadline.core.system.addresses import Address
from leadline.core.system.secret import Secret

CYCLE_S = 20.0
HOSTS, VMS_PER_HOST, CYCLES, STORES = 100, 10, 3, 20
SIMULATOR = Path(__file__).resolve().parent.parent / ".tools" / "bin" / "vcsim"


def main(arguments: list[str] | None = None) -> None:
    """Build, start, collect, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--vms", type=int, default=VMS_PER_HOST)
    parser.add_argument("--cycles", type=int, default=CYCLES)
    parser.add_argument("--telegraf", type=Path)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        peer = None if given.telegraf is None else built(given.telegraf, Path(folder))
        with simulated(given.hosts, given.vms) as port:
            _collect(port, given.cycles)
            if peer is not None:
                subprocess.run([peer, "-url", f"https://127.0.0.1:{port}/sdk", "-n", str(given.cycles)], check=True)


def built(source: Path, folder: Path) -> Path:
    """Build a Go program in a scratch copy; where it is."""
    copy = folder / source.name
    copy.mkdir()
    for file in source.iterdir():
        shutil.copyfile(file, copy / file.name)
    program = copy / "program"
    subprocess.run(["go", "build", "-mod=mod", "-o", str(program), "."], cwd=copy, check=True)
    return program


@contextlib.contextmanager
def simulated(hosts: int, vms: int) -> Iterator[int]:
    """A simulated vCenter of some hosts with VMs each: its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    words = [str(SIMULATOR), "-l", f"127.0.0.1:{port}", "-standalone-host", str(hosts)]
    began = time.monotonic()
    with subprocess.Popen([*words, "-vm", str(vms), "-ds", str(STORES)], stdout=subprocess.PIPE) as server:
        try:
            if server.stdout is None or not server.stdout.readline():
                message = "the simulator did not start"
                raise RuntimeError(message)
            print(f"simulator with {hosts:,} hosts of {vms} VMs: {time.monotonic() - began:.1f} s to start", flush=True)
            yield port
        finally:
            server.terminate()


def _collect(port: int, cycles: int) -> None:
    began, cpu_began = time.monotonic(), time.process_time()
    address = Address(f"https://user@127.0.0.1:{port}", Secret("pass"))
    source = watch(address, insecure=True, every=True, timeout_s=300)
    for cycle in range(cycles + 1):
        capture = source.sample()
        wall_s, cpu_s = time.monotonic() - began, time.process_time() - cpu_began
        name = "inventory and first cycle" if not cycle else f"cycle {cycle}"
        print(
            f"{name}: {wall_s:.2f} s, own CPU {cpu_s:.2f} s, {source.sample_count:,} samples in"
            f" {len(capture.groups)} groups, {len(capture.inventory.facts):,} entities changed"
        )
        if cycle < cycles:
            time.sleep(CYCLE_S - time.time() % CYCLE_S + 0.2)
            began, cpu_began = time.monotonic(), time.process_time()
    source.close()
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
