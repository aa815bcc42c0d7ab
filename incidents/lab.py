"""A small guest that runs PostgreSQL under pgbench; its hypervisor can hold it back while everything is recorded.

The guest is one of Leadline's lab. Its cluster is filled on this machine while the guest boots, because a guest without
KVM would take minutes for it. The load is open-loop: it asks for a fixed rate, so a slower guest shows as latency and
as transactions that were skipped, not as less load. The faults are in ``incidents.holding``.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from incidents.cluster import OWNER_ID, fill_disks, server_programs
from leadline.app.measure.guests import grounds_of, plan_guests
from leadline.app.measure.recording import recording
from leadline.core.model.errors import ToolError
from leadline.lab.accelerator import Accelerator
from leadline.lab.folders import lab_folder
from leadline.lab.hardware import HERE_ADDRESS, limit_group, limit_node
from leadline.lab.machine import Machine, answering, launched
from leadline.lab.programs import Program, running_in
from leadline.lab.specification import Lab

NAME = "db-vm"
FREE_IOPS = 1_000_000  # the limit of a disk that has none: its throttle group must be there to be changed later
BUSY_SHARE = 0.35  # of the guest's vCPUs; recorders and checkpoints come on top
MEASURE_S = 4
CLIENTS = 4
LATENCY_LIMIT_MS = 2000  # what is later is skipped, as an application's time-out would have it
TAIL_S = 30.0  # Judgement: pgbench's last transactions of a guest that was held back
READY_S = 60.0
SWAP_MIB = 256
_REACH = ("--host=/tmp", "--username=postgres")
_DATABASE = "postgres"
_CLEAN = {"LC_ALL": "C", "TZ": "UTC", "S_TIME_FORMAT": "ISO", "PGHOST": "/tmp", "PGUSER": "postgres"}
_LAB = {
    "name": "incident",
    "guests": [
        {
            "name": NAME,
            "memory": "448m",
            "adapters": [{"name": "scsi0", "type": "pvscsi"}, {"name": "scsi1", "type": "pvscsi"}],
            "disks": [
                {"name": name, "adapter": adapter, "size": size, "provisioning": "thin", "limits": {"iops": FREE_IOPS}}
                for name, adapter, size in (
                    ("data", "scsi0", "512m"),
                    ("wal", "scsi1", "512m"),
                    ("swap", "scsi0", f"{SWAP_MIB}m"),
                )
            ],
        }
    ],
}
# Both recorders in one process: without KVM, loading Python a second time takes seconds.
# Ten samples of the sessions a second would be a third of an emulated CPU.
_RECORDER = """
import sys, time
from pathlib import Path
from leadline.app.measure.recording import recording
from leadline.collectors.postgresql import record
from leadline.core.system.addresses import address_of
folder = Path(sys.argv[1])
with recording({"linux": ""}, folder) as notes:
    server = record(address_of("host=/tmp user=postgres dbname=postgres"), folder, active_sessions_every_ms=250)
    print("ready", flush=True)
    at = time.monotonic()
    deadline = at + float(sys.argv[2])
    while time.monotonic() < deadline and not (folder / "stop").exists():
        server.sample()
        at += 1.0
        while time.monotonic() < at and not (folder / "stop").exists():
            time.sleep(0.1)
    server.close()
print(*notes, *server.notes, sep="\\n")
"""
_SETTINGS = (
    "listen_addresses= unix_socket_directories=/tmp shared_buffers=64MB max_wal_size=128MB checkpoint_timeout=30s "
    "max_connections=40 track_io_timing=on track_wal_io_timing=on"
)


@dataclass(frozen=True, slots=True)
class Guest:
    """A guest whose PostgreSQL answers.

    Attributes:
        machine: the guest of the lab.
        work: takes what recorders and load complain of.
        accelerator: KVM or TCG, and why.
        rate_per_s: transactions per second that keep the guest at most half busy.
        boot_s: from the start of QEMU to a server that answers and a rate that is known.
        clock_offset_s: the guest's clock less this machine's, after it was set.
        devices: the guest's name of each disk by the disk's name here.
    """

    machine: Machine
    work: Path
    accelerator: Accelerator
    rate_per_s: float
    boot_s: float
    clock_offset_s: float
    devices: dict[str, str]

    @property
    def load_command(self) -> list[str]:
        """The words of pgbench without its length."""
        return [
            *("pgbench", *_REACH, f"--client={CLIENTS}", "--jobs=1", f"--rate={self.rate_per_s:g}"),
            *("--no-vacuum", f"--latency-limit={LATENCY_LIMIT_MS}", "--progress=1", "--progress-timestamp"),
            *("--log", "--aggregate-interval=1"),
        ]

    def begin_load(self, seconds: float) -> Program:
        """Let the load run for so long, or until it is ended; nothing is recorded of it."""
        words = [*self.load_command, f"--time={seconds:.0f}", "--log-prefix=/tmp/pgbench_log", _DATABASE]
        files = {"output": self.work / "guest-load.txt", "talk": self.work / "guest-load-errors.txt"}
        return Program(self.machine.channel, words, **files)

    @contextmanager
    def play(self, seconds: float, folder: Path) -> Iterator[Program]:
        """Load and record for some seconds: yields when the load has begun, returns when it is over and copied.

        Raises:
            ToolError: the guest does not answer, or the load fails.
        """
        folder.mkdir(parents=True, exist_ok=True)
        channel, inside = self.machine.channel, f"/tmp/play-{time.monotonic_ns()}"
        run(self.machine, f"mkdir -m 1777 {inside}")
        talk = self.work
        whole_s = f"{seconds + TAIL_S:.0f}"
        words = ["python3", "-c", _RECORDER, inside, whole_s]
        with ExitStack() as stack:
            ready, errors = talk / "recorder.txt", talk / "recorder-errors.txt"
            ready.unlink(missing_ok=True)
            recorder = stack.enter_context(running_in(channel, words, output=ready, talk=errors))
            _wait_for(recorder, ready, errors)
            sampler = ["sh", "-c", f"exec {_with_environment()} /tmp/iostat -x -t 1 {seconds + 1:.0f}"]
            if shutil.which("iostat") is not None:
                iostat = running_in(channel, sampler, output=folder / "iostat.txt", talk=talk / "iostat-errors.txt")
                stack.enter_context(iostat)
            stack.enter_context(recording({"qemu": str(self.machine.files.counters)}, folder))
            load_words = [*self.load_command, f"--time={seconds:.0f}", f"--log-prefix={inside}/pgbench_log", _DATABASE]
            script = f"exec {' '.join(load_words)} 2>&1"
            log = folder / "pgbench.txt"
            load = stack.enter_context(running_in(channel, ["sh", "-c", script], output=log, talk=talk / "load.txt"))
            deadline = time.monotonic() + seconds + TAIL_S
            yield load
            while load.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
            run(self.machine, f"touch {inside}/stop")
            while recorder.poll() is None and time.monotonic() < deadline + TAIL_S:
                time.sleep(0.1)
        self._copy(inside, folder)
        if load.poll() != 0:
            raise _failed("pgbench", log)

    def _copy(self, inside: str, folder: Path) -> None:
        """Bring the files of a folder of the guest here."""
        run(self.machine, f"rm -f {inside}/stop")
        fetched = self.machine.channel.fetch(inside, self.work)
        for file in fetched.iterdir():
            shutil.copyfile(file, folder / file.name)
        shutil.rmtree(fetched)
        run(self.machine, f"rm -rf {inside}")


def boot(work: Path, stack: ExitStack, *, vcpus: int = 1, ports: Mapping[int, int] | None = None) -> Guest:
    """Boot a guest with a filled PostgreSQL; it ends, and its files are removed, with the stack.

    Args:
        work: an existing folder, which takes what the guest's recorders and load complain of.
        stack: what ends the guest.
        vcpus: of the guest.
        ports: of the guest that this machine reaches, and the port here of each.

    Raises:
        ToolError: QEMU, a kernel or PostgreSQL is missing, or the guest does not start.
    """
    server_programs()
    lab = Lab.model_validate(_LAB)
    lab = lab.model_copy(update={"guests": (lab.guests[0].model_copy(update={"vcpus": vcpus, "ports": ports or {}}),)})
    plan = plan_guests(lab)
    grounds = replace(grounds_of(plan), accelerator=plan.accelerator)
    folder = stack.enter_context(lab_folder(lab.name))
    began = time.monotonic()
    booting = stack.enter_context(launched(plan.machines[0], grounds, folder / NAME))
    # The guest reads nothing but partition tables of the disks until it is asked to mount them.
    fill_disks(booting.files.images["data"], booting.files.images["wal"])
    machine = stack.enter_context(answering(booting))
    offset_s = _set_clock(machine)
    devices = {disk.name: machine.device_of(disk.name) for disk in machine.guest.disks}
    _start_server(machine, devices, is_reached=bool(ports))
    iostat = shutil.which("iostat")
    if iostat is not None:
        machine.channel.put("/tmp/iostat", Path(iostat).resolve().read_bytes(), 0o755)
    return Guest(machine, work, plan.accelerator, _rate_of(machine), time.monotonic() - began, offset_s, devices)


def facts(guest: Guest) -> dict[str, Any]:
    """Return the names of a guest and its disks, in the guest and for the hypervisor, for the truth of an incident."""
    machine = guest.machine
    return {
        "guest": machine.guest.name,
        "vcpus": machine.guest.vcpus,
        "memory_mib": machine.guest.memory // 2**20,
        "accelerator": guest.accelerator.name,
        "rate_per_s": guest.rate_per_s,
        "boot_s": round(guest.boot_s, 1),
        "clock_offset_ms": round(guest.clock_offset_s * 1e3, 1),
        "disks": {
            disk.name: {
                "in_guest": Path(guest.devices[disk.name]).name,
                "in_hypervisor": disk.name,
                "throttle_group": limit_group(disk),
                "node": limit_node(disk),
            }
            for disk in machine.guest.disks
        },
    }


def run(machine: Machine, script: str, timeout_s: float = 120.0) -> str:
    """Return what a shell script in a guest prints.

    Raises:
        ToolError: it fails.
    """
    answer = machine.channel.run(["sh", "-c", script], timeout_s=timeout_s)
    if answer.status:
        lines = (answer.err or answer.out).decode(errors="replace").strip().splitlines()
        raise ToolError(
            f"guest {machine.guest.name}: {script}",
            found="; ".join(lines[-3:]) if lines else f"exit status {answer.status}",
            expected="exit status 0",
            advice="Look at it with lab console.",
        )
    return answer.text


def _set_clock(machine: Machine) -> float:
    """Set the guest's clock to this machine's; what is left between them, in seconds."""
    offset_s = machine.channel.clock_offset_s()
    run(machine, f"python3 -S -c 'import time; time.clock_settime(0, time.time() - {offset_s!r})'")
    return machine.channel.clock_offset_s()


def _start_server(machine: Machine, devices: dict[str, str], *, is_reached: bool) -> None:
    for name in ("data", "wal"):
        device = devices[name]
        run(machine, f"blockdev --flushbufs {device}; mkdir -p /mnt/{name}; mount -t ext4 {device} /mnt/{name}")
    run(machine, f"mkswap {devices['swap']} && swapon {devices['swap']}")
    run(machine, f"chown -R {OWNER_ID}:{OWNER_ID} /mnt/data/pg /mnt/wal/pg_wal")
    options = " ".join(f"-c {setting}" for setting in _SETTINGS.split())
    if is_reached:
        run(machine, f"echo 'host all all {HERE_ADDRESS}/32 trust' >> /mnt/data/pg/pg_hba.conf")
        options += " -c listen_addresses=*"
    start = f'pg_ctl -D /mnt/data/pg -w -t 60 -l /tmp/postgresql.log -o "{options}" start >/dev/null'
    run(machine, f"export PATH; busybox su -s /bin/sh postgres -c {shlex.quote(start)}")


def _rate_of(machine: Machine) -> float:
    """Transactions per second that keep the vCPUs as busy as they shall be, from a short load without a rate."""
    words = ["pgbench", *_REACH, f"-c{CLIENTS}", "-j1", "-n"]
    before_s = _busy_s(machine)
    text = run(machine, f"{' '.join(words)} -T {MEASURE_S} {_DATABASE}")
    busy_s = _busy_s(machine) - before_s
    done = next(line for line in text.splitlines() if line.startswith("number of transactions actually processed"))
    count = int(done.rpartition(":")[2].split("/")[0])
    by_cpu = BUSY_SHARE * machine.guest.vcpus * count / max(busy_s, 0.01)
    return max(float(f"{min(by_cpu, BUSY_SHARE * count / MEASURE_S):.2g}"), 1.0)


def _busy_s(machine: Machine) -> float:
    user, nice, system, _, _, irq, soft, *_ = map(int, run(machine, "head -1 /proc/stat").split()[1:])
    return (user + nice + system + irq + soft) / 100.0


def _with_environment() -> str:
    return "env " + " ".join(f"{name}={value}" for name, value in _CLEAN.items())


def _wait_for(recorder: Program, ready: Path, errors: Path) -> None:
    deadline = time.monotonic() + READY_S
    while b"ready" not in ready.read_bytes() if ready.exists() else True:
        if recorder.poll() is not None or time.monotonic() > deadline:
            recorder.send_signal(signal.SIGKILL)
            raise _failed("the recorders of the guest", errors)
        time.sleep(0.1)


def _failed(what: str, log: Path) -> ToolError:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return ToolError(what, found=lines[-1] if lines else "no output", expected="exit status 0", advice=f"See {log}.")
