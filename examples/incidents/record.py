#!/usr/bin/env python3
"""Record the shipped incidents with the real tools, on a machine whose fault is known and written down.

    sudo examples/incidents/record.py INCIDENT... | --all [--output DIRECTORY]

Runs on Debian or Ubuntu as root, in private mount and UTS namespaces: the host's own mounts, files and host name stay
as they are, and whatever was started is ended and removed afterwards, also on Ctrl-C. README.md says what is recorded.
"""

from __future__ import annotations

import argparse
import fcntl
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import medians
import rig as rigs

HERE = Path(__file__).resolve().parent
HOST_NAME = "db01"
INSIDE = "LEADLINE_RECORD_INSIDE"
WARM_UP_S = 20
QUIET_BUSY_PCT = 20.0  # a machine busier than this with other work spoils the healthy phase
DISTURBED_BUSY_PCT = 75.0  # the load itself takes about 20 %; beyond this it has to wait for a processor
DISTURBED_SHARE = 0.2  # of a phase; a rule that wants a condition to last is not misled by less
QUIET_WAIT_S = 900.0
PROCESSES = "postgres|pgbench|stress-ng|qemu-storage|nbdfuse|fio"
HOGS = 16
WAL_CAP_IOPS = 30

RECORDERS: dict[str, list[str]] = {
    "iostat.txt": ["iostat", "-x", "-t", "1"],
    "iostat.json": ["iostat", "-x", "-t", "-o", "JSON", "1"],
    "vmstat.txt": ["vmstat", "-w", "-t", "1"],
    "mpstat.txt": ["mpstat", "-P", "ALL", "1"],
    "pidstat.txt": ["pidstat", "-d", "-u", "-h", "-G", PROCESSES, "1"],
    "psi.txt": [str(HERE / "psi.sh"), "1"],
}
SAR_INTERVAL_S = 10
RECORDER_ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "S_TIME_FORMAT": "ISO"}


@dataclass(frozen=True)
class Incident:
    """What is done to the rig, and what a diagnosis has to say about it."""

    summary: str
    phases: tuple[tuple[str, int], ...]  # name and length in seconds
    pgbench: tuple[str, ...]
    fault: Callable[[rigs.Rig], Any] | None = None  # a context manager that holds the fault
    truth: Callable[[rigs.Rig], dict[str, Any]] | None = None
    gzipped: frozenset[str] = frozenset()
    busy_phases: frozenset[str] = frozenset()  # where the fault itself takes the processors


@contextmanager
def capped_wal(rig: rigs.Rig) -> Iterator[str]:
    """The WAL disk's throttle group at ``WAL_CAP_IOPS``, reads and writes together."""
    rig.throttle("wal", WAL_CAP_IOPS)
    try:
        yield f"set iops-total={WAL_CAP_IOPS} on the throttle group of the WAL disk ({rig.disks['wal'].device})"
    finally:
        rig.throttle("wal", 0)


@contextmanager
def cpu_hogs(rig: rigs.Rig) -> Iterator[str]:
    """Busy loops that compete with the database for the processors.

    Each runs in a session of its own: Linux shares the processors between sessions first (autogroup), so that one
    session of sixteen loops would take no more than one loop does.
    """
    del rig
    with ExitStack() as hogs:
        for _ in range(HOGS):
            hogs.callback(rigs.stop, rigs.start(["stress-ng", "--cpu", "1", "--cpu-method", "int64"]))
        yield f"started stress-ng --cpu 1 --cpu-method int64, {HOGS} times"


BROKEN = (("healthy", 40), ("fault", 90), ("recovered", 40))
# Fewer transactions than the machine could do: a healthy server is not a saturated one. What is more than two seconds
# late is skipped, as an application's time-out would have it, so that the backlog ends when the fault ends.
OPEN_LOOP = ("--client=8", "--jobs=1", "--rate=250", "--latency-limit=2000")

INCIDENTS = {
    "throttled-wal-disk": Incident(
        summary="The disk holding the WAL runs into an IOPS cap; the data disk and the processors are fine.",
        phases=BROKEN,
        pgbench=OPEN_LOOP,
        fault=capped_wal,
        truth=lambda rig: {
            "kind": "disk-iops-cap",
            "layer": "vm",
            "rule": "vm-iops-limit-hit",
            "entity": {"kind": "block-device", "name": rig.disks["wal"].device, "role": "wal"},
            "cap_iops": WAL_CAP_IOPS,
            "not_to_blame": ["the data disk", "processors", "memory"],
        },
        gzipped=frozenset({"iostat.json", "pidstat.txt", "mpstat.txt"}),
    ),
    "cpu-starved-guest": Incident(
        summary="Other work takes the processors; both disks are fine.",
        phases=BROKEN,
        pgbench=OPEN_LOOP,
        fault=cpu_hogs,
        truth=lambda rig: {
            "kind": "cpu-run-queue",
            "layer": "guest",
            "rule": "guest-run-queue-high",
            "entity": {"kind": "guest", "name": HOST_NAME},
            "hog_count": HOGS,
            "not_to_blame": [f"the disks ({', '.join(disk.device for disk in rig.disks.values())})", "memory"],
        },
        gzipped=frozenset({"iostat.txt", "iostat.json", "pidstat.txt", "sar.bin"}),
        busy_phases=frozenset({"fault"}),
    ),
    "healthy": Incident(
        summary="The same server and load with nothing wrong.",
        phases=(("healthy", 100),),
        pgbench=OPEN_LOOP,
        gzipped=frozenset({"iostat.txt", "mpstat.txt", "sar.bin"}),
    ),
}


def say(text: str) -> None:
    """Tell the person watching."""
    sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {text}\n")


def now() -> datetime:
    """The clock every tool here stamps with."""
    return datetime.now(UTC)


def stamp(at: datetime) -> str:
    """ISO 8601 UTC, milliseconds."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def record(name: str, folder: Path, programs: Path, *, rehearse: bool, accept_noise: bool) -> None:
    """Record one incident into ``folder``, which is replaced only when the recording is whole."""
    incident = INCIDENTS[name]
    if rehearse:
        incident = replace(incident, phases=tuple((phase, length // 10) for phase, length in incident.phases))
    if accept_noise:
        incident = replace(incident, busy_phases=frozenset(phase for phase, _ in incident.phases))
    else:
        wait_for_quiet()
    with ExitStack() as stack:
        work = Path(tempfile.mkdtemp(prefix="leadline-", dir="/var/tmp"))
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        out = work / "recording"
        out.mkdir()
        say(f"{name}: building the disks")
        rig = rigs.build(work, stack)
        say(f"{name}: {', '.join(f'{disk.role} on {disk.device}' for disk in rig.disks.values())}; starting PostgreSQL")
        rigs.start_postgresql(rig, programs, out / "postgresql.log")
        say(f"{name}: warming up for {WARM_UP_S} s")
        rigs.run("pgbench", *incident.pgbench, f"--time={WARM_UP_S}")
        (out / "pg_settings.csv").write_text(settings())
        phases, actions, command = play(incident, rig, out)
        roles = {disk.role: disk.device for disk in rig.disks.values()}
        table = medians.of_phases(out, phases, roles)
        truth = truth_of(name, rig, phases, actions) | {
            "load": {"command": command, "scale": rigs.PGBENCH_SCALE},
            "recordings": recordings(incident),
            "measured_medians": table,
            "tools": versions(programs),
        }
        write_yaml(out / "truth.yaml", truth)
        write_yaml(out / "inventory.yaml", inventory(rig, programs))
        pack(out, incident.gzipped)
        show(name, table)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(out, folder)
    say(f"{name}: written to {folder}")


def play(incident: Incident, rig: rigs.Rig, out: Path) -> tuple[list[medians.Phase], list[tuple[datetime, str]], str]:
    """Run the load and the recorders through the phases; phases, actions with their times, and the load's command."""
    seconds = sum(length for _, length in incident.phases)
    load = ["pgbench", *incident.pgbench, f"--time={seconds}", "--progress=1", "--progress-timestamp", "--log"]
    load += ["--aggregate-interval=1", f"--log-prefix={out / 'pgbench_log'}"]
    phases: list[medians.Phase] = []
    actions: list[tuple[datetime, str]] = []
    with recorders(out):
        with ExitStack() as running, (out / "pgbench.txt").open("wb") as file:
            actions.append((now(), "started the recorders and pgbench"))
            bench = rigs.start(load, file)
            running.callback(rigs.stop, bench, signal.SIGINT)
            begun = time.monotonic()
            elapsed = 0
            for phase, length in incident.phases:
                elapsed += length
                began = now()
                say(f"phase {phase}, {length} s")
                disturbance = Disturbance(phase, length, tolerate=phase in incident.busy_phases)
                if phase == "fault" and incident.fault is not None:
                    with incident.fault(rig) as did:
                        actions.append((began, did))
                        hold(begun + elapsed, bench, disturbance)
                    actions.append((now(), "undid it"))
                else:
                    hold(begun + elapsed, bench, disturbance)
                phases.append(medians.Phase(phase, began, now(), disturbance.busy_seconds))
            bench.wait(60)
        actions.append((now(), "ended the load and the recorders"))
    (aggregate,) = out.glob("pgbench_log.*")
    aggregate.rename(out / "pgbench_aggregate.log")
    return phases, actions, " ".join(part for part in load if not part.startswith("--log-prefix"))


class Disturbance:
    """Counts the seconds of a phase in which the processors did more than the load asks of them."""

    def __init__(self, phase: str, length: int, *, tolerate: bool) -> None:
        self.phase = phase
        self.tolerated = float("inf") if tolerate else max(3.0, DISTURBED_SHARE * length)
        self.busy_seconds = 0
        self.ticks = processor_ticks()

    def tick(self) -> None:
        """Look at the last second.

        Raises:
            RigError: the phase is spoilt.
        """
        before, self.ticks = self.ticks, processor_ticks()
        self.busy_seconds += busy_pct(before, self.ticks) > DISTURBED_BUSY_PCT
        if self.busy_seconds > self.tolerated:
            raise rigs.RigError(f"other work disturbed the phase {self.phase}; nothing is kept, try again")


def hold(end: float, bench: subprocess.Popen[bytes], disturbance: Disturbance) -> None:
    """Sit out a phase, but not with a load that has failed nor on a machine that others use."""
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 1.0))
        if bench.poll() not in (None, 0):
            raise rigs.RigError(f"pgbench ended early with status {bench.returncode}")
        if left >= 1.0:
            disturbance.tick()


@contextmanager
def recorders(out: Path) -> Iterator[None]:
    """Every recorder running; ended by SIGINT, as a person would, so that each closes its output."""
    environment = os.environ | RECORDER_ENVIRONMENT
    with ExitStack() as stack:
        for name, command in RECORDERS.items():
            with (out / name).open("wb") as file:
                how = signal.SIGTERM if name == "psi.txt" else signal.SIGINT
                stack.callback(rigs.stop, rigs.start(command, file, environment=environment), how)
        sar = rigs.start(["sar", "-o", out / "sar.bin", str(SAR_INTERVAL_S)], environment=environment)
        stack.callback(rigs.stop, sar, signal.SIGINT)
        time.sleep(1.0)
        yield
        time.sleep(1.0)


def wait_for_quiet() -> None:
    """Wait until other work leaves the processors alone.

    Raises:
        RigError: they stay busy.
    """
    deadline = time.monotonic() + QUIET_WAIT_S
    while True:
        before = processor_ticks()
        time.sleep(10.0)
        busy = busy_pct(before, processor_ticks())
        if busy <= QUIET_BUSY_PCT:
            return
        if time.monotonic() > deadline:
            raise rigs.RigError(f"the processors are {busy:.0f} % busy with other work; record when they are quiet")
        say(f"the processors are {busy:.0f} % busy with other work; waiting")


def processor_ticks() -> tuple[int, int]:
    """Ticks of all processors since boot: in total, and idle or waiting for I/O."""
    ticks = [int(cell) for cell in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4]


def busy_pct(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share of processor time between two readings that is neither idle nor waiting for I/O, in percent."""
    total = after[0] - before[0]
    return 100.0 * (1.0 - (after[1] - before[1]) / total) if total else 0.0


def settings() -> str:
    """``pg_settings`` as CSV."""
    columns = "name, setting, unit, context, source, boot_val, pending_restart"
    return rigs.query(f"COPY (SELECT {columns} FROM pg_settings ORDER BY name) TO STDOUT (FORMAT csv, HEADER)")


def truth_of(
    name: str, rig: rigs.Rig, phases: list[medians.Phase], actions: list[tuple[datetime, str]]
) -> dict[str, Any]:
    """What a diagnosis is held against."""
    incident = INCIDENTS[name]
    truth: dict[str, Any] = {"name": name, "summary": incident.summary, "host": HOST_NAME, "timezone": "UTC"}
    truth |= {"start": stamp(phases[0].start), "end": stamp(phases[-1].end)}
    if incident.truth is None:
        truth["fault"] = None
    else:
        (window,) = (phase for phase in phases if phase.name == "fault")
        truth["fault"] = incident.truth(rig) | {"start": stamp(window.start), "end": stamp(window.end)}
    truth["phases"] = [
        {"name": each.name, "start": stamp(each.start), "end": stamp(each.end), "busy_seconds": each.busy_seconds}
        for each in phases
    ]
    truth["actions"] = [{"at": stamp(at), "did": did} for at, did in actions]
    truth["facts"] = {f"{disk.role}_device": disk.device for disk in rig.disks.values()} | {
        "data_directory": str(rig.disks["data"].mount / "main"),
        "wal_directory": str(rig.disks["wal"].mount / "pg_wal"),
        "filesystem": "ext4, noatime",
        "cpu_count": os.cpu_count(),
        "disk_path": "loop device, direct I/O -> nbdfuse -> NBD -> qemu-storage-daemon throttle group -> raw file",
    }
    return truth


def recordings(incident: Incident) -> dict[str, str]:
    """File -> the command that wrote it."""
    commands = {name: " ".join(command).replace(f"{HERE}/", "") for name, command in RECORDERS.items()}
    commands |= {"sar.bin": f"sar -o sar.bin {SAR_INTERVAL_S}", "pg_settings.csv": "SELECT ... FROM pg_settings"}
    commands |= {
        "pgbench.txt": "stdout and stderr of pgbench",
        "pgbench_aggregate.log": "pgbench --log --aggregate-interval=1",
    }
    commands |= {"postgresql.log": "the server's log"}
    return {f"{name}.gz" if name in incident.gzipped else name: command for name, command in commands.items()}


def inventory(rig: rigs.Rig, programs: Path) -> dict[str, Any]:
    """What an operator knows without measuring; the cap is not among it."""
    devices = [
        {"name": disk.device, "role": disk.role, "mount": str(disk.mount), "filesystem": "ext4", "medium": "flash"}
        for disk in rig.disks.values()
    ]
    database = {"name": "main", "engine": "postgresql", "version": programs.parent.name}
    return {
        "leadline_inventory": 1,
        "guests": [{"name": HOST_NAME, "cpu_count": os.cpu_count(), "devices": devices, "databases": [database]}],
    }


def versions(programs: Path) -> dict[str, str]:
    """Program -> what it says of its version."""
    asked = {
        "iostat": ["iostat", "-V"],
        "vmstat": ["vmstat", "-V"],
        "pgbench": ["pgbench", "--version"],
        "postgres": [str(programs / "postgres"), "--version"],
        "qemu-storage-daemon": ["qemu-storage-daemon", "--version"],
        "nbdfuse": ["nbdfuse", "--version"],
        "stress-ng": ["stress-ng", "--version"],
    }
    return {"kernel": os.uname().release} | {name: rigs.run(*ask).splitlines()[0] for name, ask in asked.items()}


def pack(out: Path, names: frozenset[str]) -> None:
    """Compress the named files in place; without a time stamp, so that equal recordings give equal files."""
    for name in names:
        path = out / name
        path.with_name(f"{name}.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        path.unlink()


def write_yaml(path: Path, document: Mapping[str, Any]) -> None:
    """One document, saying where it came from."""
    path.write_text("\n".join(["# Written by examples/incidents/record.py.", *yaml(document)]) + "\n")


def yaml(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Lines of YAML for plain mappings, lists and scalars; scalars are quoted as JSON, which YAML contains."""
    for key, entry in value.items():
        if isinstance(entry, Mapping) and entry:
            yield f"{indent}{key}:"
            yield from yaml(entry, f"{indent}  ")
        elif isinstance(entry, list) and entry and isinstance(entry[0], Mapping):
            yield f"{indent}{key}:"
            for item in entry:
                first, *rest = yaml(item, f"{indent}    ")
                yield f"{indent}  - {first.strip()}"
                yield from rest
        else:
            yield f"{indent}{key}: {json.dumps(entry, ensure_ascii=False)}"


def show(name: str, table: dict[str, dict[str, float]]) -> None:
    """The medians, one line per measure, one column per phase."""
    measures = list(dict.fromkeys(key for column in table.values() for key in column))
    sys.stdout.write(f"{name:26}" + "".join(f"{phase:>12}" for phase in table) + "\n")
    for key in measures:
        cells = (column.get(key, float("nan")) for column in table.values())
        sys.stdout.write(f"{key:26}" + "".join(f"{cell:12.2f}" for cell in cells) + "\n")
    sys.stdout.flush()


def enter_namespaces() -> None:
    """Become a process whose mounts and host name are its own (the kernel drops both with the last process)."""
    if os.geteuid() != 0:
        raise rigs.RigError("must run as root: it mounts file systems and attaches loop devices")
    if os.environ.get(INSIDE) != "1":
        os.environ[INSIDE] = "1"
        wrapper = ["unshare", "--uts", "--mount", "--propagation", "private", "--"]
        os.execvp("unshare", [*wrapper, sys.executable, *sys.argv])
    socket.sethostname(HOST_NAME)


def claim() -> None:
    """Hold this folder's lock until the process ends: two recordings at once would disturb each other.

    Raises:
        RigError: another recording is running.
    """
    try:
        fcntl.flock(os.open(HERE, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise rigs.RigError("another recording is running; wait until it has ended") from error


def main() -> int:
    """Command line; exit status 2 for a wrong call, 4 when a tool is missing or failed, 130 when interrupted."""
    parser = argparse.ArgumentParser(description="Record the shipped incidents with the real tools (as root).")
    parser.add_argument("incident", nargs="*", help=", ".join(INCIDENTS))
    parser.add_argument("--all", action="store_true", help="record every incident")
    parser.add_argument("--output", type=Path, default=HERE, help="folder for the incidents' folders (default: here)")
    parser.add_argument(
        "--accept-noise", action="store_true", help="record although other work disturbs (truth.yaml says how much)"
    )
    parser.add_argument("--rehearse", action="store_true", help="phases of a tenth of their length")
    arguments = parser.parse_args()
    chosen = list(INCIDENTS) if arguments.all else arguments.incident
    if not chosen or not set(chosen) <= set(INCIDENTS):
        parser.error(f"name incidents ({', '.join(INCIDENTS)}) or say --all")
    # A shell starts background jobs with SIGINT ignored, and the recorders, ended by it, would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    try:
        programs = rigs.check_tools()
        enter_namespaces()
        claim()
        for name in chosen:
            folder = arguments.output.resolve() / name
            record(name, folder, programs, rehearse=arguments.rehearse, accept_noise=arguments.accept_noise)
    except rigs.RigError as error:
        say(f"record.py: {error}")
        return 4
    except KeyboardInterrupt:
        say("interrupted; everything that was started has been removed")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
