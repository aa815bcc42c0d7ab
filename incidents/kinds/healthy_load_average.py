"""A high load average of tasks that give way at once: nobody waits for them."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from incidents.contract import Kind, Parameters, Shown, Stage, above
from incidents.numbers import Numbers
from incidents.processes import start, stop

KIND = Kind(
    summary="Nothing is wrong; {tasks} tasks of the idle class use what the database leaves.",
    truth=None,
    takes_cpu=True,
    programs=("stress-ng",),
    usual=("latency_ms", "cpu_busy_pct", "run_queue", "load_average"),
)


def draw(generator: random.Random) -> Parameters:
    """Many for each processor."""
    return {"tasks": generator.randrange(8, 20)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Busy loops under SCHED_IDLE."""
    command = ["chrt", "--idle", "0", "stress-ng", "--cpu", str(parameters["tasks"]), "--cpu-method", "int64"]
    with ExitStack() as stack:
        loops = start(command)
        stack.callback(stop, loops, signal.SIGTERM, 5.0)
        # Linux shares the processors between sessions first (autogroup), and a session has a class of its own.
        group = Path(f"/proc/{loops.pid}/autogroup")
        if group.exists():
            group.write_text("19")
        yield f"started {parameters['tasks']} busy loops of the idle class"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The processors look full and the run queue long."""
    return [above(numbers, "cpu_busy_pct", 95.0), above(numbers, "run_queue", parameters["tasks"] * 0.7)]
