"""Work side by side on the cores there are, told of as it goes on, stopped within a moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from leadline.core.system.portable import usable_cpus

POLL_S = 0.1
T = TypeVar("T")


def side_by_side(
    count: int, work: Callable[[int, Callable[[float], object]], T], report: Callable[[float], object]
) -> Iterator[tuple[int, T]]:
    """What ``work(index, progress)`` gives for each of ``count`` indices, as they are done.

    ``work`` calls ``progress`` with the share that is done and lets through what that raises; ``report`` is called with
    the share of all. When anything ends this early, the rest is stopped when it next calls ``progress``.
    """
    stop = threading.Event()
    shares = [0.0] * count

    def one(index: int) -> T:
        def progress(share: float) -> None:
            shares[index] = share
            if stop.is_set():
                raise _Stopped

        progress(0.0)
        return work(index, progress)

    with ThreadPoolExecutor(usable_cpus(), "leadline-work") as pool:
        pending: dict[Future[T], int] = {pool.submit(one, index): index for index in range(count)}
        try:
            while pending:
                done, _ = wait(pending, POLL_S, FIRST_COMPLETED)
                for future in done:
                    index = pending.pop(future)
                    shares[index] = 1.0
                    yield index, future.result()
                report(sum(shares) / count)
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


class _Stopped(Exception):
    """Ends one piece of work between two words of progress."""
