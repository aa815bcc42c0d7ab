"""One kind of incident, played variant after variant on a running rig, each variant in recordings of its own.

The load runs throughout. Before each fault and after it the system is healthy; the healthy stretch between two variants
belongs to both recordings, which overlap there.
"""

from __future__ import annotations

import math
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from incidents import bystanders, numbers, recorders
from incidents.contract import Kind, KindModule, Parameters, Shown, Stage, felt, unfelt
from incidents.lab import facts
from incidents.processes import RigError, start, stop

WARM_UP_S = 2.0
HEALTHY_S, FAULT_S, GAP_S, END_S = 6.5, 20.0, 6.5, 3.5
LOAD_END_S = 8.0
RECOVERY_S = 2.0  # of the gap: it belongs to neither phase
SEED = 15
_PROGRESS = re.compile(r"progress: ([\d.]+) s")
_LOG_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC")


@dataclass(frozen=True)
class Variant:
    """Which recording: of a kind, with a number, and at which try."""

    kind: str
    number: int
    attempt: int = 0

    def parameters(self, module: KindModule) -> Parameters:
        """What the seed draws for it."""
        return module.draw(random.Random(f"{SEED}/{self.kind}/{self.number}/{self.attempt}"))

    def company(self, kind: Kind) -> tuple[bystanders.Bystander, ...]:
        """The bystanders the seed draws for it; of most variants nobody."""
        if not bystanders.is_wanted(kind, self.number):
            return ()
        return bystanders.draw(random.Random(f"{SEED}/{self.kind}/{self.number}/{self.attempt}/bystanders"), kind)

    def is_set_aside(self, count: int) -> bool:
        """Whether it is kept away from whoever changes rules: about half of each kind's variants.

        Of those with bystanders about half as well; how the others were drawn stays as it was.
        """
        first, last, name = 1, min(count, bystanders.FIRST - 1), "set aside"
        if self.number >= bystanders.FIRST:
            first, last, name = bystanders.FIRST, bystanders.LAST, "set aside with bystanders"
        generator = random.Random(f"{SEED}/{self.kind}/{name}")
        size = last - first + 1
        aside = size // 2 + generator.randint(0, size % 2)
        return self.number in generator.sample(range(first, last + 1), aside)


@dataclass
class Recording:
    """One variant's recording while it is made."""

    variant: Variant
    folder: Path
    parameters: Parameters
    start: datetime
    end: datetime
    phases: list[numbers.Phase] = field(default_factory=list)
    actions: list[tuple[datetime, str]] = field(default_factory=list)
    recorders: tuple[recorders.Recorder, ...] = ()
    load_command: str = ""
    measured: numbers.Numbers | None = None
    shown: list[Shown] = field(default_factory=list)
    company: bystanders.Company | None = None

    def did(self, text: str) -> None:
        """Note what was done, now."""
        self.actions.append((now(), text))


class Ending(Protocol):
    """A program that may end by itself."""

    def poll(self) -> int | None:
        """The exit status; None while it runs."""


_Begun = tuple[Recording, recorders.Running]


def now() -> datetime:
    """The clock every tool here stamps with."""
    return datetime.now(UTC)


def play(
    stage: Stage, module: KindModule, variants: Iterable[Variant], out: Path, say: Callable[[str], None]
) -> list[Recording]:
    """Record variants of one kind, one after the other, under one load; one with bystanders is played alone.

    Raises:
        RigError: the load failed, or a fault could not be set.
    """
    kind = module.KIND
    if kind.database == "lab":
        return play_guest(stage, module, variants, out, say)
    with ExitStack() as stack:
        if not kind.is_uncached:
            stage.warm()
        if (prepare := getattr(module, "prepare", None)) is not None:
            stack.enter_context(prepare(stage))
        load_file = stage.file("load.txt")
        pending = list(variants)
        company = bystanders.Company(stage, pending[0].company(kind))
        seconds = _length_s(len(pending), kind.slack_s) + math.ceil(company.trial_s)
        load, command = start_load(stage, kind, load_file, seconds)
        stack.callback(stop, load, signal.SIGINT)
        if kind.is_uncached:
            stack.enter_context(stage.rig.uncached())
        time.sleep(WARM_UP_S)
        stack.callback(company.end)
        company.try_out()
        done: list[Recording] = []
        following: _Begun | None = _begin(stage, stack, module, out, pending.pop(0))
        recorders.settle()
        healthy_from = now()
        time.sleep(HEALTHY_S)
        while following is not None:
            recording, running = following
            recording.load_command, recording.company = command, company
            _hold(stage, module, recording, healthy_from, load)
            following = _begin(stage, stack, module, out, pending.pop(0)) if pending else None
            time.sleep(RECOVERY_S)
            # What comes now is this recording's last phase and the next one's first.
            healthy_from = now()
            time.sleep((GAP_S if following else END_S) - RECOVERY_S)
            running.end()
            recording.end = now()
            recording.phases.append(numbers.Phase("after", healthy_from, recording.end))
            recording.did("ended the recorders")
            say(f"{recording.variant.kind} {recording.variant.number}: recorded")
            done.append(recording)
        with suppress(subprocess.TimeoutExpired):
            # pgbench writes the end of its log when its time is over, not when it is interrupted.
            load.wait(LOAD_END_S + len(done) * kind.slack_s)
    for recording in done:
        finish(stage, kind, module, recording, load_file)
    return done


def play_guest(
    stage: Stage, module: KindModule, variants: Iterable[Variant], out: Path, say: Callable[[str], None]
) -> list[Recording]:
    """Record variants of a kind in the virtual machine of the stage, each with a load of its own.

    Raises:
        ToolError: the guest does not answer, or its load failed.
    """
    done = []
    for variant in variants:
        folder = out / f"{variant.kind}-{variant.number}"
        shutil.rmtree(folder, ignore_errors=True)
        recording = Recording(variant, folder, variant.parameters(module), now(), now())
        recording.load_command = " ".join(stage.guest.load_command)
        with stage.guest.play(HEALTHY_S + FAULT_S + END_S, folder) as load:
            recording.start = now()
            recording.did("started the recorders and the load")
            time.sleep(HEALTHY_S)
            _hold(stage, module, recording, recording.start, load)
            after_from = now()
            time.sleep(RECOVERY_S)
        recording.end = now()
        recording.phases.append(numbers.Phase("after", after_from, recording.end))
        say(f"{variant.kind} {variant.number}: recorded")
        disks = facts(stage.guest)["disks"]
        roles = {role: names["in_guest"] for role, names in disks.items()}
        recording.measured = numbers.read(folder, recording.phases, roles)
        recording.shown = [felt(recording.measured), *module.shows(recording.measured, recording.parameters)]
        done.append(recording)
    return done


def _length_s(count: int, slack_s: float) -> int:
    """How long so many variants take, and a second more."""
    between = count * (FAULT_S + slack_s) + (count - 1) * GAP_S
    return math.ceil(WARM_UP_S + HEALTHY_S + between + END_S + 3.0)


def start_load(stage: Stage, kind: Kind, output: Path, seconds: int) -> tuple[subprocess.Popen[bytes], str]:
    """Start the load of a kind for so long; the program and its command."""
    for old in stage.work.glob("pgbench_log.*"):
        old.unlink()
    if kind.database == "mysql":
        command = stage.mysql.load(kind.load.clients, kind.load.rate, kind.load.script, seconds)
    else:
        load = kind.load
        command = [
            "pgbench",
            f"--client={load.clients}",
            "--jobs=1",
            "--no-vacuum",
            f"--time={seconds}",
            "--progress=1",
        ]
        command += ["--progress-timestamp", "--log", "--aggregate-interval=1"]
        command += [f"--log-prefix={stage.file('pgbench_log')}"]
        if load.rate is not None:
            # What is more than two seconds late is skipped, as an application's time-out would have it, so that the
            # backlog ends when the fault ends.
            command += [f"--rate={load.rate}", "--latency-limit=2000"]
        if load.script:
            script = stage.file("load.sql")
            script.write_text(load.script)
            command += [f"--file={script}"]
        command += load.arguments
        if load.through_link:
            command = stage.link.command([*command, f"--host={stage.link.host}", f"--port={stage.link.port}"])
        command = stage.clients.enter(command)
    with output.open("wb") as file:
        process = start(command, file)
    words = " ".join(part for part in command[5:] if not part.startswith("--log-prefix"))
    return process, words.replace(f"{stage.work}/", "")


def _begin(stage: Stage, stack: ExitStack, module: KindModule, out: Path, variant: Variant) -> _Begun:
    """Start the recorders of a variant; they end with the stack, if not before."""
    kind = module.KIND
    folder = out / f"{variant.kind}-{variant.number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    recording = Recording(variant, folder, variant.parameters(module), now(), now())
    chosen = list(recorders.GUEST)
    chosen += stage.mysql.recorders() if kind.database == "mysql" else [recorders.postgresql(stage.server.address())]
    if "network" in kind.needs:
        chosen += stage.link.recorders()
    if stage.with_script and kind.database == "postgresql":
        chosen.append(recorders.script(stage.server.address()))
    running = recorders.Running(folder, chosen, stage.recorder_prefix)
    stack.callback(running.end)
    recording.recorders = running.recorders
    recording.did("started the recorders; the load was running")
    return recording, running


def _hold(stage: Stage, module: KindModule, recording: Recording, healthy_from: datetime, load: Ending) -> None:
    """The fault of one variant, from its beginning to its end."""
    began = now()
    recording.phases.append(numbers.Phase("healthy", healthy_from, began))
    company = recording.company
    with module.fault(stage, recording.parameters) as did:
        recording.actions.append((began, did))
        if company is not None:
            company.join_fault()
        time.sleep(max(0.0, FAULT_S - (now() - began).total_seconds()))
        ended = now()
        if company is not None:
            company.note()
    recording.phases.append(numbers.Phase("fault", began, ended))
    recording.did("undid it")
    if load.poll() is not None and not module.KIND.ends_load:
        raise RigError(f"the load of {recording.variant.kind} ended early with status {load.poll()}")


def finish(stage: Stage, kind: Kind, module: KindModule, recording: Recording, load_file: Path) -> None:
    """Give a recording its part of what ran throughout, and look whether it shows its fault."""
    if kind.database == "mysql":
        _slice(load_file, recording, "sysbench.stamped", _stamp_first)
        _unstamp(recording)
    else:
        _slice(load_file, recording, "pgbench.txt", _stamp_pgbench)
        for aggregate in stage.work.glob("pgbench_log.*"):
            _slice(aggregate, recording, "pgbench_aggregate.log", _stamp_epoch)
        _slice(stage.server.log, recording, "postgresql.log", _stamp_log)
    roles = {disk.role: disk.device for disk in stage.rig.disks.values()}
    recording.measured = numbers.read(recording.folder, recording.phases, roles)
    (recording.folder / "sysbench.stamped").unlink(missing_ok=True)
    feeling = unfelt if kind.truth is None else felt
    recording.shown = [feeling(recording.measured), *module.shows(recording.measured, recording.parameters)]
    if recording.company is not None:
        recording.shown += recording.company.shows(load_file, recording.measured)


def _slice(source: Path, recording: Recording, name: str, stamped: Callable[[str], datetime | None]) -> None:
    """The lines of a recording's time; one without a time belongs to the line before it."""
    lines = []
    inside = True  # what is printed before the first time is the program's greeting
    for line in source.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
        at = stamped(line)
        if at is not None:
            inside = recording.start <= at <= recording.end
        if inside:
            lines.append(line)
    (recording.folder / name).write_text("".join(lines))


def _unstamp(recording: Recording) -> None:
    """Sysbench's own lines, without the time that was put before each; the file's own time says when the last was."""
    stamped = (recording.folder / "sysbench.stamped").read_text().splitlines(keepends=True)
    path = recording.folder / "sysbench.txt"
    path.write_text("".join(line.partition(" ")[2] for line in stamped))
    last = [at.timestamp() for line in stamped if (at := _stamp_first(line)) is not None][-1:]
    if last:
        os.utime(path, (last[0], last[0]))


def _stamp_pgbench(line: str) -> datetime | None:
    found = _PROGRESS.match(line)
    return datetime.fromtimestamp(float(found[1]), UTC) if found else None


def _stamp_epoch(line: str) -> datetime | None:
    return datetime.fromtimestamp(int(line.split(maxsplit=1)[0]), UTC)


def _stamp_log(line: str) -> datetime | None:
    found = _LOG_TIME.match(line)
    return datetime.fromisoformat(found[1]).replace(tzinfo=UTC) if found else None


def _stamp_first(line: str) -> datetime | None:
    try:
        return datetime.fromisoformat(line.split(maxsplit=1)[0]).astimezone(UTC)
    except (ValueError, IndexError):
        return None
