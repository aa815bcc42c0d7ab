"""Leadline's own inventory file: what the user knows and no recording says.

Reads:
    YAML with ``leadline_inventory: 1`` and any of ``hosts``, ``vms``, ``guests``; unknown keys are errors, so a typing
    mistake is not silently ignored.

Sample:
    .. code-block:: yaml

        leadline_inventory: 1
        guests:
          - name: db01
            devices:
              - {name: sdb, role: wal, medium: flash}

Lost:
    Nothing.

Units:
    Each setting carries its unit in its name.

Sources:
    Leadline's guide on inventories.
"""

from __future__ import annotations

import re

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.vocabulary import Layer

META = ImporterMeta(
    tool="inventory file",
    marks=("leadline_inventory", "hosts", "vms", "guests"),
    layers=(Layer.VM, Layer.HOST),
    record="write it by hand: see the guide",
)

_MARK = re.compile(r"^leadline_inventory\s*:", re.MULTILINE)
_TOP_KEY = re.compile(r"^(hosts|vms|guests)\s*:", re.MULTILINE)


def sniff(source: Source) -> int:
    """Sure by its own mark; likely by a top-level key in a YAML file."""
    if _MARK.search(source.head_text):
        return 95
    return 40 if source.name.endswith((".yaml", ".yml")) and _TOP_KEY.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only."""
    from leadline.formats.inventory_file import parse_inventory  # noqa: PLC0415 - 0.1 s that only this file needs

    del request
    builder = CaptureBuilder(source.name, "inventory", META.tool)
    builder.inventory.merge(parse_inventory(source.text(), source.name))
    return builder.build()
