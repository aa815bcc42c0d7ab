"""The contract of notifiers: a file in ``notifiers/`` with ``META``, ``Settings`` and ``send``.

A notifier's docstring carries the headings *Sends, Settings, When it fails, Sources*. It sends one notice to one
receiver and keeps nothing: what could not be sent is kept, tried again and limited in rate by who calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

from leadline.core.model.notice import Notice


@dataclass(frozen=True, slots=True)
class NotifierMeta:
    """What is known about a notifier: what receives its notices."""

    receiver: str


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
