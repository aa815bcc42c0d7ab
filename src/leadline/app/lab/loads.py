"""One load of one guest of a lab: a workload driven by Leadline in the guest, or a command the hypervisor watches."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import yaml

from leadline.app.lab.steps import STOPPED, places, within
from leadline.app.measure.guests import duration_s, workload_in
from leadline.app.measure.kept_runs import begun_run
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.run import Run
from leadline.core.system.leftovers import scratch_folder
from leadline.lab.accelerator import Accelerator
from leadline.lab.channel import CommandOutput
from leadline.lab.counters import counted, counters, ticks
from leadline.lab.image import WORK_FOLDER
from leadline.lab.machine import Machine
from leadline.lab.specification import GuestLoad, Lab
from leadline.stores.runs import RunStore

_WORKLOAD, _RECORDING = "/tmp/workload.yaml", "/tmp/recording"
SLOWEST_PER_S = 4 * 2**20  # Judgement: bytes per second of the slowest emulated disk, for patience while filling
PATIENCE_S = 240.0  # Judgement: an answer takes seconds, minutes where a busy machine emulates several guests
DATABASE_S = 240.0  # Judgement: a server and its tables take a minute under emulation on an idle machine


def _nobody() -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """What a load belongs to: the lab, how its guests run, what varies, and which repeat it is."""

    lab: Lab
    accelerator: Accelerator
    variant: dict[str, Any]
    repeat: int
    begun: Callable[[], None] = _nobody  # called when a command has begun

    @property
    def seed(self) -> int:
        """Of this repeat, whichever guest."""
        return self.lab.seed * 1000 + self.repeat


def load_guest(order: LoadOrder, machine: Machine, store: RunStore) -> Run:
    """One load; its run and files are kept here.

    Raises:
        ToolError: it fails in the guest, or the guest is gone.
    """
    load = machine.guest.load
    if load is None:
        raise UsageError(machine.guest.name, found="no load", expected="a load", advice="Give it one.")
    run = _command(order, machine, load, store) if load.command is not None else _workload(order, machine, load, store)
    adapters = {adapter.name: adapter.type for adapter in machine.guest.adapters}
    conditions = {
        "lab": order.lab.name,
        "accelerator": order.accelerator.name,
        "adapter": next(adapters[disk.adapter] for disk in machine.guest.disks if disk.name == load.disk),
        "variant": order.variant,
        "hypervisor": " ".join((os.uname().nodename, os.uname().release)),
    }
    run = replace(run, host={**run.host, **conditions}, notes=(*run.notes, *order.accelerator.warnings))
    store.save(run)
    return run


def _workload(order: LoadOrder, machine: Machine, load: GuestLoad, store: RunStore) -> Run:
    """A run by Leadline in the guest, brought here with its files."""
    channel = machine.channel
    variant = {key: value for key, value in order.variant.items() if key in order.lab.vary}
    workload = workload_in(machine.guest, variant)
    channel.put(_WORKLOAD, yaml.safe_dump(workload.plain()).encode())
    words = [
        "bench",
        "run",
        _WORKLOAD,
        "--yes",
        "--quiet",
        "--json",
        "--seed",
        str(order.seed),
        *_targets(machine, load),
    ]
    fill_s = sum(workload.working_set_bytes(stream) for stream in workload.io) / SLOWEST_PER_S
    fill_s += DATABASE_S if workload.database is not None else 0.0
    patience_s = PATIENCE_S + 5.0 * duration_s(machine.guest) + fill_s
    _must(machine, channel.leadline(words, env={"LEADLINE_HOME": WORK_FOLDER}, timeout_s=patience_s))
    with scratch_folder("fetched") as scratch:
        copied = RunStore(channel.fetch(WORK_FOLDER, scratch))
        channel.run(["rm", "-rf", WORK_FOLDER])
        run = copied.get("last")
        shutil.copytree(copied.files_of(run.id), store.files_of(run.id), dirs_exist_ok=True)
    return run


def _targets(machine: Machine, load: GuestLoad) -> list[str]:
    """Options that name the disks of a load: a device to be overwritten, or where its file system is mounted."""
    words: list[str] = []
    for option, name in (("--on", load.disk), ("--wal", load.wal)):
        disk = next((disk for disk in machine.guest.disks if disk.name == name), None)
        if disk is None:
            continue
        place = machine.place_of(disk)
        words += [option, place]
        if option == "--on" and disk.filesystem is None:
            words += ["--destroy-data", place]
    return words


def _command(order: LoadOrder, machine: Machine, load: GuestLoad, store: RunStore) -> Run:
    """A command again and again, the guest's counters recorded; its disks' work as the hypervisor counts it."""
    run = begun_run(
        order.lab.name,
        {"command": load.command, "seconds": load.seconds},
        seed=order.seed,
        tool="command",
        target=load.disk,
        commands=(("sh", "-c", load.command or ""),),
        host={"host": machine.guest.name},
    )
    folder = store.files_of(run.id)
    script = f"{places(machine)}; end=$(($(date +%s) + {load.seconds:.0f})); "
    script += f"while [ $(date +%s) -lt $end ]; do {load.command or 'true'}; done"
    recorder = ["collect", "linux", "-o", _RECORDING, "--seconds", f"{load.seconds:.0f}", "--every", "1", "--quiet"]
    recorded: list[CommandOutput] = []
    recording = threading.Thread(
        target=lambda: recorded.append(machine.channel.leadline(recorder, timeout_s=PATIENCE_S + 5 * load.seconds))
    )
    recording.start()
    ended: list[CommandOutput] = []
    words = within(load.seconds + 2.0, script)
    work = threading.Thread(
        target=lambda: ended.append(machine.channel.run(words, timeout_s=load.seconds + PATIENCE_S))
    )
    work.start()
    machine.count_latencies()
    order.begun()
    first = counters(machine)
    samples = [(first.moment_s, first.blocks)]
    while work.is_alive():
        work.join(1.0)
        samples.append((time.monotonic(), machine.blocks()))
    whole = counted(machine, "command", first, counters(machine), ticks(samples))
    recording.join()
    for answer in (*recorded, *(answer for answer in ended if answer.status not in STOPPED)):
        _must(machine, answer)
    machine.channel.fetch(f"{_RECORDING}/linux.txt", folder)
    machine.channel.run(["rm", "-rf", _RECORDING])
    return replace(run, state="done", rounds=(whole,))


def _must(machine: Machine, answer: CommandOutput) -> None:
    if answer.status:
        error_lines = answer.err.decode(errors="replace").strip().splitlines()
        raise ToolError(
            f"guest {machine.guest.name}",
            found=error_lines[-1].removeprefix("error: ") if error_lines else f"exit status {answer.status}",
            expected="a run",
            advice="Run it again with --wait and look with lab console.",
        )
