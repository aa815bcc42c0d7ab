"""What happened since the last look: tasks, alarms and other events, as settings ``events`` of VMs and hosts."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.collectors._vcenter_events import KINDS
from leadline.core.model.entities import Entity, Inventory
from leadline.estate.knowledge.vcenter_session import id_of, kind, of

_TEXT_CHARACTERS_MAX = 300
_MIGRATED = ("VmMigratedEvent", "DrsVmMigratedEvent", "VmRelocatedEvent", "VmBeingHotMigratedEvent")
_OURS = dict.fromkeys(_MIGRATED, "migrated") | {"VmToolsUpgraded": "tools-upgraded"}
_TASKS = {
    "VirtualMachine.createSnapshot": "snapshot-created",
    "VirtualMachine.removeAllSnapshots": "snapshot-removed",
    "vm.Snapshot.remove": "snapshot-removed",
    "VirtualMachine.consolidateDisks": "snapshot-consolidated",
}
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class EventReader:
    """Reads each event once; alarms that change and tasks that begin are events, too."""

    def __init__(self, since: datetime) -> None:
        self._since = since
        self._keys: set[int] = set()

    def read(self, manager: Any, estate: VcenterInventory, inventory: Inventory) -> None:  # noqa: ANN401
        """Add the events since the last call to an inventory; vCenter answers with at most 1,000.

        Source: vSphere Web Services API reference, EventManager.QueryEvents, TaskEvent, AlarmStatusChangedEvent.
        """
        from pyVmomi import vim  # noqa: PLC0415 - 0.5 s that only what talks to vCenter needs

        span = vim.event.EventFilterSpec.ByTime(beginTime=self._since)
        events = [
            event
            for event in manager.QueryEvents(vim.event.EventFilterSpec(time=span)) or ()
            if event.createdTime >= self._since and event.key not in self._keys
        ]
        by_entity: dict[Entity, list[dict[str, str]]] = {}
        for event in sorted(events, key=lambda event: event.createdTime):
            entity = _entity(event, estate)
            if entity is not None:
                text = str(of(event, "fullFormattedMessage") or of(event, "message") or "")[:_TEXT_CHARACTERS_MAX]
                by_entity.setdefault(entity, []).append(
                    {"time": event.createdTime.isoformat(), "kind": kind_of(event), "text": text}
                )
        for entity, listed in by_entity.items():
            inventory.add(entity, estate.source, events=listed)
        if events:
            # Events of the same moment may still come, so it is asked for again and what is known left out.
            newest = max(event.createdTime for event in events)
            same = {event.key for event in events if event.createdTime == newest}
            self._keys = same | (self._keys if newest == self._since else set())
            self._since = newest


def kind_of(event: Any) -> str:  # noqa: ANN401
    """The kind as Leadline names it, else vCenter's name in lower case with hyphens.

    >>> from types import SimpleNamespace
    >>> kind_of(SimpleNamespace(eventTypeId="esx.problem.storage.apd.start"))
    'storage-apd'
    """
    known = KINDS.get(str(of(event, "eventTypeId"))) or _TASKS.get(str(of(event, "info.descriptionId")))
    if known is not None:
        return known
    name = kind(event)
    words = str(of(event, "eventTypeId") or _WORD.sub("-", name.removesuffix("Event")))
    return _OURS.get(name, words.casefold())


def _entity(event: Any, estate: VcenterInventory) -> Entity | None:  # noqa: ANN401
    """The VM an event is of, else the host."""
    machine, host = of(event, "vm.vm"), of(event, "host.host")
    vm = None if machine is None else estate.vms.get(id_of(machine))
    if vm is not None or machine is not None:
        return vm
    return None if host is None else estate.hosts.get(id_of(host))
