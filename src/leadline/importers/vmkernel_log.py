r"""What an ESXi host logs of its storage: jumped latency, lost access, failed commands, conflicts, congestion.

Reads:
    ``vmkernel.log``, ``vmkwarning.log`` and ``vobd.log`` of ESXi 5 to 8, one or several of them in a file, and the
    same lines as a syslog server keeps them, of one or many hosts; those of ESX 3 and 4; indented or quoted lines.

Sample:
    .. code-block:: text

        2026-11-24T09:00:11.403Z cpu0:2097803)WARNING: ScsiDeviceIO: 1223: Device naa.60014 performance has deteriorated. I/O latency increased from average value of 3011 microseconds to 558476 microseconds.
        2026-11-24T09:05:01.002Z In(182) vmkernel: cpu4:2097365)StorageApdHandler: 846: APD start event for ident [8a5a1336-3d574c6d]

Lost:
    All lines that do not speak of storage. Commands that failed because the device does not know them (ILLEGAL REQUEST)
    and notices of a device (UNIT ATTENTION) are counted in a warning only. Lines without a date, where others have one.
    ESXi logs a device's failed commands sparsely, so that there are at least as many.

Units:
    Latency is logged in microseconds; it has a value only where a line tells it. What happened per second is counted
    in steps of one second from the first line to the last, in longer ones where the log covers more than 5 hours.
    Commands flushed by a reset within one second are one reset. A line that the host wrote to two of its logs counts
    once. What was lost and does not come back in the log is lost to its end. A log of ESX 3 or 4 that has only times
    since boot ends when the file was changed, which is said.

Sources:
    VMware KB 2007236 (performance has deteriorated), 2004684 (APD and PDL), 1029039 and 1030381 (H:, D:, P: codes).
    T10 SPC-4: sense keys. Lines of ESXi 5.0 to 8.0 in public logs.
"""  # noqa: E501 - lines as they are logged

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.esxcli import UNNAMED_HOST, host_of_bundle
from leadline.formats.esxi_events import CONFLICTS, CONGESTION, FAILURES, GIVEN_UP, HEARTBEATS, logged_events
from leadline.formats.esxi_lines import STAMP_CHARACTERS, EsxiClock, since_boot

META = ImporterMeta(
    tool="ESXi log",
    marks=(")", "vobd"),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "performance has deteriorated|improved, to": Field("disk_logged_latency_ms", "us"),
        "performance has deteriorated|improved, from": Field("disk_logged_latency_ms_usual", "us"),
        "APD|PDL|Lost access|Lost connection|Path is down": Field("disk_access_lost_pct", "pct"),
        "state in doubt": Field("disk_state_doubts_per_s", "per_s"),
        "failed H: D: P:": Field("disk_failed_per_s", "per_s"),
        "H:0x5|Abort Task": Field("disk_aborts_per_s", "per_s"),
        "H:0x8|Lun Reset|Target Reset": Field("disk_resets_per_s", "per_s"),
        "D:0x18": Field("disk_conflicts_per_s", "per_s"),
        "failed H: D: P:, counted by line": Field(FAILURES, "per_s"),
        "reservation conflicts|Sync CR": Field(CONFLICTS, "per_s"),
        "a driver's abort or reset": Field(GIVEN_UP, "per_s"),
        "Waiting for timed out HB": Field(HEARTBEATS, "per_s"),
        "Current Congestion": Field(CONGESTION, "count"),
        "any of these": Field("host_storage_messages_per_s", "per_s"),
    },
    record="cat /var/log/vmkernel.log > vmkernel.log",
)

_VMKERNEL = re.compile(r"\bcpu\d{1,4}:\d{1,10}(?: opID=[\w-]{1,80})?\)")
_VOBD = re.compile(r"\d{5,20}us: {1,3}\[(?:esx|vob)\.[a-z]")
_HOST = re.compile(r":? (?:1 )?([A-Za-z0-9][\w.-]{0,200}) (?:vmkernel|vmkwarning|vobd)\b")
_LATENCY = re.compile(
    r"(deteriorated|improved)\. I/O latency (?:increased from average value of|reduced from) "
    r"(\d{1,15}) ?(?:\(us\)|microseconds) to (\d{1,15}) ?(?:\(us\)|microseconds)"
)
_DEVICE = re.compile(r"\b(?:naa|eui|t10|mpx|sym|vml)\.[\w.:-]{1,200}")
_PATH = re.compile(r"\bvmhba\d{1,4}:C\d{1,4}:T\d{1,4}:L\d{1,5}")
_ISCSI = re.compile(
    r"\b(vmhba\d{1,4}):CH:(\d{1,4}) T:(\d{1,4}) L:(\d{1,5}) : Task mgmt \"(Abort Task|[A-Za-z]+ Reset)\""
)
_CODES = re.compile(
    r"[Ff]ailed:? H:0[x×]([\da-f]{1,2}) D:0[x×]([\da-f]{1,2}) P:0[x×][\da-f]{1,2}(?: \w+ sense data: 0[x×]([\da-f]))?"
)
_COMMAND = re.compile(r"(?:Cmd ?\(|Command 0x[\da-f]{1,2} \(|Cmd 0x[\da-f]{1,2} \()(0x[\da-f]{1,16})")
_APD = re.compile(r"\bAPD (start|timeout|exit)\b[^\[]{0,60}\[([^\]\s]{1,200})\]")
_IDENTIFIER = re.compile(r"identifier \[?([^\]\s]{1,200}?)\]? has (entered|exited) the All Paths Down")
_VOLUME = re.compile(r"APD_(START|EXIT) \(\d{1,3}\) for vol '([^']{1,200})'")
_NAME = re.compile(r"\(\"?([^\")]{1,200})\"?\)")
_LOST, _BACK = True, False
# A text that tells of a device's access -> lost or back.
_DEVICE_STATES = (
    ("permanently inaccessible is now online", _BACK),
    ("permanently inaccessible", _LOST),
    ("permanently lost", _LOST),
    ("set to APD_START", _LOST),
    ("is Out of APD", _BACK),
    ("Lost connectivity to storage device", _LOST),
    ("Connectivity to storage device", _BACK),
)
_DATASTORE_STATES = (
    ("Lost access to volume", _LOST),
    ("restored access to volume", _BACK),
    ("Lost connection to", _LOST),
    ("Restored connection to", _BACK),
)
_PATH_STATES = (("pathstate.dead", _LOST), ("is down", _LOST), ("pathstate.on", _BACK), ("is active again", _BACK))
_ABORTED, _RESET, _CONFLICT = 0x5, 0x8, 0x18
_CHECK_CONDITION = 0x2
_HARMLESS_SENSE = frozenset({0x5, 0x6})  # ILLEGAL REQUEST, UNIT ATTENTION
_STEPS_MAX = 18_000
_NS_PER_S = 1_000_000_000
_US_PER_MS = 1000.0
Part = tuple[EntityKind, str]


def sniff(source: Source) -> int:
    """Sure by the CPU and world that the kernel puts before each line, or by the events of its observation daemon."""
    lines = [line for line in source.head_text.splitlines()[:60] if line.strip()]
    count = sum(1 for line in lines if _is_of_host(line[: 2 * STAMP_CHARACTERS]))
    return 92 if count and count * 4 >= len(lines) else 0


def _is_of_host(head: str) -> bool:
    return _VMKERNEL.search(head) is not None or _VOBD.search(head) is not None


def read(source: Source, request: Request) -> Capture:
    """The series of every device, datastore and path that the log speaks of, and of the hosts.

    Raises:
        InputError: no line has a time.
    """
    builder = CaptureBuilder(source.name, "vmkernel-log", META.tool)
    clock = EsxiClock(source, request, builder)
    log = _Log(host_of_bundle(source.name))
    undated: list[tuple[int, str]] = []
    undated_count = 0
    for line in source.lines():
        if not _is_of_host(line[: 2 * STAMP_CHARACTERS]):
            continue
        timed = clock.parse(line)
        if timed is not None:
            log.take(*timed)
            continue
        undated_count += 1
        after_boot = since_boot(line)
        undated += [after_boot] if after_boot is not None and not log.times else []
    is_placed = bool(undated) and not log.times
    if is_placed:
        builder.warn("since-boot", "times are since boot; the last line was put at the file's change", len(undated))
        shift = source.mtime_ns - max(time_ns for time_ns, _ in undated)
        for time_ns, rest in undated:
            log.take(time_ns + shift, rest)
    left_out_count = undated_count - len(undated) if is_placed else undated_count
    if left_out_count:
        builder.warn("no-time", "lines without a date were left out", left_out_count)
    if not log.times:
        raise InputError(
            source.name,
            found="no line of the kernel with a date and time",
            expected="vmkernel.log or vobd.log of ESXi 5 or later",
            advice="Copy /var/log/vmkernel.log from the host, or the same lines from the syslog server.",
        )
    if log.harmless:
        builder.warn(
            "harmless", "failed commands that a device does not know, or notices of it: left out", log.harmless
        )
    _emit(log, builder, request)
    return builder.build(host=log.only_host, clock_known=clock.is_known and not is_placed)


@dataclass(slots=True)
class _Log:
    """What the lines of a log tell, by entity."""

    bundle_host: str = ""
    times: list[int] = field(default_factory=list)
    harmless: int = 0
    latencies: dict[Entity, dict[int, tuple[float, float]]] = field(default_factory=dict)
    states: dict[Entity, list[tuple[int, bool]]] = field(default_factory=dict)
    counts: dict[tuple[str, Entity], list[int]] = field(default_factory=dict)
    values: dict[tuple[str, Entity], dict[int, float]] = field(default_factory=dict)
    statuses: dict[Entity, Counter[str]] = field(default_factory=dict)
    hosts: dict[str, Entity] = field(default_factory=dict)
    _seen: set[tuple[object, ...]] = field(default_factory=set)

    @property
    def only_host(self) -> str | None:
        """The host's name, where the log names one."""
        named = [name for name in self.hosts if name]
        return named[0] if len(named) == 1 else None

    def take(self, time_ns: int, rest: str) -> None:
        """One line: its time and what follows it."""
        self.times.append(time_ns)
        match = _HOST.match(rest[:300])
        name = match[1] if match else self.bundle_host
        host = self.hosts.setdefault(name, Entity(EntityKind.HOST, name or UNNAMED_HOST))
        self.counts.setdefault(("host_storage_messages_per_s", host), [])
        kernel = _VMKERNEL.search(rest[: 2 * STAMP_CHARACTERS])
        text = rest[kernel.end() :] if kernel else rest
        text = text.removeprefix("WARNING: ").removeprefix("ALERT: ")
        if (host, time_ns, text) in self._seen:  # vmkernel.log and vmkwarning.log hold the same line
            return
        if self._latency(host, time_ns, text) or self._state(host, time_ns, text) or self._failure(host, time_ns, text):
            self._seen.add((host, time_ns, text))
            self._count("host_storage_messages_per_s", host, time_ns)

    def _count(self, metric: str, entity: Entity, time_ns: int) -> None:
        self.counts.setdefault((metric, entity), []).append(time_ns)

    def _latency(self, host: Entity, time_ns: int, text: str) -> bool:
        before, is_told, after = text.partition(" performance has ")
        match = _LATENCY.match(after) if is_told else None
        if match is None:
            return False
        _, is_volume, name = before.partition("volume ")
        if not is_volume:
            _, _, name = before.partition("Device ")
        if not name.strip():
            return False
        kind = EntityKind.DATASTORE if is_volume else EntityKind.DEVICE
        usual_ms, now_ms = float(match[2]) / _US_PER_MS, float(match[3]) / _US_PER_MS
        known = self.latencies.setdefault(Entity(kind, name.strip(), host), {})
        if time_ns not in known or known[time_ns][1] < now_ms:
            known[time_ns] = (usual_ms, now_ms)
        return True

    def _state(self, host: Entity, time_ns: int, text: str) -> bool:
        states = list(_states(text))
        for (kind, name), is_lost in states:
            self.states.setdefault(Entity(kind, name, host), []).append((time_ns, is_lost))
        return bool(states)

    def _failure(self, host: Entity, time_ns: int, text: str) -> bool:
        device = _DEVICE.search(text)
        if device is not None and "state in doubt" in text:
            self._count("disk_state_doubts_per_s", Entity(EntityKind.DEVICE, _trimmed(device), host), time_ns)
            return True
        task = _ISCSI.search(text) if "Task mgmt" in text else None
        if task is not None:
            path = Entity(EntityKind.PATH, f"{task[1]}:C{task[2]}:T{task[3]}:L{task[4]}", host)
            metric = "disk_aborts_per_s" if task[5] == "Abort Task" else "disk_resets_per_s"
            self._count(metric, path, time_ns)
            return True
        codes = _CODES.search(text)
        if codes is not None and device is not None:
            return self._failed(Entity(EntityKind.DEVICE, _trimmed(device), host), time_ns, text, codes)
        events = list(logged_events(text))
        for event in events:
            entity = Entity(event.kind, event.name, host)
            if event.metric == CONGESTION:
                known = self.values.setdefault((CONGESTION, entity), {})
                known[time_ns] = max(event.value, known.get(time_ns, 0.0))
            else:
                self.counts.setdefault((event.metric, entity), []).extend([time_ns] * round(event.value))
        return bool(events)

    def _failed(self, device: Entity, time_ns: int, text: str, codes: re.Match[str]) -> bool:
        """One failed command; the paths' plug-in and the device may log the same one."""
        host_code, device_code = int(codes[1], 16), int(codes[2], 16)
        if host_code == 0 and device_code == _CHECK_CONDITION and codes[3] and int(codes[3], 16) in _HARMLESS_SENSE:
            self.harmless += 1
            return False
        command = _COMMAND.search(text)
        if command is not None:
            key = (device, command[1], time_ns // _NS_PER_S)
            if key in self._seen:
                return False
            self._seen.add(key)
        self._count("disk_failed_per_s", device, time_ns)
        status = f"H:0x{host_code:x}" if host_code else f"D:0x{device_code:x}"
        if device_code == _CHECK_CONDITION and codes[3]:
            status += f" sense 0x{codes[3]}"
        self.statuses.setdefault(device, Counter())[status] += 1
        self._count(FAILURES, device, time_ns)
        if host_code == _ABORTED:
            self._count("disk_aborts_per_s", device, time_ns)
        if device_code == _CONFLICT:
            self._count("disk_conflicts_per_s", device, time_ns)
            self._count(CONFLICTS, device, time_ns)
        if host_code == _RESET and ("reset", device, time_ns // _NS_PER_S) not in self._seen:
            self._seen.add(("reset", device, time_ns // _NS_PER_S))
            self._count("disk_resets_per_s", device, time_ns)
        return True


def _trimmed(match: re.Match[str]) -> str:
    return match[0].rstrip(".:-")


def _states(text: str) -> Iterator[tuple[Part, bool]]:
    """The devices, datastores and paths whose access a line tells of, and whether it is lost."""
    if "APD" in text and (match := _APD.search(text)):
        yield _identified(match[2]), match[1] != "exit"
    elif "All Paths Down" in text and (match := _IDENTIFIER.search(text)):
        yield _identified(match[1]), match[2] == "entered"
    elif match := _VOLUME.search(text):
        yield (EntityKind.DATASTORE, match[2]), match[1] == "START"
    else:
        yield from _other_states(text)


def _other_states(text: str) -> Iterator[tuple[Part, bool]]:
    device = _DEVICE.search(text)
    for words, is_lost in _DEVICE_STATES if device is not None else ():
        if words in text and device is not None:
            yield (EntityKind.DEVICE, _trimmed(device)), is_lost
            break
    for words, is_lost in _DATASTORE_STATES:
        _, is_there, after = text.partition(words)
        if is_there and (name := _NAME.search(after)):
            yield (EntityKind.DATASTORE, name[1]), is_lost
            break
    path = _PATH.search(text)
    for words, is_lost in _PATH_STATES if path is not None else ():
        if words in text and path is not None:
            yield (EntityKind.PATH, path[0]), is_lost
            break


def _identified(name: str) -> Part:
    return (EntityKind.DEVICE if _DEVICE.match(name) else EntityKind.DATASTORE), name


def _emit(log: _Log, builder: CaptureBuilder, request: Request) -> None:
    first, last = min(log.times) // _NS_PER_S, max(log.times) // _NS_PER_S
    step_s = -(-(last - first + 1) // _STEPS_MAX)
    count = (last - first) // step_s + 1
    starts = (first + step_s * np.arange(count, dtype=np.int64)) * _NS_PER_S
    times = starts + step_s * _NS_PER_S
    for (metric, entity), moments in log.counts.items():
        if request.wants(metric):
            places = (np.array(moments, dtype=np.int64) // _NS_PER_S - first) // step_s
            values = np.bincount(places, minlength=count) / step_s
            builder.add_series(metric, entity, times, values, interval_s=step_s)
    for entity, states in log.states.items():
        if request.wants("disk_access_lost_pct"):
            spans = _lost_spans(states, int(starts[0]), int(times[-1]))
            values = np.zeros(count)
            for begin, end in spans:
                overlap = np.minimum(times, end) - np.maximum(starts, begin)
                values += np.maximum(overlap, 0)
            share = np.minimum(100.0 * values / (step_s * _NS_PER_S), 100.0)
            builder.add_series("disk_access_lost_pct", entity, times, share, interval_s=step_s)
    for device, statuses in log.statuses.items():
        builder.inventory.add(device, builder.info.name, failure_code=statuses.most_common(1)[0][0])
    for (metric, entity), values_at in log.values.items():
        if request.wants(metric):
            moments_at = np.array(sorted(values_at), dtype=np.int64)
            column = np.array([values_at[time_ns] for time_ns in moments_at.tolist()])
            builder.add_series(metric, entity, moments_at, column, interval_s=1.0)
    for entity, known in log.latencies.items():
        moments_ns: NDArray[np.int64] = np.array(sorted(known), dtype=np.int64)
        for metric, place in (("disk_logged_latency_ms", 1), ("disk_logged_latency_ms_usual", 0)):
            if request.wants(metric):
                column = np.array([known[time_ns][place] for time_ns in moments_ns.tolist()])
                builder.add_series(metric, entity, moments_ns, column, interval_s=1.0)


def _lost_spans(states: list[tuple[int, bool]], first_ns: int, last_ns: int) -> Iterator[tuple[int, int]]:
    """Spans in which access was lost, from lines in any order; lost before the first line where that says "back"."""
    ordered = sorted(states)
    begin = first_ns if ordered[0][1] is _BACK else None
    for time_ns, is_lost in ordered:
        if is_lost and begin is None:
            begin = time_ns
        elif not is_lost and begin is not None:
            yield begin, time_ns
            begin = None
    if begin is not None:
        yield begin, last_ns
