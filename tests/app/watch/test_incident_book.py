"""The life of incidents: one for one cause, opened when it lasts, closed when it is over, flapping is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from leadline.app.watch.incident_book import IncidentBook, IncidentStep, LifeStep, still_needed
from leadline.app.watch.judging import GAP_S, rule_duration_s
from leadline.app.watch.suspicions import Suspicion
from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.model.incident import Change
from leadline.core.model.profile import Profile
from leadline.core.model.vocabulary import Severity
from leadline.stores.incidents import IncidentStore

S = 1_000_000_000
DB = Entity.parse("database:orders")
FELT = Change(DB, "db_tps", "per_s", normal=100.0, during=10.0, noise=1.0, share=1.0)
FIRST = Suspicion(
    cause="disk-latency-high",
    entity=Entity.parse("guest:db01/block-device:sdb"),
    severity=Severity.MEDIUM,
    window=Window(1000 * S, 1010 * S),
    places=frozenset({"guest:db01"}),
    answer_index=0,
    symptoms=(FELT,),
    rules=("disk-latency-high",),
)
ELSEWHERE = replace(FIRST, cause="cpu-ready-high", places=frozenset({"vm:web"}), symptoms=(), answer_index=None)


def rate(value: float) -> Capture:
    times = np.arange(5, dtype=np.int64) * S
    group = SeriesGroup("db_tps", [DB], times, np.full((1, 5), value), 1.0)
    return Capture([group], [SourceInfo("x", "x", "x")])


def book_of() -> IncidentBook:
    return IncidentBook(lambda suspicion: (suspicion.cause, f"about {suspicion.cause}"))


def judged(book: IncidentBook, second: int, *suspicions: Suspicion, value: float = 10.0) -> list[IncidentStep]:
    return book.judged(suspicions, rate(value), second * S)


def steps(some: list[IncidentStep]) -> list[str]:
    return [one.step.value for one in some]


def opened_at(second: int) -> IncidentBook:
    book = book_of()
    for at in range(second - 10, second + 1, 5):
        judged(book, at, FIRST)
    assert len(book.open_ones()) == 1
    return book


def test_a_hiccup_opens_nothing() -> None:
    book = book_of()
    assert judged(book, 1010, FIRST) == []
    assert judged(book, 1015, FIRST) == []
    assert judged(book, 1020) == []
    assert judged(book, 1025, FIRST) == []
    assert book.open_ones() == ()


def test_what_was_short_and_is_over_opens_nothing_though_it_was_a_moment_ago() -> None:
    """What was bad until half a minute ago is bad now; ten bad seconds that are over are a hiccup all the same."""
    book = book_of()
    assert [step for at in range(1012, 1040, 5) for step in judged(book, at, FIRST, value=99.0)] == []
    long = replace(FIRST, window=Window(1000 * S, 1030 * S))
    assert steps(judged(book, 1041, long, value=99.0)) == ["opened"]


def test_what_lasts_is_opened_once_since_it_began() -> None:
    book = book_of()
    every = [step for at in range(1010, 1060, 5) for step in judged(book, at, FIRST)]
    assert steps(every) == ["opened", *["seen"] * 7]
    (incident,) = book.open_ones()
    assert incident.opened_ns == 1000 * S
    assert incident.title == "disk-latency-high"


def test_symptoms_on_the_same_place_join_and_others_do_not() -> None:
    book = opened_at(1020)
    joined = replace(FIRST, cause="db-locks", symptoms=(), answer_index=None, rules=("db-locks",))
    for at in (1025, 1030, 1035, 1040):
        judged(book, at, FIRST, joined, ELSEWHERE)
    causes = [incident.cause for incident in book.open_ones()]
    assert causes == ["disk-latency-high", "cpu-ready-high"]
    assert book.open_ones()[0].rules == ("disk-latency-high", "db-locks")


def test_a_worse_one_is_said() -> None:
    book = opened_at(1020)
    assert steps(judged(book, 1025, replace(FIRST, severity=Severity.HIGH))) == ["changed"]
    assert steps(judged(book, 1030, FIRST)) == ["seen"]
    assert book.open_ones()[0].severity is Severity.HIGH


def test_it_closes_when_it_is_over_and_stays_open_while_users_suffer() -> None:
    book = opened_at(1020)
    assert [step for at in range(1025, 1400, 25) for step in judged(book, at, value=20.0)] == []
    steps_after = [step for at in range(1400, 1500, 10) for step in judged(book, at, value=99.0)]
    assert steps(steps_after) == ["closed"]
    assert book.open_ones() == ()


def test_flapping_is_one_incident() -> None:
    book = opened_at(1020)
    closed = [step for at in range(1025, 1100, 5) for step in judged(book, at, value=99.0)]
    assert steps(closed) == ["closed"]
    again = [step for at in range(1200, 1215, 5) for step in judged(book, at, FIRST)]
    assert steps(again) == ["reopened"]
    assert again[0].incident.id == closed[0].incident.id
    assert again[0].incident.reopened_count == 1


def test_what_comes_back_with_another_cause_is_called_by_that() -> None:
    book = opened_at(1020)
    for at in range(1025, 1100, 5):
        judged(book, at, value=99.0)
    other = replace(FIRST, cause="vm-iops-limit-hit", window=Window(1090 * S, 1110 * S))
    (again,) = [step for at in range(1100, 1115, 5) for step in judged(book, at, other)]
    assert again.step is LifeStep.REOPENED
    assert again.incident.cause == "vm-iops-limit-hit"


def test_what_comes_and_goes_is_one_incident_that_is_counted() -> None:
    book = opened_at(1020)
    every = []
    for start in (1025, 1225, 1425):
        every += [step for at in range(start, start + 75, 5) for step in judged(book, at, value=99.0)]
        every += [step for at in range(start + 150, start + 165, 5) for step in judged(book, at, FIRST)]
    every += [step for at in range(1595, 3000, 5) for step in judged(book, at, value=99.0)]
    assert steps(every) == ["closed", "reopened"] * 3 + ["closed"]
    assert every[-1].incident.reopened_count == 3


def test_long_after_it_is_another_incident() -> None:
    book = opened_at(1020)
    (closed,) = [step for at in range(1025, 1100, 5) for step in judged(book, at, value=99.0)]
    judged(book, 3000, value=99.0)
    later = replace(FIRST, window=Window(2990 * S, 3010 * S))
    (opened,) = [step for at in (3010, 3015, 3020) for step in judged(book, at, later)]
    assert opened.step is LifeStep.OPENED
    assert opened.incident.id != closed.incident.id


def test_a_watch_that_begins_again_goes_on_with_what_was_open() -> None:
    (incident,) = opened_at(1020).open_ones()
    book = book_of()
    book.take_up([incident])
    assert steps(judged(book, 1030, FIRST)) == ["seen"]


def test_a_watch_that_begins_again_closes_nothing_that_users_still_feel(tmp_path: Path) -> None:
    """What it sees is bad all the time and looks usual: what was usual before is known from the last watch."""
    kept = IncidentStore(tmp_path)
    kept.save(*opened_at(1020).open_ones())
    book = book_of()
    book.take_up(kept.open_ones())
    assert [step for at in range(1030, 1400, 10) for step in judged(book, at)] == []
    assert steps(judged(book, 1400, value=100.0)) == ["closed"]


def test_a_new_watch_closes_nothing_that_its_rules_cannot_have_seen_yet() -> None:
    book, limit = book_of(), replace(ELSEWHERE, cause="cpu-ready-high")
    for at in (1010, 1020):
        judged(book, at, limit)
    (incident,) = book.open_ones()

    def since(first: int, second: int) -> Capture:
        times = np.arange(first, second + 1, dtype=np.int64) * S
        return Capture([SeriesGroup("db_tps", [DB], times, np.full((1, len(times)), 1.0), 1.0)], [])

    after = book_of()
    after.take_up([incident])
    duration_s = round(rule_duration_s("cpu-ready-high", Profile(), GAP_S))
    ends = [at for at in range(2000, 2600, 5) for _ in after.judged((), since(1990, at), at * S)]
    assert ends == [1990 + duration_s + 60]
    assert steps(book.judged((), rate(100.0), 1090 * S)) == ["closed"]  # a watch that goes on has seen enough


def test_a_clock_that_was_ahead_keeps_no_incident_open() -> None:
    book = opened_at(1020)
    assert steps(judged(book, 5000, FIRST)) == ["seen"]
    ends = [at for at in range(1100, 1300, 10) for _ in judged(book, at, value=100.0)]
    assert ends == [1160]


def test_what_ended_while_the_clock_was_ahead_hides_nothing_that_begins_now() -> None:
    book = opened_at(1020)
    assert steps(judged(book, 5000, value=100.0)) == ["closed"]
    later = replace(FIRST, cause="cpu-ready-high", symptoms=(), answer_index=None, window=Window(1170 * S, 1190 * S))
    judged(book, 1100)
    assert judged(book, 1180, later) == []
    assert steps(judged(book, 1190, later)) == ["opened"]


def test_no_id_comes_a_second_time_after_a_restart() -> None:
    (incident,) = opened_at(1020).open_ones()
    book = book_of()
    book.take_up([incident])
    for at in (1020, 1030):
        judged(book, at, FIRST, ELSEWHERE)
    assert [one.id.rpartition("-")[2] for one in book.open_ones()] == ["1", "2"]


def test_of_what_waits_for_a_full_disk_only_the_last_look_at_an_incident_is_needed() -> None:
    (incident,) = opened_at(1020).open_ones()
    life = [LifeStep.OPENED, LifeStep.SEEN, LifeStep.SEEN, LifeStep.CHANGED, LifeStep.SEEN, LifeStep.SEEN]
    waiting = [IncidentStep(step, replace(incident, seen_ns=place)) for place, step in enumerate(life)]
    assert [step.incident.seen_ns for step in still_needed(waiting)] == [0, 3, 5]


def test_what_is_not_measured_any_more_is_given_up_after_a_while() -> None:
    book = opened_at(1020)
    ends = [at for at in range(1025, 4000, 25) for _ in book.judged((), Capture(), at * S)]
    assert ends
    assert 1800 <= ends[0] - 1020 <= 1850


def test_of_two_limits_on_one_place_the_first_names_it_unless_the_other_is_worse() -> None:
    book, limit = book_of(), replace(FIRST, symptoms=(), answer_index=None)
    other = replace(limit, cause="guest-cpu-usage-high", rules=("guest-cpu-usage-high",))
    every = [step for at in range(1010, 1040, 5) for step in judged(book, at, limit, other)]
    assert set(steps(every)) == {"opened", "seen"}
    assert book.open_ones()[0].cause == "disk-latency-high"
    assert steps(judged(book, 1040, replace(other, severity=Severity.CRITICAL))) == ["changed"]
    assert book.open_ones()[0].cause == "guest-cpu-usage-high"


def test_a_cause_that_wavers_is_the_one_that_was_first_most_often() -> None:
    book = opened_at(1020)
    other = replace(FIRST, cause="guest-steal-time")
    every = [step for at in range(1025, 1060, 5) for step in judged(book, at, other if at % 20 == 0 else FIRST)]
    assert set(steps(every)) == {"seen"}
    assert book.open_ones()[0].cause == "disk-latency-high"
    later = [step for at in range(1060, 1120, 5) for step in judged(book, at, other)]
    assert steps(later).count("changed") == 1
    assert book.open_ones()[0].title == "guest-steal-time"


def test_another_cause_on_the_same_place_is_another_incident() -> None:
    book = opened_at(1020)
    (closed,) = [step for at in range(1025, 1100, 5) for step in judged(book, at, value=99.0)]
    other = replace(FIRST, cause="vm-iops-limit-hit", window=Window(1190 * S, 1200 * S))
    (opened,) = [step for at in range(1200, 1215, 5) for step in judged(book, at, other)]
    assert opened.step is LifeStep.OPENED
    assert opened.incident.id != closed.incident.id


def test_what_is_over_is_called_by_what_it_turned_out_to_be() -> None:
    book = opened_at(1010)
    (closed,) = judged(book, 1080, value=100.0)
    turned_out = replace(FIRST, cause="disk-flush-slow", rules=("disk-flush-slow",))
    concluded = book.concluded(closed, turned_out, ("a slow flush", "about it"))
    assert concluded.step is LifeStep.CLOSED
    assert (concluded.incident.cause, concluded.incident.title) == ("disk-flush-slow", "a slow flush")
    assert concluded.incident.rules == ("disk-flush-slow", "disk-latency-high")
    assert book.get(closed.incident.id) == concluded.incident
    assert book.past_ones() == (Window(1000 * S, 1080 * S),)


LIMIT = replace(FIRST, cause="db-log-write-latency", symptoms=(), answer_index=None, rules=("db-log-write-latency",))


def test_a_limit_beside_it_keeps_no_incident_open_that_is_over_for_users() -> None:
    book = opened_at(1020)
    felt = [step for at in range(1025, 1050, 5) for step in judged(book, at, LIMIT, value=10.0)]
    assert set(steps(felt)) == {"seen"}
    after = [step for at in range(1050, 1120, 5) for step in judged(book, at, LIMIT, value=99.0)]
    assert steps(after)[-1] == "closed"
    assert after[-1].incident.closed_ns == 1105 * S
    # What it is seen from began in the incident: it is no news.
    assert [step for at in range(1120, 1160, 5) for step in judged(book, at, LIMIT, value=99.0)] == []


def test_a_limit_that_is_passed_after_it_is_another_incident() -> None:
    book = opened_at(1020)
    every = [step for at in range(1025, 1100, 5) for step in judged(book, at, value=99.0)]
    assert steps(every) == ["closed"]
    later = replace(LIMIT, window=Window(1190 * S, 1200 * S))
    (opened,) = [step for at in range(1200, 1215, 5) for step in judged(book, at, later, value=99.0)]
    assert opened.step is LifeStep.OPENED


def test_a_limit_keeps_an_incident_open_that_nobody_felt() -> None:
    book = book_of()
    every = [step for at in range(1010, 1200, 5) for step in judged(book, at, LIMIT, value=99.0)]
    assert set(steps(every)) == {"opened", "seen"}
