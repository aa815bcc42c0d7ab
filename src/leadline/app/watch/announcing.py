"""Notices that are due: where an incident is different from what a receiver last heard of it.

The last that each receiver heard is kept. So an incident that opened under maintenance and goes on is told when the
maintenance ends, and the end of one that was over while no watch ran is told by the next watch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leadline.app.watch.incident_book import REOPEN_WITHIN_S
from leadline.core.contracts.notifier import NoticeState
from leadline.core.model.capture import NS_PER_S
from leadline.core.model.vocabulary import Severity
from leadline.stores.incidents import Heard, IncidentStore, LiveIncident

if TYPE_CHECKING:
    from leadline.app.watch.settings import ReceiverSettings


@dataclass(eq=False)
class Announcer:
    """Finds the notices that are due, and for whom.

    Args:
        receivers: of notices.
        incidents: keeps the last that each receiver heard.
        tell: keeps a notice of an incident for the receivers of these names.
    """

    receivers: tuple[ReceiverSettings, ...]
    incidents: IncidentStore
    tell: Callable[[LiveIncident, NoticeState, list[str]], None]
    _unfinished: dict[str, LiveIncident] = field(default_factory=dict)
    _heard: dict[str, dict[str, Heard]] = field(default_factory=dict)

    def take_up(self) -> None:
        """Go on with what the last watch has told.

        Raises:
            ToolError: the incidents cannot be read.
        """
        names = {one.name for one in self.receivers}
        for incident in (*self.incidents.open_ones(), *self.incidents.heard_as_open(names)):
            self._unfinished[incident.id] = incident

    def take(self, incident: LiveIncident) -> None:
        """An incident as it is now."""
        if incident.is_open or incident.id in self._unfinished:
            self._unfinished[incident.id] = incident

    def announce(self, now_ns: int) -> None:
        """Tell the notices that are due now, of every incident that is open or whose end somebody has to hear.

        Raises:
            ToolError: a notice cannot be kept; the next call tries again.
        """
        if not self._unfinished:
            return
        windows = self.incidents.maintenance(now_ns)
        for incident in list(self._unfinished.values()):
            is_quiet = any(window.covers(place, now_ns) for window in windows for place in incident.places)
            if not is_quiet:
                self._announce(incident, now_ns)
            heard = self._heard_of(incident)
            if not incident.is_open and not any(one.is_open for one in heard.values()):
                del self._unfinished[incident.id], self._heard[incident.id]

    def _announce(self, incident: LiveIncident, now_ns: int) -> None:
        heard = self._heard_of(incident)
        states = {one.name: due_state(one, incident, heard.get(one.name), now_ns) for one in self.receivers}
        for state in dict.fromkeys(filter(None, states.values())):
            some = [one for one in self.receivers if states[one.name] is state]
            if names := [one.name for one in some if one.wants(state)]:
                self.tell(incident, state, names)
            # Remembered first: what cannot be kept on a full disk is not told a second time by this watch.
            news = Heard(incident.is_open, incident.severity, incident.cause)
            heard.update({one.name: news for one in some})
            self.incidents.hear(incident.id, {one.name: news for one in some})

    def _heard_of(self, incident: LiveIncident) -> dict[str, Heard]:
        if incident.id not in self._heard:
            self._heard[incident.id] = self.incidents.heard(incident.id)
        return self._heard[incident.id]


def due_state(
    receiver: ReceiverSettings, incident: LiveIncident, heard: Heard | None, now_ns: int
) -> NoticeState | None:
    """What a receiver has to hear of an incident, whether he wants to or not; None for nothing.

    An incident opens to him when it has the severity he asked for. One that comes and goes is back once, and is over
    when it has stayed away for a while.
    """
    if incident.is_open:
        if heard is None:
            return NoticeState.OPENED if incident.severity >= Severity[receiver.severity.upper()] else None
        if not heard.is_open:
            return NoticeState.REOPENED
        is_worse = incident.severity > heard.severity or incident.cause != heard.cause
        return NoticeState.WORSENED if is_worse else None
    if heard is None or not heard.is_open:
        return None
    is_settled = now_ns - (incident.closed_ns or 0) >= REOPEN_WITHIN_S * NS_PER_S
    return NoticeState.CLOSED if is_settled or not incident.reopened_count else None
