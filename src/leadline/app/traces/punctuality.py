"""How late the requests of a replay were issued, against the times of the trace.

fio's log has a line for each request of a lane, in the order of the lane's iolog: the time of completion in
milliseconds since the job began, and the latency in nanoseconds. The time of issue is the difference. A job's clock
begins before its first request, so the most punctual request of all counts as on time, and the others against it.

Source: fio HOWTO, "Log file formats"; ``delay_since_ttime`` of fio's iolog.c: a lane never issues before its time, and
is late when the request before took longer than the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

LATE_MS = 10.0  # Judgement: a request that comes 10 ms late may meet other requests than in the trace
_HEAD_LINES = 3  # of an iolog: version, add, open
_SHARES = {"late_ms_p50": 0.5, "late_ms_p95": 0.95, "late_ms_p99": 0.99, "late_ms_max": 1.0}


@dataclass(frozen=True, slots=True)
class Punctuality:
    """Lateness of a replay's requests in milliseconds, to a millisecond; NaN when none was compared."""

    request_count: int
    late_ms_p50: float
    late_ms_p95: float
    late_ms_p99: float
    late_ms_max: float
    late_share: float  # of requests more than LATE_MS late

    @classmethod
    def unknown(cls) -> Punctuality:
        """Nothing was compared: the trace's times were not kept, or there is no log."""
        return cls(0, *[float("nan")] * 5)

    @property
    def sentence(self) -> str:
        """How punctual the replay was, for people."""
        if not self.request_count:
            return "It is not known how late requests were issued."
        share = f"{100.0 * self.late_share:.3g} % more than {LATE_MS:g} ms late"
        return (
            f"Requests were issued {self.late_ms_p50:.3g} ms late at the median, {self.late_ms_p99:.3g} ms at p99, "
            f"{self.late_ms_max:.3g} ms at most; {share}."
        )

    def to_dict(self) -> dict[str, float]:
        """Plain data for ``--json``."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def punctuality(lanes: Sequence[Path], logs: Sequence[Path], speed_pct: int) -> Punctuality:
    """How late requests were issued; ``lanes`` are the iologs and ``logs`` the latency logs of the same jobs in order.

    A lane whose log is shorter was ended early: only what was issued is compared.

    Source: the head of this module.
    """
    shifts = []
    for lane, log in zip(lanes, logs, strict=True):
        due_ms = _column(lane, " ", (0,), _HEAD_LINES)[0] / 10.0 / speed_pct  # microseconds of the trace: / 1000 * 100
        done_ms, latency_ns = _column(log, ",", (0, 1), 0)
        count = min(len(due_ms), len(done_ms))
        shifts.append(done_ms[:count] - latency_ns[:count] / 1e6 - due_ms[:count])
    shift_ms = np.concatenate(shifts) if shifts else np.empty(0)
    if not len(shift_ms):
        return Punctuality.unknown()
    late_ms = np.round(shift_ms - shift_ms.min())
    values = {name: float(np.quantile(late_ms, share)) for name, share in _SHARES.items()}
    return Punctuality(len(late_ms), **values, late_share=float(np.mean(late_ms > LATE_MS)))


def _column(path: Path, separator: str, columns: tuple[int, ...], skipped: int) -> list[NDArray[np.float64]]:
    """Return the numbers in some columns of a file whose rows all have the same fields."""
    if not path.exists() or not path.stat().st_size:
        return [np.empty(0) for _ in columns]
    try:
        frame = pl.read_csv(
            path,
            separator=separator,
            has_header=False,
            skip_rows=skipped,
            columns=list(columns),
            infer_schema=False,
        )
    except pl.exceptions.NoDataError:
        return [np.empty(0) for _ in columns]
    return [series.str.strip_chars().cast(pl.Float64).to_numpy() for series in frame.get_columns()]
