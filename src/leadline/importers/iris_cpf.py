"""InterSystems configuration parameter files (iris.cpf, cache.cpf): how an instance is set up.

Reads:
    The file's ``[Section]`` and ``name=value`` lines. Parameters of ``[config]``, ``[Startup]`` and ``[Journal]`` are
    kept under the names InterSystems gives them.

Sample:
    .. code-block:: text

        [config]
        globals=0,0,8192,0,0,0
        gmheap=307200
        locksiz=16777216

Lost:
    Namespaces, databases, devices and mappings. Anything that may hold a secret or an address: names with password,
    key, token, license or user in them, and the sections of ECP, SNMP and mirroring.

Units:
    As the file has them: gmheap and routines in KB or MB as documented for each parameter, ``globals`` in MB for each
    size of block from 2 KB up.

Sources:
    InterSystems IRIS documentation, Configuration Parameter File Reference.
"""

from __future__ import annotations

import re

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.iris.cpf import parse_cpf

META = ImporterMeta(
    tool="InterSystems CPF",
    marks=("[configfile]", "[config]", "[startup]", "[databases]", "[namespaces]", "[journal]"),
    layers=(Layer.DATABASE,),
    record="copy iris.cpf from the installation folder",
)

_SECTION = re.compile(r"^\[([^\]\r\n]+)\]\s*$", re.MULTILINE)
_OWN = frozenset({"ConfigFile", "config", "Startup", "Databases", "Namespaces", "Journal"})


def sniff(source: Source) -> int:
    """Sure by the sections only such a file has together."""
    sections = set(_SECTION.findall(source.head_text))
    if {"ConfigFile", "config"} <= sections:
        return 94
    return 70 if source.name.casefold().endswith(".cpf") and len(sections & _OWN) >= 2 else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only.

    Raises:
        InputError: a line is neither section, assignment, comment nor blank, or assigns a number beyond every limit; or
            there is no ``[config]``.
    """
    del request
    builder = CaptureBuilder(source.name, "iris-cpf", META.tool)
    cpf = parse_cpf(enumerate(source.lines(), start=1))
    if cpf.unread:
        number, text = cpf.unread[0]
        raise InputError(
            f"{source.name}:{number}",
            found=f"{text[:40]!r}",
            expected="[Section] or name=value, numbers below 1e308",
            advice="Copy the file again from the installation folder.",
        )
    if not cpf.has_config:
        raise InputError(
            source.name, found="no [config] section", expected="a whole .cpf file", advice="Copy the file again."
        )
    entity = Entity(EntityKind.DATABASE, "iris", UNNAMED_GUEST)
    builder.inventory.add(UNNAMED_GUEST, source.name)
    builder.inventory.add(entity, source.name, engine="iris", version=cpf.version, parameters=cpf.parameters)
    return builder.build(tool_version=cpf.version)
