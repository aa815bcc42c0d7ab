"""`leadline bench workloads`: what can be run."""

from __future__ import annotations

from leadline.faces.cli.options import Json

EPILOG = """\
Examples:

  leadline bench workloads
"""


def command(*, json: Json = False) -> None:
    """List the shipped workloads; copy one into a file to change it."""
    from leadline.core.model.workload import find_workload, profiles
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.terminal import wrapped

    workloads = [find_workload(name) for name in profiles()]
    if json:
        print_json("leadline.workloads/1", workloads=[workload.model_dump(mode="json") for workload in workloads])
        return
    out = console()
    for workload in workloads:
        wrapped(out, f"{workload.about} Source: {workload.source}.", f"{workload.name:<20}")
