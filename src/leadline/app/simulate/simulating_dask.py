"""Variants on a dask.distributed cluster: every worker has Leadline in this version and does one variant at a time.

Source: dask.distributed, "Client", "as_completed", "Futures": submit with pure=False, cancel, release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from leadline import __version__
from leadline.app.measure.simulated import outcome_of
from leadline.core.contracts.scenario import Outcome
from leadline.core.model.errors import ToolError
from leadline.core.system.extras import require

CONNECT_S = 15.0
_PLACE = "--dask"


def version() -> str:
    """Of Leadline where this runs."""
    return __version__


def outcomes_on(
    address: str, plains: Sequence[tuple[int, Mapping[str, Any]]], report: Callable[[float], object]
) -> Iterator[tuple[int, Outcome]]:
    """Variants by their number as they are done; the rest is cancelled when anything ends this.

    Raises:
        ToolError: dask.distributed is missing, there is no cluster, or a worker has no Leadline of this version.
    """
    distributed = require("distributed")
    try:
        client = distributed.Client(address, timeout=CONNECT_S)
    except (OSError, TimeoutError, ValueError) as error:
        raise ToolError(
            f"{_PLACE} {address}",
            found=f"no scheduler ({error})",
            expected="a scheduler of dask.distributed, as tcp://host:8786",
            advice="Start one with `dask scheduler` and workers with `dask worker`.",
        ) from error
    with client:
        _check_workers(client, address)
        waiting = {client.submit(outcome_of, plain, pure=False): number for number, plain in plains}
        try:
            for done, future in enumerate(distributed.as_completed(list(waiting)), 1):
                yield waiting[future], future.result()
                future.release()
                report(done / len(plains))
        finally:
            client.cancel(list(waiting))


def _check_workers(client: Any, address: str) -> None:  # noqa: ANN401 - of an optional package
    try:
        versions = client.run(version)
    except ImportError:
        versions = {"a worker": "none"}
    others = {where: worker_version for where, worker_version in versions.items() if worker_version != __version__}
    if others or not versions:
        raise ToolError(
            f"{_PLACE} {address}",
            found=", ".join(f"{where} has {worker_version}" for where, worker_version in others.items())
            or "no workers",
            expected=f"workers with Leadline {__version__}, so that results do not depend on where they are made",
            advice=f"pip install leadline=={__version__} on every worker.",
        )
