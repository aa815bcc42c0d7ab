"""Steps of a lab: what is done at a time of a load, and the phases of the load that they mark."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.core.model.errors import LeadlineError, ToolError
from leadline.core.model.run import Round
from leadline.lab.counters import Counters, Moved, counted, counters, moved
from leadline.lab.machine import Machine
from leadline.lab.snapshots import Snapshots
from leadline.lab.specification import BEFORE, Lab, LabStep

SETTLE_S = 2.0  # Judgement: a command under software emulation is at work by then
AT_WORK = 20  # Judgement: operations of a guest that is not only looking at its disk
PATIENCE_S = 30.0
STOPPED = (0, 143)  # exit statuses of a command that ended, or that was ended
# BusyBox's timeout ends one process; this ends a command with all it started.
_WITHIN = (
    'setsid sh -c "$0" & p=$!; (sleep $1; kill -- -$p) >/dev/null 2>&1 & k=$!; wait $p; s=$?; kill $k 2>/dev/null; '
    "exit $s"
)


@dataclass(frozen=True, slots=True)
class LoadPhase:
    """A time between two steps, with the counters of all loaded guests at both ends."""

    name: str
    first: Mapping[str, Counters]
    last: Mapping[str, Counters]


@dataclass(frozen=True, slots=True)
class Done:
    """A step that was taken: how long it took, and the bytes a consolidation copied."""

    step: LabStep
    began_s: float
    seconds: float
    copied_bytes: int = 0

    @property
    def sentence(self) -> str:
        """For people."""
        duration_text = f"{self.step.guest}: {self.step.do} at {self.began_s:.1f} s took {self.seconds:.1f} s"
        return (
            f"{duration_text}, {self.copied_bytes / 2**20:.1f} MiB copied"
            if self.step.do == "consolidate"
            else duration_text
        )


class Timeline:
    """The steps of the guests that are loaded together, taken at their times while the phases are counted."""

    def __init__(self, lab: Lab, group: Sequence[Machine]) -> None:
        self._machines = {machine.guest.name: machine for machine in group}
        group_steps = [step for step in lab.steps if step.guest in self._machines]
        self.steps = sorted(group_steps, key=lambda step: step.at_s)
        self.phases: list[LoadPhase] = []
        self.done: list[Done] = []
        self.errors: list[str] = []
        self._begun = {name: threading.Event() for name in self._machines}
        self._turning = threading.Lock()
        self._open: tuple[str, dict[str, Counters]] | None = None
        self._chains: dict[tuple[str, str], Snapshots] = {}
        self._began_s = 0.0
        told_to = {step.guest for step in self.steps if step.do == "command"}
        self._places = {guest: places(self._machines[guest]) for guest in told_to}

    @property
    def end_s(self) -> float:
        """When the first load ends."""
        return min(machine.guest.load.seconds for machine in self._machines.values() if machine.guest.load is not None)

    def begun(self, guest: str) -> None:
        """A guest's load has begun, or never will."""
        self._begun[guest].set()

    def take(self) -> None:
        """All steps, each at its time; returns when every one is over and the disks are as they were."""
        for event in self._begun.values():
            event.wait()
        self._began_s = time.monotonic()
        if self.steps[0].at_s > 0:
            self._wait_until(min(SETTLE_S, self.steps[0].at_s / 2.0))
            self._wait_for_work(self.steps[0].at_s / 2.0)
            self._turn(BEFORE)
        running: dict[LabStep, threading.Thread] = {}
        for at_s, step in self._schedule():
            self._wait_until(at_s)
            if step not in running:
                if step.phase is not None:
                    # The phase of a command begins when it is at work, and until then there is none.
                    self._turn(step.phase if step.do != "command" or self._is(step.phase) else None)
                running[step] = threading.Thread(target=self._guarded, args=(step,), daemon=True)
                running[step].start()
            elif step.phase is not None and running[step].is_alive():
                self._turn(step.phase)
        self._wait_until(self.end_s)
        self._turn(None)
        for thread in running.values():
            thread.join()
        for chain in self._chains.values():
            try:
                chain.restore()
            except LeadlineError as error:
                self.errors.append(str(error))

    def _schedule(self) -> list[tuple[float, LabStep]]:
        """When each step begins, and again when a command is at work."""
        at_work = [(step.at_s + SETTLE_S, step) for step in self.steps if step.do == "command"]
        return sorted([(step.at_s, step) for step in self.steps] + at_work, key=lambda moment: moment[0])

    def _is(self, phase: str) -> bool:
        with self._turning:
            return self._open is not None and self._open[0] == phase

    def _wait_until(self, seconds: float) -> None:
        time.sleep(max(self._began_s + seconds - time.monotonic(), 0.0))

    def _wait_for_work(self, at_most_s: float) -> None:
        """Until every guest works on its disks: programs are long in starting under software emulation."""

        def done(machine: Machine) -> int:
            return sum(counters["rd_operations"] + counters["wr_operations"] for counters in machine.blocks().values())

        try:
            before = {name: done(machine) for name, machine in self._machines.items()}
            while time.monotonic() < self._began_s + at_most_s:
                if all(done(machine) - before[name] >= AT_WORK for name, machine in self._machines.items()):
                    return
                time.sleep(0.2)
        except LeadlineError as error:
            self.errors.append(str(error))

    def _turn(self, name: str | None, only_from: str | None = None) -> None:
        """End the phase that is, if it is ``only_from`` where that is given, and begin another."""
        with self._turning:
            current = None if self._open is None else self._open[0]
            if current == name or (only_from is not None and current != only_from):
                return
            try:
                now = {guest: counters(machine) for guest, machine in self._machines.items()}
            except (LeadlineError, OSError) as error:
                self.errors.append(str(error))
                return
            if self._open is not None:
                self.phases.append(LoadPhase(*self._open, now))
            self._open = None if name is None else (name, now)

    def _guarded(self, step: LabStep) -> None:
        began_s = time.monotonic()
        try:
            copied = self._do(step)
            taken = Done(step, began_s - self._began_s, time.monotonic() - began_s, copied)
            self.done.append(taken)
            if step.at_s + taken.seconds > self.end_s + PATIENCE_S:
                self.errors.append(f"{taken.sentence}: longer than the load; make its seconds more")
        except LeadlineError as error:
            self.errors.append(str(error))
        if step.do != "snapshot" and step.phase is not None:
            self._turn(step.then, only_from=step.phase)

    def _do(self, step: LabStep) -> int:
        machine = self._machines[step.guest]
        if step.do == "command":
            self._tell(machine, step)
            return 0
        disk = next(disk for disk in machine.guest.disks if disk.name == step.disk)
        chain = self._chains.setdefault((step.guest, disk.name), Snapshots(machine, disk))
        if step.do == "snapshot":
            for _ in range(step.count or 1):
                chain.take()
            return 0
        return chain.consolidate(step.speed or 0)

    def _tell(self, machine: Machine, step: LabStep) -> None:
        for_s = step.for_s or 0.0
        words = within(for_s, f"{self._places[step.guest]}; {step.command}")
        answer = machine.channel.run(words, timeout_s=for_s + PATIENCE_S)
        if answer.status not in STOPPED:
            error_lines = answer.err.decode(errors="replace").strip().splitlines()
            raise ToolError(
                f"guest {step.guest}: {step.command}",
                found=error_lines[-1] if error_lines else f"exit status {answer.status}",
                expected=f"a command that works for {for_s:g} s",
                advice="Try it with lab run --wait and lab console.",
            )

    def rounds(self, machine: Machine) -> tuple[Round, ...]:
        """A round per phase of a guest's load."""
        name = machine.guest.name
        return tuple(counted(machine, phase.name, phase.first[name], phase.last[name]) for phase in self.phases)

    def moved(self, guest: str) -> list[Moved]:
        """What a guest and its hypervisor moved in each phase."""
        return [moved(guest, phase.name, phase.first[guest], phase.last[guest]) for phase in self.phases]

    def sentences(self, guest: str) -> list[str]:
        """What was done for a guest and what was moved, for its run."""
        step_sentences = [done.sentence for done in self.done if done.step.guest == guest]
        return step_sentences + [one.sentence for one in self.moved(guest)]


def places(machine: Machine) -> str:
    """Shell words that give commands in a guest the places of its disks, as ``$data`` is of the disk of that name."""
    paths = {disk.name: machine.place_of(disk) for disk in machine.guest.disks}
    return "export " + " ".join(f"{name.replace('-', '_')}={shlex.quote(place)}" for name, place in paths.items())


def within(seconds: float, script: str) -> list[str]:
    """A shell script with all it starts, ended after some seconds."""
    return ["sh", "-c", _WITHIN, script, f"{seconds:.0f}"]
