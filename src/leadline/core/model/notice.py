"""What people are told of an incident: one value, which e-mail, chat and alerting systems are written from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from leadline.core.model.vocabulary import Severity


class NoticeState(StrEnum):
    """Why a notice is sent."""

    OPENED = "opened"
    WORSENED = "worsened"  # a higher severity or another first cause than the last notice said
    CLOSED = "closed"
    TEST = "test"  # nothing is wrong: somebody tries whether notices arrive


@dataclass(frozen=True, slots=True)
class Notice:
    """A message about one incident.

    Attributes:
        incident: id of the incident, the same in all notices of it.
        state: why it is sent.
        severity: of the incident now.
        entity: what the cause is about, as it is named: ``db01/sdb``.
        cause: name of the rule or change that is the first cause.
        title: one line, of at most 120 characters.
        text: the first screen of the answer, plain text of at most 80 columns.
        opened_ns: UTC nanoseconds.
        closed_ns: UTC nanoseconds; None while it is open.
        link: address of the incident on the live page; empty where there is none.
        capture: path of the incident's own recording; empty while there is none.
    """

    incident: str
    state: NoticeState
    severity: Severity
    entity: str
    cause: str
    title: str
    text: str
    opened_ns: int
    closed_ns: int | None = None
    link: str = ""
    capture: str = ""
