"""`leadline bench reduction`: what deduplication and compression would save of real data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.options import Json, Quiet

if TYPE_CHECKING:
    from leadline.app.reduction.model import Reduction, ReductionLimits, ReductionState

EPILOG = """\
Examples:

  leadline bench reduction examples

  leadline bench reduction examples --bytes 1m --json

  leadline bench reduction examples --seconds 2
"""


def command(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="A folder, a file or a block device; only read.", show_default=False),
    ] = None,
    *,
    size: Annotated[
        str | None, typer.Option("--bytes", help="Read at most so much. [default: 8g]", show_default=False)
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="Read at most so long. [default: no limit]", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the pieces drawn.", show_default=False)] = None,
    resume: Annotated[
        str | None, typer.Option(help="Go on with what was read: its id, or last.", show_default=False)
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read data and say what deduplication and compression would save of it; nothing is written to it.

    Shown are the shares of zeros and of duplicates for blocks of 4, 8, 32 and 64 KiB, and the ratios of LZ4 and zstd,
    alone and after deduplication. Data larger than the limits is sampled at random, with an interval for what was not
    read. `leadline plan vsan --set reduction=FILE` takes the file of --json.
    """
    from leadline.app.reduction.kept import remove_state
    from leadline.app.reduction.reducing import measure_reduction, reduction_so_far
    from leadline.core.system.interrupts import Interrupted
    from leadline.faces.cli.output import share_progress

    limits = _limits(size, seconds)
    state = _state(path, resume, limits, seed)
    try:
        with share_progress("reading", quiet=quiet) as show_share:
            done = measure_reduction(state, limits, lambda share, _: show_share(share, 0, 1))
    except KeyboardInterrupt as stopped:
        so_far = reduction_so_far(state)
        if so_far is not None:
            _show(so_far, state, json=json)
        raise Interrupted(getattr(stopped, "__notes__", [""])[-1]) from None
    _show(done, state, json=json)
    if state.is_whole:
        remove_state(state)


def _state(path: Path | None, resume: str | None, limits: ReductionLimits, seed: int | None) -> ReductionState:
    from leadline.app.reduction.kept import load_state
    from leadline.app.reduction.reducing import new_state
    from leadline.core.model.errors import UsageError

    if (path is None) == (resume is None) or (resume is not None and seed is not None):
        given = "neither a path nor --resume" if path is None and resume is None else "a new path or seed and --resume"
        raise UsageError(
            "bench reduction",
            found=given,
            expected="a path, or --resume alone, which has its own path and seed",
            advice="For example `leadline bench reduction /var/lib/postgresql`.",
        )
    return load_state(resume) if path is None else new_state(path, limits, seed)  # type: ignore[arg-type]


def _limits(size: str | None, seconds: float | None) -> ReductionLimits:
    from leadline.app.reduction.blocks import PIECE_BYTES
    from leadline.app.reduction.model import ReductionLimits
    from leadline.app.reduction.reducing import DEFAULT_BYTES
    from leadline.core.model.errors import UsageError
    from leadline.core.model.workload import size_of

    try:
        bytes_max = DEFAULT_BYTES if size is None else size_of(size)
    except ValueError:
        bytes_max = 0
    if bytes_max < PIECE_BYTES:
        raise UsageError("--bytes", found=str(size), expected="64k or more, as 512m or 8g", advice="See --help.")
    return ReductionLimits(bytes_max, seconds)


def _show(done: Reduction | None, state: ReductionState, *, json: bool) -> None:
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.reduction import show_reduction

    if done is not None and json:
        print_json("leadline.reduction/1", **done.to_dict())
    elif done is not None:
        show_reduction(console(), done)
    elif json:
        print_json("leadline.reduction/1", id=state.id, path=state.path, is_whole=False, block_sizes=[])
    else:
        typer.echo(f"Not all is read yet; go on with: leadline bench reduction --resume {state.id}")
