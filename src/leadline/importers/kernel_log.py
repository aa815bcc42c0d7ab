r"""What a Linux kernel logs of trouble: I/O errors, timeouts, tasks that are stuck, silent file servers, no memory.

Reads:
    ``dmesg`` in all its forms (since boot, ``-T``, ``-e``, ``-x``, ``--time-format iso``), ``journalctl`` (``-k``, ``-o
    short-iso`` and the others that print lines), ``/var/log/messages``, ``kern.log`` and ``syslog``, of one or many
    machines, and the lines of a console as people paste them.

Sample:
    .. code-block:: text

        [12345.678901] sd 2:0:0:0: [sdb] tag#18 task abort on host 2, 00000000c1b1d9a5
        Nov 24 09:00:31 db01 kernel: [  242.6] INFO: task mysqld:1811 blocked for more than 120 seconds.
        2026-11-24T09:02:11.403+00:00 db01 kernel: nfs: server filer1 not responding, still trying

Lost:
    All messages that tell of no trouble, and those of other programs than the kernel, multipathd and iscsid. Errors of
    floppy and CD drives, and of requests that a disk does not know (discard), are counted in a warning only. The kernel
    limits what it logs: there are at least as many. Only the call trace says what a task waits for.

Units:
    What happened per second is counted in steps of one second; where the log covers more than 5 hours only the seconds
    around messages are kept, with some between. A stuck task waited before its message for the time that the message
    tells. A file server or a path is lost from its message to the one that says it is back, else to the end of the log.

    Times since boot are placed by a line that tells both clocks (``setting system clock``, ``audit``), else by the
    file's last change.

Sources:
    Linux source: block/blk-core.c, drivers/scsi/scsi_error.c, drivers/nvme/host/pci.c, kernel/hung_task.c,
    kernel/watchdog.c, mm/oom_kill.c, net/sunrpc/clnt.c, fs/ext4/super.c, fs/xfs/xfs_message.c. dmesg(1), journalctl(1).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.importers._kernel_log.messages import Message, Trouble, frame_of, parse, wait_of
from leadline.importers._kernel_log.stamps import (
    KernelClock,
    KernelLine,
    is_of_others,
    is_quoted_with_time,
    moment_text,
    sender_of,
    stamp_end,
)

META = ImporterMeta(
    tool="Linux kernel log",
    marks=("kernel", "] ", "blocked for more than", "error, dev ", "not responding", "read-only", "out of memory"),
    layers=(Layer.GUEST, Layer.STORAGE_PATH),
    fields={
        "I/O error, dev": Field("guest_disk_errors_per_s", "per_s"),
        "task abort|reset|timeout": Field("guest_disk_timeouts_per_s", "per_s"),
        "EXT4-fs error|XFS ... shut down|Remounting filesystem read-only": Field(
            "guest_file_system_errors_per_s", "per_s"
        ),
        "blocked for more than ... seconds": Field("guest_stuck_tasks_count", "count"),
        "blocked for more than ... seconds, waiting for a disk": Field("guest_stuck_on_disk_tasks_count", "count"),
        "Out of memory: Killed process": Field("guest_processes_killed_per_s", "per_s"),
        "page allocation stalls": Field("guest_allocation_stalls_per_s", "per_s"),
        "soft lockup|rcu stall": Field("guest_cpu_standstills_per_s", "per_s"),
        "nfs: server ... not responding|OK": Field("file_server_silent_pct", "pct"),
        "Failing path|detected conn error": Field("disk_access_lost_pct", "pct"),
        "any of a disk, path, file system or file server": Field("guest_storage_messages_per_s", "per_s"),
    },
    record="dmesg --time-format iso > dmesg.txt",
)

_COUNTED = {
    Trouble.DISK_ERROR: "guest_disk_errors_per_s",
    Trouble.DISK_ECHO: "guest_disk_errors_per_s",
    Trouble.DISK_TIMEOUT: "guest_disk_timeouts_per_s",
    Trouble.FILE_SYSTEM: "guest_file_system_errors_per_s",
    Trouble.READ_ONLY: "guest_file_system_errors_per_s",
    Trouble.KILLED: "guest_processes_killed_per_s",
    Trouble.ALLOCATION: "guest_allocation_stalls_per_s",
    Trouble.CPU: "guest_cpu_standstills_per_s",
}
_STATES = {
    Trouble.SERVER_SILENT: ("file_server_silent_pct", EntityKind.DATASTORE),
    Trouble.SERVER_BACK: ("file_server_silent_pct", EntityKind.DATASTORE),
    Trouble.PATH_LOST: ("disk_access_lost_pct", EntityKind.PATH),
    Trouble.PATH_BACK: ("disk_access_lost_pct", EntityKind.PATH),
    Trouble.DEVICE_LOST: ("disk_access_lost_pct", EntityKind.DEVICE),
    Trouble.DEVICE_BACK: ("disk_access_lost_pct", EntityKind.DEVICE),
}
# Of the machine as a whole: in every log, also where nothing happened.
_OF_MACHINE = (
    *(_COUNTED[trouble] for trouble in (Trouble.KILLED, Trouble.ALLOCATION, Trouble.CPU)),
    "guest_storage_messages_per_s",
)
_STUCK, _STUCK_ON_DISK = "guest_stuck_tasks_count", "guest_stuck_on_disk_tasks_count"
_NOT_STORAGE = frozenset({Trouble.KILLED, Trouble.ALLOCATION, Trouble.CPU, Trouble.TASK, Trouble.HARMLESS})
_BACK = frozenset({Trouble.SERVER_BACK, Trouble.PATH_BACK, Trouble.DEVICE_BACK})
_TRACE_LINES_MAX = 80
_EVENTS_MAX = 200  # of one kind and machine
_DENSE_MAX_S = 18_000
_GRID_COUNT = 500
_NS_PER_S = 1_000_000_000
_ADDRESS = re.compile(r"\bsd (\d{1,5}:\d{1,5}:\d{1,5}:\d{1,10}): \[(sd[a-z]{1,4})\]")
_NAMESPACE = re.compile(r"\b(nvme\d{1,4})n1\b")
_PASTED = re.compile(r"\+0x[\da-f]{1,8}/0x|Call Trace:|[Tt]ainted|hung_task_timeout_secs|CDB: |\bD [\da-f]{8,16} ")
# Lines without a time that belong: what journalctl puts between boots, what a booting console prints beside the kernel.
_BETWEEN = re.compile(
    r"\s|-- |\.\.\.|\[ {0,4}(?:OK|FAILED|DEPEND|WARN|INFO|TIME|\*{1,4}) {0,4}\]|Call Trace:|RIP: |Code: "
)


def sniff(source: Source) -> int:
    """Sure by lines of the kernel with its time or its name, or by messages of trouble without either."""
    lines = [line for line in source.head_text.splitlines()[:200] if line.strip()]
    senders = [sender for line in lines if (sender := sender_of(line)) is not None]
    of_kernel = sum(1 for sender in senders if sender in {"", "kernel"})
    if of_kernel and of_kernel * 2 >= len(lines):
        return 92
    if "kernel" in senders and len(senders) * 4 >= len(lines) * 3:
        return 60
    if senders or any(is_quoted_with_time(line) for line in lines) or all(parse(line) is None for line in lines):
        return 0
    pasted = sum(1 for line in lines if _PASTED.search(line[:300]) or parse(line) is not None)
    return 70 if pasted * 2 >= len(lines) else 0


def read(source: Source, request: Request) -> Capture:
    """The series of every disk, path and file server that the log speaks of, and of the machines.

    Raises:
        InputError: a line has no time and is none of the kernel's, or no line is.
    """
    builder = CaptureBuilder(source.name, "kernel-log", META.tool)
    clock = KernelClock(source, request, builder)
    machines: dict[str, _Machine] = {}
    lines = source.lines()
    has_times = any(stamp_end(line) for line in lines)
    last: KernelLine | None = None
    for number, line in enumerate(lines, 1):
        if is_of_others(line):
            continue
        parsed = clock.parse(line)
        if parsed is None:
            if has_times and not _BETWEEN.match(line) and line.strip() and (last is None or parse(line) is None):
                raise _refused(f"{source.name}:{number}", f"{line.strip()[:60]!r}")
            host = "" if last is None else last.host
            moment_ns = source.mtime_ns if last is None else last.moment_ns
            parsed = KernelLine(moment_ns, last is not None and last.since_boot, host, "", line)
        else:
            last = parsed
        if parsed.is_of_kernel and parsed.message.strip():
            machines.setdefault(parsed.host, _Machine()).take(parsed)
    if not machines:
        raise _refused(source.name, "no line of a kernel")
    if not has_times:
        builder.warn("no-times", "lines have no time and were placed at the file's last change")
    for host, machine in machines.items():
        _emit(host, machine, clock, builder)
    harmless = sum(machine.harmless for machine in machines.values())
    if harmless:
        builder.warn(
            "harmless", "errors of drives without a medium and of requests a disk does not know: left out", harmless
        )
    named = [host for host in machines if host]
    return builder.build(host=named[0] if len(named) == 1 else None, clock_known=clock.is_known and has_times)


def _refused(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="lines of a Linux kernel log",
        advice=f"Record it with: {META.record}",
    )


@dataclass(slots=True)
class _Task:
    """A stuck task: when it was logged, since when it waited, and its call trace so far."""

    name: str
    process_id: str
    start_ns: int
    end_ns: int
    is_in_io_wait: bool
    frames: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Machine:
    """What the lines of one machine tell, with times as they were logged."""

    first_ns: int | None = None
    last_ns: int = 0
    since_boot: bool = False
    harmless: int = 0
    messages: list[tuple[int, Message]] = field(default_factory=list)
    tasks: list[_Task] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    _trace_left: int = 0
    _seen: set[str] = field(default_factory=set)
    _failed: set[tuple[int, str]] = field(default_factory=set)

    def take(self, line: KernelLine) -> None:
        """One line of the kernel."""
        now_ns, text = line.moment_ns, line.message
        self.first_ns = now_ns if self.first_ns is None else min(self.first_ns, now_ns)
        self.last_ns = max(self.last_ns, now_ns)
        self.since_boot = line.since_boot
        if self._trace_left:
            self._trace_left -= 1
            if (frame := frame_of(text)) is not None:
                self.tasks[-1].frames.append(frame)
                return
        if "sd " in text and (address := _ADDRESS.search(text)) is not None:
            self.names[address[1]] = address[2]
        elif "nvme" in text and (namespace := _NAMESPACE.search(text)) is not None:
            self.names[namespace[1]] = namespace[0]
        message = parse(text)
        if message is not None:
            self._keep(now_ns, message)

    def _keep(self, now_ns: int, message: Message) -> None:
        if message.trouble is Trouble.HARMLESS:
            self.harmless += 1
        elif message.trouble is Trouble.TASK:
            start_ns = now_ns - round(message.seconds * _NS_PER_S)
            self.tasks.append(_Task(message.subject, message.text, start_ns, now_ns, message.key == "disk"))
            self._trace_left = _TRACE_LINES_MAX
        elif not message.key or message.key not in self._seen:
            if message.key:
                self._seen.add(message.key)
            second = (now_ns // _NS_PER_S, message.subject)
            if message.trouble is Trouble.DISK_ERROR:
                self._failed.add(second)
            if message.trouble is not Trouble.DISK_ECHO or self._is_new(second):
                self.messages.append((now_ns, message))

    def _is_new(self, second: tuple[int, str]) -> bool:
        """Whether no other line told of errors of this disk in this second or the one before it."""
        is_new = not {second, (second[0] - 1, second[1])} & self._failed
        self._failed.add(second)
        return is_new


@dataclass(slots=True)
class _Tally:
    """What a log tells of one machine, in nanoseconds of UTC, by metric and entity."""

    guest: Entity
    counts: defaultdict[tuple[str, Entity], list[int]] = field(default_factory=lambda: defaultdict(list))
    states: defaultdict[tuple[str, Entity], list[tuple[int, bool]]] = field(default_factory=lambda: defaultdict(list))
    spans: defaultdict[tuple[str, Entity], list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def take(self, now_ns: int, message: Message, subject: str) -> None:
        """One message about a disk, path or server, or about the machine."""
        trouble = message.trouble
        if trouble not in _NOT_STORAGE:
            self.counts["guest_storage_messages_per_s", self.guest].append(now_ns)
        if trouble in _STATES:
            metric, kind = _STATES[trouble]
            self.states[metric, Entity(kind, subject, self.guest)].append((now_ns, trouble not in _BACK))
        elif trouble is Trouble.SERVER_GIVEN_UP:
            metric, kind = _STATES[Trouble.SERVER_SILENT]
            start_ns = now_ns - round(message.seconds * _NS_PER_S)
            end_ns = now_ns if message.seconds else now_ns + _NS_PER_S
            self.spans[metric, Entity(kind, subject, self.guest)].append((start_ns, end_ns))
        else:
            is_of_disk = subject and trouble not in _NOT_STORAGE
            entity = Entity(EntityKind.BLOCK_DEVICE, subject, self.guest) if is_of_disk else self.guest
            self.counts[_COUNTED[trouble], entity].append(now_ns)

    def close(self, end_ns: int) -> None:
        """Make spans of what was lost and came back, to the end of the log."""
        for key, changes in self.states.items():
            self.spans[key] += _lost(changes, end_ns)


def _emit(host: str, machine: _Machine, clock: KernelClock, builder: CaptureBuilder) -> None:
    request = clock.request
    shift_ns = clock.boot_of(host, machine.last_ns) if machine.since_boot else 0
    guest = Entity(EntityKind.GUEST, host) if host else UNNAMED_GUEST
    log = _Tally(guest)
    log.counts.update({(metric, guest): [] for metric in _OF_MACHINE})
    events: list[dict[str, str]] = []
    for logged_ns, message in machine.messages:
        _event(events, logged_ns + shift_ns, message.trouble, _named(machine, message.text))
        log.take(logged_ns + shift_ns, message, machine.names.get(message.subject, message.subject))
    stuck = _stuck(machine, shift_ns, events)
    first_ns, end_ns = (machine.first_ns or 0) + shift_ns, machine.last_ns + shift_ns
    log.close(end_ns)
    moments = [*(time for times in log.counts.values() for time in times)]
    all_spans = [*(span for lost in log.spans.values() for span in lost), *(span[:2] for span in stuck[_STUCK])]
    seconds = _seconds(first_ns, end_ns, moments, all_spans)
    ends = (seconds + 1) * _NS_PER_S
    for (metric, entity), times in log.counts.items():
        if request.wants(metric):
            places = np.searchsorted(seconds, np.array(times, dtype=np.int64) // _NS_PER_S)
            builder.add_series(metric, entity, ends, np.bincount(places, minlength=len(seconds)), interval_s=1.0)
    for (metric, entity), lost in log.spans.items():
        if request.wants(metric):
            builder.add_series(metric, entity, ends, 100.0 * np.minimum(_overlap(ends, lost), 1.0), interval_s=1.0)
    for metric, waits in stuck.items():
        if request.wants(metric):
            builder.add_series(metric, guest, ends, _at_once(ends, waits), interval_s=1.0)
    builder.inventory.add(guest, builder.info.name, events=events or None)


def _named(machine: _Machine, text: str) -> str:
    """A text with the names of disks in the place of their addresses."""
    for address, name in machine.names.items():
        if address in text and name not in text:
            return text.replace(address, name)
    return text


def _event(events: list[dict[str, str]], now_ns: int, kind: str, text: str) -> None:
    if len(events) < _EVENTS_MAX or sum(event["kind"] == kind for event in events) < _EVENTS_MAX:
        events.append({"time": moment_text(now_ns), "kind": str(kind), "text": text})


def _stuck(machine: _Machine, shift_ns: int, events: list[dict[str, str]]) -> dict[str, list[tuple[int, int, str]]]:
    """When which task was stuck, by metric: start and end in nanoseconds of UTC, and its number."""
    waits: dict[str, list[tuple[int, int, str]]] = {_STUCK: [], _STUCK_ON_DISK: []}
    for task in machine.tasks:
        kind, place = wait_of(task.frames, "disk" if task.is_in_io_wait else "")
        span = (task.start_ns + shift_ns, task.end_ns + shift_ns, task.process_id)
        waits[_STUCK].append(span)
        if kind == "disk":
            waits[_STUCK_ON_DISK].append(span)
        waited = f"{(task.end_ns - task.start_ns) / _NS_PER_S:.0f} s"
        where = f" in {place}" if place else ""
        reason = {"disk": "for a disk", "server": "for a file server", "lock": "for a lock of the kernel"}.get(kind, "")
        text = f"{task.name} ({task.process_id}) had waited {reason or 'in the kernel'} for more than {waited}{where}"
        _event(events, span[1], f"task-stuck-{kind}" if kind else "task-stuck", text)
    return waits


def _lost(changes: list[tuple[int, bool]], end_ns: int) -> list[tuple[int, int]]:
    """Spans in which access was lost; one that only comes back was lost before the log begins and is not counted."""
    spans: list[tuple[int, int]] = []
    since: int | None = None
    for now_ns, is_lost in sorted(changes):
        if is_lost:
            since = now_ns if since is None else since
        elif since is not None:
            spans.append((since, now_ns))
            since = None
    if since is not None:
        spans.append((since, max(end_ns, since + _NS_PER_S)))
    return spans


def _seconds(first_ns: int, end_ns: int, moments: Iterable[int], spans: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    """UTC seconds [n] of the series, ascending: all of a short log, those around messages of a long one."""
    kept = list(spans)
    first = min([first_ns, *(start for start, _ in kept)]) // _NS_PER_S
    last = max([end_ns, *(end for _, end in kept)]) // _NS_PER_S
    if last - first < _DENSE_MAX_S:
        return np.arange(first, last + 1, dtype=np.int64)
    parts = [np.linspace(first, last, _GRID_COUNT).astype(np.int64)]
    near = np.unique(np.array([*moments], dtype=np.int64) // _NS_PER_S)
    parts += [near - 1, near, near + 1]
    budget = _DENSE_MAX_S
    for start, end in sorted(kept):
        begin, until = start // _NS_PER_S, end // _NS_PER_S
        step = max(1, -(-(until - begin) // max(budget // 2, 1)))
        inside = np.arange(begin, until + 1, step, dtype=np.int64)
        budget -= len(inside)
        parts += [inside, np.array([until, until + 1])]
    return np.unique(np.clip(np.concatenate(parts), first, last))


def _overlap(ends: NDArray[np.int64], spans: Iterable[tuple[int, int]]) -> NDArray[np.float64]:
    """The share [n] of each second, which ends then, that lies in the spans."""
    share = np.zeros(len(ends))
    for start, end in spans:
        share += np.maximum(np.minimum(ends, end) - np.maximum(ends - _NS_PER_S, start), 0) / _NS_PER_S
    return share


def _at_once(ends: NDArray[np.int64], waits: Iterable[tuple[int, int, str]]) -> NDArray[np.float64]:
    """How many tasks [n] were stuck at some time of each second; one that is logged again counts once."""
    by_task: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for start, end, process_id in waits:
        by_task[process_id].append((start, end))
    count = np.zeros(len(ends))
    for spans in by_task.values():
        count += _overlap(ends, spans) > 0
    return count
