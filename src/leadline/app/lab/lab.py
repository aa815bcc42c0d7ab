"""Use case: guests with the devices of a lab file, loaded as it says; every load is a run like any other."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leadline.app.lab.counters import Moved
from leadline.app.lab.loads import LoadOrder, duration_s, load_guest, workload_in
from leadline.app.lab.steps import Timeline
from leadline.app.measure.recording import recording
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.model.run import Run
from leadline.core.system.leftovers import scratch_folder
from leadline.core.system.safety import require_space, usable_space
from leadline.lab.accelerator import Accelerator, accelerator
from leadline.lab.folders import lab_folder, running_folder
from leadline.lab.image import root_image
from leadline.lab.kernel import Kernel, find_kernel
from leadline.lab.machine import Grounds, Machine, answering, launched
from leadline.lab.specification import GUESTS, PHASE, Guest, Lab
from leadline.stores.runs import RunStore

BOOT_EXPECTED_S = {"kvm": 3.0, "tcg": 15.0}  # measured on an idle machine of two cores, two guests at a time
COMMAND_EXPECTED_S = 3.0  # around a load: its start, its report, the copy of its files
CLOCK_S = 1.0  # Judgement: more than a sample apart, guest and host do not lie on one time line
MEMORY_SHARE = 0.9  # Judgement: of what is available; the rest is for this machine's own page cache
_HOME = "/tmp/leadline"
_MEMORY = Path("/proc/meminfo")

Said = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LabPlan:
    """What a lab will do, before anything is made."""

    lab: Lab
    kernel: Kernel
    accelerator: Accelerator
    machines: tuple[Guest, ...]
    disk_bytes: int
    left_out: tuple[str, ...] = ()  # guests that cannot run here, and why

    def accelerator_of(self, guest: Guest) -> Accelerator:
        """How a guest is run: software emulation where it asks for that, else what works here."""
        if guest.accelerator == "tcg" and self.accelerator.name != "tcg":
            return Accelerator("tcg", "the lab file asks for it")
        return self.accelerator

    @property
    def loaded(self) -> list[Guest]:
        """Guests that are loaded."""
        return [guest for guest in self.machines if guest.load is not None]

    @property
    def memory_bytes(self) -> int:
        """Of all guests."""
        return sum(guest.memory for guest in self.machines)

    @property
    def load_count(self) -> int:
        """How many times something is loaded, one after the other."""
        groups = len(self.lab.at_once) or (1 if self.lab.together else len(self.loaded))
        return groups * len(self.lab.variants()) * self.lab.repeats if self.loaded else 0

    @property
    def expected_s(self) -> float:
        """How long it takes at most, boot included."""
        longest = max((duration_s(guest) for guest in self.loaded), default=0.0)
        slowest = max((BOOT_EXPECTED_S[self.accelerator_of(guest).name] for guest in self.machines), default=0.0)
        boot = slowest * max(len(self.machines) / 2.0, 1.0)
        return boot + self.load_count * (longest + COMMAND_EXPECTED_S)


def plan_lab(lab: Lab) -> LabPlan:
    """What will be made, after everything that can be checked was.

    Raises:
        ToolError: a program or the kernel is missing, or memory or space does not suffice.
        UsageError: a workload is not there.
    """
    guests = lab.machines()
    for guest in guests:
        for variant in lab.variants() if guest.load is not None and guest.load.command is None else ():
            workload_in(guest, variant)
    kernel = find_kernel()
    works = accelerator(kernel)
    machines, left_out = _possible(lab, guests, works)
    sizes = {guest.name: {disk.name: disk.size for disk in guest.disks} for guest in machines}
    # Each snapshot's file grows to the size of its disk.
    taken = [step for step in lab.steps if step.do == "snapshot" and step.guest in sizes]
    grown = sum(sizes[step.guest][step.disk or ""] * (step.count or 1) for step in taken)
    size = sum(sum(own.values()) for own in sizes.values()) + grown
    made = LabPlan(lab, kernel, works, machines, size, left_out)
    available = _available_bytes()
    if made.memory_bytes > MEMORY_SHARE * available:
        raise ToolError(
            f"lab {lab.name}",
            found=f"guests of {made.memory_bytes / 2**30:.1f} GiB, {available / 2**30:.1f} GiB available",
            expected=f"at most {MEMORY_SHARE:.0%} of what is available",
            advice="Give them less memory, or fewer guests.",
        )
    require_space(str(_existing(running_folder())), made.disk_bytes)
    for guest in machines:
        unknown = set(guest.host_cpus) - os.sched_getaffinity(0)
        if unknown:
            raise UsageError(
                f"guest {guest.name}: host_cpus",
                found=f"CPU {min(unknown)}",
                expected=f"CPUs of this machine: {sorted(os.sched_getaffinity(0))}",
                advice="Correct the lab file.",
            )
    return made


def _possible(lab: Lab, guests: list[Guest], works: Accelerator) -> tuple[tuple[Guest, ...], tuple[str, ...]]:
    """Guests that can run here, and a line for each that cannot.

    Raises:
        ToolError: none can.
    """
    able = tuple(guest for guest in guests if guest.accelerator != "kvm" or works.name == "kvm")
    left_out = tuple(
        f"{guest.name}: not run, as it needs KVM, which does not work here ({works.reason}); without it there is "
        "nothing to compare with, and this result is no comparison"
        for guest in guests
        if guest not in able
    )
    if not able:
        raise ToolError(
            f"lab {lab.name}",
            found=f"no KVM ({works.reason})",
            expected="KVM, which all guests ask for",
            advice="Run it on a machine where guests boot with KVM, or set accelerator to auto.",
        )
    return able, left_out


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def _available_bytes() -> int:
    for line in _MEMORY.read_text().splitlines():
        name, value, *_ = line.split()
        if name == "MemAvailable:":
            return int(value) * 1024
    return 1 << 62


@dataclass(frozen=True, slots=True)
class Loaded:
    """One load of one guest: which variant, which repeat, and its run; ``error`` says why there is none.

    ``moved`` is what the guest and its hypervisor moved in each phase.
    """

    guest: str
    variant: dict[str, Any]
    repeat: int
    run: Run | None
    error: str | None = None
    moved: tuple[Moved, ...] = ()


@dataclass(frozen=True, slots=True)
class LabResult:
    """All loads of a lab, in the order they were made."""

    lab: Lab
    accelerator: Accelerator
    boot_s: dict[str, float]
    loads: tuple[Loaded, ...]
    notes: tuple[str, ...]
    accelerators: Mapping[str, Accelerator] = field(default_factory=dict)

    def runs(self, guest: str, variant: dict[str, Any]) -> list[Run]:
        """The runs of a guest under a variant, by repeat; only the rounds of its phase where it names one."""
        wanted = {key: value for key, value in variant.items() if key != PHASE}
        runs = [
            load.run for load in self.loads if load.run is not None and (load.guest, load.variant) == (guest, wanted)
        ]
        if PHASE not in variant:
            return runs
        own = [replace(run, rounds=tuple(p for p in run.rounds if p.label == variant[PHASE])) for run in runs]
        return [run for run in own if run.rounds]


@contextmanager
def booted(made: LabPlan, say: Said, *, keep: bool = False) -> Iterator[list[Machine]]:
    """All guests of a lab, started together, from the moment each answers.

    Raises:
        ToolError: a guest does not start.
    """
    say(f"building or finding the root image; {made.accelerator.name}: {made.accelerator.reason}")
    grounds = grounds_of(made)
    with ExitStack() as stack:
        folder = stack.enter_context(lab_folder(made.lab.name, keep=keep))
        say(f"booting {len(made.machines)} guest{'s' if len(made.machines) > 1 else ''}")
        booting = [
            stack.enter_context(
                launched(guest, replace(grounds, accelerator=made.accelerator_of(guest)), folder / guest.name)
            )
            for guest in made.machines
        ]
        yield [stack.enter_context(answering(guest)) for guest in booting]


def grounds_of(made: LabPlan) -> Grounds:
    """What the guests of a lab stand on; builds their root where there is none yet.

    Raises:
        ToolError: it cannot be built.
    """
    networks = {nic.network for guest in made.machines for nic in guest.nics}
    return Grounds(made.kernel, made.accelerator, root_image(), {name: _free_port() for name in networks})


def guests_that_fit(guest: Guest) -> int:
    """How many guests alike have memory, and space for their disks."""
    disks = sum(disk.size for disk in guest.disks)
    by_space = usable_space(str(_existing(running_folder()))) // disks if disks else 1 << 30
    return max(min(int(MEMORY_SHARE * _available_bytes()) // guest.memory, by_space), 0)


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _no_wait() -> None:
    """End the guests at once."""


def run_lab(
    made: LabPlan, store: RunStore, *, say: Said, done: Callable[[int, int], None], wait: Callable[[], None] = _no_wait
) -> LabResult:
    """Boot, load, keep the runs; a load that fails is noted and the rest goes on.

    Args:
        made: what to do.
        store: takes the runs.
        say: told what happens.
        done: told how many loads of how many are over.
        wait: called when all loads are over and before the guests end.

    Raises:
        ToolError: a guest does not start.
        KeyboardInterrupt: passed on after the guests were ended and removed; runs until then are kept.
    """
    with booted(made, say) as machines:
        _load_leadline(machines)
        notes = [*made.left_out, *(f"{m.guest.name}: {note}" for m in machines for note in m.notes)]
        for machine in machines:
            offset = machine.channel.clock_offset_s()
            if abs(offset) > CLOCK_S:
                notes.append(f"{machine.guest.name}: its clock is {offset:+.1f} s off; its time line is shifted")
        loads: list[Loaded] = []
        for number, (group, variant, repeat) in enumerate(_order(made, machines), 1):
            words = ", ".join(f"{key} {value}" for key, value in variant.items())
            say(f"{' and '.join(m.guest.name for m in group)}: {words or 'load'}, repeat {repeat}")
            loads += _together(made, group, variant, repeat, store)
            done(number, made.load_count)
        wait()
        boot_s = {m.guest.name: m.boot_s for m in machines}
    accelerators = {guest.name: made.accelerator_of(guest) for guest in made.machines}
    return LabResult(made.lab, made.accelerator, boot_s, tuple(loads), tuple(notes), accelerators)


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


def _order(made: LabPlan, machines: Sequence[Machine]) -> Iterator[tuple[list[Machine], dict[str, Any], int]]:
    """Who is loaded with what and when: within a repeat shuffled by the seed, so that drift hits all alike."""
    chance = random.Random(made.lab.seed)
    loaded = [machine for machine in machines if machine.guest.load is not None]
    groups = [loaded] if made.lab.together else [[machine] for machine in loaded]
    if made.lab.at_once:
        groups = [loaded[:count] for count in made.lab.at_once]
    for repeat in range(1, made.lab.repeats + 1):
        steps = [(group, variant) for group in groups if group for variant in made.lab.variants()]
        chance.shuffle(steps)
        for group, variant in steps:
            yield group, {**({GUESTS: len(group)} if made.lab.at_once else {}), **variant}, repeat


def _together(
    made: LabPlan, group: list[Machine], variant: dict[str, Any], repeat: int, store: RunStore
) -> list[Loaded]:
    """Load some guests at the same time, the host's counters beside."""
    found: dict[str, Loaded] = {}
    steps = Timeline(made.lab, group)

    def work(machine: Machine) -> None:
        name, load = machine.guest.name, machine.guest.load
        time.sleep(load.start_after_s if load is not None else 0.0)
        how = made.accelerator_of(machine.guest)
        try:
            order = LoadOrder(made.lab, how, variant, repeat, begun=lambda: steps.begun(name))
            found[name] = Loaded(name, variant, repeat, load_guest(order, machine, store))
        except LeadlineError as error:
            found[name] = Loaded(name, variant, repeat, None, str(error))
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
        loads = [_with_phases(found[machine.guest.name], machine, steps) for machine in group]
        for load in loads:
            if load.run is not None:
                for file in scratch.iterdir():
                    (store.files_of(load.run.id) / file.name).write_bytes(file.read_bytes())
                if notes or steps.steps:
                    store.save(replace(load.run, notes=(*load.run.notes, *notes)))
    return loads


def _with_phases(load: Loaded, machine: Machine, steps: Timeline) -> Loaded:
    """A load whose run is told by the phases its steps mark; failed when a step did."""
    if load.run is None or not steps.steps:
        return load
    if steps.errors:
        return replace(load, run=None, error="; ".join(steps.errors))
    name = machine.guest.name
    notes = (*load.run.notes, *steps.sentences(name))
    run = replace(load.run, rounds=steps.rounds(machine) or load.run.rounds, notes=notes)
    return replace(load, run=run, moved=tuple(steps.moved(name)))
