"""Bystanders: what else is at work on the machine of an incident, and has no part in it.

A real machine is never alone with its fault. A bystander works on disks the database does not use, or takes a little of
a processor; its rate is bounded, by what its disk can do or by its own arguments. Before the recorders start, the load
runs for some seconds alone and then with the bystanders: a recording in which users felt them is thrown away.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from incidents import numbers
from incidents.contract import FELT_RATE, UNFELT_LATENCY, UNFELT_MS, Kind, Shown, Stage
from incidents.processes import RigError, run, start, stop
from incidents.rig import Rig

FIRST = 4  # variants before it have no bystander
LAST = 6
ROLES = ("other", "second")
TRIAL_S = 8.0
SETTLE_S = 1.5
START_S = 2.0  # what starting one takes at most, and ending it
NICE = ("nice", "-n", "10")
COPIED, COPIED_MIB = "archive", 128
_BUSY_PCT, _LOW_IOPS = 60.0, 1.0
_WORDS = {"read": "reads", "write": "writes"}


@dataclass(frozen=True)
class Bystander:
    """One bystander as the seed draws it.

    ``command``: as it is started, with {folder} for the folder of its disk. ``printed``: as a person would type it.
    ``times_us``: what a read and a write of its disk take. ``begins``: ``before`` the recording, or with the ``fault``.
    """

    kind: str
    program: str
    rate: str
    command: tuple[str, ...]
    printed: str
    role: str = ""
    times_us: tuple[int, int] = (0, 0)
    begins: str = "before"


def is_wanted(kind: Kind, number: int) -> bool:
    """Whether a variant of that number has bystanders; in a virtual machine none has."""
    return number >= FIRST and kind.database != "lab"


def draw(generator: random.Random, kind: Kind) -> tuple[Bystander, ...]:
    """One bystander or two of different sorts, none of which is a program of the fault itself."""
    sorts = choices(kind)
    chosen = generator.sample(sorted(sorts), generator.choice((1, 2)))
    return tuple(generator.choice(sorts[sort])(generator) for sort in chosen)


def choices(kind: Kind) -> dict[str, list[Callable[[random.Random], Bystander]]]:
    """What may stand by in a kind of incident: by sort, the programs there are for it."""
    disk = [draws for program, draws in _ON_DISK.items() if program not in kind.programs]
    sorts: dict[str, list[Callable[[random.Random], Bystander]]] = {"disk": disk, "second-database": [_second_database]}
    if not kind.takes_cpu and "stress-ng" not in kind.programs:
        sorts["computing"] = [_computing]
    return sorts


def _begins(generator: random.Random) -> str:
    return generator.choice(("before", "fault"))


def _fio(generator: random.Random) -> Bystander:
    way, depth, ms = generator.choice(("read", "write")), generator.choice((1, 2, 4)), generator.randrange(5, 14)
    words = f"fio --name=report --rw=rand{way} --bs=64k --size=128m --direct=1 --ioengine=libaio --iodepth={depth}"
    words += " --thread --time_based --runtime=600"
    rate = f"{_WORDS[way]} 64 KiB at random, {depth} at a time, {ms} ms each"
    command = (*words.split(), "--directory={folder}")
    return Bystander("busy-disk", "fio", rate, command, words, "other", (ms * 1000, ms * 1000), _begins(generator))


def _dd(generator: random.Random) -> Bystander:
    way, kib, ms = generator.choice(("read", "write")), generator.choice((64, 128, 256)), generator.randrange(5, 14)
    ends = "if=archive of=/dev/null iflag=direct" if way == "read" else "if=/dev/zero of=archive oflag=direct"
    words = f"dd {ends} bs={kib}k count={(COPIED_MIB << 10) // kib} conv=notrunc status=none"
    command = ("sh", "-c", f'cd "$0" && while :; do {words}; done', "{folder}")
    rate = f"{_WORDS[way]} {kib} KiB at a time, {ms} ms each"
    return Bystander("busy-disk", "dd", rate, command, words, "other", (ms * 1000, ms * 1000), _begins(generator))


def _copying(generator: random.Random) -> Bystander:
    ms, pause_s = generator.randrange(5, 12), generator.choice((1, 2))
    # A file that has left the page cache is read from the disk when it is copied again.
    forget = "dd if=archive iflag=nocache count=0 status=none"
    loop = f"while :; do {forget}; cp archive copy; sync copy; sleep {pause_s}; done"
    rate = f"copies a file of {COPIED_MIB} MiB again and again, {ms} ms a request"
    command = ("sh", "-c", f'cd "$0" && {loop}', "{folder}")
    words = "cp archive copy"
    return Bystander("copying", "cp", rate, command, words, "other", (ms * 1000, ms * 1000), _begins(generator))


def _computing(generator: random.Random) -> Bystander:
    pct = generator.randrange(5, 16)
    words = f"stress-ng --cpu 1 --cpu-load {pct} --cpu-method int64"
    return Bystander(
        "computing", "stress-ng", f"{pct} % of one CPU", tuple(words.split()), words, begins=_begins(generator)
    )


def _second_database(generator: random.Random) -> Bystander:
    rate = generator.randrange(2, 8)
    words = f"pgbench --client=1 --no-vacuum --rate={rate} --time=600"
    command = (*words.split(), "{address}")
    return Bystander(
        "second-database", "pgbench", f"{rate} transactions/s", command, words, "second", begins=_begins(generator)
    )


_ON_DISK: dict[str, Callable[[random.Random], Bystander]] = {"fio": _fio, "dd": _dd, "cp": _copying}


def prepare(rig: Rig) -> None:
    """Write what bystanders read and copy, while nothing is measured."""
    path = rig.disks["other"].mount / COPIED
    with path.open("wb") as file:
        for _ in range(COPIED_MIB):
            file.write(os.urandom(1 << 20))
    run("sync", path)


@dataclass
class _Standing:
    """A bystander at work."""

    drawn: Bystander
    since: datetime
    process: subprocess.Popen[bytes]
    until: datetime | None = None


@dataclass
class Company:
    """The bystanders of one recording, from the trial before it until it has ended; of most recordings nobody."""

    stage: Stage
    drawn: tuple[Bystander, ...] = ()
    standing: list[_Standing] = field(default_factory=list)
    trial: tuple[numbers.Phase, ...] = ()
    pids: dict[str, str] = field(default_factory=dict)  # of the second server and its load

    @property
    def trial_s(self) -> float:
        """How much longer the load must run for them."""
        return 2 * TRIAL_S + SETTLE_S + len(self.drawn) * START_S if self.drawn else 0.0

    def try_out(self) -> None:
        """Let the load run alone, then with all bystanders; those that begin with the fault end again."""
        if not self.drawn:
            return
        moments = [_now()]
        time.sleep(TRIAL_S)
        moments.append(_now())
        self._begin(self.drawn)
        time.sleep(SETTLE_S)
        moments.append(_now())
        time.sleep(TRIAL_S)
        moments.append(_now())
        self.trial = (numbers.Phase("healthy", *moments[:2]), numbers.Phase("fault", *moments[2:]))
        for one in [one for one in self.standing if one.drawn.begins == "fault"]:
            self._end(one)
            self.standing.remove(one)

    def join_fault(self) -> None:
        """Start those that begin with the fault."""
        self._begin(one for one in self.drawn if one.begins == "fault")

    def note(self) -> None:
        """Look who is still there, and by which numbers the system knows the second server's processes.

        Raises:
            RigError: one of them has ended by itself.
        """
        for one in self.standing:
            if one.process.poll() is not None:
                raise RigError(f"the bystander {one.drawn.program} ended early with status {one.process.poll()}")
            if one.drawn.role == "second":
                self.pids[str(one.process.pid)] = one.drawn.program
                self.pids |= dict.fromkeys(self.stage.second.pids(), "postgres")

    def end(self) -> None:
        """End all of them; their disk answers at its healthy pace again."""
        for one in self.standing:
            if one.until is None:
                self._end(one)

    def facts(self) -> list[dict[str, str]]:
        """Each bystander as the truth names it."""
        facts = []
        for one in self.standing:
            drawn = one.drawn
            named = {"kind": drawn.kind, "program": drawn.program}
            if drawn.role:
                named["entity"] = self.stage.rig.device(drawn.role)
            times = {"from": _stamp(one.since), "to": _stamp(one.until or _now())}
            facts.append(named | {"rate": drawn.rate, "command": drawn.printed, "begins": drawn.begins} | times)
        return facts

    def entities(self) -> list[dict[str, str]]:
        """Their disks, programs and databases; of programs that the load runs too, each process by its number."""
        entities = []
        for drawn in dict.fromkeys(one.drawn for one in self.standing):
            if drawn.role:
                entities.append({"kind": "block-device", "name": self.stage.rig.device(drawn.role)})
            if drawn.role == "second":
                entities.append({"kind": "database", "name": self.stage.second.database})
            else:
                entities.append({"kind": "process", "name": drawn.program})
        return entities + [{"kind": "process", "name": f"{program}[{pid}]"} for pid, program in self.pids.items()]

    def shows(self, load_file: Path, measured: numbers.Numbers) -> list[Shown]:
        """Whether users were fine with the bystanders before the fault, and whether their disk was at work in it."""
        if not self.drawn:
            return []
        shown = [_harmless(_trial_numbers(load_file, self.trial))]
        for drawn in self.drawn:
            if drawn.kind == "busy-disk":
                busy = measured.inside.get("other_util_pct", 0.0)
                shown.append(Shown(f"{drawn.program} keeps its disk busy for {busy:.3g} %", busy >= _BUSY_PCT))
            elif drawn.role:
                rates = [measured.mean_inside.get(f"{drawn.role}_{way}s_per_s", 0.0) for way in ("read", "write")]
                shown.append(Shown(f"{drawn.program} uses its disk, {sum(rates):.3g}/s", sum(rates) >= _LOW_IOPS))
        return shown

    def _begin(self, some: Iterable[Bystander]) -> None:
        for drawn in some:
            since = _now()
            names = {}
            if drawn.role:
                disk = self.stage.rig.disks[drawn.role]
                names["folder"] = str(disk.mount)
                if drawn.role == "second":
                    self.stage.second.start()
                    names["address"] = self.stage.second.address()
                else:
                    read_us, write_us = drawn.times_us
                    self.stage.rig.slow(drawn.role, read_us=read_us, write_us=write_us)
            words = [part.format(**names) if part.startswith(("{", "--directory")) else part for part in drawn.command]
            self.standing.append(_Standing(drawn, since, start([*NICE, *words])))

    def _end(self, one: _Standing) -> None:
        stop(one.process, signal.SIGTERM, 5.0)
        one.until = _now()
        if one.drawn.role == "second":
            self.stage.second.stop()
        elif one.drawn.role:
            self.stage.rig.slow(one.drawn.role)


def _trial_numbers(load_file: Path, trial: tuple[numbers.Phase, ...]) -> numbers.Numbers:
    """The load's own numbers of the trial."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("pgbench.txt", "sysbench.stamped"):  # of each only its own lines are read
            shutil.copyfile(load_file, Path(folder) / name)
        return numbers.read(Path(folder), trial, {})


def _harmless(tried: numbers.Numbers) -> Shown:
    """Users were fine with the bystanders: about as many transactions, none of them much slower."""
    (rate, ms), (rate_before, ms_before) = (
        (means.get("transactions_per_s", 0.0), means.get("latency_ms", 0.0))
        for means in (tried.mean_inside, tried.mean_outside)
    )
    is_slower = ms > max(UNFELT_LATENCY * ms_before, ms_before + UNFELT_MS)
    text = f"with the bystanders {rate_before:.4g} -> {rate:.4g} transactions/s, {ms_before:.4g} -> {ms:.4g} ms"
    return Shown(text, rate_before > 0 and rate > FELT_RATE * rate_before and not is_slower)


def _now() -> datetime:
    return datetime.now(UTC)


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
