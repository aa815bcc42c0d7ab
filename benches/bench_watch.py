"""What a whole cycle of a watch costs: a vCenter's samples of 20 s collected, kept and judged.

``python -m benches.bench_watch [--hosts N] [--vms N] [--cycles N] [--port N] [--telegraf PROGRAM]``

The vCenter is govmomi's simulator; ``--vms`` are per host. It takes 7 minutes to build 10,000 VMs: with ``--port`` one
that runs already is asked.
For each cycle: samples, how long collecting took, how long keeping and judging took, and the processor time of this
process alone. With ``--telegraf`` the folder of a program that collects the same with telegraf's own input, in the same
run after it, which neither keeps nor judges.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from benches.bench_vcenter import built, simulated
from leadline.app.watch.opening import opened
from leadline.app.watch.settings import WatchSettings
from leadline.app.watch.watching import Watch
from leadline.faces.words.live import incident_words

HOSTS, VMS_PER_HOST, CYCLES = 20, 10, 3
CYCLE_S = 20.0


def main(arguments: list[str] | None = None) -> None:
    """Build, start, watch, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--vms", type=int, default=VMS_PER_HOST)
    parser.add_argument("--cycles", type=int, default=CYCLES)
    parser.add_argument("--port", type=int)
    parser.add_argument("--telegraf", type=Path)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peer = None if given.telegraf is None else built(given.telegraf, folder)
        there = None if given.port is None else contextlib.nullcontext(given.port)
        with there or simulated(given.hosts, given.vms) as port:
            watched(folder, port, given.cycles)
            if peer is not None:
                subprocess.run([peer, "-url", f"https://127.0.0.1:{port}/sdk", "-n", str(given.cycles)], check=True)


def watched(folder: Path, port: int, cycles: int) -> None:
    """Watch the simulated vCenter for some cycles."""
    (folder / "password").write_text("pass\n")
    source = {
        "name": "vc",
        "collector": "vcenter",
        "target": f"https://user@127.0.0.1:{port}",
        "password_file": str(folder / "password"),
        "options": {"insecure": True, "every": True, "timeout_s": 300},
    }
    settings = WatchSettings.model_validate({"sources": [source], "store": {"folder": str(folder / "store")}})
    with opened(settings, incident_words) as watch:
        for one in watch.sources:
            one.start()
        try:
            _cycles(watch, cycles)
        finally:
            for one in watch.sources:
                one.close()
        status = watch.store.status()
        print(f"store {status.size_bytes / 1e6:.1f} MB of {status.sample_count:,} samples in the log")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def _cycles(watch: Watch, cycles: int) -> None:
    (source,) = watch.sources
    before, cpu_before = 0, time.process_time()
    for cycle in range(cycles + 1):
        while source.health.sample_count <= cycle:
            time.sleep(0.05)
            if source.health.error:
                raise RuntimeError(source.health.error)
        began = time.monotonic()
        watch.step()
        step_s = time.monotonic() - began
        cpu_s = time.process_time() - cpu_before
        name = "inventory and first cycle" if not cycle else f"cycle {cycle}"
        print(
            f"{name}: {watch.sample_count - before:,} samples, collected in {source.health.duration_s:.2f} s, kept and "
            f"judged in {step_s:.2f} s, own CPU {cpu_s:.2f} s, {len(watch.judged.suspicions)} suspicions",
            flush=True,
        )
        before, cpu_before = watch.sample_count, time.process_time()


if __name__ == "__main__":
    main()
