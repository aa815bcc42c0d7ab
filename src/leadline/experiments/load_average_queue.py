"""Load average per core and the queue behind it.

Setup:
    32 cores and a load average of 80, of tasks that run or wait for a core.

Run:
    Arithmetic: 80 by 32; what waits is what does not run, 80 - 32, against the 32 that run.

Limits:
    Linux counts tasks in uninterruptible sleep (waiting for disks) into the load average as well: with slow storage not
    all of the queue waits for a core.
"""

from __future__ import annotations

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated

META = ExperimentMeta(
    claim="a load average of 80 on 32 cores is 2.5 tasks for each core, and 1.5 times as many wait as run",
    source="Cloud4Y, on diagnosing disk subsystems with iostat and fio",
    verified="read",
    kind="exact",
    by=("arithmetic",),
)
LOAD_AVERAGE, CORES = 80.0, 32.0  # tasks, cores. Source: as META


def reproduce(simulated: Simulated) -> Findings:
    """Per core, and waiting against running."""
    running = min(LOAD_AVERAGE, CORES)
    return Findings(
        (
            Published("load per core", 2.5, LOAD_AVERAGE / CORES),
            Published("load", 250.0, 100.0 * LOAD_AVERAGE / CORES, "pct"),
            Published("waiting against running", 1.5, (LOAD_AVERAGE - running) / running),
        )
    )
