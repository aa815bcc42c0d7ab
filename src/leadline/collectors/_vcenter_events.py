"""What hosts logged of their storage in the last day, from vCenter's list of events."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.collectors._vcenter_services import asking
from leadline.estate.knowledge.vcenter_session import id_of, of

# An older outage is over: the rule on lost access looks back as far as vCheck-vSphere does.
LOOKS_BACK = timedelta(days=1)
KINDS = {
    "esx.problem.storage.apd.start": "storage-apd",
    "esx.problem.scsi.device.state.permanentloss": "storage-pdl",
    "esx.problem.scsi.device.state.permanentloss.withreservationheld": "storage-pdl",
    "esx.problem.vmfs.heartbeat.timedout": "storage-lost-access",
    "esx.problem.vmfs.heartbeat.unrecoverable": "storage-lost-access",
    "esx.problem.storage.connectivity.lost": "storage-path-lost",
}
_TEXT_CHARACTERS_MAX = 300


def read(estate: VcenterInventory, manager: Any, now: datetime) -> None:  # noqa: ANN401 - pyVmomi makes its types at run time
    """One question for all hosts, which must have been added; vCenter answers with at most 1,000 events."""
    from pyVmomi import vim  # noqa: PLC0415 - 0.5 s that only this collector needs

    span = vim.event.EventFilterSpec.ByTime(beginTime=now - LOOKS_BACK, endTime=now)
    with asking(estate, "events of hosts", needs="it needs the privilege to view the whole inventory"):
        add_events(estate, manager.QueryEvents(vim.event.EventFilterSpec(eventTypeId=list(KINDS), time=span)))


def add_events(estate: VcenterInventory, events: Any) -> None:  # noqa: ANN401
    """Events of hosts as settings; of a host without any nothing is said, for recordings may be of another day.

    Source: vSphere Web Services API reference, EventManager.QueryEvents, EventEx.eventTypeId. vCheck-vSphere, plug-in
    on lost access to volumes; VMware KB 2004684 (APD and PDL).
    """
    by_host: dict[str, list[dict[str, str]]] = {}
    for event in events or ():
        kind, host = KINDS.get(str(of(event, "eventTypeId"))), of(event, "host.host")
        if kind is not None and host is not None and id_of(host) in estate.hosts:
            text = str(of(event, "fullFormattedMessage") or of(event, "message") or "")[:_TEXT_CHARACTERS_MAX]
            by_host.setdefault(id_of(host), []).append(
                {"time": event.createdTime.isoformat(), "kind": kind, "text": text}
            )
    for key, host_events in by_host.items():
        estate.add(estate.hosts[key], events=sorted(host_events, key=lambda event: event["time"]))
