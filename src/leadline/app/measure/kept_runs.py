"""A run in the store from its beginning, whatever ends it."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from leadline.core.model.run import Run
from leadline.core.system.portable import usable_cpus
from leadline.stores.runs import RunStore


@dataclass(slots=True)
class Kept:
    """A run while it is measured: as it is now, and how it ends if nothing more happens to it."""

    run: Run
    state: str = "failed"


def begun_run(name: str, workload: dict[str, Any], *, seed: int | None = None, **fields: Any) -> Run:  # noqa: ANN401 - of Run
    """Return a run that begins now, before anything is measured.

    Args:
        name: of the workload; the run's id begins with the moment and holds the name.
        workload: as plain data, so that the run can be repeated.
        seed: of the load; drawn when None.
        fields: the other fields of `Run`; without ``host``, what this machine is.
    """
    began = datetime.now(UTC)
    return Run(
        **{
            "id": f"{began:%Y%m%d-%H%M%S}-{name}-{secrets.token_hex(2)}",
            "name": name,
            "state": "running",
            "started": began.isoformat(timespec="seconds"),
            "seed": secrets.randbelow(2**31) if seed is None else seed,
            "workload": workload,
            "host": host_facts(),
            **fields,
        }
    )


@contextmanager
def keeping(run: Run, store: RunStore) -> Iterator[Kept]:
    """Keep a run in the store from its beginning; in the end it is stored with the state it ended in.

    Raises:
        KeyboardInterrupt: passed on with a note that says where the run is.
    """
    kept = Kept(run)
    store.save(run, running=True)
    try:
        yield kept
    except KeyboardInterrupt as error:
        kept.state = "interrupted"
        error.add_note(f"what was measured is kept: leadline runs show {run.id}")
        raise
    finally:
        kept.run = replace(kept.run, state=kept.state)
        store.save(kept.run)


def host_facts() -> dict[str, str]:
    """Return what the machine is: enough to tell whether two runs may be compared."""
    return {
        "host": platform.node(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu_count": str(usable_cpus()),
    }
