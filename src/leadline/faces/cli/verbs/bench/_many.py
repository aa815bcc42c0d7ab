"""What `bench hosts` and `bench run --hosts` have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from leadline.app.measure.hosts import Host
    from leadline.core.model.workload import Workload
    from leadline.faces.theoretical import Theoretical

FAILED = 4
HOSTS_HELP = "File: a line HOST[,PORT] [FOLDER] or ssh://[USER@]HOST[:PORT] [FOLDER] each."
PASSWORD_HELP = "Ask for a password for SSH (or LEADLINE_PASSWORD)."


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for, but for what is loaded."""

    verb: str
    seed: int | None
    ask_password: bool
    most: Theoretical | None
    yes: bool
    json: bool
    quiet: bool


def load_many(workload: Workload, hosts_file: Path, folder: str, destroy: tuple[str, ...], asked: Asked) -> None:
    """Print the plan, ask, load, show, and end with status 4 when a host failed.

    ``folder`` is the target of hosts whose line names none.

    Raises:
        UsageError: the workload is none for these hosts, a target holds data nobody named, or there is nobody to ask.
    """
    from leadline.app.bench.hosts import run_hosts
    from leadline.app.measure.hosts import HostsOptions, read_hosts, require_destroyable, require_loadable
    from leadline.core.system.secret import Secret
    from leadline.faces.cli.consent import agree
    from leadline.faces.cli.passwords import password_of
    from leadline.faces.cli.running import talking
    from leadline.stores.runs import RunStore

    hosts = read_hosts(hosts_file, folder)
    require_loadable(workload, hosts)
    require_destroyable(workload, hosts, destroy)
    agree(asked.verb, _plan_lines(workload, hosts), yes=asked.yes, quiet=asked.quiet)
    password = password_of("the SSH users") if asked.ask_password else Secret()
    options = HostsOptions(password=password, destroy=destroy)
    store = RunStore()
    with talking(quiet=asked.quiet) as talk:
        run, done = run_hosts(
            workload, hosts, store, say=lambda text: talk.phase(text, 0.0), seed=asked.seed, options=options
        )
    if asked.json:
        from leadline.faces.cli.output import print_json
        from leadline.faces.hosts import hosts_document

        files = str(store.files_of(run.id))
        print_json("leadline.bench-hosts/1", run=run.id, files=files, **hosts_document(done, asked.most))
    else:
        from leadline.app.measure.benching import diagnosis_of
        from leadline.faces.runs import show_run

        show_run(run, diagnosis_of(run.id, store), hosts=done, most=asked.most)
    if any(host.error is not None for host in done.hosts):
        raise typer.Exit(FAILED)


def _plan_lines(workload: Workload, hosts: list[Host]) -> Iterator[str]:
    from leadline.app.measure.benching import expected_s
    from leadline.app.measure.workloads import notes_in_short

    total = sum(workload.working_set_bytes(stream) for stream in workload.io) / 2**30
    yield f"Plan: {workload.name} on {len(hosts)} hosts, at once, {total:.2f} GiB on each"
    for host in hosts:
        action = "make, fill and remove files in"
        if "://" in host.path or host.path.startswith("/dev/"):
            reads = all(stream.read_pct == 100.0 for stream in workload.io) and not host.is_ssh
            action = "read" if reads else "OVERWRITE"
        yield f"  {host.address}: {action} {host.path}"
    if any(host.is_ssh for host in hosts):
        loaded_by = "vdbench there" if workload.tool == "vdbench" else "a fio server behind the connection"
        yield f"  ssh://: {loaded_by}, counters copied; both end with the connection"
    for note in notes_in_short(workload):
        yield f"  note: {note}"
    timing = workload.timing
    yield (
        f"  time: filling, then {expected_s(workload):.0f} s "
        f"(warm-up {timing.warm_up_s:.0f} s, {timing.rounds} x {timing.measure_s:.0f} s)"
    )
