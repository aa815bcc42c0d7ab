"""Ways into the rig's guest for who watches it from this machine: SSH and PostgreSQL, at ports of 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leadline.core.model.errors import ToolError
from leadline.lab.machine import Machine

SSH_PORT, SERVER_PORT = 22, 5432  # of the guest
START_S = 60.0  # Judgement: an SSH server under software emulation
_UNPACKED = Path(__file__).parent.parent / ".tools" / "sshd"  # where the set-up puts Debian's
_FOLDER = "/etc/ssh-of-rig"
_SERVER = "/usr/sbin/sshd"  # it starts itself again, by its whole path
_SETTINGS = (
    f"HostKey {_FOLDER}/host_key\nAuthorizedKeysFile {_FOLDER}/authorized\nPidFile none\nStrictModes no\nUsePAM no\n"
    "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nLogLevel ERROR\n"
)
_USERS = "sshd:x:65533:65534::/run/sshd:/bin/false"
_SECRETS = r"root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n"


@dataclass(frozen=True, slots=True)
class Access:
    """How the guest is reached; ``HOME`` must be ``home`` for who does.

    Attributes:
        home: holds the key, and the guest's name for ssh.
        linux: the target of the collector linux.
        server: the connection string of its PostgreSQL.
    """

    home: Path
    linux: str
    server: str


def free_ports() -> dict[int, int]:
    """A port of this machine for each of the guest's, which the guest is then booted with."""
    with socket.socket() as first, socket.socket() as second:
        for probe in (first, second):
            probe.bind(("127.0.0.1", 0))
        return {SSH_PORT: first.getsockname()[1], SERVER_PORT: second.getsockname()[1]}


def let_in(machine: Machine, ports: Mapping[int, int], home: Path) -> Access:
    """Start an SSH server in a guest of these ports, which lets in who has the key in a new home folder.

    Raises:
        ToolError: there is no SSH server to take there, or it does not start.
    """
    name = machine.guest.name
    keys = home / ".ssh"
    keys.mkdir(parents=True, mode=0o700)
    for path in (keys / "host_key", keys / "id_ed25519"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rig", "-f", path], check=True)
    public = (keys / "host_key.pub").read_text().split()
    here = f"[127.0.0.1]:{ports[SSH_PORT]}"
    (keys / "known_hosts").write_text(f"{here},{name},[{name}]:{ports[SSH_PORT]} {public[0]} {public[1]}\n")
    (keys / "config").write_text(f"Host {name}\n  HostName 127.0.0.1\n  Port {ports[SSH_PORT]}\n")
    _put_server(machine, keys)
    _wait_for(ports[SSH_PORT], name)
    server = f"host={name} hostaddr=127.0.0.1 port={ports[SERVER_PORT]} user=postgres dbname=postgres"
    return Access(home, f"ssh://root@{name}", server)


def _put_server(machine: Machine, keys: Path) -> None:
    channel = machine.channel
    program, libraries = _program()
    # The name by which it is looked for is the last part of its path.
    script = "for name; do ls /usr/lib/$name /usr/lib/*/$name 2>/dev/null | grep -q . || echo $name; done"
    names = [path.name for path in libraries]
    absent = set(channel.run(["sh", "-c", script, "sh", *names], timeout_s=START_S).text.split())
    for path in libraries:
        if path.name in absent:
            channel.put(f"/usr/lib/{path.name}", path.read_bytes(), 0o755)
    channel.run(["mkdir", "-p", "-m", "755", _FOLDER, "/run/sshd"], timeout_s=START_S)
    channel.put(_SERVER, program.read_bytes(), 0o755)
    channel.put(f"{_FOLDER}/host_key", (keys / "host_key").read_bytes(), 0o600)
    channel.put(f"{_FOLDER}/authorized", (keys / "id_ed25519.pub").read_bytes())
    channel.put(f"{_FOLDER}/settings", _SETTINGS.encode())
    start = f"echo '{_USERS}' >> /etc/passwd; printf '{_SECRETS}' > /etc/shadow; {_SERVER} -f {_FOLDER}/settings"
    answer = channel.run(["sh", "-c", start], timeout_s=START_S)
    if answer.status:
        raise ToolError(
            f"guest {machine.guest.name}: sshd",
            found=answer.err.decode(errors="replace").strip() or f"exit status {answer.status}",
            expected="an SSH server",
            advice="Look at it with lab console.",
        )


def _program() -> tuple[Path, list[Path]]:
    """The SSH server of this machine, and the libraries it is linked with."""
    candidates = (_UNPACKED / "usr" / "sbin" / "sshd", shutil.which("sshd", path="/usr/sbin:/sbin"))
    program = next((Path(path).resolve() for path in candidates if path and Path(path).exists()), None)
    if program is None:
        raise ToolError("sshd", found="not installed", expected="an SSH server", advice="Run scripts/setup.sh all.")
    folders = {str(path.parent) for path in _UNPACKED.resolve().rglob("libwrap.so*")}
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(sorted(folders))}
    answer = subprocess.run(["ldd", program], capture_output=True, text=True, check=True, env=environment).stdout
    linked = [line.split("=>")[1].split()[0] for line in answer.splitlines() if "=> /" in line]
    return program, [Path(path) for path in linked]


def _wait_for(port: int, name: str) -> None:
    """Until something that calls itself SSH answers: QEMU takes a connection before anybody listens in the guest."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            probe.settimeout(5.0)
            try:
                probe.connect(("127.0.0.1", port))
                if probe.recv(4) == b"SSH-":
                    return
            except OSError:
                pass
        time.sleep(0.2)
    raise ToolError(f"guest {name}", found="no answer", expected="an SSH server", advice="Look at it with lab console.")
