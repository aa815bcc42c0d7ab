r"""What a virtual machine's log tells of standstills: how long it was stopped, and the snapshots around it.

Reads:
    ``vmware.log`` of a VM on ESXi 5 to 8 (also what ``grep`` picked out of it), in all its forms: with bars and levels
    such as ``I120:``, and that of ESXi 7 and later with ``In(05)``.

Sample:
    .. code-block:: text

        2012-03-23T16:22:51.876Z| vcpu-0| I120: Checkpoint_Unstun: vm stopped for 3658889 us
        2026-11-24T09:00:01.100Z In(05) vcpu-0 - SNAPSHOT: SnapshotVMXConsolidateOnlineCB: Starting consolidate
        2026-11-24T09:00:05.876Z In(05) vcpu-0 - Checkpoint_Unstun: vm stopped for 3658889 us

Lost:
    All else that the log tells of the VM. The VM's name is in a log that begins with its start; a later one does not
    name it.

Units:
    A standstill is logged in microseconds when it ends; its value stands at that moment. The last line of the log is a
    sample of 0 s, where it is no standstill.

Sources:
    VMware KB 1002836 and 2039754 (snapshots and the time a VM is stopped).
    VMware vSphere 8.0 documentation, "ESXi log file format". Lines of ESXi 4.1 to 8.0 in public logs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.clock import EPOCH, NS_PER_US
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.esxi_lines import STAMP_CHARACTERS, EsxiClock

META = ImporterMeta(
    tool="VM log",
    marks=("| vmx|", "| vcpu-", "| mks|", ") vmx ", ") vcpu-", "checkpoint_unstun"),
    layers=(Layer.VM,),
    fields={"Checkpoint_Unstun: vm stopped for": Field("vm_stopped_s", "us")},
    record="cp /vmfs/volumes/DATASTORE/VM/vmware.log .",
)

_THREAD = (
    r"(?:vmx|mks|svga|vcpu-\d{1,4}|[A-Za-z]{0,12}[Ww]orker[#-]?\d{0,12}|host-\d{1,10}|[a-z]{0,8}[Tt]hread-\d{1,10})"
)
_BEGIN = re.compile(rf"(?:\| ?{_THREAD}\|| (?:Em|Al|Cr|Er|Wa|No|In|Db)\(\d{{1,3}}\)\+? {_THREAD} )")
_STUN = re.compile(r"Checkpoint_Unstun: vm stopped for (\d{1,15}) us")
_TAKEN = re.compile(r"SnapshotVMX_TakeSnapshot start: '([^']{0,200})'")
_DISPLAY_NAME = re.compile(r"\bdisplayName = \"?([^\"\s][^\"]{0,200})")
_HOST_NAME = re.compile(r"\bHostname=([A-Za-z0-9][\w.-]{0,200})")
# A text -> what began or ended with it, and the kind of event.
_STEPS = (
    ("SnapshotVMXTakeSnapshotComplete: Done", "snapshot-created", "snapshot ends"),
    ("TakeSnapshotWork: Failed", "snapshot-created", "snapshot ends without success"),
    ("ConsolidateOnlineCB: Starting", "snapshot-consolidated", "consolidation begins"),
    ("SnapshotVMX_Consolidate: Starting", "snapshot-consolidated", "consolidation begins"),
    ("ConsolidateOnlineCB: Done", "snapshot-consolidated", "consolidation ends"),
    ("ConsolidateEnd: Snapshot consolidate complete", "snapshot-consolidated", "consolidation ends"),
    ("ConsolidateOnlineCB: Another iteration", "snapshot-consolidated", "consolidation begins a further iteration"),
)
_EVENTS_MAX = 1000
_NAME_SHOWN = 60
_US_PER_S = 1e6


def sniff(source: Source) -> int:
    """Sure by the thread of the virtual machine that each line names after its time."""
    lines = [line for line in source.head_text.splitlines()[:60] if line.strip()]
    count = sum(1 for line in lines if _BEGIN.search(line[:STAMP_CHARACTERS]) is not None)
    return 91 if count and count * 4 >= len(lines) else 0


def read(source: Source, request: Request) -> Capture:
    """How long the VM was stopped each time, with its snapshots as events of the VM.

    Raises:
        InputError: no line has a time.
    """
    builder = CaptureBuilder(source.name, "vmware-log", META.tool)
    clock = EsxiClock(source, request, builder)
    log = _VmLog()
    for line in source.lines():
        timed = clock.parse(line)
        if timed is None:
            if "Checkpoint_Unstun" in line:
                builder.warn("no-time", "standstills without a date were left out")
            continue
        log.take(*timed)
    if not log.times:
        raise InputError(
            source.name,
            found="no line with a date and time",
            expected="vmware.log of a virtual machine",
            advice="Copy vmware.log from the VM's folder on its datastore; older ones are vmware-1.log and so on.",
        )
    vm = Entity(EntityKind.VM, log.name or "vm", Entity(EntityKind.HOST, log.host) if log.host else None)
    if log.times[-1] not in log.stopped_s:
        log.stopped_s.setdefault(max(log.times), 0.0)
    moments = np.array(sorted(log.stopped_s), dtype=np.int64)
    if request.wants("vm_stopped_s"):
        stopped = np.array([log.stopped_s[time_ns] for time_ns in moments.tolist()])
        builder.add_series("vm_stopped_s", vm, moments, stopped, interval_s=float("nan"))
    builder.inventory.add(vm, source.name, events=log.events or None)
    if not log.name:
        builder.warn("no-name", "the log does not name its VM, which is shown as vm")
    return builder.build(host=log.host or None, clock_known=clock.is_known)


@dataclass(slots=True)
class _VmLog:
    """What the lines of a VM's log tell."""

    name: str = ""
    host: str = ""
    times: list[int] = field(default_factory=list)
    stopped_s: dict[int, float] = field(default_factory=dict)
    events: list[dict[str, str]] = field(default_factory=list)

    def take(self, time_ns: int, rest: str) -> None:
        """One line: its time and what follows it."""
        self.times.append(time_ns)
        if (stun := _STUN.search(rest)) is not None:
            self.stopped_s[time_ns] = max(float(stun[1]) / _US_PER_S, self.stopped_s.get(time_ns, 0.0))
        elif "napshot" in rest or "Consolidate" in rest:
            self._snapshot(time_ns, rest)
        elif not self.name and "displayName" in rest and (name := _DISPLAY_NAME.search(rest)) is not None:
            self.name = name[1].strip()
        elif not self.host and (host := _HOST_NAME.search(rest)) is not None:
            self.host = host[1]

    def _snapshot(self, time_ns: int, rest: str) -> None:
        if (taken := _TAKEN.search(rest)) is not None:
            kind = "snapshot-quiesced" if "quiesced=1" in rest else "snapshot-created"
            quiesced = "quiesced " if kind == "snapshot-quiesced" else ""
            self._event(time_ns, kind, f"{quiesced}snapshot '{taken[1][:_NAME_SHOWN]}' begins")
            return
        for words, kind, text in _STEPS:
            if words in rest:
                self._event(time_ns, kind, text)
                return

    def _event(self, time_ns: int, kind: str, text: str) -> None:
        if len(self.events) < _EVENTS_MAX:
            moment = EPOCH + timedelta(microseconds=time_ns // NS_PER_US)
            self.events.append({"time": moment.isoformat(), "kind": kind, "text": text})
