"""The agent of a lab guest: runs commands its host sends over a virtio-serial port and returns what they print.

Every message is a JSON object on a line. From the host: ``{"id", "op", …}``; to the host ``{"id", "out"}`` and
``{"id", "err"}`` with bytes as base64, and at the end ``{"id", "status"}``. Operations:

``run``       ``argv``, ``env``, ``cwd``: a program, status its exit status (127: there is none of that name).
``leadline``  the same for Leadline itself, in a process forked from one that loaded it for the first command: under
              software emulation the imports take seconds, the fork milliseconds.
``put``       ``path``, ``data``, ``mode``: writes a file.
``get``       ``path``: a folder or file as a tar stream.
``time``      the guest's clock, as ``{"id", "time"}``.
``shell``     a login shell on a terminal of its own, ``rows`` and ``columns``; ``input`` with that ``shell``
              types into it.

There are two ports: one for whoever runs the guest, one for a person who looks into it.
"""

from __future__ import annotations

import array
import base64
import contextlib
import fcntl
import io
import json
import os
import pty
import socket
import struct
import subprocess
import sys
import tarfile
import termios
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any

PORTS = ("leadline", "leadline-console")
PIECE_BYTES = 48 * 1024
# By name: an agent is no part of what it starts.
COMMAND = "leadline.faces.cli.main"
DISCOVERY = "leadline.core.contracts.discovery"
PRELOADED = (
    COMMAND,
    "leadline.app.measure.benching",
    "leadline.app.measure.baselines",
    "leadline.faces.runs",
    "leadline.faces.hosts",
)
UNITS = ("importer", "benchmark", "collector")
_PORTS = Path("/sys/class/virtio-ports")

Message = dict[str, Any]

_one_leadline = threading.Lock()


def main() -> None:
    """Serve until the port is closed, which is when the guest ends."""
    loaded = _start_preloaded()
    names = {(entry / "name").read_text().strip(): entry.name for entry in _PORTS.iterdir()}
    threads = []
    for name in PORTS:
        port = open(f"/dev/{names[name]}", "r+b", buffering=0)  # noqa: PTH123 - a device, held to the end
        threads.append(threading.Thread(target=Agent(port, loaded).serve))
        threads[-1].start()
    for thread in threads:
        thread.join()


class Agent:
    """Reads messages from a port, answers each in a thread of its own."""

    def __init__(self, port: IO[bytes], loaded: socket.socket) -> None:
        self._port = port
        self._loaded = loaded
        self._writing = threading.Lock()
        self._terminals: dict[int, int] = {}

    def serve(self) -> None:
        """Answer until the host is gone."""
        rest = b""
        while True:
            piece = self._port.read(PIECE_BYTES)
            if not piece:
                time.sleep(0.05)  # nobody holds the other end yet
                continue
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                threading.Thread(target=self._answer, args=(json.loads(line),), daemon=True).start()

    def _answer(self, message: Message) -> None:
        does: dict[str, Callable[[Message], int]] = {
            "run": self._run,
            "leadline": self._leadline,
            "put": self._put,
            "get": self._get,
            "time": self._time,
            "shell": self._shell,
            "input": self._input,
        }
        try:
            status = does[message["op"]](message)
        except (OSError, ValueError, KeyError) as error:
            self._send(message, err=f"{type(error).__name__}: {error}\n".encode())
            status = 125
        self._say({"id": message["id"], "status": status})

    def _say(self, answer: Message) -> None:
        line = memoryview(json.dumps(answer).encode() + b"\n")
        with self._writing:
            while line:
                line = line[self._port.write(line) or 0 :]

    def _send(self, message: Message, **streams: bytes) -> None:
        for name, data in streams.items():
            self._say({"id": message["id"], name: base64.b64encode(data).decode()})

    def _time(self, message: Message) -> int:
        self._say({"id": message["id"], "time": time.time()})
        return 0

    def _put(self, message: Message) -> int:
        path = Path(message["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(message["data"]))
        path.chmod(message.get("mode", 0o644))
        return 0

    def _get(self, message: Message) -> int:
        class Out(io.RawIOBase):
            def writable(self) -> bool:
                return True

            def write(out, data: Any) -> int:  # noqa: ANN401 - the buffer protocol; self is the agent
                self._send(message, out=bytes(data))
                return len(data)

        path = Path(message["path"])
        with io.BufferedWriter(Out(), PIECE_BYTES) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
            tar.add(path, path.name)
        return 0

    def _run(self, message: Message) -> int:
        env = {**os.environ, **message.get("env", {})}
        try:
            process = subprocess.Popen(
                message["argv"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=message.get("cwd", "/"),
                env=env,
            )
        except FileNotFoundError:
            return 127
        with process:
            self._forward(message, process.stdout, process.stderr)
            return process.wait()

    def _shell(self, message: Message) -> int:
        child, terminal = pty.fork()
        if child == 0:
            os.environ["TERM"] = message.get("terminal", "linux")
            os.execvp("sh", ["sh", "-l"])
        size = struct.pack("4H", message.get("rows", 24), message.get("columns", 80), 0, 0)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
        self._terminals[message["id"]] = terminal
        self._send(message, out=b"")  # it takes input from now on; what came before would be lost
        with contextlib.suppress(OSError):  # a terminal whose shell ended gives an error, not an end
            while data := os.read(terminal, PIECE_BYTES):
                self._send(message, out=data)
        del self._terminals[message["id"]]
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def _input(self, message: Message) -> int:
        terminal = self._terminals.get(message["shell"])
        if terminal is not None:
            os.write(terminal, base64.b64decode(message["data"]))
        return 0

    def _forward(self, message: Message, out: IO[bytes] | None, err: IO[bytes] | None) -> None:
        threads = [
            threading.Thread(target=self._copy, args=(message, name, stream), daemon=True)
            for name, stream in (("out", out), ("err", err))
            if stream is not None
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _copy(self, message: Message, name: str, stream: IO[bytes]) -> None:
        while data := os.read(stream.fileno(), PIECE_BYTES):
            self._send(message, **{name: data})

    def _leadline(self, message: Message) -> int:
        with _one_leadline:
            out, out_end = os.pipe()
            err, err_end = os.pipe()
            asked = json.dumps({key: message.get(key) for key in ("argv", "env", "cwd")}).encode()
            rights = array.array("i", [out_end, err_end])
            self._loaded.sendmsg([asked], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            os.close(out_end)
            os.close(err_end)
            with os.fdopen(out, "rb") as out_stream, os.fdopen(err, "rb") as err_stream:
                self._forward(message, out_stream, err_stream)
            return int(self._loaded.recv(64) or b"125")


def _start_preloaded() -> socket.socket:
    """Fork the process that loads Leadline at the first command of it, and forks again for every one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        _preloaded(theirs)
        os._exit(0)
    theirs.close()
    return ours


def _preloaded(asked: socket.socket) -> None:
    asked.recv(1, socket.MSG_PEEK)  # a guest that is only loaded by fio is not kept busy with imports
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            import_module(name)
    for kind in UNITS:
        import_module(DISCOVERY).load_units(kind)
    sys.argv = ["leadline", "bench", "run", "--help"]
    with contextlib.suppress(SystemExit), Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        import_module(COMMAND).run()
    while True:
        data, control, *_ = asked.recvmsg(1 << 16, socket.CMSG_LEN(8))
        if not data:
            return
        descriptors = array.array("i")
        for _, _, rights in control:
            descriptors.frombytes(rights[: len(rights) // 4 * 4])
        child = os.fork()
        if child == 0:
            asked.close()
            _become(json.loads(data), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        _, status = os.waitpid(child, 0)
        asked.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(message: Message, out: int, err: int) -> None:
    """Run one command of Leadline in this process, which ends with it."""
    os.setsid()
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.environ.update(message["env"] or {})
    os.chdir(message["cwd"] or "/")
    sys.argv = ["leadline", *message["argv"]]
    status = 125
    try:
        import_module(COMMAND).run()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
