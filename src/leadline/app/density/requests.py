"""What a density run is asked for in words: the workload shortened, with a rate of each instance; size of memory."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from leadline.core.model.errors import UsageError
from leadline.core.model.workload import Workload, size_of


def changed(
    workload: Workload, *, size: str | None = None, rate_per_s: float | None = None, **timing: float | None
) -> Workload:
    """The workload with another working set, rate of each instance, or timing (``measure_s``, ``rounds``, ...).

    A rate is split over the streams as their own rates are; a single stream needs none. Arrivals stay as they are,
    evenly spaced where the stream had no rate: what came by chance in a second would be taken for a shortfall.

    Raises:
        UsageError: it is no workload any more, or several streams have no rates to split by.
    """
    plain = workload.plain()
    streams: list[dict[str, Any]] = plain.get("io", [])
    if size is not None and not workload.io:
        raise UsageError(
            "--set-size",
            found=f"workload {workload.name}, which is no I/O",
            expected="a workload of I/O",
            advice="How much data a server has is in its workload file: database.scale, web.page.",
        )
    if size is not None:
        plain["io_settings"] = {**plain.get("io_settings", {}), "working_set": size}
        streams = [{key: value for key, value in stream.items() if key != "working_set"} for stream in streams]
    if rate_per_s is not None and workload.database is not None:
        plain["database"] = {**plain["database"], "rate_per_s": rate_per_s}
    elif rate_per_s is not None:
        streams = _rated(workload, streams, rate_per_s)
    if streams:
        plain["io"] = streams
    given = {key: value for key, value in timing.items() if value is not None}
    plain["timing"] = {**plain.get("timing", {}), **given}
    try:
        return Workload.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            "bench density",
            found=f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}",
            expected="sizes as 4g, seconds of at least 1, rounds of at least 1, a rate above 0",
            advice="See `leadline bench density --help`.",
        ) from error


def _rated(workload: Workload, streams: list[dict[str, Any]], rate_per_s: float) -> list[dict[str, Any]]:
    rates = [s.rate_iops.read + s.rate_iops.write if s.rate_iops is not None else None for s in workload.io]
    known = [rate for rate in rates if rate is not None]
    if rate_per_s <= 0 or not streams or (len(streams) > 1 and (len(known) < len(rates) or not sum(known))):
        raise UsageError(
            "--rate",
            found=f"{rate_per_s:g} for {len(streams)} streams",
            expected="a rate above 0 for one stream, or for streams that all have a rate_iops to split it by",
            advice="Give each stream a rate_iops in a workload file.",
        )
    rated = []
    for plain, stream in zip(streams, workload.io, strict=True):
        share = 1.0 if len(streams) == 1 else (stream.rate_iops.read + stream.rate_iops.write) / sum(known)  # type: ignore[union-attr]
        reads = stream.read_pct / 100.0
        if stream.rate_iops is not None:
            reads = stream.rate_iops.read / (stream.rate_iops.read + stream.rate_iops.write)
        rate = {"read": rate_per_s * share * reads, "write": rate_per_s * share * (1.0 - reads)}
        rated.append({**plain, "rate_iops": rate, **({} if stream.rate_iops is not None else {"arrivals": "even"})})
    return rated


def bytes_of(text: str | None, option: str) -> int | None:
    """Bytes of ``512m``; None for None.

    Raises:
        UsageError: it is no size.
    """
    if text is None:
        return None
    try:
        return size_of(text)
    except ValueError as error:
        raise UsageError(option, found=str(error), expected="a size as 512m", advice="For example 2g.") from error
