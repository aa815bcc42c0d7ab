"""A workload as the options of the command line change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.core.model.workload import Workload


def changed(
    workload: Workload, verb: str, size: str | None, seconds: float | None, rounds: int | None, warm_up: float | None
) -> Workload:
    """The workload with what was asked for on the command line; checked like a file.

    Raises:
        UsageError: it is no workload any more.
    """
    from pydantic import ValidationError

    from leadline.core.model.errors import UsageError
    from leadline.core.model.workload import adjusted

    if size is not None and workload.kind != "io" and not hasattr(getattr(workload, workload.kind), "working_set"):
        raise UsageError(
            "--set-size",
            found=f"a workload of kind {workload.kind}, which has no working set",
            expected="a workload that reads and writes blocks",
            advice="Leave it out. The size of a database is set in the workload file, by its scale or tables.",
        )
    try:
        return adjusted(workload, size, seconds, rounds, warm_up)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            verb,
            found=f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}",
            expected="sizes as 4g, seconds of at least 1, rounds of at least 1",
            advice=f"See `leadline {verb} --help`.",
        ) from error
