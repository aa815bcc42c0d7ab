"""Use case: guests with the devices of a lab file, loaded as it says; every load is a run like any other."""

from __future__ import annotations

import os
import random
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from leadline.app.recording import recording
from leadline.core.errors import LeadlineError, ToolError, UsageError
from leadline.core.run import Run
from leadline.core.safety import require_space
from leadline.core.workload import Workload, find_workload
from leadline.lab.accelerator import Accelerator, accelerator
from leadline.lab.folders import lab_folder, running_folder
from leadline.lab.image import root_image
from leadline.lab.kernel import Kernel, find_kernel
from leadline.lab.machine import Grounds, Machine, answering, launched
from leadline.lab.specification import Guest, Lab, varied
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
        at_once = 1 if self.lab.together else len(self.loaded)
        return at_once * len(self.lab.variants()) * self.lab.repeats if self.loaded else 0

    @property
    def expected_s(self) -> float:
        """How long it takes at most, boot included."""
        longest = max((_duration_s(workload_in(guest, {})) for guest in self.loaded), default=0.0)
        boot = BOOT_EXPECTED_S[self.accelerator.name] * max(len(self.machines) / 2.0, 1.0)
        return boot + self.load_count * (longest + COMMAND_EXPECTED_S)


def _duration_s(workload: Workload) -> float:
    timing = workload.timing
    return timing.warm_up_s + timing.rounds * timing.measure_s


def workload_in(guest: Guest, variant: dict[str, Any]) -> Workload:
    """The workload of a guest with what varies set.

    Raises:
        UsageError: there is no such workload, or it has no such key.
        InputError: its file is damaged.
    """
    load = guest.load
    if load is None:
        raise UsageError(f"guest {guest.name}", found="no load", expected="a load", advice="Give it one.")
    if isinstance(load.workload, str):
        given = find_workload(load.workload)
    else:
        given = Workload.model_validate({"name": guest.name, **load.workload})
    try:
        return varied(given, variant)
    except ValueError as error:
        first = error.errors()[0]["msg"] if hasattr(error, "errors") else str(error)
        raise UsageError(
            f"guest {guest.name}", found=str(first), expected="keys of its workload", advice="See docs/guides/lab.md."
        ) from error


def plan_lab(lab: Lab) -> LabPlan:
    """What will be made, after everything that can be checked was.

    Raises:
        ToolError: a program or the kernel is missing, or memory or space does not suffice.
        UsageError: a workload is not there.
    """
    machines = tuple(lab.machines())
    for guest in machines:
        for variant in lab.variants() if guest.load is not None else ():
            workload_in(guest, variant)
    kernel = find_kernel()
    made = LabPlan(
        lab, kernel, accelerator(kernel), machines, sum(disk.size for guest in machines for disk in guest.disks)
    )
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
    """One load of one guest: which variant, which repeat, and its run; ``error`` says why there is none."""

    guest: str
    variant: dict[str, Any]
    repeat: int
    run: Run | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LabResult:
    """All loads of a lab, in the order they were made."""

    lab: Lab
    accelerator: Accelerator
    boot_s: dict[str, float]
    loads: tuple[Loaded, ...]
    notes: tuple[str, ...]

    def runs(self, guest: str, variant: dict[str, Any]) -> list[Run]:
        """The runs of a guest under a variant, by repeat."""
        return [
            load.run for load in self.loads if load.run is not None and (load.guest, load.variant) == (guest, variant)
        ]


@contextmanager
def booted(made: LabPlan, say: Said, *, keep: bool = False) -> Iterator[list[Machine]]:
    """All guests of a lab, started together, from the moment each answers.

    Raises:
        ToolError: a guest does not start.
    """
    say(f"building or finding the root image; {made.accelerator.name}: {made.accelerator.reason}")
    networks = {nic.network for guest in made.machines for nic in guest.nics}
    grounds = Grounds(made.kernel, made.accelerator, root_image(), {name: _free_port() for name in networks})
    with ExitStack() as stack:
        folder = stack.enter_context(lab_folder(made.lab.name, keep=keep))
        say(f"booting {len(made.machines)} guests")
        booting = [stack.enter_context(launched(guest, grounds, folder / guest.name)) for guest in made.machines]
        yield [stack.enter_context(answering(guest)) for guest in booting]


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
        notes = [f"{m.guest.name}: {note}" for m in machines for note in m.notes]
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
    return LabResult(made.lab, made.accelerator, boot_s, tuple(loads), tuple(notes))


def _order(made: LabPlan, machines: Sequence[Machine]) -> Iterator[tuple[list[Machine], dict[str, Any], int]]:
    """Who is loaded with what and when: within a repeat shuffled by the seed, so that drift hits all alike."""
    chance = random.Random(made.lab.seed)
    loaded = [machine for machine in machines if machine.guest.load is not None]
    groups = [loaded] if made.lab.together else [[machine] for machine in loaded]
    for repeat in range(1, made.lab.repeats + 1):
        steps = [(group, variant) for group in groups if group for variant in made.lab.variants()]
        chance.shuffle(steps)
        for group, variant in steps:
            yield group, variant, repeat


def _together(
    made: LabPlan, group: list[Machine], variant: dict[str, Any], repeat: int, store: RunStore
) -> list[Loaded]:
    """Load some guests at the same time, the host's counters beside."""
    found: dict[str, Loaded] = {}

    def work(machine: Machine) -> None:
        name, load = machine.guest.name, machine.guest.load
        time.sleep(load.start_after_s if load is not None else 0.0)
        try:
            run = _load(made, machine, variant, repeat, store)
            found[name] = Loaded(name, variant, repeat, run)
        except LeadlineError as error:
            found[name] = Loaded(name, variant, repeat, None, str(error))

    sockets = ",".join(str(machine.files.counters) for machine in group)
    with tempfile.TemporaryDirectory() as scratch:
        with recording({"qemu": sockets}, Path(scratch)) as notes:
            threads = [threading.Thread(target=work, args=(machine,), daemon=True) for machine in group]
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)  # so that Ctrl-C is heard
        loads = [found[machine.guest.name] for machine in group]
        for load in loads:
            if load.run is not None:
                for file in Path(scratch).iterdir():
                    (store.files_of(load.run.id) / file.name).write_bytes(file.read_bytes())
                if notes:
                    store.save(replace(load.run, notes=(*load.run.notes, *notes)))
    return loads


def _load(made: LabPlan, machine: Machine, variant: dict[str, Any], repeat: int, store: RunStore) -> Run:
    """One load by Leadline in the guest; its run and files are kept here.

    Raises:
        ToolError: it fails in the guest, or the guest is gone.
    """
    guest, channel = machine.guest, machine.channel
    workload, load = workload_in(guest, variant), guest.load
    assert load is not None
    channel.put("/tmp/workload.yaml", yaml.safe_dump(workload.plain()).encode())
    words = ["bench", "run", "/tmp/workload.yaml", "--yes", "--quiet"]
    words += ["--seed", str(made.lab.seed * 1000 + repeat), *_targets(machine)]
    answer = channel.leadline(
        words, env={"LEADLINE_HOME": _HOME}, timeout_s=60.0 + 5.0 * _duration_s(workload) + _fill_s(workload)
    )
    if answer.status:
        said = answer.err.decode(errors="replace").strip().splitlines()
        raise ToolError(
            f"guest {guest.name}",
            found=said[-1].removeprefix("error: ") if said else f"exit status {answer.status}",
            expected="a run",
            advice="",
        )
    adapters = {disk.name: next(a.type for a in guest.adapters if a.name == disk.adapter) for disk in guest.disks}
    own = {
        "lab": made.lab.name,
        "accelerator": f"{made.accelerator.name} ({made.accelerator.reason})",
        "guest": guest.model_dump(mode="json", exclude_defaults=True),
        "variant": variant,
        "adapter": adapters[load.disk],
        "hypervisor": dict(zip(("system", "host", "release"), os.uname()[:3], strict=True)),
    }
    with tempfile.TemporaryDirectory() as scratch:
        copied = RunStore(channel.fetch(_HOME, Path(scratch)))
        channel.run(["rm", "-rf", _HOME])
        run = copied.get("last")
        run = replace(run, host={**run.host, **own}, notes=(*run.notes, *_beware(made)))
        shutil.copytree(copied.files_of(run.id), store.files_of(run.id), dirs_exist_ok=True)
    store.save(run)
    return run


def _targets(machine: Machine) -> list[str]:
    """Options that name the disks of a load: a device to be overwritten, or where its file system is mounted."""
    load = machine.guest.load
    words: list[str] = []
    for option, name in (("--on", load.disk), ("--wal", load.wal)) if load is not None else ():
        disk = next((disk for disk in machine.guest.disks if disk.name == name), None)
        if disk is None:
            continue
        if disk.filesystem is not None:
            words += [option, f"/mnt/{disk.name}"]
            continue
        device = machine.device_of(disk.name)
        words += [option, device, *(("--destroy-data", device) if option == "--on" else ())]
    return words


def _fill_s(workload: Workload) -> float:
    """Time for filling, at the slowest an emulated disk does."""
    slowest_per_s = 4 * 2**20
    return sum(workload.working_set_bytes(stream) for stream in workload.io) / slowest_per_s


def _beware(made: LabPlan) -> tuple[str, ...]:
    if made.accelerator.name == "kvm":
        return ()
    return (
        "software emulation: a guest's CPU is some ten times slower than real, so CPU-bound rates mean nothing; "
        f"limits, queues and their ratios hold ({made.accelerator.reason})",
    )
