"""Facts of a guest as `leadline facts` records them.

Reads:
    The JSON document of ``leadline facts``, version 1: settings of the guest, its block devices, network interfaces and
    databases.

Sample:
    .. code-block:: json

        {"leadline_facts": 1, "recorded": "2026-11-20T22:41:00+00:00",
         "guests": [{"name": "db01", "cpu_count": 8, "sysctl": {"vm.swappiness": 60},
                     "devices": [{"name": "sdb", "scheduler": "mq-deadline", "mount": "/pgdata"}]}],
         "unreadable": ["/etc/postgresql/16/main/postgresql.conf"]}

Lost:
    When it was recorded; settings have no time. What the recording user could not read is said in a note.

Units:
    Each setting carries its unit in its name.

Sources:
    The use case that records them; settings.csv.
"""

from __future__ import annotations

import json
import re
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.formats.json_documents import json_documents

META = ImporterMeta(
    tool="leadline facts", marks=("leadline_facts",), layers=(Layer.GUEST,), record="leadline facts -o facts.json"
)

_VERSION = 1
_MARK = re.compile(r'\{\s*(?:"schema"\s*:\s*"leadline\.facts/1"\s*,\s*)?"leadline_facts"\s*:')
_NAMED_MAX = 3  # unreadable files named in the note


def sniff(source: Source) -> int:
    """Sure by its own mark, which comes first."""
    return 95 if _MARK.match(source.head_text.lstrip("\ufeff \t\r\n")) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only."""
    from leadline.formats.inventory_file import parse_inventory  # noqa: PLC0415 - 0.1 s that only this file needs

    del request
    document = _document(source)
    builder = CaptureBuilder(source.name, "facts", META.tool)
    # JSON is YAML, so the inventory's own checks of names and types serve here too.
    text = json.dumps({"leadline_inventory": 1, "guests": document.get("guests", [])}, ensure_ascii=False)
    builder.inventory.merge(parse_inventory(text, source.name))
    hidden = document.get("unreadable")
    if isinstance(hidden, list) and hidden:
        names = ", ".join(str(name) for name in hidden[:_NAMED_MAX]) + (", ..." if len(hidden) > _NAMED_MAX else "")
        builder.warn("unreadable", f"the recording user could not read {names}", len(hidden))
    return builder.build()


def _document(source: Source) -> dict[str, Any]:
    """The one document of the file.

    Raises:
        InputError: it is damaged, or of another version.
    """
    documents = json_documents(source.text(), source.name).documents
    value = documents[0].value if len(documents) == 1 else None
    if not isinstance(value, dict) or value.get("leadline_facts") != _VERSION:
        version = value.get("leadline_facts") if isinstance(value, dict) else None
        raise InputError(
            source.name,
            found=f"{len(documents)} documents" if len(documents) != 1 else f"facts of version {str(version)[:20]}",
            expected=f"one document of version {_VERSION}",
            advice="Record it again with this version's `leadline facts -o facts.json`.",
        )
    return value
