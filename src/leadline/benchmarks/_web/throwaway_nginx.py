"""A web server for one run: nginx with one page at one port of 127.0.0.1, all its files in one folder, gone with it.

nginx is one process without a master, so that the kernel ends all of it when Leadline is killed; the next start removes
the folder. It runs as the user who starts it, and serves the folder of the page alone. Connections stay open.

Source: nginx documentation, "Core functionality" (daemon, master_process), ngx_http_core_module (keepalive_requests),
command-line parameters -p, -c, -e.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import secrets
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from leadline.benchmarks._database.throwaway import START_S, failed, make_folder, remove_folder
from leadline.core.contracts.load_target import NEW
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.enclosures import OPEN, Enclosure
from leadline.core.system.leftovers import temporary_folder
from leadline.core.system.opened import printable
from leadline.core.system.processes import POLL_S, running
from leadline.core.system.tools import TOOLS, examine, require_program

NOTE = "an nginx of its own with one worker on this machine: wrk and nginx share its CPUs"
FOLDER = "leadline-bench-web"
PAGE = "page"
HOST = "127.0.0.1"
EMPTY_BYTES = 1024**2  # Judgement: its log and empty folders, with room
CONNECT_S = 5.0  # Judgement: for one page of a server on this machine
PORT_TRIES = 5  # another program may take a free port before nginx does
SPARE_CONNECTIONS = 64  # its listening socket, its files, and connections that replace others
ADVICE = "Look at free space and at the folder's rights; see also `leadline doctor`."
_ODD = frozenset("$\"'\\;{}")  # nginx reads its prefix as text with variables
_TAKEN = "Address already in use"
_LOG_OPTION = (1, 19, 5)  # Source: nginx, CHANGES: -e appeared
_CONFIGURATION = """\
daemon off;
master_process off;
worker_processes 1;
pid nginx.pid;
lock_file nginx.lock;
error_log stderr warn;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    server {{
        listen {host}:{port} backlog=4096;
        root pages;
    }}
}}
"""


@dataclass(slots=True)
class _Serving:
    """A server that was started: what ends it, its page, its process."""

    stack: contextlib.ExitStack
    url: str = ""
    process: int = 0


_servers: dict[str, _Serving] = {}


def base_of(target: str) -> Path:
    """Where a throw-away server of a target will be: in the folder named, or in a new temporary one.

    Raises:
        UsageError: there is one already, or nginx would read such a name in its own way.
    """
    if target == NEW:
        base = temporary_folder() / f"leadline-bench-{secrets.token_hex(4)}"
    else:
        base = Path(target).resolve() / FOLDER
    if base.exists():
        raise UsageError(
            str(base), found="it is there already", expected="a name that is free", advice="Remove it or name another."
        )
    if not str(base).isprintable() or _ODD.intersection(str(base)):
        raise UsageError(
            printable(str(base)),
            found="a path that nginx reads in its own way",
            expected=f"none of {' '.join(sorted(_ODD))}",
            advice="Name another folder.",
        )
    return base


def start(base: Path, output: Path, page_bytes: int, connection_count: int, within: Enclosure = OPEN) -> str:
    """Make the page, start the server within an enclosure, return the page's URL; `stop` must follow, whatever happens.

    Raises:
        ToolError: nginx is not installed, or does not start.
    """
    program = require_program("nginx", "a web server of its own", "nginx-light")
    make_folder(base)
    serving = _servers[str(base)] = _Serving(contextlib.ExitStack())
    content = os.urandom(page_bytes)
    (base / "pages").mkdir()
    (base / "pages" / PAGE).write_bytes(content)
    version = examine(next(tool for tool in TOOLS if tool.name == "nginx")).version or ""
    number = tuple(int(part) for part in version.split(".") if part.isdigit())
    logs = ("-e", "stderr") if number >= _LOG_OPTION else ()
    for _ in range(PORT_TRIES):
        port = _free_port()
        settings = {"connections": connection_count + SPARE_CONNECTIONS, "host": HOST, "port": port}
        (base / "nginx.conf").write_text(_CONFIGURATION.format(**settings), encoding="utf-8")
        output.write_bytes(b"")
        command = within.around([program, "-p", f"{base}/", *logs, "-c", "nginx.conf"])
        with contextlib.ExitStack() as attempt:
            server = attempt.enter_context(running(command, output=output, folder=base))
            if _serves(server, within, port, content):
                serving.stack.push(attempt.pop_all())
                serving.url, serving.process = f"http://{HOST}:{port}/{PAGE}", server.pid
                return serving.url
        if _TAKEN not in output.read_text(errors="replace"):
            break
    raise failed("nginx", output, ADVICE)


def url_of(base: Path) -> str:
    """The page of the server in a folder, which `start` started in this process.

    Raises:
        ToolError: there is none.
    """
    return _serving(base).url


def process_of(base: Path) -> int:
    """The process of the server in a folder, which `start` started in this process.

    Raises:
        ToolError: there is none.
    """
    return _serving(base).process


def _serving(base: Path) -> _Serving:
    serving = _servers.get(str(base))
    if serving is None or not serving.url:
        raise ToolError(str(base), found="no server runs there", expected="one that was started", advice="Start again.")
    return serving


def stop(base: Path) -> None:
    """End the server and remove its folder; only what `start` made in this process."""
    serving = _servers.pop(str(base), None)
    if serving is not None:
        serving.stack.close()
        remove_folder(base)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _serves(server: subprocess.Popen[bytes], within: Enclosure, port: int, content: bytes) -> bool:
    """Whether the page comes from that port before the server ends: of another server it would be another page."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(HOST, port)
            try:
                connection.sock = within.connected(server.pid, (HOST, port), CONNECT_S)
                connection.request("GET", f"/{PAGE}")
                response = connection.getresponse()
                return response.status == http.client.OK and response.read(len(content) + 1) == content
            finally:
                connection.close()
        time.sleep(POLL_S)
    return False
