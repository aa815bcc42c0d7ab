"""A load tool that prints what it does: run to its end, its lines read as they come, ended when enough is seen."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from leadline.core.benchmark import Tick, Watch
from leadline.core.errors import LeadlineError
from leadline.core.processes import POLL_S, running

LATE_S = 30.0  # Judgement: how long a tool may take to end and write its summary after its time is over


@dataclass(frozen=True, slots=True)
class Load:
    """A command of a tool: its words, where it talks to, the signal that ends it with its summary, its environment."""

    words: Sequence[str]
    output: Path
    stop_signal: int = signal.SIGINT
    variables: dict[str, str] = field(default_factory=dict, repr=False)


def follow(
    load: Load,
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
    with running(load.words, output=load.output, folder=load.output.parent, variables=load.variables) as process:
        lines = _Lines(load.output)
        deadline = time.monotonic() + seconds + LATE_S
        while process.poll() is None:
            time.sleep(POLL_S)
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
