"""`leadline doctor`: which external tools are there, and which verb lacks what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.faces.cli.options import Json

if TYPE_CHECKING:
    from rich.table import Table

    from leadline.faces.cli.needs import Need

QUESTION = "leadline"
EPILOG = """\
Examples:

  leadline doctor

  leadline doctor --json
"""


def command(*, json: Json = False) -> None:
    """Say which verb lacks what, which external tools are there, and how to install what is missing.

    Diagnosing needs no tool but sadf, and that only for binary sar files.
    """
    import platform

    from leadline import __version__
    from leadline.core.system.tools import TOOLS, examine
    from leadline.faces.cli.needs import by_command, commands, needs
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.tables import plain_table

    states = [examine(tool) for tool in TOOLS]
    listed = list(needs({state.tool.name: state for state in states}))
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
        verbs = [
            {
                "verb": need.verb,
                "for": need.purpose or None,
                "needs": need.name,
                "kind": need.kind,
                "present": need.is_present,
                "install": need.install,
            }
            for need in listed
        ]
        python = platform.python_version()
        print_json("leadline.doctor/1", leadline=__version__, python=python, tools=tools, verbs=verbs)
        return
    out = console()
    out.print(f"leadline {__version__}, Python {platform.python_version()}, {platform.platform()}", markup=False)
    table = plain_table("tool", "version", "without it")
    for state in states:
        version = "missing" if not state.is_present else state.version or "present"
        table.add_row(state.tool.name, version, "" if state.is_present else f"no {state.tool.disables}")
    out.print(table)
    out.print()
    out.print(_verb_table(listed))
    out.print("The other verbs need nothing.", markup=False)
    lacking = by_command(listed)
    if lacking:
        out.print()
        out.print(_command_table(lacking))
    lines = commands(listed, states)
    out.print("\nTo install all that is missing:" if lines else "\nEverything is there.", markup=False)
    for line in lines:
        out.print(f"  {line}", markup=False, soft_wrap=True)


def _verb_table(listed: list[Need]) -> Table:
    """What each verb needs, and whether it is there."""
    from leadline.faces.tables import plain_table

    table = plain_table("verb", "needs", "for", "state")
    verb = None
    for need in listed:
        state = "there" if need.is_present else "missing"
        table.add_row("" if need.verb == verb else need.verb, need.name, need.purpose, state)
        verb = need.verb
    return table


def _command_table(lacking: dict[str, list[str]]) -> Table:
    """Each command that brings something, and the verbs that lack it."""
    from leadline.faces.tables import plain_table

    table = plain_table("this command", "brings what these lack")
    for install, verbs in lacking.items():
        table.add_row(install, ", ".join(verbs))
    return table
