"""`leadline trace replay`: a trace replayed by fio, compared with the original."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from leadline.faces.cli.consent import Destroy, Yes, agree
from leadline.faces.cli.options import Json, Paths, Quiet

if TYPE_CHECKING:
    from leadline.app.traces.replaying import ReplayPlan

EPILOG = """\
Examples:

  leadline trace replay db01.vscsi --on scratch --set-size 32m --yes

  leadline trace replay db01.vscsi --on scratch --set-size 32m --speed 2 --offsets scale --yes

  sudo leadline trace replay db01.vscsi --on /dev/sdx --destroy-data /dev/sdx
"""


def command(
    paths: Paths,
    *,
    on: Annotated[str, typer.Option("--on", help="Folder, file or device to replay on.")],
    destroy: Destroy = None,
    disk: Annotated[str | None, typer.Option(help="Which disk of the trace.", show_default=False)] = None,
    speed: Annotated[str, typer.Option(help="2 is twice as fast as the trace, 0.5 half as fast; or 200%, 50%.")] = "1",
    offsets: Annotated[
        Literal["wrap", "scale"],
        typer.Option(help="How offsets of a larger disk are put on the target: wrapped around its end, or scaled."),
    ] = "wrap",
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
    from leadline.app.traces.replaying import ReplayAsk, plan_replay, replay, speed_pct_of
    from leadline.core.model.errors import UsageError
    from leadline.core.model.workload import size_of
    from leadline.faces.cli.output import print_json, reading_progress
    from leadline.faces.traces import show_replay

    try:
        size_bytes = None if size is None else size_of(size)
    except ValueError as error:
        raise UsageError("--set-size", found=str(size), expected="a size as 4g", advice="k is 1024.") from error
    ask = ReplayAsk(on, destroy, disk, speed_pct_of(speed), flat_out, seconds, size_bytes, lanes, offsets)
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
    from leadline.core.model.units import duration
    from leadline.faces.traces import size

    action = "make, fill and remove" if plan.is_made else "read" if plan.read_only else "OVERWRITE"
    facts, speed_pct = plan.disk.facts, plan.ask.speed_pct
    yield f"Plan: {plan.disk.request_count:,} requests of {plan.disk.name} ({plan.files.format})"
    yield f"  {action} {plan.path} ({plan.size_bytes / 2**20:,.0f} MiB)"
    whole = "" if plan.ask.seconds is None else "at most "
    yield f"  {whole}{size(facts['read_bytes'])} to read, {size(facts['write_bytes'])} to write"
    yield f"  {plan.mapping_sentence}"
    if plan.expected_s == plan.expected_s:
        speed = f"{speed_pct / 100:g} times the trace's speed"
        long = duration(plan.expected_s) if plan.expected_s >= 1.0 else f"{plan.expected_s:.2g} s"
        yield f"  time: about {long} at {speed}, {plan.ask.lanes} lanes"
    elif plan.ask.flat_out:
        yield f"  time: as fast as the target goes, {plan.ask.lanes} lanes"
