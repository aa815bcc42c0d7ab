"""vdbench's parameters that are no part of a workload: why each is left out, or what holds instead.

Source: Vdbench Users Guide 5.04.07, the parameter tables of each kind of definition.
"""

from __future__ import annotations

from leadline.formats.translation import Fate

# What a directory of files can be asked to do that is no reading and writing of them.
NO_DISK = (
    *("mkdir", "rmdir", "create", "delete", "open", "close", "getattr", "setattr", "access", "copy", "move", "put"),
    "get",
)

_TARGET = "the target is named with --on; several disks become one, so no queue of its own for each"
_REPORT = "reports are Leadline's own: every second, and every latency, is kept"
_TIMED = "a run is measured for a time, not until an amount is done"
_MACHINE = "the load is of one machine: `leadline bench hosts` loads many"
_WHERE = "requests are anywhere in the working set with the same probability: a cache would see another load"
_VERIFY = "verify is on or off: crc32c, checked when read"
_FILES = "one file of the whole size instead of many: no directories are searched and no files opened"

_REASONS: dict[str, tuple[str, ...]] = {
    _TARGET: ("lun", "anchor", "instance", "resetlun", "resetbus", "offset", "count"),
    _REPORT: ("interval", "kstat", "report", "histogram", "messagescan", "monitor", "log", "swat", "debug", "showlba"),
    _TIMED: ("maxdata", "data_errors", "stopafter", "stopcurve", "pause", "loop"),
    _MACHINE: ("host", "hd", "system", "clients", "shell", "user", "vdbench", "jvms", "master", "port", "mount"),
    _WHERE: ("hitarea", "forhitarea", "rhpct", "whpct", "forrhpct", "forwhpct", "hotband", "stride", "streams"),
    _VERIFY: ("journal", "journalling", "dvpost", "maintain", "pattern", "patterns"),
    _FILES: ("fileselect", "depth", "width", "files", "shared", "format", "create_anchors", "cleanup"),
    "no commands are run": ("startcmd", "start_cmd", "endcmd", "end_cmd", "start", "end"),
    "a replay takes a trace: `leadline trace replay`": ("replay", "rg"),
    "streams are offered what they are, none before another": ("priority",),
    "blocks are compared whole": ("dedupunit", "dedupsets", "deduphotsets", "dedupflipflop"),
    "requests begin at multiples of their size": ("align",),
}
OTHERS: dict[str, tuple[Fate, str]] = {
    name: (Fate.LOST, reason) for reason, names in _REASONS.items() for name in names
}
UNKNOWN = (Fate.LOST, "nothing in a workload stands for it")
