"""Make incidents while ``leadline watch`` runs, and see what it says: when, of what, how often.

    sudo python -m incidents.live [KIND...] [--healthy-s 90] [--fault-s 60] [--json FILE] [--accept-noise]

The rig, the loads and the faults are those of ``incidents.record``. For each kind the load begins and settles, then a
watch begins, on this machine's own counters and the server's; its notices go to a program that writes them down. The
load runs healthy, the fault is set from outside and lifted, and the watch is waited for until it has closed what it
opened. What it calls the first cause is held against ``leadline diagnose`` of the recording it keeps of the incident,
and against the truth. With ``--one-watch`` a single watch runs from beginning to end: it sees the rig fill caches and
change loads as well, and what comes back within a quarter of an hour is one incident to it. ``--quiet-minutes N`` lets
the load run without a fault instead, and counts what is told.
"""

from __future__ import annotations

import argparse
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
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incidents import lab, record, session
from incidents.contract import Kind, Load, Stage
from incidents.lab_access import Access, free_ports, let_in
from incidents.processes import RigError, start, stop, wait_for
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.errors import LeadlineError
from leadline.core.model.finding import Window
from leadline.core.model.units import share_text
from leadline.lab.programs import Program
from leadline.stores.incidents import IncidentStore, LiveIncident

KINDS = (
    # Faults of one disk are more than a quarter of an hour apart: what comes back sooner is one incident.
    *("iops-limit-data", "cpu-taken", "iops-limit-wal", "lock-waits", "slow-disk", "commit-delay", "missing-index"),
    *("slow-flush", "temp-spill", "frequent-checkpoints"),
)
Watching = Callable[[str], AbstractContextManager[tuple[IncidentStore, Path]]]  # of a kind
CLOSE_WAIT_S = 240.0
LOAD_S = 7200
NOTICE_S = 8.0  # until the notice of a closing is sent
SAY_EVERY_S = 600.0  # of healthy hours: how many notices there were so far
TELLING = ("opened", "worsened", "reopened")  # notices from which people learn that something is wrong, or what it is
SETTINGS = """\
store: {{folder: {folder}/store}}
sources:
{sources}
tell:
  - {{name: writer, notifier: run-command, hourly_max: 0, when: [opened, worsened, closed, reopened], severity: low,
     settings: {{command: [{folder}/told.sh]}}}}
page: {{listen: ""}}
"""
SOURCES = """\
  - {{name: this-machine, collector: linux}}
  - {{name: bench, collector: postgresql, target: "{server}"}}"""
# Of a guest: what is seen in it without anything installed there, and what its hypervisor counts.
GUEST_SOURCES = """\
  - {{name: guest, collector: linux, target: "{linux}"}}
  - {{name: bench, collector: postgresql, target: "{server}"}}
  - {{name: hypervisor, collector: qemu, target: "{counters}"}}"""


@dataclass
class RunningLoad:
    """The load, which goes on from one kind to the next where both have the same: users do not leave between two."""

    stage: Stage
    guests: Guests
    load: Load | None = None
    database: str = ""
    process: subprocess.Popen[bytes] | Program | None = None

    def go_on(self, kind: Kind, settle_s: float) -> None:
        """Let the load of a kind run; one that begins anew is given time to become what is normal."""
        is_same = self.load == kind.load and self.database == kind.database
        if self.process is not None and self.process.poll() is None and is_same:
            return
        self.end()
        if kind.database == "lab":
            self.process = self.stage.guest.begin_load(LOAD_S)
        else:
            self.process, _ = session.start_load(self.stage, kind, self.stage.file("load.txt"), LOAD_S)
        self.load, self.database = kind.load, kind.database
        time.sleep(settle_s)

    def end(self) -> None:
        """End the load."""
        if isinstance(self.process, Program):
            self.process.end()
        elif self.process is not None:
            stop(self.process, signal.SIGINT)
        self.process = None


@dataclass
class Guests:
    """The virtual machine of a stage, booted when the first kind needs it."""

    stage: Stage
    access: Access | None = None

    def reach(self) -> Access:
        """How the guest is reached from here."""
        if self.access is None:
            record.say("booting a virtual machine")
            ports = free_ports()
            self.stage.guest = lab.boot(self.stage.work, self.stage.guests, ports=ports)
            self.access = let_in(self.stage.guest.machine, ports, self.stage.file("home"))
        return self.access

    def sources(self, kind: Kind) -> tuple[str, dict[str, str]]:
        """What a watch of a kind collects, and the environment it needs for that."""
        if kind.database != "lab":
            return SOURCES.format(server=self.stage.server.address()), {}
        access = self.reach()
        counters = self.stage.guest.machine.files.counters
        text = GUEST_SOURCES.format(linux=access.linux, server=access.server, counters=counters)
        return text, {"HOME": str(access.home)}


def play(load: RunningLoad, name: str, watching: Watching, options: argparse.Namespace) -> dict[str, Any]:
    """One kind under a watch: what it said of it."""
    stage, module = load.stage, record.load_kind(name)
    kind, parameters = module.KIND, session.Variant(name, 1).parameters(module)
    with ExitStack() as stack:
        if not kind.is_uncached and kind.database != "lab":
            stage.warm()
        if (prepare := getattr(module, "prepare", None)) is not None:
            stack.enter_context(prepare(stage))
        if kind.database == "lab":
            load.guests.reach()
        load.go_on(kind, options.settle_s)
        if kind.is_uncached:
            stack.enter_context(stage.rig.uncached())
        store, notices = stack.enter_context(watching(name))
        time.sleep(options.healthy_s)
        told_before, began_ns = lines(notices), time.time_ns()
        with module.fault(stage, parameters) as did:
            record.say(f"{name}: {did}")
            time.sleep(options.fault_s)
        ended_ns = time.time_ns()
        incidents = wait_until_closed(store, began_ns)
        time.sleep(NOTICE_S)
    told = [json.loads(line) for line in lines(notices)[len(told_before) :]]
    times = {"began_ns": began_ns, "ended_ns": ended_ns}
    return {"kind": name, **times, **judged(name, incidents, told, began_ns, ended_ns)}


def judged(
    name: str, incidents: list[LiveIncident], told: list[dict[str, Any]], began_ns: int, ended_ns: int
) -> dict[str, Any]:
    """What came of a kind: what was opened, when, how often it was told, and whether it names the cause."""
    truth = record.load_kind(name).KIND.truth
    states = [notice["state"] for notice in told]
    row: dict[str, Any] = {"opened": len(incidents), "notices": states}
    if not incidents:
        return row
    first = min(incidents, key=lambda one: one.opened_ns)
    # One that was open before (a machine has its own troubles) is not opened again: people are told that it is worse.
    row["was_open"] = first.opened_ns < began_ns and "opened" not in states
    opening = next((notice for notice in told if notice["state"] in TELLING), None)
    row["cause"], row["title"], row["severity"] = first.cause, first.title, first.severity.name.lower()
    row["first_told"] = None if opening is None else opening["cause"]
    row["told_after_s"] = None if opening is None else round((opening["sent_ns"] - began_ns) / 1e9, 1)
    row["rule_duration_s"] = duration_of(first.cause)
    row["closed_after_s"] = None if first.closed_ns is None else round((first.closed_ns - ended_ns) / 1e9, 1)
    row["diagnose"] = cause_of(first.capture, first.opened_ns, first.seen_ns)
    row["agrees"] = row["diagnose"] == first.cause
    causes = rule_metas()[first.cause].causes if first.cause in rule_metas() else (first.cause,)
    wanted = set() if truth is None else {truth.cause, *truth.others}
    row["is_true"] = bool(wanted & set(causes)) or any(word in first.cause for word in wanted)
    return row


def kind_of(name: str) -> Kind:
    """What a kind declares."""
    return record.load_kind(name).KIND


def duration_of(rule: str) -> float | None:
    """The duration of a rule, seconds; None where it has none."""
    meta = rule_metas().get(rule)
    threshold = None if meta is None else meta.thresholds.get("duration")
    return None if threshold is None else threshold.value


def cause_of(capture: str, opened_ns: int, seen_ns: int) -> str | None:
    """What `diagnose` calls the first cause in the recording of an incident, which may hold others before it."""
    if not capture or not Path(capture).exists():
        return None
    window = Window(opened_ns, seen_ns)
    diagnosis = diagnose(import_paths([Path(capture)]).capture)
    timed = [answer for answer in diagnosis.answers if answer.incident is not None]
    shared = [answer.incident.window.shared_ns(window) for answer in timed if answer.incident is not None]
    answer = timed[shared.index(max(shared))] if shared and max(shared) > 0 else diagnosis.answer
    cause = answer.cause if answer.explains else None
    return answer.because.value if cause is None else cause.finding.rule


def wait_until_closed(store: IncidentStore, since_ns: int) -> list[LiveIncident]:
    """The incidents of a fault, when none is open any more and each has its recording, or when that took too long."""
    deadline = time.monotonic() + CLOSE_WAIT_S
    while True:
        time.sleep(5.0)
        some = [one for one in store.between(since_ns, time.time_ns()) if one.seen_ns >= since_ns]
        are_over = bool(some) and all(not one.is_open and one.capture and Path(one.capture).exists() for one in some)
        if are_over or time.monotonic() > deadline:
            return some


def lines(path: Path) -> list[str]:
    """The lines of a file; none where it is not there."""
    return [line for line in path.read_text().splitlines() if line] if path.exists() else []


@contextmanager
def watched(folder: Path, sources: str, environment: Mapping[str, str]) -> Iterator[tuple[IncidentStore, Path]]:
    """A watch that runs: where its incidents are, and where its notices are written."""
    folder.mkdir()
    script, notices = folder / "told.sh", folder / "notices.jsonl"
    script.write_text(
        f'#!/bin/sh\n{sys.executable} -c \'import json,sys,time; n=json.load(sys.stdin); n["sent_ns"]=time.time_ns(); '
        f"print(json.dumps(n))' >> {notices}\n"
    )
    script.chmod(0o755)
    settings = folder / "watch.yaml"
    settings.write_text(SETTINGS.format(folder=folder, sources=sources))
    command = [str(Path(sys.executable).with_name("leadline")), "watch", "run", "-s", str(settings)]
    with (folder / "watch.log").open("wb") as log:
        process = start(command, log, environment={**os.environ, **environment})
    try:
        wait_for("the watch", (folder / "store" / "state.json").exists)
        yield IncidentStore(folder / "store"), notices
    finally:
        stop(process, signal.SIGTERM, 20.0)


def run(options: argparse.Namespace) -> int:
    """Play the kinds; the number of those that were not seen with their cause."""
    with ExitStack() as stack:
        work = Path(tempfile.mkdtemp(prefix="leadline-live-", dir="/var/tmp"))
        if not options.keep:
            stack.callback(shutil.rmtree, work, ignore_errors=True)
        stage = record.build(work, stack, {need for name in options.kind for need in record.load_kind(name).KIND.needs})
        if options.quiet_minutes:
            return quiet(stage, work, options)
        guests = Guests(stage)
        rows, load = [], RunningLoad(stage, guests)
        stack.callback(load.end)
        watching: Watching = lambda kind: watched(work / f"watch-{kind}", *guests.sources(kind_of(kind)))  # noqa: E731
        if options.one_watch:
            one = stack.enter_context(watched(work / "watch", *guests.sources(kind_of(options.kind[0]))))
            watching = lambda _: nullcontext(one)  # noqa: E731
        # The virtual machine comes last: it takes processor time as long as it is there.
        for name in sorted(options.kind, key=lambda name: kind_of(name).database == "lab"):
            if not options.accept_noise:
                record.wait_for_quiet()
            try:
                rows.append(play(load, name, watching, options))
            except (RigError, LeadlineError, OSError) as error:
                rows.append({"kind": name, "error": str(error)})
            show(rows[-1])
            if options.json is not None:
                options.json.write_text(json.dumps(rows, indent=1) + "\n")
    right = [row for row in rows if row.get("is_true") and row.get("agrees")]
    print(f"{len(right)} of {len(rows)} with the true cause first, as diagnose says it of the recording")
    return len(rows) - len(right)


def quiet(stage: Stage, work: Path, options: argparse.Namespace) -> int:
    """Let the healthy load of a kind run, and count what is told."""
    module = record.load_kind("healthy-plain")
    seconds = int(options.settle_s + options.quiet_minutes * 60)
    load, _ = session.start_load(stage, module.KIND, stage.file("load.txt"), seconds)
    time.sleep(options.settle_s)
    witness = StealWitness()
    with watched(work / "watch", *Guests(stage).sources(module.KIND)) as (store, notices):
        began_ns = time.time_ns()
        next_s = SAY_EVERY_S
        try:
            while load.poll() is None:
                witness.look()
                time.sleep(1.0)
                if time.time_ns() - began_ns >= next_s * 1e9:  # whatever ends it, so much is known
                    print(f"{next_s / 60:.0f} minutes so far: {len(lines(notices))} notices", flush=True)
                    next_s += SAY_EVERY_S
        except KeyboardInterrupt:
            load.terminate()
    incidents = store.between(began_ns, time.time_ns())
    minutes = (time.time_ns() - began_ns) / 6e10
    print(f"{minutes:.0f} minutes of healthy load: {len(incidents)} incidents, {len(lines(notices))} notices")
    print(f"  the host took {witness.text(began_ns, time.time_ns())} of the processors")
    for one in incidents:
        taken = witness.text(one.opened_ns, one.seen_ns)
        print(f"  {one.severity.name.lower()} {one.title}\n    meanwhile the host took {taken} of the processors")
    return len(lines(notices))


class StealWitness:
    """What the host takes from this machine's processors, looked at beside the watch and without it."""

    def __init__(self) -> None:
        """Before the first look."""
        self._looks: list[tuple[int, int, int]] = []  # UTC nanoseconds; ticks stolen, ticks in all

    def look(self) -> None:
        """Read the counters of all processors (source: proc(5), /proc/stat)."""
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        self._looks.append((time.time_ns(), ticks[7], sum(ticks)))

    def text(self, start_ns: int, end_ns: int) -> str:
        """The share in a span, and in the worst ten seconds of it."""
        looks = [one for one in self._looks if start_ns - 1e9 <= one[0] <= end_ns + 1e9]
        spans = [(looks[place], looks[place + 10]) for place in range(len(looks) - 10)]
        if not spans:
            return "an unknown part"
        worst = max(stolen(*span) for span in spans)
        return f"{share_text(stolen(looks[0], looks[-1]), 1)} (in the worst ten seconds {share_text(worst, 1)})"


def stolen(before: tuple[int, int, int], after: tuple[int, int, int]) -> float:
    """The share of the processors' time that was stolen between two looks."""
    return (after[1] - before[1]) / max(after[2] - before[2], 1)


def show(row: dict[str, Any]) -> None:
    """Print a kind's line."""
    if "error" in row:
        print(f"{row['kind']:<22} {row['error']}")
    elif not row["opened"]:
        print(f"{row['kind']:<22} NOT SEEN")
    else:
        mark = "true" if row["is_true"] else "NOT TRUE"
        print(
            f"{row['kind']:<22} {mark}, {row['cause']} (told first: {row['first_told']}, diagnose: {row['diagnose']}), "
            f"told after {row['told_after_s']} s, rule's duration {row['rule_duration_s']} s, closed after "
            f"{row['closed_after_s']} s, {row['opened']} incidents{', one open before' if row['was_open'] else ''}, "
            f"notices {row['notices']}\n    {row['title']}"
        )
    sys.stdout.flush()


def main() -> int:
    """Command line; exit status 1: not all were seen with their cause, 2: wrong call, 4: a tool failed."""
    parser = argparse.ArgumentParser(prog="python -m incidents.live", description=__doc__.split("\n\n")[0])
    parser.add_argument("kind", nargs="*", default=list(KINDS), help=f"which kinds (default: {' '.join(KINDS)})")
    parser.add_argument("--healthy-s", type=float, default=90.0, help="healthy load before each fault (default: 90)")
    parser.add_argument("--settle-s", type=float, default=120.0, help="of a load that begins (default: 120)")
    parser.add_argument("--fault-s", type=float, default=60.0, help="how long the fault lasts (default: 60)")
    parser.add_argument("--one-watch", action="store_true", help="the same watch from the first kind to the last")
    parser.add_argument("--quiet-minutes", type=float, default=0.0, help="healthy load only, for so long")
    parser.add_argument("--json", type=Path, help="write the rows to a file, too")
    parser.add_argument("--keep", action="store_true", help="keep the store and the log of the watch")
    parser.add_argument("--accept-noise", action="store_true", help="go on although other work disturbs")
    options = parser.parse_args()
    if unknown := set(options.kind) - set(record.kinds()):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    try:
        enter()
        return 1 if run(options) else 0
    except RigError as error:
        record.say(f"live: {error}")
        return 4
    except KeyboardInterrupt:
        record.say("interrupted; everything that was started has been removed")
        return 130


def enter() -> None:
    """As `incidents.record`: mounts and a host name of our own, and nobody else who records.

    Raises:
        RigError: not root, or another recording runs.
    """
    if os.environ.get(record.INSIDE) != "1" and os.geteuid() == 0:
        os.environ[record.INSIDE] = "1"
        wrapper = ["unshare", "--uts", "--mount", "--propagation", "private", "--"]
        os.execvp("unshare", [*wrapper, sys.executable, "-m", "incidents.live", *sys.argv[1:]])
    if os.geteuid() != 0:
        raise RigError("must run as root: it mounts file systems and attaches loop devices")
    socket.sethostname(record.HOST_NAME)
    record.claim()


if __name__ == "__main__":
    sys.exit(main())
