"""Times as locales write them."""

from __future__ import annotations

from datetime import date, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.formats.stamps import DayOrder, day_order, parse_stamp


@pytest.mark.parametrize(
    ("text", "day", "clock"),
    [
        ("11/20/26 22:57:04", "11/20/26", time(22, 57, 4)),
        ("20.11.2026 22.57.04", "20.11.2026", time(22, 57, 4)),
        ("11/20/2026 12:00:04 AM", "11/20/2026", time(0, 0, 4)),
        ("2026년 11월 20일 오후 10시 57분 04초", "2026년 11월 20일", time(22, 57, 4)),
        ("2020-08-28 21:33:57.516946", "2020-08-28", time(21, 33, 57, 516946)),
        ("Friday 20 November 2026 10:57:04 PM IST", "Friday 20 November 2026", time(22, 57, 4)),
        ("22:57:04", "", time(22, 57, 4)),
    ],
)
def test_day_and_clock(text: str, day: str, clock: time) -> None:
    stamp = parse_stamp(text)
    assert stamp is not None
    assert (stamp.day, stamp.clock) == (day, clock)


@pytest.mark.parametrize(
    ("zone", "minutes"), [("Z", 0), ("+0530", 330), ("-03:00", -180), ("UTC", 0), ("", None), ("+9900", None)]
)
def test_zones(zone: str, minutes: int | None) -> None:
    stamp = parse_stamp(f"2026-11-20T22:57:04{zone}")
    assert stamp is not None
    shift = None if stamp.zone is None else stamp.zone.utcoffset(None)
    assert shift == (None if minutes is None else timedelta(minutes=minutes))


@pytest.mark.parametrize("text", ["", "sda", "25:00:00", "22:57", "11/20/26", "1.2.3.4"])
def test_what_is_no_time(text: str) -> None:
    assert parse_stamp(text) is None


@pytest.mark.parametrize(
    ("texts", "twelve_hour", "expected"),
    [
        (["13/01/26"], False, DayOrder(month_first=False, certain=True)),
        (["01/13/26"], False, DayOrder(month_first=True, certain=True)),
        (["05/06/26", "06/06/26"], False, DayOrder(month_first=False, certain=True)),
        (["06/05/26", "06/06/26"], False, DayOrder(month_first=True, certain=True)),
        (["05/06/2026"], True, DayOrder(month_first=True, certain=True)),
        (["05/06/2026"], False, DayOrder(month_first=False, certain=False)),
        (["05/06/26"], False, DayOrder(month_first=True, certain=False)),
        (["20.11.2026"], False, DayOrder(month_first=False, certain=True)),
    ],
)
def test_order_of_day_and_month(texts: list[str], twelve_hour: bool, expected: DayOrder) -> None:
    assert day_order(texts, twelve_hour=twelve_hour, asked=None) == expected


def test_the_date_asked_for_decides() -> None:
    for asked, month_first in ((date(2026, 6, 5), False), (date(2026, 5, 6), True)):
        assert day_order(["05/06/26"], twelve_hour=False, asked=asked) == DayOrder(month_first, certain=True)


@given(st.datetimes())
def test_iso_times_come_back(moment: object) -> None:
    text = f"{moment:%Y-%m-%d %H:%M:%S}"
    stamp = parse_stamp(text)
    assert stamp is not None
    assert f"{stamp.clock:%H:%M:%S}" == text.split()[1]


@given(st.text(max_size=60))
def test_any_text_is_a_time_or_none(text: str) -> None:
    stamp = parse_stamp(text)
    assert stamp is None or isinstance(stamp.clock, time)
