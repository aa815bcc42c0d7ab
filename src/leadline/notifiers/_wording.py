"""A notice in the forms that several receivers share: plain data, and a line that says what it is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from leadline.core.contracts.notifier import Notice, NoticeState

VERSION = 1  # of the keys of `plain`
_NS_PER_S = 1_000_000_000


def plain(notice: Notice) -> dict[str, Any]:
    """A notice as JSON has it: severity in words, times as RFC 3339 in UTC; ``closed`` is null while it is open."""
    closed_ns = notice.closed_ns
    return {
        "version": VERSION,
        "incident": notice.incident,
        "state": notice.state.value,
        "severity": notice.severity.label,
        "entity": notice.entity,
        "cause": notice.cause,
        "title": one_line(notice.title),
        "text": notice.text,
        "opened": moment(notice.opened_ns),
        "closed": None if closed_ns is None else moment(closed_ns),
        "link": notice.link,
        "capture": notice.capture,
    }


def moment(time_ns: int) -> str:
    """UTC nanoseconds as RFC 3339 with milliseconds."""
    whole = datetime.fromtimestamp(time_ns // _NS_PER_S, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{time_ns % _NS_PER_S // 1_000_000:03}Z"


def one_line(text: str) -> str:
    """A text on one line without control characters, as headers and logs need it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def head_line(notice: Notice) -> str:
    """State, severity and title on one line: ``HIGH: Disk sdb is capped``, ``Closed: ...``."""
    title = one_line(notice.title)
    match notice.state:
        case NoticeState.CLOSED:
            return f"Closed: {title}"
        case NoticeState.TEST:
            return f"Test: {title}"
        case NoticeState.WORSENED:
            return f"Worse, {notice.severity.label.upper()}: {title}"
        case NoticeState.REOPENED:
            return f"Back, {notice.severity.label.upper()}: {title}"
        case NoticeState.OPENED:
            return f"{notice.severity.label.upper()}: {title}"


def facts(notice: Notice) -> list[tuple[str, str]]:
    """What is known of the incident beside its text, as pairs of a word and a value; empty values are left out."""
    words: dict[str, str] = {"Entity": notice.entity, "Cause": notice.cause, "Opened": moment(notice.opened_ns)}
    if notice.closed_ns is not None:
        words["Closed"] = moment(notice.closed_ns)
    words |= {"Recording": notice.capture, "Incident": notice.incident}
    return [(word, one_line(value)) for word, value in words.items() if value]


def web_link(notice: Notice) -> str:
    """The address of the live page when it can be clicked on; else empty."""
    return notice.link if notice.link.startswith(("http://", "https://")) else ""
