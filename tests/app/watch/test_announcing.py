"""Who hears what of an incident, and when: each receiver once, whatever was quiet or off meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from leadline.app.watch.announcing import Announcer
from leadline.app.watch.incident_book import REOPEN_WITHIN_S
from leadline.app.watch.settings import ReceiverSettings
from leadline.core.contracts.notifier import NoticeState
from leadline.core.model.capture import NS_PER_S
from leadline.core.model.errors import ToolError
from leadline.core.model.vocabulary import Severity
from leadline.stores.incidents import IncidentStore, LiveIncident, Maintenance

OPENED_S = 1000
OPEN = LiveIncident(
    id="19700101-001640-1",
    opened_ns=OPENED_S * NS_PER_S,
    seen_ns=OPENED_S * NS_PER_S,
    closed_ns=None,
    severity=Severity.MEDIUM,
    cause="disk-latency-high",
    entity="guest:db01",
    title="a slow disk",
    text="it is slow",
    places=("guest:db01",),
)


def receiver(name: str, severity: str = "medium", **more: object) -> ReceiverSettings:
    given = {"name": name, "notifier": "run-command", "severity": severity, "settings": {"command": ["true"]}}
    return ReceiverSettings.model_validate({**given, **more})


class Telling:
    """An announcer on a folder, and what it told to whom."""

    def __init__(self, folder: Path, *receivers: ReceiverSettings) -> None:
        self.told: list[tuple[str, str]] = []
        self.is_full = False
        self.store = IncidentStore(folder)
        self.announcer = Announcer(receivers or (receiver("dba"),), self.store, self._tell)
        self.announcer.take_up()

    def _tell(self, incident: LiveIncident, state: NoticeState, names: list[str]) -> None:
        del incident
        if self.is_full:
            raise ToolError("notices", found="no space left", expected="space", advice="Free some.")
        self.told += [(name, state.value) for name in names]

    def at(self, seconds: float, incident: LiveIncident | None = None) -> list[tuple[str, str]]:
        """What is told at a time, after an incident became what it is."""
        self.told = []
        if incident is not None:
            self.store.save(incident)
            self.announcer.take(incident)
        self.announcer.announce(round(seconds * NS_PER_S))
        return self.told


def closed(at_s: float, incident: LiveIncident = OPEN) -> LiveIncident:
    return replace(incident, closed_ns=round(at_s * NS_PER_S))


def back(incident: LiveIncident, count: int = 1) -> LiveIncident:
    return replace(incident, closed_ns=None, reopened_count=count)


def test_it_is_told_once_and_once_that_it_is_over(tmp_path: Path) -> None:
    telling = Telling(tmp_path)
    assert telling.at(1010, OPEN) == [("dba", "opened")]
    assert telling.at(1020, OPEN) == []
    assert telling.at(1100, closed(1100)) == [("dba", "closed")]
    assert telling.at(9000) == []


def test_what_comes_and_goes_is_back_once_and_over_when_it_stays_away(tmp_path: Path) -> None:
    telling = Telling(tmp_path)
    assert telling.at(1010, OPEN) == [("dba", "opened")]
    assert telling.at(1100, closed(1100)) == [("dba", "closed")]
    assert telling.at(1200, back(OPEN)) == [("dba", "reopened")]
    for number, at_s in enumerate((1300, 1500), start=2):
        assert telling.at(at_s, closed(at_s, back(OPEN, number - 1))) == []
        assert telling.at(at_s + 100, back(OPEN, number)) == []
    assert telling.at(1700, closed(1700, back(OPEN, 3))) == []
    assert telling.at(1700 + REOPEN_WITHIN_S - 1) == []
    assert telling.at(1700 + REOPEN_WITHIN_S) == [("dba", "closed")]


def test_a_flapping_one_is_over_also_when_no_watch_ran_meanwhile(tmp_path: Path) -> None:
    telling = Telling(tmp_path)
    telling.at(1010, OPEN)
    telling.at(1100, closed(1100))
    telling.at(1200, back(OPEN))
    assert telling.at(1300, closed(1300, back(OPEN))) == []
    assert Telling(tmp_path).at(90_000) == [("dba", "closed")]
    assert Telling(tmp_path).at(90_010) == []


def test_what_opens_under_maintenance_is_told_when_that_ends_and_it_goes_on(tmp_path: Path) -> None:
    telling = Telling(tmp_path)
    telling.store.add_maintenance(Maintenance("guest:*", 0, 2000 * NS_PER_S, "patch day"))
    assert telling.at(1010, OPEN) == []
    assert telling.at(1999) == []
    assert telling.at(2001) == [("dba", "opened")]


def test_what_comes_and_goes_under_maintenance_is_not_told(tmp_path: Path) -> None:
    telling = Telling(tmp_path)
    telling.store.add_maintenance(Maintenance("guest:*", 0, 2000 * NS_PER_S, "patch day"))
    assert telling.at(1010, OPEN) == []
    assert telling.at(1100, closed(1100)) == []
    assert telling.at(2001) == []


def test_an_end_under_maintenance_is_told_when_that_ends(tmp_path: Path) -> None:
    telling = Telling(tmp_path)
    assert telling.at(1010, OPEN) == [("dba", "opened")]
    number = telling.store.add_maintenance(Maintenance("guest:*", 0, 9000 * NS_PER_S, "patch day"))
    assert telling.at(1100, closed(1100)) == []
    telling.store.end_maintenance(number, 2000 * NS_PER_S)
    assert telling.at(2001) == [("dba", "closed")]


def test_it_opens_to_those_who_asked_for_a_severity_when_it_rises_to_that(tmp_path: Path) -> None:
    every = (receiver("medium"), receiver("high", "high"), receiver("critical", "critical"))
    telling = Telling(tmp_path, *every)
    assert telling.at(1010, OPEN) == [("medium", "opened")]
    risen = replace(OPEN, severity=Severity.HIGH)
    assert telling.at(1025, risen) == [("high", "opened")]
    assert telling.at(1030, risen) == []
    assert telling.at(1100, closed(1100, risen)) == [("medium", "closed"), ("high", "closed")]


def test_who_wants_to_hears_that_it_is_worse_or_has_another_cause(tmp_path: Path) -> None:
    telling = Telling(tmp_path, receiver("dba"), receiver("program", when=["opened", "worsened", "closed"]))
    telling.at(1010, OPEN)
    other = replace(OPEN, cause="vm-iops-limit-hit")
    assert telling.at(1020, other) == [("program", "worsened")]
    assert telling.at(1025, other) == []
    assert telling.at(1030, replace(other, severity=Severity.HIGH)) == [("program", "worsened")]


def test_who_wants_ends_alone_gets_them_alone(tmp_path: Path) -> None:
    telling = Telling(tmp_path, receiver("dba", when=["closed"]))
    assert telling.at(1010, OPEN) == []
    assert telling.at(1100, closed(1100)) == [("dba", "closed")]


def test_what_a_full_disk_did_not_take_is_told_later(tmp_path: Path) -> None:
    telling = Telling(tmp_path)
    telling.is_full = True
    with pytest.raises(ToolError):
        telling.at(1010, OPEN)
    telling.is_full = False
    assert telling.at(1020) == [("dba", "opened")]


def test_who_is_no_receiver_any_more_is_not_waited_for(tmp_path: Path) -> None:
    Telling(tmp_path).at(1010, OPEN)
    telling = Telling(tmp_path, receiver("other"))
    assert telling.at(1100, closed(1100)) == []
    assert Telling(tmp_path, receiver("other")).announcer._unfinished == {}


def test_the_next_watch_tells_nothing_twice(tmp_path: Path) -> None:
    Telling(tmp_path).at(1010, OPEN)
    telling = Telling(tmp_path)
    assert telling.at(1020, OPEN) == []
    assert telling.at(1100, closed(1100)) == [("dba", "closed")]


def test_what_becomes_of_many_incidents_is_kept_at_once_and_the_last_of_each_counts(tmp_path: Path) -> None:
    store, other = IncidentStore(tmp_path), replace(OPEN, id="other")
    store.save(OPEN, other, closed(90.0), replace(other, title="renamed"))
    assert [one.id for one in store.open_ones()] == ["other"]
    assert {one.id: (one.is_open, one.title) for one in store.between(0, 1 << 62)} == {
        OPEN.id: (False, OPEN.title),
        "other": (True, "renamed"),
    }
