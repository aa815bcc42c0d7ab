"""Use case: the first draft of a map for a table that no importer knows."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from leadline.app.read.importing import importers_for, recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Field, Importer
from leadline.core.io.pipes import as_file
from leadline.core.io.source import Source, is_text, shown_name
from leadline.core.model.errors import InputError
from leadline.formats.mapped.suggesting import suggest_map


def suggest(path: Path) -> str:
    """The draft of a map, YAML.

    Raises:
        InputError: the file cannot be read, is no table, or is a recording that needs no map.
    """
    name = shown_name(path)
    try:
        source = Source(name, as_file(path))
        head = source.head
    except OSError as error:
        raise InputError(
            name, found=f"not readable ({error.strerror})", expected="a table", advice="Correct the path."
        ) from error
    known = recognise(source, importers_for(source))
    if known is not None:
        raise InputError(
            name,
            found=f"a recording of {known[1].META.tool}",
            expected="a table that needs a map",
            advice="Read it without one.",
        )
    if not is_text(head):
        raise InputError(name, found=source.beginning(), expected="a table as text", advice="Export it as CSV.")
    return suggest_map(source, _fields())


def _fields() -> dict[str, Field]:
    """Fields of every tool; one that means different things in different tools is left out."""
    fields: dict[str, Field] = {}
    unclear: set[str] = set()
    for module in load_units("importer").values():
        for name, field in cast("Importer", module).META.fields.items():
            if name in fields and fields[name].metric != field.metric:
                unclear.add(name)
            fields[name] = field
    return {name: field for name, field in fields.items() if name not in unclear}
