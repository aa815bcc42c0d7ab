"""A guest of a lab file as the target of a load: ``lab:FILE:GUEST/DISK``.

The guest is booted when the target is prepared and gone when it is cleaned; fio runs in it, and is told what to do and
watched from here, so that warm-up, rounds and points are those of any other target.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from leadline.app.measure.guests import CLOCK_S, LabPlan, booted, plan_guests
from leadline.app.measure.recording import recording
from leadline.app.measure.remote_scripts import SAMPLE, SAMPLED
from leadline.app.measure.workloads import require_fio
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import LoadPlan, Measured, Place, Say, Step
from leadline.core.contracts.load_target import LAB, Target
from leadline.core.io.shipped import shipped
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Watch
from leadline.core.model.workload import Workload
from leadline.lab.channel import Channel
from leadline.lab.image import WORK_FOLDER
from leadline.lab.machine import Machine
from leadline.lab.programs import running_in
from leadline.lab.specification import Guest, Lab, LabDisk, read_lab

FORM = "lab:FILE:GUEST/DISK"
IN_GUEST = f"{WORK_FOLDER}-bench"  # where job files are in the guest
FILL_S_MAX = 3600.0  # Judgement: longer than filling any disk of a lab takes
_ENTER = 'cd "$0" && exec "$@"'
# Words: the folder fio works in; of each target its plain name, its path, and the length of a file that is made (0: it
# is there). A file is only made where nothing is, and the plain name must lead to the very same one.
LINK = r"""
set -C
mkdir -p -m 700 "$0" && cd "$0" || exit 1
while [ "$#" -gt 2 ]; do
    # What an earlier load of this guest made by that name goes first.
    [ "$3" -gt 0 ] && [ "$(readlink "$1" 2>/dev/null)" = "$2" ] && rm -f "$2"
    rm -f "$1"
    if [ "$3" -gt 0 ]; then
        [ ! -e "$2" ] && [ ! -L "$2" ] && : >"$2" || exit 1
        dd if=/dev/null of="$2" bs=1 seek="$3" count=0 2>/dev/null || exit 1
    fi
    ln -s "$2" "$1" || exit 1
    [ "$(stat -L -c %d:%i "$1")" = "$(stat -c %d:%i "$2")" ] || exit 1
    shift 3
done
"""
_DROP = "sync; echo 3 > /proc/sys/vm/drop_caches"


@dataclass(frozen=True, slots=True)
class Named:
    """What a target names: a guest of a lab and the disks a load works on, by the role of the stream."""

    name: str
    file: Path
    lab: Lab
    guest: Guest
    disk: LabDisk
    roles: dict[str, LabDisk]

    def disk_of(self, role: str | None) -> LabDisk:
        """Where streams of a role go."""
        return self.roles.get(role or "", self.disk)


def named(target: Target) -> Named:
    """The guest and disks a target names; left out, they are the only ones there are, or those of the guest's load.

    Raises:
        UsageError: the file is not there, or has no such guest or disk.
        InputError: it is no lab file.
    """
    text = target.name.removeprefix(LAB)
    path, _, rest = (text, "", "") if shipped(Path(text)).is_file() else text.rpartition(":")
    if not shipped(Path(path)).is_file():
        raise UsageError(
            target.name, found=f"no file {path or rest}", expected=FORM, advice="examples/lab/ holds lab files."
        )
    lab = read_lab(Path(path))
    guest_name, _, disk_name = rest.partition("/")
    guests = [guest for guest in lab.guests if guest.disks and guest_name in ("", guest.name)]
    if len(guests) != 1:
        raise _not_one(target.name, f"{len(guests) or 'no'} guests {guest_name}".strip(), lab)
    guest = guests[0]
    disks = {disk.name: disk for disk in guest.disks}
    if not disk_name:
        disk_name = guest.load.disk if guest.load is not None else guest.disks[0].name if len(disks) == 1 else ""
    wanted = {"": disk_name, **target.roles}
    unknown = [name for name in wanted.values() if name not in disks]
    if unknown:
        raise _not_one(target.name, f"no disk {unknown[0]}".strip(), lab)
    roles = {role: disks[name] for role, name in target.roles.items()}
    return Named(f"{LAB}{path}:{guest.name}/{disk_name}", Path(path), lab, guest, disks[disk_name], roles)


def _not_one(where: str, cause: str, lab: Lab) -> UsageError:
    known = [f"{guest.name}/{disk.name}" for guest in lab.guests for disk in guest.disks]
    return UsageError(
        where, found=cause, expected=f"{FORM} with one of {', '.join(known) or 'no disks'}", advice="Name one of them."
    )


def plan(workload: Workload, target: Target) -> LoadPlan:
    """What a load of a guest will do; nothing is started.

    Raises:
        UsageError: the target names no guest and disk of a lab file, or the workload is not fio's.
        ToolError: QEMU or the guests' kernel is missing, or memory or space does not suffice.
    """
    lab_target = named(target)
    require_fio(workload, "`leadline lab run` loads guests with databases too: name the workload in the lab file.")
    alone = lab_target.guest.model_copy(update={"count": 1, "load": None})
    lab_plan = plan_guests(
        lab_target.lab.model_copy(update={"guests": (alone,), "vary": {}, "at_once": (), "repeats": 1})
    )
    driver = GuestDriver(lab_target, lab_plan, lambda say: booted_one(lab_plan, say))
    return LoadPlan(
        workload,
        Target(lab_target.name, roles=target.roles),
        {stream.name: _place(workload, lab_target, stream.name) for stream in workload.io},
        notes=(*_notes(lab_target, lab_plan, workload), *lab_plan.accelerator.warnings),
        engine=workload.io_settings.engine_elsewhere(buffered="io_uring"),
        read_only=not any(_is_filled(lab_target.disk_of(stream.role), workload) for stream in workload.io),
        facts=facts_of(lab_target, lab_plan),
        driver=driver,
    )


def _place(workload: Workload, lab_target: Named, stream_name: str) -> Place:
    """Where a stream works, by the disk's name: the guest's name of it is known once it runs."""
    stream = next(one for one in workload.io if one.name == stream_name)
    disk = lab_target.disk_of(stream.role)
    size = -(-workload.working_set_bytes(stream) // fio.ALIGN) * fio.ALIGN
    there = (disk.size - disk.partition_offset) // fio.ALIGN * fio.ALIGN
    if disk.filesystem is not None and size >= there:
        raise UsageError(
            f"{lab_target.guest.name}/{disk.name}",
            found=f"a working set of {size / 2**20:.0f} MiB on a file system of {there / 2**20:.0f} MiB",
            expected="one that fits",
            advice="A smaller --set-size, or a larger disk in the lab file.",
        )
    return Place(
        f"{lab_target.guest.name}/{disk.name}", min(size, there), is_made=True, is_device=disk.filesystem is None
    )


def _is_filled(disk: LabDisk, workload: Workload) -> bool:
    """Whether a disk is filled by the load before it begins: what its file says is filled already is not."""
    if disk.filesystem is not None:
        return True
    return disk.provisioning != "filled" and any(stream.read_pct < 100.0 for stream in workload.io)


def _notes(lab_target: Named, lab_plan: LabPlan, workload: Workload) -> Iterator[str]:
    adapters = {adapter.name: adapter.type for adapter in lab_target.guest.adapters}
    guest, disk_name = lab_target.guest, lab_target.disk.name
    size_text = (
        f"{guest.vcpus} vCPU, {guest.memory / 2**20:.0f} MiB, {disk_name} on {adapters[lab_target.disk.adapter]}"
    )
    booted_by = f"booted by {lab_plan.accelerator.name}, then removed"
    yield f"guest {guest.name} of lab {lab_target.lab.name} ({size_text}): {booted_by}"
    loaded = {lab_target.disk_of(stream.role).name: lab_target.disk_of(stream.role) for stream in workload.io}
    for disk in loaded.values():
        if disk.provisioning != "filled" and not _is_filled(disk, workload):
            yield f"disk {disk.name} is {disk.provisioning}: it was never written, so reads may be answered without it"


def facts_of(lab_target: Named, lab_plan: LabPlan) -> dict[str, str]:
    """Conditions of a run in a guest: which guest, by which hypervisor, on what machine."""
    adapters = {adapter.name: adapter.type for adapter in lab_target.guest.adapters}
    return {
        "host": lab_target.guest.name,
        "kernel": lab_plan.kernel.release,
        "cpu_count": str(lab_target.guest.vcpus),
        "lab": lab_target.lab.name,
        "guest": lab_target.guest.name,
        "disk": lab_target.disk.name,
        "adapter": adapters[lab_target.disk.adapter],
        "accelerator": lab_plan.accelerator.name,
        "hypervisor": " ".join((os.uname().nodename, os.uname().release)),
        # So that runs before and after the guest was changed are not taken for alike.
        "guest_settings": hashlib.sha256(lab_target.guest.model_dump_json(exclude={"load"}).encode()).hexdigest()[:12],
    }


@contextmanager
def booted_one(lab_plan: LabPlan, say: Say) -> Iterator[Machine]:
    """The only guest of a lab, from when it answers.

    Raises:
        ToolError: it does not start.
    """
    with booted(lab_plan, say) as machines:
        yield machines[0]


@dataclass(slots=True)
class GuestDriver:
    """fio in a guest: the driver of plans whose target is one; ``boot`` gives the guest while the target is there."""

    lab_target: Named
    lab_plan: LabPlan
    boot: Callable[[Say], AbstractContextManager[Machine]]
    _running: ExitStack = field(default_factory=ExitStack)
    _machine: Machine | None = None
    _notes: tuple[str, ...] = ()

    META = fio.META

    def plan(self, workload: Workload, target: Target) -> LoadPlan:
        """See `plan`."""
        return plan(workload, target)

    def prepare(self, plan: LoadPlan, folder: Path, say: Say) -> None:
        """Boot the guest, and fill what its file does not say is filled.

        Raises:
            ToolError: it does not start, or cannot be filled.
        """
        machine = self._machine = self._running.enter_context(self.boot(say))
        self._notes = notes_of(machine)
        fill(in_guest(plan, self.lab_target, machine), self.lab_target, machine, folder, say)

    def measure(self, plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
        """One run of fio in the guest.

        Raises:
            ToolError: fio fails, or the guest is gone.
        """
        machine = self._there()
        report, talk = (folder / f"{step.label}.{end}" for end in ("json", "txt"))
        report.unlink(missing_ok=True)
        placed = in_guest(plan, self.lab_target, machine)
        text = fio.logged_job_file(placed, step, f"{IN_GUEST}/")
        (folder / f"{step.label}.fio").write_text(text, encoding="utf-8")
        words = job_words(machine.channel, f"{step.label}.fio", text, fio.command(plan.workload))
        with running_in(machine.channel, words, output=report, talk=talk) as program:
            ticks, ended_early = fio.followed(program, (report, talk), step, watch, late_s=fio.late_s(plan.workload))
        version = version_in(machine.channel)
        for name in fio.log_names(placed, step):
            answer = machine.channel.run(["cat", f"{IN_GUEST}/{name}"])
            (folder / name).write_bytes(answer.out)
        done = Measured((report,), tuple(ticks), (tuple(words),), version, ended_early)
        return fio.with_loads(placed, done, folder, step)

    def recording(self, plan: LoadPlan, folder: Path) -> AbstractContextManager[list[str]]:
        """What is recorded while it is loaded: the guest by its own counters, the hypervisor beside it."""
        del plan
        return both_sides([self._there()], folder, self._notes)

    def drop_caches(self, plan: LoadPlan) -> tuple[str, ...]:
        """Empty the guest's page cache where it would answer; it is root there, so there is nothing to note."""
        if plan.workload.io_settings.buffered:
            self._there().channel.run(["sh", "-c", _DROP], timeout_s=120.0)
        return ()

    def clean(self, plan: LoadPlan) -> None:
        """End the guest and remove its files."""
        del plan
        self._machine = None
        self._running.close()

    def _there(self) -> Machine:
        if self._machine is None:
            raise ToolError(self.lab_target.name, found="not booted", expected="a guest", advice="Prepare it first.")
        return self._machine


def notes_of(machine: Machine) -> tuple[str, ...]:
    """What a run in a guest that was booted must say."""
    offset = machine.channel.clock_offset_s()
    off = f"the guest's clock is {offset:+.1f} s off; its time line is shifted"
    return (*machine.notes, *([off] if abs(offset) > CLOCK_S else []))


def in_guest(plan: LoadPlan, lab_target: Named, machine: Machine) -> LoadPlan:
    """A plan with the disks as the guest calls them."""
    paths: dict[str, str] = {}
    places: dict[str, Place] = {}
    for stream in plan.workload.io:
        disk, place = lab_target.disk_of(stream.role), plan.places[stream.name]
        path = paths.setdefault(disk.name, machine.place_of(disk))
        if disk.filesystem is not None:
            path = f"{path}/leadline-bench-{fio.plain_name(stream.name)}.dat"
        places[stream.name] = replace(place, path=path)
    return replace(plan, places=fio.named_plainly(places))


def fill(plan: LoadPlan, lab_target: Named, machine: Machine, folder: Path, say: Say) -> None:
    """Fill what the lab file does not say is filled.

    Raises:
        ToolError: fio fails in the guest.
    """
    needed = {
        plan.places[stream.name].path: plan.places[stream.name]
        for stream in plan.workload.io
        if _is_filled(lab_target.disk_of(stream.role), plan.workload)
    }
    link(plan, lab_target, machine)
    for place in needed.values():
        say(f"filling {place.path} of {machine.guest.name} with {place.size_bytes / 2**30:.2f} GiB of random data")
        answer = machine.channel.run(fio.fill_words(plan, place), timeout_s=FILL_S_MAX, cwd=IN_GUEST)
        if answer.status:
            talk = folder / "fill.txt"
            talk.write_bytes(answer.out + answer.err)
            raise fio.failed(talk, f"{machine.guest.name}: {place.path}")


def link(plan: LoadPlan, lab_target: Named, machine: Machine) -> None:
    """Make the files of file systems, which nobody has yet, and the plain names fio knows all places by.

    Raises:
        ToolError: one is there already, or cannot be made.
    """
    words: list[str] = []
    for stream in plan.workload.io:
        place = plan.places[stream.name]
        is_file = lab_target.disk_of(stream.role).filesystem is not None
        if place.link not in words[::3]:
            words += [place.link, place.path, str(place.size_bytes if is_file else 0)]
    answer = machine.channel.run(["sh", "-c", LINK, IN_GUEST, *words])
    if answer.status:
        raise ToolError(
            f"guest {machine.guest.name}",
            found=f"its targets cannot be made ({answer.err.decode(errors='replace').strip()[-160:]})",
            expected="disks that nothing else uses",
            advice="Run it again; look with `leadline lab console` if it stays.",
        )


def job_words(channel: Channel, name: str, text: str, command: Sequence[str]) -> list[str]:
    """Put a job file into a guest; returns the command whose standard output is fio's report."""
    channel.put(f"{IN_GUEST}/{name}", text.encode())
    return ["sh", "-c", _ENTER, IN_GUEST, *command, name]


def version_in(channel: Channel) -> str | None:
    """Of the guest's fio."""
    return channel.run(["fio", "--version"]).text.strip().removeprefix("fio-") or None


@contextmanager
def both_sides(machines: list[Machine], folder: Path, first: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """Record guests by their own counters and their hypervisor's while something runs; yields the notes.

    One guest's recording is ``linux.txt``, those of several ``linux-GUEST.txt``; the hypervisor's is ``qemu.jsonl``.
    """
    sockets = ",".join(str(machine.files.counters) for machine in machines)
    with recording({"qemu": sockets}, folder) as notes, ExitStack() as stack:
        notes.extend(first)
        for machine in machines:
            name = "linux.txt" if len(machines) == 1 else f"linux-{machine.guest.name}.txt"
            words = ["sh", "-c", SAMPLE, "sample", "1", *SAMPLED]
            talk = folder / "linux.said"
            stack.enter_context(running_in(machine.channel, words, output=folder / name, talk=talk))
        yield notes
