"""Send notices of incidents to those who are to know: kept on disk first, tried again while a receiver is down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.notifier import Notice, NoticeState, Notifier
from leadline.core.model.errors import LeadlineError, UsageError
from leadline.core.model.vocabulary import Severity
from leadline.core.system.secret import scrubbed
from leadline.core.system.secret_sources import withhold

if TYPE_CHECKING:
    from leadline.stores.notices import Delivery, NoticeQueue

THREADS_MAX = 8


@dataclass(frozen=True, slots=True)
class Receiver:
    """Somebody who gets notices.

    Attributes:
        name: of this receiver in ``watch.yaml``; notices on disk are kept by it.
        notifier: name of the unit that sends to it.
        settings: an object of that unit's ``Settings``.
    """

    name: str
    notifier: str
    settings: BaseModel


@dataclass(frozen=True, slots=True)
class FailedSending:
    """A notice that a receiver did not take, and why; it is tried again."""

    delivery: Delivery
    error: str


@dataclass(frozen=True, slots=True)
class SendingRound:
    """What one call of `Teller.send_due` did."""

    sent: tuple[Delivery, ...]
    failed: tuple[FailedSending, ...]


class Teller:
    """Keeps notices, and sends those that are due.

    Args:
        queue: where they are kept.
        receivers: who gets every notice; names are different.
        clock: gives the time now, UTC nanoseconds.

    Raises:
        UsageError: two receivers have one name, a notifier does not exist or has other settings.
    """

    def __init__(self, queue: NoticeQueue, receivers: Sequence[Receiver], clock: Callable[[], int]) -> None:
        self._queue, self._clock = queue, clock
        self._taken: set[int] = set()  # by a receiver, but not yet written so: a full disk sends nothing twice
        self._receivers = {receiver.name: receiver for receiver in receivers}
        self._units = {one.name: cast("Notifier", load_unit("notifier", one.notifier)) for one in receivers}
        if len(self._receivers) != len(receivers):
            raise _wrong("the receivers", "two of one name", "names that differ")
        for one in receivers:
            if not isinstance(one.settings, self._units[one.name].Settings):
                raise _wrong(f"receiver {one.name}", "settings of another notifier", f"those of {one.notifier}")
            # Before a command could be started that would inherit them.
            withhold(one.settings)

    def tell(self, notice: Notice, names: Sequence[str] | None = None) -> None:
        """Keep a notice for some receivers, or for all of them; it is on the disk when this returns.

        Raises:
            ToolError: the queue cannot be written.
        """
        self._queue.put(notice, tuple(self._receivers if names is None else names))

    def states(self) -> dict[str, dict[str, Any]]:
        """How each receiver fares, as plain data.

        Raises:
            ToolError: the queue cannot be read.
        """
        return {name: asdict(state) for name, state in self._queue.states().items()}

    def send_due(self) -> SendingRound:
        """Send what is due, to all receivers at once and to each in order; what fails is tried again later.

        After the first failure a receiver gets nothing more in this round. No receiver, whatever it does, makes this
        raise. It may take minutes while receivers are slow: call it where nothing waits for it.

        Raises:
            ToolError: the queue cannot be read or written.
        """
        by_receiver: dict[str, list[Delivery]] = {}
        for delivery in self._queue.due(self._clock()):
            by_receiver.setdefault(delivery.receiver, []).append(delivery)
        if not by_receiver:
            return SendingRound((), ())
        with ThreadPoolExecutor(min(THREADS_MAX, len(by_receiver)), "notices") as threads:
            rounds = list(threads.map(self._send_in_order, by_receiver.values()))
        sent = tuple(delivery for one in rounds for delivery in one.sent)
        return SendingRound(sent, tuple(failure for one in rounds for failure in one.failed))

    def _send_in_order(self, deliveries: list[Delivery]) -> SendingRound:
        sent: list[Delivery] = []
        for delivery in deliveries:
            error = "" if delivery.id in self._taken else self._send(delivery)
            if error:
                self._queue.failed(delivery.id, error, self._clock())
                return SendingRound(tuple(sent), (FailedSending(delivery, error),))
            self._taken.add(delivery.id)
            self._queue.sent(delivery.id, self._clock())
            self._taken.discard(delivery.id)
            sent.append(delivery)
        return SendingRound(tuple(sent), ())

    def _send(self, delivery: Delivery) -> str:
        """Why it was not taken; empty when it was."""
        receiver = self._receivers.get(delivery.receiver)
        if receiver is None:
            return f"{delivery.receiver} is no receiver any more"
        try:
            self._units[receiver.name].send(receiver.settings, delivery.notice)
        except LeadlineError as error:
            return str(error)
        except Exception as error:  # a defect of a notifier ends no watch
            return scrubbed(f"{receiver.notifier} failed ({type(error).__name__}: {error})")
        return ""


def send_test(receiver: Receiver, now_ns: int) -> str:
    """Send a test notice to a receiver, at once; why it was not taken, or an empty text."""
    notice = Notice(
        incident="test",
        state=NoticeState.TEST,
        severity=Severity.INFO,
        entity="",
        cause="",
        title="Leadline: a test. Nothing is wrong.",
        text="Somebody tried whether notices of `leadline watch` arrive here. They do.",
        opened_ns=now_ns,
    )
    unit = cast("Notifier", load_unit("notifier", receiver.notifier))
    try:
        unit.send(receiver.settings, notice)
    except LeadlineError as error:
        return str(error)
    return ""


def _wrong(where: str, problem: str, expected: str) -> UsageError:
    return UsageError(where, found=problem, expected=expected, advice="Correct it in watch.yaml.")
