"""The contract of notifiers: a file in ``notifiers/`` with ``META``, ``Settings`` and ``send``.

A notifier's docstring carries the headings *Sends, Settings, When it fails, Sources*. It sends one notice to one
receiver and keeps nothing: what could not be sent is kept, tried again and limited in rate by who calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pydantic import BaseModel

from leadline.core.model.vocabulary import Severity


class NoticeState(StrEnum):
    """Why a notice is sent."""

    OPENED = "opened"
    WORSENED = "worsened"  # a higher severity or another first cause than the last notice said
    CLOSED = "closed"
    REOPENED = "reopened"  # it came back after people were told that it was over
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


@dataclass(frozen=True, slots=True)
class NotifierMeta:
    """What is known about a notifier.

    Attributes:
        receiver: what receives its notices.
        is_machine: a program receives them, which must hear of every change and every end, however many there are.
    """

    receiver: str
    is_machine: bool = False


class Notifier(Protocol):
    """The type of a notifier module.

    Attributes:
        Settings: what ``watch.yaml`` may say of it; secrets are named by file or variable, never written there.
    """

    META: NotifierMeta
    Settings: type[BaseModel]

    def send(self, settings: BaseModel, notice: Notice) -> None:
        """Send a notice, and return when the receiver has taken it.

        Raises:
            ToolError: the receiver cannot be reached, or refuses.
        """
