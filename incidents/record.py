"""Record incidents with the real tools, on this machine, whose fault is set from outside and written down.

    sudo python -m incidents.record [KIND...] [--variants 3] [--only 4 5] [--output FOLDER] [--again] [--minutes 60]

Runs on Debian or Ubuntu as root, in private mount, UTS and network namespaces' worth of its own things: the host's own
mounts, files and host name stay as they are, and whatever was started is ended and removed afterwards, also on Ctrl-C.
What is there already is not recorded again: a second run goes on where the first one ended.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from incidents import archive, bystanders, lab, limits, postgresql, rig, session
from incidents.contract import KindModule, Stage
from incidents.processes import RigError
from leadline.core.model.errors import LeadlineError

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded"
HOST_NAME = "db01"
INSIDE = "LEADLINE_RECORD_INSIDE"
QUIET_BUSY_PCT = 20.0  # a machine busier than this with other work spoils the healthy phase
QUIET_WAIT_S = 900.0
ATTEMPTS = 3
ALONE_S = 8.0  # what a batch of its own costs: warming, a load that ends, an archive


def say(text: str) -> None:
    """Tell the person watching."""
    sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {text}\n")


def kinds() -> list[str]:
    """Every kind there is."""
    return sorted(path.stem.replace("_", "-") for path in (HERE / "kinds").glob("[a-z]*.py"))


def load_kind(name: str) -> KindModule:
    """The module of a kind."""
    return cast("KindModule", importlib.import_module(f"incidents.kinds.{name.replace('-', '_')}"))


def record(names: list[str], arguments: argparse.Namespace) -> int:
    """Record what is missing of these kinds; the number of recordings that are missing afterwards."""
    deadline = time.monotonic() + arguments.minutes * 60
    # The virtual machine comes last: it takes processor time as long as it is there.
    names = sorted(names, key=lambda name: load_kind(name).KIND.database == "lab")
    missing = {name: wanted for name in names if (wanted := _missing(name, arguments))}
    count = sum(map(len, missing.values()))
    if not count:
        say("every recording is there")
        return 0
    say(f"{count} recordings of {len(missing)} kinds to make, about {_minutes(missing):.0f} minutes")
    with ExitStack() as stack:
        work = Path(tempfile.mkdtemp(prefix="leadline-incident-", dir="/var/tmp"))
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        needs = {need for name, variants in missing.items() for need in _needs(load_kind(name), variants)}
        stage = build(work, stack, needs)
        stage.with_script = arguments.with_script
        for attempt in range(ATTEMPTS):
            for name, variants in list(missing.items()):
                if time.monotonic() > deadline:
                    say(f"{arguments.minutes} minutes are over; run it again to go on")
                    break
                if not arguments.accept_noise:
                    wait_for_quiet()
                tried = [replace(variant, attempt=attempt) for variant in variants]
                kept = {
                    number
                    for batch in _batches(load_kind(name), tried)
                    for number in _record_kind(stage, name, batch, arguments)
                }
                missing[name] = [variant for variant in variants if variant.number not in kept]
            missing = {name: variants for name, variants in missing.items() if variants}
            stage.guests.close()
            stage.guest = None
    for name, variants in missing.items():
        say(f"{name}: missing {', '.join(str(variant.number) for variant in variants)}")
    return sum(map(len, missing.values()))


def _record_kind(stage: Stage, name: str, variants: list[session.Variant], arguments: argparse.Namespace) -> set[int]:
    """Record variants of a kind; the numbers of those that were kept."""
    module = load_kind(name)
    out = stage.file("out")
    kept: set[int] = set()
    try:
        if module.KIND.database == "lab" and stage.guest is None:
            say("booting a virtual machine")
            stage.guest = lab.boot(stage.work, stage.guests)
        recordings = session.play(stage, module, variants, out, say)
    except (RigError, LeadlineError, OSError) as error:
        say(f"{name}: {error}")
        return kept
    for recording in recordings:
        untrue = [shown.text for shown in recording.shown if not shown.is_true]
        mark = "thrown away, it does not show its fault" if untrue else "kept"
        print(f"{name} {recording.variant.number}: {mark}")
        for shown in recording.shown:
            print(f"    {'  ' if shown.is_true else 'NO'} {shown.text}")
        if not untrue or arguments.keep_all:
            archive.write(stage, module, recording, arguments.output, arguments.variants)
            kept.add(recording.variant.number)
        shutil.rmtree(recording.folder)
    sys.stdout.flush()
    return kept


def _missing(name: str, arguments: argparse.Namespace) -> list[session.Variant]:
    numbers = sorted(set(arguments.only or range(1, arguments.variants + 1)))
    kind = load_kind(name).KIND
    numbers = [number for number in numbers if number < bystanders.FIRST or bystanders.is_wanted(kind, number)]
    every = [session.Variant(name, number) for number in numbers]
    if arguments.again:
        return every
    return [variant for variant in every if not archive.path(arguments.output, variant).exists()]


def _batches(module: KindModule, variants: list[session.Variant]) -> list[list[session.Variant]]:
    """What is played under one load and kept at once: variants with bystanders each alone, the others together."""
    alone = [[variant] for variant in variants if bystanders.is_wanted(module.KIND, variant.number)]
    together = [variant for variant in variants if not bystanders.is_wanted(module.KIND, variant.number)]
    return [together, *alone] if together else alone


def _needs(module: KindModule, variants: list[session.Variant]) -> Iterator[str]:
    yield module.KIND.database
    yield from module.KIND.needs
    if any(bystanders.is_wanted(module.KIND, variant.number) for variant in variants):
        yield "bystanders"


def _minutes(missing: dict[str, list[session.Variant]]) -> float:
    each, alone = session.FAULT_S + session.GAP_S, session.HEALTHY_S + 3 + 2 * bystanders.TRIAL_S + ALONE_S
    batches = [batch for name, variants in missing.items() for batch in _batches(load_kind(name), variants)]
    is_alone = [bystanders.is_wanted(load_kind(batch[0].kind).KIND, batch[0].number) for batch in batches]
    return (
        sum(
            (alone if one else session.HEALTHY_S + 3) + each * len(batch)
            for batch, one in zip(batches, is_alone, strict=True)
        )
        / 60
    )


def build(work: Path, stack: ExitStack, needs: set[str]) -> Stage:
    """The disks, the servers and whatever else the kinds need."""
    say("building the disks")
    programs = rig.check_tools()
    disks = rig.build(work, stack, has_bystanders="bystanders" in needs)
    clients = limits.build(stack, 1)
    link = None
    say(", ".join(f"{disk.role} on {disk.device}" for disk in disks.disks.values()) + "; starting PostgreSQL")
    if "network" in needs:
        from incidents import network  # noqa: PLC0415 - only for those kinds

        link = network.build(work, stack)
    server = postgresql.start_server(disks, programs, limits.build(stack, 2), link.server_address if link else None)
    stage = Stage(disks, server, clients, work, link)
    stack.callback(stage.guests.close)
    if link is not None:
        link.serve(server.port)
    if "mysql" in needs:
        from incidents import mysql  # noqa: PLC0415

        stage.mysql = mysql.start_server(disks)
    if "bystanders" in needs:
        from incidents import second  # noqa: PLC0415

        bystanders.prepare(disks)
        stage.second = second.SecondServer(disks, server, stack)
    return stage


def wait_for_quiet() -> None:
    """Wait until other work leaves the processors alone.

    Raises:
        RigError: they stay busy.
    """
    deadline = time.monotonic() + QUIET_WAIT_S
    while True:
        before = processor_ticks()
        time.sleep(0.5)
        busy = busy_pct(before, processor_ticks())
        if busy <= QUIET_BUSY_PCT:
            return
        if time.monotonic() > deadline:
            raise RigError(f"the processors are {busy:.0f} % busy with other work; record when they are quiet")
        time.sleep(2.0)


def processor_ticks() -> tuple[int, int]:
    """Ticks of all processors since boot: in total, and idle or waiting for I/O."""
    ticks = [int(cell) for cell in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4]


def busy_pct(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share of processor time between two readings that is neither idle nor waiting for I/O, in percent."""
    total = after[0] - before[0]
    return 100.0 * (1.0 - (after[1] - before[1]) / total) if total else 0.0


def enter_namespaces() -> None:
    """Become a process whose mounts and host name are its own (the kernel drops both with the last process)."""
    if os.geteuid() != 0:
        raise RigError("must run as root: it mounts file systems and attaches loop devices")
    if os.environ.get(INSIDE) != "1":
        os.environ[INSIDE] = "1"
        wrapper = ["unshare", "--uts", "--mount", "--propagation", "private", "--"]
        os.execvp("unshare", [*wrapper, sys.executable, "-m", "incidents.record", *sys.argv[1:]])
    socket.sethostname(HOST_NAME)


def claim() -> None:
    """Hold this folder's lock until the process ends: two recordings at once would disturb each other.

    Raises:
        RigError: another recording is running.
    """
    try:
        fcntl.flock(os.open(HERE, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RigError("another recording is running; wait until it has ended") from error


def main() -> int:
    """Command line; exit status 1: recordings are missing, 2: wrong call, 4: a tool failed, 130: interrupted."""
    parser = argparse.ArgumentParser(prog="python -m incidents.record", description=__doc__.split("\n\n")[0])
    parser.add_argument("kind", nargs="*", help="which kinds (default: all)")
    parser.add_argument("--variants", type=int, default=3, help="recordings of each kind (default: 3)")
    known = range(1, bystanders.LAST + 1)
    numbers = f"only these; {bystanders.FIRST} to {bystanders.LAST} have bystanders"
    parser.add_argument("--only", type=int, nargs="+", choices=known, metavar="N", help=numbers)
    parser.add_argument(
        "--output", type=Path, default=RECORDED, help="where they are kept (default: incidents/recorded)"
    )
    parser.add_argument("--again", action="store_true", help="record also what is there already")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no kind after this time (default: 60)")
    parser.add_argument("--keep-all", action="store_true", help="keep what does not show its fault, too")
    parser.add_argument("--accept-noise", action="store_true", help="record although other work disturbs")
    parser.add_argument("--with-script", action="store_true", help="let `leadline recorder`'s script record, too")
    parser.add_argument("--list", action="store_true", help="print the kinds and what each does")
    arguments = parser.parse_args()
    chosen = arguments.kind or kinds()
    if unknown := set(chosen) - set(kinds()):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; --list prints them")
    if arguments.list:
        for name in chosen:
            print(f"{name:24} {load_kind(name).KIND.summary}")
        return 0
    arguments.output = arguments.output.resolve()
    # A shell starts background jobs with SIGINT ignored, and the recorders, ended by it, would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    try:
        enter_namespaces()
        claim()
        return 1 if record(chosen, arguments) else 0
    except RigError as error:
        say(f"record: {error}")
        return 4
    except KeyboardInterrupt:
        say("interrupted; everything that was started has been removed")
        return 130


if __name__ == "__main__":
    sys.exit(main())
