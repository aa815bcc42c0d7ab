"""`leadline rules`: every rule with its limits."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from leadline.faces.cli.options import Json, ProfileFile, profile_of

QUESTION = "leadline"
EPILOG = """\
Examples:

  leadline rules

  leadline rules --layer storage-path

  leadline rules --profile leadline.toml --json
"""


def command(
    *,
    layer: Annotated[str | None, typer.Option(help="Only rules of a layer.", show_default=False)] = None,
    json: Json = False,
    profile: ProfileFile = None,
) -> None:
    """List the rules with code, severity, limits and what they need; the profile's limits applied."""
    from leadline.app.diagnose.diagnosing import rule_modules
    from leadline.core.contracts.docstrings import title
    from leadline.core.contracts.rule import Rule
    from leadline.core.model.vocabulary import Layer
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.tables import plain_table

    chosen = None if layer is None else _layer(layer)
    site = profile_of(profile)
    rows = []
    for name, module in rule_modules().items():
        meta = cast("Rule", module).META
        if chosen is not None and meta.layer is not chosen:
            continue
        limits = {
            n: {"value": site.limits.get(name, {}).get(n, t.value), "unit": t.unit} for n, t in meta.thresholds.items()
        }
        rows.append(
            {
                "name": name,
                "code": meta.code,
                "layer": meta.layer.value,
                "severity": meta.severity.label,
                "judgement": meta.judgement,
                "enabled": name not in site.disabled,
                "limits": limits,
                "needs": list(meta.needs),
                "title": title(module.__doc__),
            }
        )
    if json:
        print_json("leadline.rules/1", rules=rows)
        return
    table = plain_table("code", "rule", "severity", "limits")
    order = {member.value: i for i, member in enumerate(Layer)}
    for row in sorted(rows, key=lambda r: (order[str(r["layer"])], r["code"])):
        limits = cast("dict[str, dict[str, object]]", row["limits"])
        shown = ", ".join(f"{n} {item['value']:g} {item['unit']}" for n, item in limits.items())
        table.add_row(str(row["code"]), str(row["name"]), str(row["severity"]), shown)
    console().print(table)


def _layer(text: str) -> object:
    from leadline.core.model.errors import UsageError
    from leadline.core.model.vocabulary import Layer

    try:
        return Layer(text)
    except ValueError as error:
        names = ", ".join(member.value for member in Layer)
        raise UsageError("--layer", found=text, expected="a layer", advice=f"One of {names}.") from error
