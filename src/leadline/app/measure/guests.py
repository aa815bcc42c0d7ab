"""Guests of a lab on this machine: what a lab file asks for, whether it fits, and the guests booted."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leadline.app.measure.workloads import require_fio, workload_of
from leadline.core.contracts.benchmark import Say
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.run import Run
from leadline.core.model.units import share_text
from leadline.core.model.workload import Workload
from leadline.core.system.safety import require_space, usable_space
from leadline.lab.accelerator import Accelerator, accelerator
from leadline.lab.counters import Moved
from leadline.lab.folders import lab_folder, running_folder
from leadline.lab.image import root_image
from leadline.lab.kernel import Kernel, find_kernel
from leadline.lab.machine import Grounds, Machine, answering, launched
from leadline.lab.specification import PHASE, Guest, Lab, varied

BOOT_EXPECTED_S = {"kvm": 3.0, "tcg": 15.0}  # measured on an idle machine of two cores, two guests at a time
COMMAND_EXPECTED_S = 3.0  # around a load: its start, its report, the copy of its files
CLOCK_S = 1.0  # Judgement: more than a sample apart, guest and host do not lie on one time line
MEMORY_SHARE = 0.9  # Judgement: of what is available; the rest is for this machine's own page cache
_MEMORY = Path("/proc/meminfo")


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
    """What will be made and loaded, after everything that can be checked was.

    Raises:
        ToolError: a program or the kernel is missing, or memory or space does not suffice.
        UsageError: a workload is not there, or a guest asks for a CPU that is not there.
    """
    for guest in lab.machines():
        for variant in lab.variants() if guest.load is not None and guest.load.command is None else ():
            workload_in(guest, variant)
    return plan_guests(lab)


def plan_guests(lab: Lab) -> LabPlan:
    """What will be made, whatever it is loaded with.

    Raises:
        ToolError: a program or the kernel is missing, or memory or space does not suffice.
        UsageError: a guest asks for a CPU that is not there.
    """
    guests = lab.machines()
    kernel = find_kernel()
    works = accelerator(kernel)
    machines, left_out = _possible(lab, guests, works)
    sizes = {guest.name: {disk.name: disk.size for disk in guest.disks} for guest in machines}
    # Each snapshot's file grows to the size of its disk.
    taken = [step for step in lab.steps if step.do == "snapshot" and step.guest in sizes]
    grown = sum(sizes[step.guest][step.disk or ""] * (step.count or 1) for step in taken)
    size = sum(sum(disk_sizes.values()) for disk_sizes in sizes.values()) + grown
    size += sum(guest.persistent_memory or 0 for guest in machines)
    lab_plan = LabPlan(lab, kernel, works, machines, size, left_out)
    available = _available_bytes()
    if lab_plan.memory_bytes > MEMORY_SHARE * available:
        raise ToolError(
            f"lab {lab.name}",
            found=f"guests of {lab_plan.memory_bytes / 2**30:.1f} GiB, {available / 2**30:.1f} GiB available",
            expected=f"at most {share_text(MEMORY_SHARE)} of what is available",
            advice="Give them less memory, or fewer guests.",
        )
    require_space(str(_existing(running_folder())), lab_plan.disk_bytes)
    for guest in machines:
        unknown = set(guest.host_cpus) - os.sched_getaffinity(0)
        if unknown:
            raise UsageError(
                f"guest {guest.name}: host_cpus",
                found=f"CPU {min(unknown)}",
                expected=f"CPUs of this machine: {sorted(os.sched_getaffinity(0))}",
                advice="Correct the lab file.",
            )
    return lab_plan


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
class GuestRun:
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
    loads: tuple[GuestRun, ...]
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
        phase_runs = [replace(run, rounds=tuple(p for p in run.rounds if p.label == variant[PHASE])) for run in runs]
        return [run for run in phase_runs if run.rounds]


def workload_in(guest: Guest, variant: dict[str, Any]) -> Workload:
    """The workload of a guest with what varies set.

    Raises:
        UsageError: there is none, or it has no such key.
        InputError: its file is damaged.
    """
    given = None if guest.load is None else guest.load.workload
    if given is None:
        raise UsageError(f"guest {guest.name}", found="no workload", expected="a workload", advice="Give it one.")
    base_workload = (
        workload_of(given) if isinstance(given, str) else Workload.model_validate({"name": guest.name, **given})
    )
    if base_workload.kind == "io":
        require_fio(base_workload, "Leave io_settings.tool out: fio loads the disks of guests.")
    try:
        return varied(base_workload, variant)
    except ValueError as error:
        raise UsageError(
            f"guest {guest.name}",
            found=str(error).splitlines()[0],
            expected="keys of its workload",
            advice="See docs/guides/lab.md.",
        ) from error


def duration_s(guest: Guest) -> float:
    """How long a guest's load takes at most, filling left out."""
    if guest.load is None or guest.load.command is not None:
        return 0.0 if guest.load is None else guest.load.seconds
    timing = workload_in(guest, {}).timing
    return timing.warm_up_s + timing.rounds * timing.measure_s


@contextmanager
def booted(lab_plan: LabPlan, say: Say, *, keep: bool = False) -> Iterator[list[Machine]]:
    """All guests of a lab, started together, from the moment each answers.

    Raises:
        ToolError: a guest does not start.
    """
    say(f"building or finding the root image; {lab_plan.accelerator.name}: {lab_plan.accelerator.reason}")
    grounds = grounds_of(lab_plan)
    with ExitStack() as stack:
        folder = stack.enter_context(lab_folder(lab_plan.lab.name, keep=keep))
        say(f"booting {len(lab_plan.machines)} guest{'s' if len(lab_plan.machines) > 1 else ''}")
        booting = [
            stack.enter_context(
                launched(guest, replace(grounds, accelerator=lab_plan.accelerator_of(guest)), folder / guest.name)
            )
            for guest in lab_plan.machines
        ]
        yield [stack.enter_context(answering(guest)) for guest in booting]


def grounds_of(lab_plan: LabPlan) -> Grounds:
    """What the guests of a lab stand on; builds their root where there is none yet.

    Raises:
        ToolError: it cannot be built.
    """
    networks = {nic.network for guest in lab_plan.machines for nic in guest.nics}
    return Grounds(lab_plan.kernel, lab_plan.accelerator, root_image(), {name: _free_port() for name in networks})


def guests_that_fit(guest: Guest) -> int:
    """How many guests alike have memory, and space for their disks."""
    disks = sum(disk.size for disk in guest.disks)
    by_space = usable_space(str(_existing(running_folder()))) // disks if disks else 1 << 30
    return max(min(int(MEMORY_SHARE * _available_bytes()) // guest.memory, by_space), 0)


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
