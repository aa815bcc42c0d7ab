"""What a whole cycle of a watch costs: a vCenter's samples of 20 s collected, kept and judged.

``python -m benches.bench_watch [--hosts N] [--vms N] [--cycles N] [--port N] [--instances TYPE ...]
[--telegraf PROGRAM]``

The vCenter is govmomi's simulator; ``--vms`` are per host. It takes 7 minutes to build 10,000 VMs: with ``--port`` one
that runs already is asked. Asked for every instance it answers with one series; a vCenter answers with the whole and
each vCPU, disk and adapter. ``--instances`` asks it for those that it lists of a type of object, by name.
For each cycle: samples, how long collecting took, how long keeping and judging took, and the processor time of this
process alone and of the simulator, which has the same processors; at the end, what is done once a minute: the store put
in order, incidents recorded. With ``--telegraf`` the folder of a program that collects the same with telegraf's own
input, in the same run after it, which neither keeps nor judges.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
from pyVmomi import vim

from benches.bench_vcenter import built, simulated
from leadline.app.watch.opening import opened
from leadline.app.watch.settings import WatchSettings
from leadline.app.watch.watching import Watch
from leadline.collectors._vcenter_live.sampling import VcenterLive
from leadline.faces.words.live import incident_words

HOSTS, VMS_PER_HOST, CYCLES = 20, 10, 3
CYCLE_S = 20.0
EVERY = re.compile(r"<metricId><counterId>(\d+)</counterId><instance>\*</instance></metricId>")


def main(arguments: list[str] | None = None) -> None:
    """Build, start, watch, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--vms", type=int, default=VMS_PER_HOST)
    parser.add_argument("--cycles", type=int, default=CYCLES)
    parser.add_argument("--port", type=int)
    parser.add_argument("--instances", nargs="+", default=[], metavar="TYPE", help="VirtualMachine, HostSystem, ...")
    parser.add_argument("--telegraf", type=Path)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peer = None if given.telegraf is None else built(given.telegraf, folder)
        there = None if given.port is None else contextlib.nullcontext(given.port)
        with there or simulated(given.hosts, given.vms) as port, instances_named(given.instances):
            watched(folder, port, given.cycles)
            if peer is not None:
                subprocess.run(
                    [peer, "-url", f"https://127.0.0.1:{port}/sdk", "-n", str(given.cycles)],
                    check=True,
                    stderr=subprocess.DEVNULL,
                )


@contextlib.contextmanager
def instances_named(types: list[str]) -> Iterator[None]:
    """While it lasts, a vCenter is asked for the instances that the first object of each of some types lists."""
    families = VcenterLive._made_families

    def named(source: VcenterLive, content: Any) -> Iterator[Any]:  # noqa: ANN401
        for family in families(source, content):
            if family.type_name not in types:
                yield family
                continue
            chunks = "".join(family.chunks)
            key = next(key for type_name, key in source._estate.on if type_name == family.type_name)
            instances = listed(content.perfManager, family.type_name, key, family.interval_s)
            family.chunks = [with_instances(chunk, instances) for chunk in family.chunks]
            before, after = chunks.count("<metricId>"), "".join(family.chunks).count("<metricId>")
            print(f"{family.type_name}: {before} counters, {after} series of an object", flush=True)
            yield family

    with mock.patch.object(VcenterLive, "_made_families", named):
        yield


def listed(manager: Any, type_name: str, key: str, interval_s: int) -> dict[str, list[str]]:  # noqa: ANN401
    """The instances of each counter that an object has."""
    entity = getattr(vim, type_name)(key, manager._stub)
    instances: dict[str, list[str]] = {}
    for one in manager.QueryAvailablePerfMetric(entity=entity, intervalId=interval_s):
        instances.setdefault(str(one.counterId), []).append(one.instance)
    return instances


def with_instances(chunk: str, instances: dict[str, list[str]]) -> str:
    """What asks for the instances of counters; for every one where none is listed."""

    def texts(match: re.Match[str]) -> str:
        return "".join(
            f"<metricId><counterId>{match[1]}</counterId><instance>{instance}</instance></metricId>"
            for instance in instances.get(match[1], ["*"])
        )

    return EVERY.sub(texts, chunk)


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
            _cycles(watch, cycles, port)
        finally:
            for one in watch.sources:
                one.close()
        _house(watch)
        status = watch.store.status()
        print(f"store {status.size_bytes / 1e6:.1f} MB of {status.sample_count:,} samples in the log")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def _house(watch: Watch) -> None:
    """What a watch does once a minute beside its cycles: the store in order, recordings of incidents."""
    began, cpu_before = time.monotonic(), time.process_time()
    watch.keep_house()
    folder = watch.store.folder / "incidents"
    count = len(list(folder.glob("*.parquet"))) if folder.is_dir() else 0
    print(
        f"house kept in {time.monotonic() - began:.2f} s, own CPU {time.process_time() - cpu_before:.2f} s: "
        f"{count} recordings of {len(watch.book.open_ones())} open incidents",
        flush=True,
    )


def _listener(port: int) -> psutil.Process:
    """The process that listens on a port of this machine."""
    pids = [one.pid for one in psutil.net_connections("tcp") if one.laddr.port == port and one.status == "LISTEN"]
    return psutil.Process(pids[0])


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _cycles(watch: Watch, cycles: int, port: int) -> None:
    (source,) = watch.sources
    simulator = _listener(port)
    before, cpu_before, simulator_before = 0, time.process_time(), _cpu_s(simulator)
    for cycle in range(cycles + 1):
        while source.health.sample_count <= cycle:
            time.sleep(0.05)
            if source.health.error:
                raise RuntimeError(source.health.error)
        began = time.monotonic()
        watch.step()
        step_s = time.monotonic() - began
        cpu_s, simulator_s = time.process_time() - cpu_before, _cpu_s(simulator) - simulator_before
        name = "inventory and first cycle" if not cycle else f"cycle {cycle}"
        print(
            f"{name}: {watch.sample_count - before:,} samples, collected in {source.health.duration_s:.2f} s, kept and "
            f"judged in {step_s:.2f} s, own CPU {cpu_s:.2f} s, the simulator's {simulator_s:.2f} s, "
            f"{len(watch.judged.suspicions)} suspicions",
            flush=True,
        )
        before, cpu_before, simulator_before = watch.sample_count, time.process_time(), _cpu_s(simulator)


if __name__ == "__main__":
    main()
