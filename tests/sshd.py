"""A real SSH server on a loopback port, run as the user of the tests with keys that are thrown away.

`scripts/setup.sh` unpacks it into ``.tools/sshd``. As root it wants a user and a folder of its own: it gets them in a
mount namespace that ends with it, so nothing of this machine changes.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

_OWN = ROOT / ".tools" / "sshd"
START_S = 20.0
_AS_ROOT = """\
mount -t tmpfs -o mode=755 none /run && mkdir -m 755 /run/sshd || exit 1
mount --bind "$1" /etc/passwd && mount --bind "$2" /etc/shadow || exit 1
shift 2
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, and the home of a user who may log in to it: ``HOME`` for who shall use it."""

    address: str
    port: int
    home: Path
    pid: int

    def forget(self) -> None:
        """Its key is not known any more."""
        (self.home / ".ssh" / "known_hosts").write_text("")


def program() -> Path | None:
    """The server; None when it is not there."""
    found = [_OWN / "usr" / "sbin" / "sshd", *map(Path, filter(None, [shutil.which("sshd", path="/usr/sbin:/sbin")]))]
    return next((path.resolve() for path in found if path.exists()), None)


def missing() -> str | None:
    """Why there can be none here; None when there can."""
    if program() is None or shutil.which("ssh-keygen") is None:
        return "no SSH server: run scripts/setup.sh"
    if os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        return "root may not make mount namespaces here"
    return None


@contextmanager
def ssh_server(folder: Path, *, path: str = "", addresses: tuple[str, ...] = ("127.0.0.1",)) -> Iterator[Server]:
    """Run one at some addresses; its files are made in a folder. ``path``: of a login, instead of the usual."""
    home, port = folder / "home", _free_port(addresses)
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    for name in (folder / "host_key", home / ".ssh" / "id_ed25519"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", name], check=True)
    public = (folder / "host_key.pub").read_text().split()
    (home / ".ssh" / "known_hosts").write_text(
        "".join(f"[{address}]:{port} {public[0]} {public[1]}\n" for address in addresses)
    )
    shutil.copy(home / ".ssh" / "id_ed25519.pub", folder / "authorized")
    settings = {
        "HostKey": folder / "host_key",
        "AuthorizedKeysFile": folder / "authorized",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "LogLevel": "ERROR",
    }
    if path:
        settings["SetEnv"] = f"PATH={path}"
    lines = [f"ListenAddress {address}:{port}" for address in addresses]
    lines += [f"{key} {value}" for key, value in settings.items()]
    (folder / "sshd_config").write_text("\n".join([*lines, ""]))
    with (folder / "sshd.log").open("wb") as log:
        words = [str(program()), "-D", "-e", "-f", str(folder / "sshd_config")]
        process = subprocess.Popen(_as_user(words, folder), stdout=log, stderr=log, env=_libraries())
    try:
        _wait(process, (addresses[0], port), folder / "sshd.log")
        yield Server(f"ssh://{getpass.getuser()}@{addresses[0]}:{port}", port, home, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


def _as_user(words: list[str], folder: Path) -> list[str]:
    if os.geteuid() != 0:
        return words
    users, secrets = folder / "passwd", folder / "shadow"
    users.write_text(Path("/etc/passwd").read_text() + "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")
    secrets.write_text("root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n")
    return ["unshare", "-m", "sh", "-c", _AS_ROOT, "sshd", str(users), str(secrets), *words]


def _libraries() -> dict[str, str]:
    found = {str(path.parent) for path in _OWN.resolve().rglob("libwrap.so*")}
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(sorted(found))}


def _free_port(addresses: tuple[str, ...]) -> int:
    """A port that is free at all of the addresses."""
    with ExitStack() as stack:
        port = 0
        for address in addresses:
            probe = stack.enter_context(socket.socket())
            probe.bind((address, port))
            port = int(probe.getsockname()[1])
        return port


def _wait(process: subprocess.Popen[bytes], address: tuple[str, int], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(address) == 0:
                return
        assert process.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < deadline, "it does not listen"
        time.sleep(0.05)
