"""A load tool that prints what it does: run to its end, its lines read as they come, ended when enough is seen."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from leadline.core.model.errors import LeadlineError
from leadline.core.model.result import Tick, Watch
from leadline.core.system.opened import Targets
from leadline.core.system.processes import POLL_S, running

LATE_S = 30.0  # Judgement: how long a tool may take to end and write its summary after its time is over


@dataclass(frozen=True, slots=True)
class ToolCommand:
    """A command of a tool.

    Attributes:
        words: the command.
        output: where it talks to.
        stop_signal: what ends it with its summary.
        variables: added to its environment.
        targets: what it works on: it runs in their folder and inherits them; without, where ``output`` is.
        descriptors: what stays open in it besides.
        folders: where it writes files of its own besides its targets and the folder of ``output``.
    """

    words: Sequence[str]
    output: Path
    stop_signal: int = signal.SIGINT
    variables: dict[str, str] = field(default_factory=dict, repr=False)
    targets: Targets | None = field(default=None, repr=False)
    descriptors: tuple[int, ...] = ()
    folders: tuple[Path, ...] = ()


def follow(
    load: ToolCommand,
    seconds: float,
    tick_of: Callable[[str], Tick | None],
    watch: Watch,
    failed: Callable[[], LeadlineError],
) -> tuple[list[Tick], bool]:
    """Run a load to its end, or until ``watch`` has seen enough; its seconds, and whether it was ended early.

    Raises:
        ToolError: it is not installed; what ``failed`` says, when it fails or does not end in time.
    """
    ticks: list[Tick] = []
    ended_early = False
    with started(load) as (process, look):
        lines = _Lines(load.output)
        deadline = time.monotonic() + seconds + LATE_S
        while process.poll() is None:
            time.sleep(POLL_S)
            look()
            for tick in filter(None, map(tick_of, lines.added())):
                ticks.append(tick)
                if not watch(tick) and not ended_early:
                    ended_early = True
                    process.send_signal(load.stop_signal)
            if time.monotonic() > deadline:
                raise failed()
        ticks += filter(None, map(tick_of, lines.added()))
        if process.returncode and not ended_early:
            raise failed()
    return ticks, ended_early


@contextmanager
def started(load: ToolCommand) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], None]]]:
    """A load as a process, and what looks at the files it has open.

    Raises:
        ToolError: it is not installed; it replaced what it was to work on.
    """
    targets = load.targets
    folder = load.output.parent if targets is None else targets.folder
    descriptors = (*load.descriptors, *(() if targets is None else targets.descriptors))
    with running(
        load.words, output=load.output, folder=folder, variables=load.variables, descriptors=descriptors
    ) as process:
        yield process, _nothing if targets is None else targets.guard(process.pid, load.output.parent, *load.folders)


def _nothing() -> None:
    """Look at nothing."""


class _Lines:
    """The whole lines that were appended to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0

    def added(self) -> Iterator[str]:
        """Those since the last call."""
        with self._path.open("rb") as stream:
            stream.seek(self._position)
            whole, end, _ = stream.read().rpartition(b"\n")
        self._position += len(whole) + len(end)
        yield from whole.decode(errors="replace").splitlines()
