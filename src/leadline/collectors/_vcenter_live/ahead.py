"""Answers asked for ahead: while one is read and taken in, the server already works on the next.

A vCenter needs longer to gather samples than we need to read them; asked one after the other, each waits for the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

from leadline.collectors._vcenter_live.soap import PerformanceText

CONNECTIONS = 2  # Judgement: one answer is read while the server works on the next; more would be a load for vCenter
_AHEAD = CONNECTIONS + 1  # answers of 2 MB that are asked for or wait

Query = TypeVar("Query")
Answer = TypeVar("Answer")


class AnswersAhead(Generic[Query, Answer]):
    """Queries sent over a few connections at a time, and their answers in order.

    Args:
        connected: returns a connection.
        answered: sends a query over a connection and returns the answer. Several threads call it at once.
    """

    def __init__(
        self, connected: Callable[[], PerformanceText], answered: Callable[[PerformanceText, Query], Answer]
    ) -> None:
        self._connections = [connected() for _ in range(CONNECTIONS)]
        self._answered = answered
        self._free: SimpleQueue[PerformanceText] = SimpleQueue()
        for one in self._connections:
            self._free.put(one)

    def answers(self, queries: Iterable[Query]) -> Generator[Answer, None, None]:
        """The answers in the order of the queries. Whoever stops early closes the iterator: no query is under way then.

        Raises:
            Exception: what ``answered`` raises for the first query that fails.
        """
        waiting: deque[Future[Answer]] = deque()
        try:
            for query in queries:
                waiting.append(self._begun(query))
                if len(waiting) >= _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            under_way = [one for one in waiting if not one.cancel()]
            for one in under_way:
                one.exception()

    def _begun(self, query: Query) -> Future[Answer]:
        """The answer to come; a thread that waits for a server does not keep the program from ending."""
        future: Future[Answer] = Future()
        Thread(target=self._work, args=(query, future), name="leadline-vcenter", daemon=True).start()
        return future

    def _work(self, query: Query, future: Future[Answer]) -> None:
        connection = self._free.get()
        try:
            if future.set_running_or_notify_cancel():
                future.set_result(self._answered(connection, query))
        except Exception as error:  # whoever waits for the answer gets it
            future.set_exception(error)
        finally:
            self._free.put(connection)

    def close(self) -> None:
        """Close the connections."""
        for one in self._connections:
            one.close()
