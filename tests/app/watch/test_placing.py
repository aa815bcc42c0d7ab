"""Incidents by the places that they touch: the same as comparing each with all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.watch.placing import PlacedIncidents
from leadline.core.model.vocabulary import Severity
from leadline.stores.incidents import LiveIncident

ONE = LiveIncident("1", 0, 1, None, Severity.HIGH, "cause", "vm:db", "title", "text")
PLACES = st.frozensets(st.sampled_from("abcde"), max_size=3)


@given(st.lists(st.tuples(st.sampled_from("123456"), st.one_of(st.none(), PLACES)), max_size=30), PLACES)
def test_those_at_some_places_are_found_whatever_came_went_and_moved(
    changes: list[tuple[str, frozenset[str] | None]], asked: frozenset[str]
) -> None:
    incidents, plain = PlacedIncidents(), dict[str, LiveIncident]()
    for number, places in changes:
        if places is None:
            assert (incidents.pop(number, None) is None) == (plain.pop(number, None) is None)
        else:
            incidents[number] = plain[number] = replace(ONE, id=number, places=tuple(sorted(places)))
    assert incidents.touching(asked) == [one for one in plain.values() if asked & set(one.places)]
    assert dict(incidents) == plain
    assert list(incidents) == list(plain)


def test_one_that_is_not_there_cannot_be_taken_out() -> None:
    with pytest.raises(KeyError):
        del PlacedIncidents()["1"]
