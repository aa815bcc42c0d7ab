"""`leadline trace replay`: a trace replayed by fio, compared with the original."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.consent import Destroy, Yes, agree
from leadline.faces.cli.options import Json, Paths, Quiet

if TYPE_CHECKING:
    from leadline.app.traces.replaying import ReplayPlan

EPILOG = """\
Examples:

  leadline trace replay db01.vscsi --on scratch --set-size 32m --yes

  sudo leadline trace replay db01.vscsi --on /dev/sdx --destroy-data /dev/sdx
"""


def command(
    paths: Paths,
    *,
    on: Annotated[str, typer.Option("--on", help="Folder, file or device to replay on.")],
    destroy: Destroy = None,
    disk: Annotated[str | None, typer.Option(help="Which disk of the trace.", show_default=False)] = None,
    speed: Annotated[int, typer.Option(help="Percentage of the trace's speed.")] = 100,
    flat_out: Annotated[bool, typer.Option("--flat-out", help="As fast as it goes, in the same order.")] = False,
    seconds: Annotated[
        float | None, typer.Option(help="Only so much of the trace's beginning.", show_default=False)
    ] = None,
    size: Annotated[
        str | None, typer.Option("--set-size", help="Use so much of the target, as 4g.", show_default=False)
    ] = None,
    lanes: Annotated[int, typer.Option(help="Most requests at a time.")] = 64,
    yes: Yes = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Replay a trace with fio, with its timing, and say how like it was.

    The plan is printed first. A folder gets a file that is filled and removed again; a file or device that holds data
    must be named twice, with --destroy-data, unless the trace only reads. Mounted devices are refused.
    """
    from leadline.app.traces.replaying import ReplayAsk, plan_replay, replay
    from leadline.core.model.errors import UsageError
    from leadline.core.model.workload import size_of
    from leadline.faces.cli.output import print_json, reading_progress
    from leadline.faces.traces import show_replay

    try:
        size_bytes = None if size is None else size_of(size)
    except ValueError as error:
        raise UsageError("--set-size", found=str(size), expected="a size as 4g", advice="k is 1024.") from error
    ask = ReplayAsk(on, destroy, disk, speed, flat_out, seconds, size_bytes, lanes)
    with reading_progress(quiet=quiet) as step:
        plan = plan_replay(paths, ask, step)
    agree("trace replay", _plan_lines(plan), yes=yes, quiet=quiet)
    say = (lambda _: None) if quiet else (lambda text: typer.echo(text, err=True))
    with reading_progress(quiet=quiet) as step:
        done = replay(plan, say, step)
    if json:
        print_json("leadline.replay/2", **done.to_dict())
    else:
        show_replay(done)


def _plan_lines(plan: ReplayPlan) -> Iterator[str]:
    action = "make, fill and remove" if plan.is_made else "read" if plan.read_only else "OVERWRITE"
    yield f"Plan: {plan.disk.request_count:,} requests of {plan.disk.name}"
    yield f"  {action} {plan.path} ({plan.size_bytes / 2**20:,.0f} MiB)"
    if plan.expected_s == plan.expected_s:
        yield f"  time: about {plan.expected_s:,.0f} s, {plan.ask.lanes} lanes"
