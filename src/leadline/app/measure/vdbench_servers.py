"""Runs of vdbench on machines reached over SSH: parameters sent, started together, followed, reports copied back."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.app.measure.fio_servers import LET_GO_S, Fleet, ServersStep
from leadline.app.measure.remote_hosts import RemoteMachine
from leadline.app.measure.remote_scripts import REPORT, STEP
from leadline.benchmarks import vdbench
from leadline.core.model.errors import LeadlineError
from leadline.core.system.following import LATE_S
from leadline.core.system.ssh import answer, command_of, reason
from leadline.formats.vdbench.flatfile import second_of

READY_S = 20.0
START_S = 30.0  # Judgement: how long the Javas of vdbench take to start on a busy machine
END_S = 5.0
END_OF_FILE, GO, LOADED, ENDED = ".\n", "go\n", "loaded", "ended "


class VdbenchFleet(Fleet):
    """The machines by their number, loaded by vdbench; every one is reached over SSH."""

    def step(self, label: str, jobs: Mapping[int, str], seconds: float) -> ServersStep:
        """A run on each of some machines, started together; Ctrl-C ends it and is told in what comes back."""
        loads = {index: _RemoteRun(self.machines[index], self._base(label, index), label) for index in jobs}
        interrupted = late = False
        for index, text in jobs.items():
            parameters = self._base(label, index).with_suffix(".vdbench")
            parameters.write_text(text, encoding="ascii")
            words = ("-f", parameters.name, "-o", parameters.stem)
            self.commands.append((str(self.machines[index].checked.vdbench), *words))
        try:
            work = _together([(load, jobs[index]) for index, load in loads.items()])
            self._background.call(work, seconds + START_S + LATE_S)
        except TimeoutError:
            late = True
        except KeyboardInterrupt:
            interrupted = True
        finally:
            with contextlib.suppress(TimeoutError):
                self._background.call(_end_all(list(loads.values())), LET_GO_S)
        done = ServersStep(interrupted=interrupted)
        for index, load in loads.items():
            done.logs[index] = [load.talk] if load.talk.exists() else []
            if load.started_s is not None:
                done.started_s[index] = load.started_s
            why = "did not end in time" if late and load.status is None else load.why_failed()
            if why is None:
                done.reports[index] = load.base
            else:
                done.failed[index] = f"{label}: {why}; expected a whole run. Look at that machine, its target and Java."
        return done


@dataclass(slots=True)
class _RemoteRun:
    """One run of vdbench on one machine; ``started_s`` is of this machine's monotonic clock."""

    machine: RemoteMachine
    base: Path
    label: str
    started_s: float | None = None
    status: int | None = None
    error: str = ""
    process: Any = None

    @property
    def talk(self) -> Path:
        """What vdbench prints, kept."""
        return self.base.with_suffix(".txt")

    @property
    def _places(self) -> tuple[str, str]:
        folder, _, target = self.machine.ready_at.partition(" ")
        return folder, target

    def why_failed(self) -> str | None:
        """Return why it is no whole run; None when it is."""
        if self.error:
            return self.error
        if self.status is None:
            return "the connection to it was lost"
        if self.status or not vdbench.is_complete(self.talk.read_text(encoding="utf-8", errors="replace")):
            return vdbench.failure(self.talk, self.base.name).found
        return None

    async def send(self, text: str) -> None:
        """Send its parameters, and wait until the machine has them.

        Raises:
            ToolError: the machine refuses.
        """
        import asyncssh  # noqa: PLC0415

        folder, target = self._places
        checked = self.machine.checked
        identity = checked.identity if checked.kind == "device" else ""
        command = command_of(STEP, folder, self.label, str(checked.vdbench), target, identity)
        self.process = await self.machine.connection.create_process(command, errors="replace", stderr=asyncssh.STDOUT)
        self.process.stdin.write(text + END_OF_FILE)
        line = str(await asyncio.wait_for(self.process.stdout.readline(), READY_S)).strip()
        if line != LOADED:
            self.error = line.removeprefix("failed ")[:160] or "it did not take its parameters"

    async def follow(self) -> None:
        """Let it begin, and keep what it prints, as it comes; its first interval says when its load began."""
        self.process.stdin.write(GO)
        with self.talk.open("w", encoding="utf-8") as stream:
            async for line in self.process.stdout:
                if line.startswith(ENDED):
                    self.status = int(line.removeprefix(ENDED))
                    return
                if self.started_s is None and second_of(line) is not None:
                    self.started_s = time.monotonic() - 1.0
                stream.write(line)
                stream.flush()

    async def fetch(self) -> None:
        """Copy its reports to a folder of the run."""
        self.base.mkdir(exist_ok=True)
        for name in vdbench.REPORTS:
            text = await answer(self.machine.connection, REPORT, self._places[0], self.label, name)
            if text:
                (self.base / name).write_text(text, encoding="utf-8")

    async def end(self) -> None:
        """End it, if it goes on."""
        if self.process is None:
            return
        with contextlib.suppress(Exception):
            self.process.stdin.write_eof()
            await asyncio.wait_for(self.process.wait(check=False), END_S)
        self.process.close()


async def _together(loads: list[tuple[_RemoteRun, str]]) -> None:
    """Send all their parameters, start those that have them at the same moment, copy back what they report."""
    await asyncio.gather(*(_kept_apart(load, load.send(text)) for load, text in loads))
    ready = [load for load, _ in loads if not load.error]
    await asyncio.gather(*(_kept_apart(load, load.follow()) for load in ready))
    whole = [load for load in ready if load.why_failed() is None]
    await asyncio.gather(*(_kept_apart(load, load.fetch()) for load in whole))


async def _kept_apart(load: _RemoteRun, work: Awaitable[None]) -> None:
    """Do one part of a run; an error of its connection ends this run alone."""
    import asyncssh  # noqa: PLC0415

    try:
        await work
    except LeadlineError as error:
        load.error = error.found
    except (OSError, TimeoutError, ValueError, asyncssh.Error) as error:
        load.error = reason(error)


async def _end_all(loads: list[_RemoteRun]) -> None:
    await asyncio.gather(*(load.end() for load in loads))
