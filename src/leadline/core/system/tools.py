"""External programs Leadline reads recordings of or drives: how to find each, what is lost without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from leadline.core.model.errors import ToolError

VERSION_TIMEOUT_S = 5.0
# Debian keeps server programs of PostgreSQL outside PATH.
_EXTRA_FOLDERS = "/usr/lib/postgresql/17/bin:/usr/lib/postgresql/16/bin:/usr/lib/postgresql/15/bin:/usr/sbin:/sbin"
_RELEASE = re.compile(r"Release version: v(\d+(?:\.\d+)+)")
_VERSION = re.compile(r"\d+(?:\.\d+)+|\d{2,}")


@dataclass(frozen=True, slots=True)
class Tool:
    """A program: its name, how to ask its version, the Debian package or Go module, what is disabled without it.

    ``package`` is the address of a page where nobody may pass the program on. A program without ``ask`` is not asked
    for its version. ``shown`` is how its version stands in its answer; the first group, where it has one.
    """

    name: str
    ask: tuple[str, ...]
    package: str
    disables: str
    shown: re.Pattern[str] = _VERSION


@dataclass(frozen=True, slots=True)
class ToolState:
    """A tool as found: path and version are None when it is missing or does not answer."""

    tool: Tool
    path: str | None
    version: str | None

    @property
    def is_present(self) -> bool:
        """Whether it can be run."""
        return self.path is not None

    @property
    def install(self) -> str:
        """The command that installs it: Debian's and Ubuntu's, or Go's; for a program by hand the page of it."""
        return installs(self.tool.package)


GO_TPC = "github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.12"
VDBENCH_PAGE = "https://www.oracle.com/downloads/server-storage/vdbench-downloads.html"
VDBENCH_VARIABLE = "LEADLINE_VDBENCH"
# Variables that name the folder of a program which the user unpacks by hand, or the program in it.
_VARIABLES = {"vdbench": VDBENCH_VARIABLE}
TOOLS: tuple[Tool, ...] = (
    Tool("sadf", ("-V",), "sysstat", "reading binary sar files (sa*)"),
    Tool("pminfo", ("--version",), "pcp", "reading archives of PCP (NAME.meta)"),
    Tool("iostat", ("-V",), "sysstat", "recording the example incidents"),
    Tool("vmstat", ("-V",), "procps", "recording the example incidents"),
    Tool("fio", ("--version",), "fio", "loading disks (leadline bench, leadline probe)"),
    Tool("vdbench", (), VDBENCH_PAGE, "loading disks with vdbench (bench run --tool vdbench)"),
    Tool("ioping", ("-v",), "ioping", "measuring the latency of single requests (bench run ioping)"),
    Tool("pgbench", ("--version",), "postgresql-contrib", "loading PostgreSQL; recording the example incidents"),
    Tool("postgres", ("--version",), "postgresql", "bench run --on new; recording the example incidents"),
    Tool("pg_test_fsync", ("--version",), "postgresql", "measuring what flushing costs (bench run pg-test-fsync)"),
    Tool("sysbench", ("--version",), "sysbench", "loading PostgreSQL or MySQL with sysbench"),
    Tool("go-tpc", ("version",), GO_TPC, "loading a database with TPC-C or TPC-H", _RELEASE),
    Tool("mariadbd", ("--version",), "mariadb-server-core", "bench run --on new with engine mysql"),
    Tool("mariadb", ("--version",), "mariadb-client-core", "loading MySQL with sysbench"),
    Tool("wrk", ("-v",), "wrk", "loading a web server (bench run web-pages)"),
    Tool("nginx", ("-v",), "nginx-light", "bench run web-pages --on new"),
    Tool("iperf3", ("--version",), "iperf3", "loading a network (leadline bench)"),
    Tool("sockperf", ("--version",), "sockperf", "latency of a network, idle and under load (leadline bench)"),
    Tool("ping", ("-V",), "iputils-ping", "the largest packet that passes a network (leadline bench)"),
    Tool("ip", ("-V",), "iproute2", "the device a network is reached by (leadline bench)"),
    Tool("ib_send_lat", ("--version",), "perftest", "RDMA latency and throughput (leadline bench)"),
    Tool("qemu-storage-daemon", ("--version",), "qemu-system-common", "bench protect --nbd; an incident"),
    Tool("qemu-system-x86_64", ("--version",), "qemu-system-x86", "booting guests (leadline lab)"),
    Tool("qemu-img", ("--version",), "qemu-utils", "disks of guests with snapshots or qcow2 (leadline lab)"),
    Tool("busybox", ("--help",), "busybox-static", "booting guests (leadline lab)"),
    Tool("nbdfuse", ("--version",), "libnbd-bin", "recording the throttled-disk incident"),
    Tool("debootstrap", ("--version",), "debootstrap", "testing guest optimisation on a real tree"),
    Tool("stress-ng", ("--version",), "stress-ng", "recording the starved-CPU incident"),
)


def installs(package: str) -> str:
    """What brings a package: the command of Debian and Ubuntu, or of Go; where there is none, the page to go to."""
    if "://" in package:
        return f"Download it from {package}"
    return f"go install {package}" if "@" in package else f"apt-get install {package}"


def find_program(name: str) -> str | None:
    """Where a program is, or None; where its variable is set, in that folder alone."""
    named = os.environ.get(_VARIABLES.get(name, ""))
    if named:
        folder = Path(named) if Path(named).is_dir() else Path(named).parent
        return shutil.which(name, path=str(folder))
    return shutil.which(name) or shutil.which(name, path=_EXTRA_FOLDERS)


def require_program(name: str, purpose: str, package: str | None = None) -> str:
    """Where a program is; ``purpose`` and the Debian ``package`` (by itself that of `TOOLS`) are for the error.

    Raises:
        ToolError: it is not installed.
    """
    path = find_program(name)
    if path is None:
        package = package or next((tool.package for tool in TOOLS if tool.name == name), None)
        advice = installs(package) if package else "`leadline doctor` says how to install it."
        raise ToolError(name, found="not installed", expected=purpose, advice=advice)
    return path


def examine(tool: Tool) -> ToolState:
    """Look for a tool and ask its version; never raises, never takes longer than a few seconds."""
    path = find_program(tool.name)
    if path is None or not tool.ask:
        return ToolState(tool, path, None)
    try:
        answer = subprocess.run(
            [path, *tool.ask], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ToolState(tool, path, None)
    match = tool.shown.search(answer.stdout + answer.stderr)
    return ToolState(tool, path, match[match.lastindex or 0] if match else None)
