"""`leadline explain`: the page of a rule, importer, fault, metric or piece of advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.faces.cli.options import Json

if TYPE_CHECKING:
    from rich.console import Console

QUESTION = "leadline"
EPILOG = """\
Examples:

  leadline explain cpu-ready-high

  leadline explain CPU101

  leadline explain importers
"""


def command(
    name: Annotated[
        str, typer.Argument(help="A rule (name or code), importer, fault, metric, guide, advice; or rules, ...")
    ],
    *,
    json: Json = False,
) -> None:
    """Explain a rule, importer, fault, metric or piece of advice: what it finds, why, what to do, sources."""
    from leadline.app.explain.explaining import PLURALS, explain, guide, list_units
    from leadline.faces.cli.output import console, print_json

    if name in PLURALS:
        units = list_units(PLURALS[name])
        if json:
            print_json("leadline.units/1", kind=PLURALS[name], units=[{"name": n, "title": t} for n, t in units])
            return
        for unit, text in units:
            console().print(f"{unit:<36} {text}", markup=False, soft_wrap=False)
        return
    guide_text = guide(name)
    if guide_text is not None:
        if json:
            heading = guide_text.split("\n", 1)[0].lstrip("# ")
            print_json("leadline.page/1", kind="guide", name=name, title=heading, text=guide_text)
        else:
            console().print(guide_text, markup=False, highlight=False, soft_wrap=True, end="")
        return
    page = explain(name)
    if json:
        print_json("leadline.page/1", **page)
    else:
        _print_page(console(), page)


def _print_page(out: Console, page: dict[str, Any]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from leadline.core.contracts.docstrings import paragraphs

    out.print(Text(f"{page['name']} ({page['kind']})", style="bold"))
    out.print(Text(page["title"]))
    for heading, text in page["sections"].items():
        out.print()
        out.print(Text(heading, style="bold"))
        for paragraph in paragraphs(text, itemised=heading == "Sources"):
            out.print(Padding(Text(paragraph), (0, 0, 0, 2), expand=False))
    facts = page.get("facts", {})
    if facts:
        out.print()
    for name, value in facts.items():
        if isinstance(value, dict):
            out.print(Text(f"{name}:", style="bold"))
            for key, item in value.items():
                shown = ", ".join(item) if isinstance(item, list) else str(item)
                out.print(Padding(Text(f"{key}: {shown}"), (0, 0, 0, 2)))
        elif value not in ([], ""):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            out.print(Text.assemble((f"{name}: ", "bold"), shown))
