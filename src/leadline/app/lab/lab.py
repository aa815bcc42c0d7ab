"""Use case: guests with the devices of a lab file, loaded as it says; every load is a run like any other."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from leadline.app.lab.loads import LoadOrder, load_guest
from leadline.app.lab.steps import Timeline
from leadline.app.measure.guests import CLOCK_S, GuestRun, LabPlan, LabResult, booted
from leadline.app.measure.recording import recording
from leadline.core.contracts.benchmark import Say
from leadline.core.model.errors import LeadlineError
from leadline.core.system.leftovers import scratch_folder
from leadline.lab.machine import Machine
from leadline.lab.specification import GUESTS
from leadline.stores.runs import RunStore


def _no_wait() -> None:
    """End the guests at once."""


def run_lab(
    plan: LabPlan, store: RunStore, *, say: Say, done: Callable[[int, int], None], wait: Callable[[], None] = _no_wait
) -> LabResult:
    """Boot, load, keep the runs; a load that fails is noted and the rest goes on.

    Args:
        plan: what to do.
        store: takes the runs.
        say: told what happens.
        done: told how many loads of how many are over.
        wait: called when all loads are over and before the guests end.

    Raises:
        ToolError: a guest does not start.
        KeyboardInterrupt: passed on after the guests were ended and removed; runs until then are kept.
    """
    with booted(plan, say) as machines:
        _load_leadline(machines)
        notes = [*plan.left_out, *(f"{m.guest.name}: {note}" for m in machines for note in m.notes)]
        for machine in machines:
            offset = machine.channel.clock_offset_s()
            if abs(offset) > CLOCK_S:
                notes.append(f"{machine.guest.name}: its clock is {offset:+.1f} s off; its time line is shifted")
        loads: list[GuestRun] = []
        for number, (group, variant, repeat) in enumerate(_order(plan, machines), 1):
            words = ", ".join(f"{key} {value}" for key, value in variant.items())
            say(f"{' and '.join(m.guest.name for m in group)}: {words or 'load'}, repeat {repeat}")
            loads += _together(plan, group, variant, repeat, store)
            done(number, plan.load_count)
        wait()
        boot_s = {m.guest.name: m.boot_s for m in machines}
    accelerators = {guest.name: plan.accelerator_of(guest) for guest in plan.machines}
    return LabResult(plan.lab, plan.accelerator, boot_s, tuple(loads), tuple(notes), accelerators)


def _load_leadline(machines: Sequence[Machine]) -> None:
    """Have Leadline loaded in every guest, so that no load is measured beside the imports of another guest."""
    threads = [
        threading.Thread(target=machine.channel.preload, daemon=True)
        for machine in machines
        if machine.guest.load is not None
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)  # so that Ctrl-C is heard


def _order(plan: LabPlan, machines: Sequence[Machine]) -> Iterator[tuple[list[Machine], dict[str, Any], int]]:
    """Who is loaded with what and when: within a repeat shuffled by the seed, so that drift hits all alike."""
    chance = random.Random(plan.lab.seed)
    loaded = [machine for machine in machines if machine.guest.load is not None]
    groups = [loaded] if plan.lab.together else [[machine] for machine in loaded]
    if plan.lab.at_once:
        groups = [loaded[:count] for count in plan.lab.at_once]
    for repeat in range(1, plan.lab.repeats + 1):
        steps = [(group, variant) for group in groups if group for variant in plan.lab.variants()]
        chance.shuffle(steps)
        for group, variant in steps:
            yield group, {**({GUESTS: len(group)} if plan.lab.at_once else {}), **variant}, repeat


def _together(
    plan: LabPlan, group: list[Machine], variant: dict[str, Any], repeat: int, store: RunStore
) -> list[GuestRun]:
    """Load some guests at the same time, the host's counters beside."""
    runs_by_guest: dict[str, GuestRun] = {}
    steps = Timeline(plan.lab, group)

    def work(machine: Machine) -> None:
        name, load = machine.guest.name, machine.guest.load
        time.sleep(load.start_after_s if load is not None else 0.0)
        how = plan.accelerator_of(machine.guest)
        try:
            order = LoadOrder(plan.lab, how, variant, repeat, begun=lambda: steps.begun(name))
            runs_by_guest[name] = GuestRun(name, variant, repeat, load_guest(order, machine, store))
        except LeadlineError as error:
            runs_by_guest[name] = GuestRun(name, variant, repeat, None, str(error))
        finally:
            steps.begun(name)

    sockets = ",".join(str(machine.files.counters) for machine in group)
    with scratch_folder("lab") as scratch:
        with recording({"qemu": sockets}, scratch) as notes:
            threads = [threading.Thread(target=work, args=(machine,), daemon=True) for machine in group]
            threads += [threading.Thread(target=steps.take, daemon=True)] if steps.steps else []
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)  # so that Ctrl-C is heard
        loads = [_with_phases(runs_by_guest[machine.guest.name], machine, steps) for machine in group]
        for load in loads:
            if load.run is not None:
                for file in scratch.iterdir():
                    (store.files_of(load.run.id) / file.name).write_bytes(file.read_bytes())
                if notes or steps.steps:
                    store.save(replace(load.run, notes=(*load.run.notes, *notes)))
    return loads


def _with_phases(load: GuestRun, machine: Machine, steps: Timeline) -> GuestRun:
    """A load whose run is told by the phases its steps mark; failed when a step did."""
    if load.run is None or not steps.steps:
        return load
    if steps.errors:
        return replace(load, run=None, error="; ".join(steps.errors))
    name = machine.guest.name
    notes = (*load.run.notes, *steps.sentences(name))
    run = replace(load.run, rounds=steps.rounds(machine) or load.run.rounds, notes=notes)
    return replace(load, run=run, moved=tuple(steps.moved(name)))
