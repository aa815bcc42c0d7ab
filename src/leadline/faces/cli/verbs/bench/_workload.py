"""A workload as the options of the command line change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.core.workload import Workload


def changed(
    workload: Workload, verb: str, size: str | None, seconds: float | None, rounds: int | None, warm_up: float | None
) -> Workload:
    """The workload with what was asked for on the command line; checked like a file.

    Raises:
        UsageError: it is no workload any more.
    """
    from pydantic import ValidationError

    from leadline.core.errors import UsageError
    from leadline.core.workload import Workload

    plain = workload.plain()
    if size is not None and hasattr(getattr(workload, workload.kind), "working_set"):
        plain[workload.kind] = {**plain[workload.kind], "working_set": size}
    elif size is not None:
        plain["io_settings"] = {**plain.get("io_settings", {}), "working_set": size}
        plain["io"] = [{k: v for k, v in stream.items() if k != "working_set"} for stream in plain.get("io", [])]
    timing = {"measure_s": seconds, "rounds": rounds, "warm_up_s": warm_up}
    plain["timing"] = {**plain.get("timing", {}), **{k: v for k, v in timing.items() if v is not None}}
    try:
        return Workload.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            verb,
            found=f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}",
            expected="sizes as 4g, seconds of at least 1, rounds of at least 1",
            advice=f"See `leadline {verb} --help`.",
        ) from error
