"""All machines of a run: reached, made to do one step together, let go.

Every machine has a client process of its own, so that one that fails takes nothing with it; `fio_gate` makes them start
together.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from leadline.app.measure.background import Background
from leadline.app.measure.fio_gate import Dial, Gate, GateLane, dial_address
from leadline.app.measure.remote_hosts import MachineWish, RemoteMachine, open_machine
from leadline.benchmarks import fio
from leadline.core.model.errors import LeadlineError
from leadline.core.system.processes import POLL_S, running
from leadline.core.system.sockets import socket_folder
from leadline.core.system.ssh import Login, reason

LET_GO_S = 20.0
QUIT_S = 2.0  # fio's server looks for commands once a second


@dataclass(frozen=True, slots=True)
class ServersStep:
    """What one step left: reports and logs by machine, why those failed that did, when loads began (monotonic)."""

    reports: dict[int, Path] = field(default_factory=dict)
    logs: dict[int, list[Path]] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    started_s: dict[int, float] = field(default_factory=dict)
    interrupted: bool = False


class Fleet:
    """The machines by their number; as a context manager it lets them go, whatever happened."""

    def __init__(self, addresses: Sequence[str], folder: Path) -> None:
        self._addresses = list(addresses)
        self._folder = folder
        self._sockets = Path()
        self._folders = ExitStack()
        self._background = Background()
        self.machines: dict[int, RemoteMachine] = {}
        self.notes: dict[int, list[str]] = {}
        self.commands: list[tuple[str, ...]] = []

    def __enter__(self) -> Fleet:
        self._sockets = self._folders.enter_context(socket_folder())
        self._background.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._background.call(self._let_go(), LET_GO_S)
        except TimeoutError:
            for notes in self.notes.values():
                notes.append("it did not say whether what was made is removed")
        finally:
            self._background.__exit__()
            self._folders.close()

    def reach(self, wishes: Mapping[int, tuple[Login, MachineWish]]) -> dict[int, str]:
        """Log in to those reached over SSH, all at once; why those failed that did."""
        failed: dict[int, str] = {}

        async def one(index: int, login: Login, wish: MachineWish) -> None:
            try:
                machine = self.machines[index] = await open_machine(login, wish)
                self.notes[index] = machine.notes
            except LeadlineError as error:
                failed[index] = f"{error.found}; expected {error.expected}. {error.advice}"
            except Exception as error:
                failed[index] = reason(error)

        async def every() -> None:
            await asyncio.gather(*(one(index, *wish) for index, wish in wishes.items()))

        if wishes:
            self._background.call(every())
        return failed

    async def _let_go(self) -> None:
        async def one(machine: RemoteMachine) -> None:
            if not await machine.close():
                machine.notes.append("it did not say whether what was made is removed")

        await asyncio.gather(*(one(machine) for machine in self.machines.values()))

    def step(self, label: str, jobs: Mapping[int, str], seconds: float) -> ServersStep:
        """A job on each of some machines, started together; Ctrl-C ends it and is told in what comes back."""
        gate = Gate({index: self._dial(index) for index in jobs}, self._sockets)
        self._background.call(gate.open(), LET_GO_S)
        clients: dict[int, subprocess.Popen[bytes]] = {}
        interrupted = late = False
        with ExitStack() as stack:
            stack.callback(self._close, gate)
            try:
                for index, text in jobs.items():
                    words, talk = self._client(label, index, text)
                    clients[index] = stack.enter_context(running(words, output=talk, folder=self._sockets))
                late = not self._wait(clients, gate, time.monotonic() + seconds + fio.LATE_S)
            except KeyboardInterrupt:
                interrupted = True
            _end_all(clients)
        return self._left(label, gate, clients, interrupted=interrupted, late=late)

    def _dial(self, index: int) -> Dial:
        machine = self.machines.get(index)
        return dial_address(self._addresses[index]) if machine is None else machine.dial

    def _base(self, label: str, index: int) -> Path:
        return self._folder / f"host-{index + 1}-{label}"

    def _client(self, label: str, index: int, text: str) -> tuple[list[str], Path]:
        base = self._base(label, index)
        job, report, talk = (base.with_name(f"{base.name}.{end}") for end in ("fio", "json", "txt"))
        job.write_text(text, encoding="utf-8")
        # What would do the same without the relay, which is a socket in a folder that is gone afterwards.
        self.commands.append(("fio", "--output-format=json+", f"--client={self._addresses[index]}", job.name))
        # A path relative to the folder it runs in: it becomes part of the names of the logs.
        words = ["fio", "--output-format=json+", f"--output={report}", f"--client=sock:{Gate.name_of(index)}", str(job)]
        return words, talk

    def _wait(self, clients: Mapping[int, subprocess.Popen[bytes]], gate: Gate, deadline: float) -> bool:
        """Until all have ended; False when the time is over before."""
        ended: set[int] = set()
        while len(ended) < len(clients) and time.monotonic() < deadline:
            for index, client in clients.items():
                if index not in ended and client.poll() is not None:
                    ended.add(index)
                    self._background.call(gate.client_ended(index), LET_GO_S)
            time.sleep(POLL_S)
        return len(ended) == len(clients)

    def _close(self, gate: Gate) -> None:
        with contextlib.suppress(TimeoutError):
            self._background.call(gate.close(), LET_GO_S)

    def _left(
        self, label: str, gate: Gate, clients: Mapping[int, subprocess.Popen[bytes]], *, interrupted: bool, late: bool
    ) -> ServersStep:
        done = ServersStep(interrupted=interrupted)
        for index, client in clients.items():
            lane, base = gate.lanes[index], self._base(label, index)
            report, talk = base.with_name(f"{base.name}.json"), base.with_name(f"{base.name}.txt")
            if lane.started_s is not None:
                done.started_s[index] = lane.started_s
            done.logs[index] = self._logs(label, index)
            # One that was asked to end says so in its status.
            ended_well = client.returncode == 0 or interrupted
            if ended_well and lane.ended_s is not None and report.exists():
                done.reports[index] = report
                continue
            talk_lines = talk.read_text(errors="replace").strip().splitlines() if talk.exists() else []
            why = "did not end in time" if late else f"its client ended with {client.returncode}"
            lost = "the connection to it was lost" if lane.started_s is not None and lane.ended_s is None else None
            cause = lane.error or lost or (talk_lines[-1][:120] if talk_lines and not late else why)
            done.failed[index] = f"{label}: {cause}; expected a whole run. {self._advice(index, lane)}"
        return done

    def _advice(self, index: int, lane: GateLane) -> str:
        if lane.error is not None and index not in self.machines:
            return "Start `fio --server` there, and let its port through."
        return "Look at that machine, its target and its free space."

    def _logs(self, label: str, index: int) -> list[Path]:
        """Logs fio was sent, moved to the folder that is kept."""
        logs = []
        for log in sorted(self._sockets.glob(f"{label}_*.log.{Gate.name_of(index)}")):
            name = log.name.removesuffix(f".{Gate.name_of(index)}")
            logs.append(Path(shutil.move(log, self._folder / f"{Gate.name_of(index)}-{name}")))
        return logs


def _end_all(clients: Mapping[int, subprocess.Popen[bytes]]) -> None:
    """Ask all that still run to end, together; what has not after the servers have looked is killed by its owner."""
    asked = [client for client in clients.values() if client.poll() is None]
    for client in asked:
        client.send_signal(signal.SIGINT)
    deadline = time.monotonic() + QUIT_S
    while any(client.poll() is None for client in asked) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    for client in asked:
        if client.poll() is None:
            client.kill()
