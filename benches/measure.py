"""Run a piece of Python in a process of its own and say what it cost."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

_FRAME = """
import json, resource, sys, time
{setup}
before = resource.getrusage(resource.RUSAGE_SELF)
wall = time.perf_counter()
{body}
wall = time.perf_counter() - wall
after = resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime + after.ru_stime
own = cpu - before.ru_utime - before.ru_stime
# Not ru_maxrss: across fork and exec it keeps the parent's peak.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps(dict(wall_s=wall, cpu_s=own, process_cpu_s=cpu, peak_mib=peak / 1024)))
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a piece of work took: its own wall and CPU time, the whole process's CPU time and peak memory."""

    wall_s: float
    cpu_s: float
    process_cpu_s: float
    peak_mib: float


def cost_of(setup: str, body: str, *, repeat: int = 3) -> Cost:
    """The fastest of several fresh processes; memory is the highest of them.

    Args:
        setup: imports and preparation, not timed.
        body: what is timed.
        repeat: how many processes.
    """
    runs = []
    for _ in range(repeat):
        code = _FRAME.format(setup=setup, body=body)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        runs.append(Cost(**json.loads(done.stdout.splitlines()[-1])))
    best = min(runs, key=lambda run: run.wall_s)
    cpu = min(run.process_cpu_s for run in runs)
    return Cost(best.wall_s, min(run.cpu_s for run in runs), cpu, max(run.peak_mib for run in runs))


def whole_process(body: str, *, repeat: int = 3) -> Cost:
    """The same with everything timed, start-up and imports included."""
    return cost_of("", body, repeat=repeat)
