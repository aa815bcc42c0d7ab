"""`leadline doctor`: which external tools are there."""

from __future__ import annotations

from leadline.faces.cli.options import Json

QUESTION = "leadline"
EPILOG = """\
Examples:

  leadline doctor

  leadline doctor --json
"""


def command(*, json: Json = False) -> None:
    """Say which external tools are present, what each missing one disables, how to install it.

    Diagnosing needs none of them but sadf, and that only for binary sar files.
    """
    import platform

    from leadline import __version__
    from leadline.core.system.tools import TOOLS, examine
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.tables import plain_table

    states = [examine(tool) for tool in TOOLS]
    if json:
        tools = [
            {
                "name": s.tool.name,
                "present": s.is_present,
                "version": s.version,
                "path": s.path,
                "disables": s.tool.disables,
                "install": s.install,
            }
            for s in states
        ]
        print_json("leadline.doctor/1", leadline=__version__, python=platform.python_version(), tools=tools)
        return
    out = console()
    out.print(f"leadline {__version__}, Python {platform.python_version()}, {platform.platform()}", markup=False)
    table = plain_table("tool", "version", "without it")
    for state in states:
        version = "missing" if not state.is_present else state.version or "present"
        table.add_row(state.tool.name, version, "" if state.is_present else f"no {state.tool.disables}")
    out.print(table)
    missing = sorted({s.tool.package for s in states if not s.is_present})
    if missing:
        out.print(f"To install what is missing:\n  apt-get install {' '.join(missing)}", markup=False)
    else:
        out.print("Everything is there.")
