"""`leadline bench protect`: erasure coding against copies, under load and under node failures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.consent import DestroyEach, Yes, agree
from leadline.faces.cli.options import Json, Quiet

if TYPE_CHECKING:
    from leadline.app.protect.protecting import Progress, ProtectionPlan, ProtectionRequest

EPILOG = """\
Examples:

  leadline bench protect --on . --vms 1,2 --size-per-vm 16M --repeats 2 --yes

  leadline bench protect --on . --scheme 2+1 --fail 1 --size-per-vm 8M --yes

  leadline bench protect --clean .
"""


def command(
    *,
    on: Annotated[Path | None, typer.Option(help="Make the nodes in this folder.", show_default=False)] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(help="A node of your own: a folder or nbd://host:port/export. Repeatable.", show_default=False),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(help="With --on: how many. [default: as many as a stripe has shards]")
    ] = None,
    nbd: Annotated[bool, typer.Option("--nbd", help="With --on: serve each node over NBD.")] = False,
    scheme: Annotated[
        list[str] | None, typer.Option(help="K+M or Nx. Repeatable. [default: 3+2 and 3x]", show_default=False)
    ] = None,
    vms: Annotated[str, typer.Option(help="Numbers of parallel streams.")] = "1,2,4,8",
    size_per_vm: Annotated[str, typer.Option(help="Data of each stream.")] = "256M",
    seconds: Annotated[
        float | None, typer.Option(help="Write so long, around the size again and again.", show_default=False)
    ] = None,
    unit: Annotated[str, typer.Option(help="Size of a shard.")] = "1M",
    repeats: Annotated[int, typer.Option(help="Rounds that count; one more warms up.")] = 5,
    fail: Annotated[int, typer.Option(help="Nodes that fail together; 0: none.")] = 2,
    seed: Annotated[int, typer.Option(help="Same seed, same data.")] = 1,
    destroy: DestroyEach = None,
    clean: Annotated[
        Path | None, typer.Option(help="Only remove what killed runs left in a folder.", show_default=False)
    ] = None,
    yes: Yes = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write parallel backup streams as erasure-coded shards or as copies, and fail nodes.

    Measured are the throughput against the number of VMs, of each node, and what a byte of data costs in bytes stored,
    bytes sent and CPU. Then nodes fail, in every combination: all data is read back and compared with its source.
    """
    from leadline.app.protect.protecting import ProtectionRequest, make_plan, run_protection, size_of
    from leadline.app.protect.shards import ProtectionScheme
    from leadline.core.system.interrupts import Interrupted
    from leadline.faces.cli.output import console, print_json

    if clean is not None:
        _clean(clean, json=json)
        return
    request = ProtectionRequest(
        tuple(ProtectionScheme.parse(text) for text in scheme or ["3+2", "3x"]),
        _counts(vms),
        _targets(on, node or []),
        on or Path(),
        _node_count(nodes),
        nbd,
        size_of(unit, "--unit"),
        size_of(size_per_vm, "--size-per-vm"),
        seconds,
        repeats,
        fail,
        seed,
        frozenset(destroy or []),
    )
    plan = make_plan(request)
    agree("bench protect", _plan_lines(plan), yes=yes, quiet=quiet)
    with _progress(quiet=quiet) as progress:
        outcome = run_protection(plan, progress)
    if json:
        print_json("leadline.protection/1", **outcome.to_dict())
    else:
        from leadline.faces.protection import show_outcome

        show_outcome(console(), outcome)
    if not outcome.is_complete:
        raise Interrupted("what was made is removed, and nothing is kept but what is printed")
    if outcome.lost:
        raise typer.Exit(1)


def _targets(on: Path | None, node: list[str]) -> tuple[str, ...]:
    from leadline.core.model.errors import UsageError

    if (on is None) == (not node):
        raise UsageError(
            "leadline bench protect",
            found="neither --on nor --node" if on is None else "both --on and --node",
            expected="one of them",
            advice="--on FOLDER makes nodes there; --node names yours, once for each.",
        )
    return tuple(node)


def _node_count(nodes: int | None) -> int:
    from leadline.core.model.errors import UsageError

    if nodes is not None and nodes < 1:
        raise UsageError("--nodes", found=str(nodes), expected="1 or more", advice="Leave it out for the fewest.")
    return nodes or 0


def _counts(text: str) -> tuple[int, ...]:
    from leadline.core.model.errors import UsageError

    try:
        return tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError as error:
        raise UsageError("--vms", found=text, expected="numbers, by commas", advice="For example 1,2,4,8.") from error


def _plan_lines(plan: ProtectionPlan) -> Iterator[str]:
    from leadline.core.model.units import duration

    request = plan.request
    schemes = " and ".join(map(str, request.schemes))
    yield f"Plan: {schemes}, {','.join(map(str, request.vm_counts))} VMs, {request.repeat_count} rounds and a warm-up"
    for place in _places(request):
        yield f"  writes to {place}"
    free = f", {plan.free_bytes / 1e9:.1f} GB are free" if plan.parents else ""
    yield f"  holds at most {plan.held_bytes / 1e9:.2f} GB at a time{free}"
    fails = f", fails {request.fail_count} nodes at a time" if request.fail_count else ""
    yield f"  writes about {plan.written_bytes / 1e9:.1f} GB, about {duration(plan.seconds)} at 300 MB/s{fails}"
    if plan.is_shared:
        yield "  nodes share a file system: each has a part of its throughput"
    for path in plan.left_behind:
        yield f"  left by a killed run: {path}; leadline bench protect --clean {path.parent}"


def _places(request: ProtectionRequest) -> Iterator[str]:
    if not request.targets:
        served = " served over NBD" if request.is_nbd else ""
        yield f"a folder of its own in {request.on}{served}, removed at the end"
    for target in request.targets:
        if "://" in target:
            yield f"{target}, which must be blank{'; DATA THERE IS LOST' if target in request.destroy else ''}"
        else:
            yield f"a folder of its own in {target}, removed at the end"


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Progress | None]:
    """A bar on a terminal, nothing otherwise."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress as Bar

    from leadline.faces.cli.output import console

    with Bar(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, text: bar.update(task, completed=done, total=total, description=text)


def _clean(folder: Path, *, json: bool) -> None:
    from leadline.app.protect.protecting import clean
    from leadline.faces.cli.output import print_json

    removed = clean(folder)
    if json:
        print_json("leadline.protection/1", removed=[str(path) for path in removed])
        return
    for path in removed:
        typer.echo(f"removed {path}")
    if not removed:
        typer.echo(f"nothing left by a killed run in {folder}")
