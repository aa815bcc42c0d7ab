"""sestatus and getenforce: whether SELinux checks what a Linux guest does, and in which mode.

Reads:
    Text of ``sestatus`` (with any options) and the one word of ``getenforce``. The mode in force becomes the setting
    ``selinux`` of the guest; ``leadline facts`` records the same.

Sample:
    .. code-block:: text

        SELinux status:                 enabled
        Loaded policy name:             targeted
        Current mode:                   enforcing
        Mode from config file:          permissive

Lost:
    The policy, the mode after the next boot, contexts and booleans. The text does not name its computer.

Units:
    One of enforcing, permissive, disabled.

Sources:
    sestatus(8), getenforce(8). Outputs of RHEL, CentOS, Rocky Linux and Fedora in public notes of others.
"""

from __future__ import annotations

import re

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer

META = ImporterMeta(
    tool="sestatus",
    marks=("selinux status", "enforcing", "permissive", "disabled"),
    layers=(Layer.GUEST,),
    record="sestatus > selinux.txt",
)

_STATUS = re.compile(r"SELinux status:\s{1,60}(enabled|disabled)\s{0,80}", re.IGNORECASE)
_MODE = re.compile(r"Current mode:\s{1,60}(enforcing|permissive)\s{0,80}", re.IGNORECASE)
_WORD = re.compile(r"\s{0,80}(Enforcing|Permissive|Disabled)\s{0,80}")
_LINES_MAX = 400  # of sestatus -v, contexts and all


def sniff(source: Source) -> int:
    """Sure by the line of the status, or by one word where the command is known; by shape where it is not."""
    if any(_STATUS.fullmatch(line.strip()) for line in source.head_text.splitlines()[:_LINES_MAX]):
        return 95
    if _WORD.fullmatch(source.head_text) is None:
        return 0
    return 95 if "getenforce" in f"{source.command} {source.name}" else 60


def read(source: Source, request: Request) -> Capture:
    """A capture of one fact: the mode in force.

    Raises:
        InputError: no line gives the mode.
    """
    del request
    builder = CaptureBuilder(source.name, "selinux", META.tool)
    mode = ""
    for line in source.lines():
        if (status := _STATUS.fullmatch(line.strip())) is not None:
            mode = "disabled" if status[1].casefold() == "disabled" else ""
        elif (match := _MODE.fullmatch(line.strip()) or _WORD.fullmatch(line)) is not None:
            mode = match[1].casefold()
    if not mode:
        raise InputError(
            source.name,
            found="no line with the mode that is in force",
            expected="Current mode: enforcing or permissive, or SELinux status: disabled",
            advice=f"Record it again: {META.record}",
        )
    builder.inventory.add(UNNAMED_GUEST, source.name, selinux=mode)
    builder.warn("no-guest", "the text does not name its computer: taken as one called guest")
    return builder.build()
