"""The way of I/O from virtual machines through limits and queues to a device.

Model:
    A VM's workload issues requests to its disk. A request passes the disk's IOPS limit, which delays it; waits
    until fewer than ``adapter_depth`` requests of the VM are further on; waits at its host, in the order of the
    host's scheduler, until fewer than ``queue_depth`` of the host's requests are at the device; crosses the
    device's network, if it has one; and is served by one of the device's ``parallelism`` servers, or by a drive
    whose head moves and whose platter turns, and which, with a queue, takes first what it reaches first. A copy is
    a closed loop of two steps: so many blocks at a time are read from one disk, and each, when it is there, written
    to another. A trace is replayed: requests come when they were recorded, whatever is outstanding, again and again
    unless told otherwise. Events in virtual time; every random number comes from the seed and the name of what draws
    it, so that variants see the same arrivals and service times.

Assumptions:
    The limit counts operations in units of 32 KB, rounded up, and delays without end. It stands before the adapter's
    queue; behind it the rate and the latency the application sees would be the same, and only the place of waiting
    another. A host has a queue of its own to each device. A stream with a rate offers it whatever is outstanding. With
    a curve, a request that finds n - 1 others at the device takes what requests took on average with n outstanding,
    and beyond the last point the rate stays. A network is a link all hosts share, with a latency each way; only data
    takes time on it. Hosts with the scheduler sioc-v1 set the depth of their queues every 4 s by the latency all of
    them saw at the device, its network included, between 4 and ``queue_depth``, by the law of PARDA; below it go shares
    (SFQ). A drive's seek is settle + (full_stroke - settle) x sqrt(distance), its turning what is left to the sector.

Parameters:
    ``vms``: name, count, workload (a shipped name, a file beside the scenario, or its text), trace (files beside the
    scenario, disk where they have several, speed, repeat), load_factor (times the rates of its open streams), host,
    device, adapter (pvscsi, lsi ...: gives the depth
    its driver has), adapter_depth, iops_limit, iops_burst (units that may go at
    once after an idle time), shares, reservation_iops (both for schedulers that know them), and ``disks`` for
    streams of a role, as wal. ``copies``: name, read and write (disks, as VM or VM/role), block, oio. ``hosts``:
    name, queue_depth, scheduler. ``devices``: name, network (latency, mb_per_s), congestion_threshold (of sioc-v1),
    parallelism, service, write_service, sequential_service, mb_per_s; or curve (operations per second and mean
    latency by point, from the lowest load) with spread, the coefficient of variation around it; or drive: settle,
    full_stroke, rpm, mb_per_s and inner_mb_per_s (at the outer and the inner edge), size, queue (requests it
    chooses from). ``idle_credit`` of a disk:
    requests that go first after an idle time, by schedulers with tags.

Limits:
    No caches, errors, splitting or merging of requests, one path per device. Flushes (``sync_every``),
    verification, compression and the working set of a workload change nothing; its own timing is not used. A curve
    holds for the mix it was measured with. A trace gives times, sizes and ways of requests; those of a closed load
    were set by the device it was recorded on. VMs of one kind replay in step.

Sources:
    C. Hogan, "VSAN 6.2 part 4: IOPS limit for object" (2016), for units of 32 KB.
    VMware, vSphere storage guide, "Change queue depth"; Broadcom KB 1267 and 2053145, for depths of adapters and hosts.
    Gulati, Ahmad and Waldspurger, "PARDA" (FAST 2009); VMware, "vSphere resource management", storage I/O control.
    Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer 27(3), 1994), for seek and turning.
    Little, "A proof for the queuing formula L = λW" (Operations Research 9, 1961), which each run is checked against.
"""

from __future__ import annotations

from typing import cast

from leadline.core.contracts.scenario import Outcome, Progress, Scenario, ScenarioMeta
from leadline.scenarios._io import measures_of, results_of, series_of, ticks_of
from leadline.scenarios._simulator import run_system
from leadline.scenarios._storage_path import figures
from leadline.scenarios._storage_path.parts import SCHEDULERS, Copy, Device, StoragePath, Vm, index_of
from leadline.scenarios._storage_path.spec import document_of

META = ScenarioMeta(
    policy_key="hosts.*.scheduler",
    policies=SCHEDULERS,
    columns=(
        ("iops", "per s"),
        ("latency_ms_mean", "mean ms"),
        ("latency_ms_p99", "p99 ms"),
        ("limit_count_mean", "limit"),
        ("adapter_count_mean", "adapter"),
        ("host_count_mean", "host"),
        ("device_count_mean", "device"),
    ),
    legend="queue columns: requests there on average",
)
MODEL = StoragePath
__all__ = ["META", "MODEL", "Copy", "Device", "StoragePath", "Vm", "index_of", "simulate"]


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run."""
    scenario = cast("StoragePath", scenario)  # read with MODEL
    timing = scenario.timing
    document, streams, recorded = document_of(scenario)
    outcome = run_system("storage-path", document, figures.PathFigures, progress, recorded)
    pairs = list(zip(streams, outcome.vms, strict=True))
    several = len(pairs) > 1
    return Outcome(
        results=tuple(
            result
            for (name, sources), vm in pairs
            for result in results_of(name if several else "", [one.name for one in sources], vm.done, timing.measure_s)
        ),
        warm_up=ticks_of([vm.warm_up for vm in outcome.vms], timing.warm_up_count, timing.window_s),
        ticks=ticks_of([vm.series for vm in outcome.vms], timing.window_count, timing.window_s),
        measures=(
            *(
                measure
                for (name, _), vm in pairs
                for measure in (*measures_of(timing, name, vm), *figures.queues(name, vm))
            ),
            *figures.device_measures(scenario, outcome.devices),
        ),
        series=tuple(series for (name, _), vm in pairs for series in series_of(timing, name, vm.series)),
        trace=outcome.trace,
        event_count=outcome.event_count,
        notes=figures.notes(pairs),
    )
