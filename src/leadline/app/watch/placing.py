"""Incidents by the places that they touch: in an estate where thousands go on none is compared with all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.stores.incidents import LiveIncident


class PlacedIncidents(MutableMapping[str, "LiveIncident"]):
    """Incidents by their id, in the order in which they came, and those that touch some places."""

    def __init__(self) -> None:
        """None yet."""
        self._incidents: dict[str, LiveIncident] = {}
        self._turns: dict[str, int] = {}
        self._at: dict[str, set[str]] = {}
        self._count = 0

    def touching(self, places: Iterable[str]) -> list[LiveIncident]:
        """The incidents that touch one of some places, in the order in which they came."""
        ids = {one for place in places for one in self._at.get(place, ())}
        return [self._incidents[one] for one in sorted(ids, key=self._turns.__getitem__)]

    def __getitem__(self, number: str) -> LiveIncident:
        return self._incidents[number]

    def __setitem__(self, number: str, incident: LiveIncident) -> None:
        known = self._incidents.get(number)
        before = set() if known is None else set(known.places)
        after = set(incident.places)
        if known is None:
            self._count += 1
            self._turns[number] = self._count
        self._incidents[number] = incident
        for place in after - before:
            self._at.setdefault(place, set()).add(number)
        self._leave(number, before - after)

    def __delitem__(self, number: str) -> None:
        self._leave(number, self._incidents.pop(number).places)
        del self._turns[number]

    def _leave(self, number: str, places: Iterable[str]) -> None:
        for place in places:
            self._at[place].discard(number)
            if not self._at[place]:
                del self._at[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._incidents)

    def __len__(self) -> int:
        return len(self._incidents)
