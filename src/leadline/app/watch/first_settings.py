"""The settings of a new watch: this machine, and the databases that run on it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_POSTGRESQL_FOLDERS = ("/run/postgresql", "/var/run/postgresql", "/tmp")
_POSTGRESQL_SOCKET = re.compile(r"\.s\.PGSQL\.(\d{1,5})")
_MYSQL_SOCKETS = ("/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock")


@dataclass(frozen=True, slots=True)
class FoundDatabase:
    """A database server with a socket on this machine."""

    collector: str
    name: str
    target: str


def databases_here() -> list[FoundDatabase]:
    """The database servers of this machine, by their sockets; and the one PGHOST names."""
    databases: list[FoundDatabase] = []
    folders = [*([os.environ["PGHOST"]] if os.environ.get("PGHOST", "").startswith("/") else []), *_POSTGRESQL_FOLDERS]
    seen: set[tuple[str, str]] = set()
    for folder in folders:
        for path in sorted(Path(folder).glob(".s.PGSQL.*")) if Path(folder).is_dir() else ():
            match = _POSTGRESQL_SOCKET.fullmatch(path.name)
            key = (str(path.resolve()), "")
            if match is not None and key not in seen:
                seen.add(key)
                number = sum(one.collector == "postgresql" for one in databases)
                name = "postgresql" if not number else f"postgresql-{match[1]}"
                target = f"host={folder} port={match[1]} dbname=postgres"
                databases.append(FoundDatabase("postgresql", name, target))
    for socket in _MYSQL_SOCKETS:
        if Path(socket).exists():
            databases.append(FoundDatabase("mysql", "mysql", f"mysql://localhost/?unix_socket={socket}"))
            break
    return databases


def settings_text(databases: list[FoundDatabase], *, has_linux: bool, mail: tuple[str, str] | None = None) -> str:
    """The text of a first ``watch.yaml``, with what else it may say as comments.

    Args:
        databases: to watch.
        has_linux: whether this machine itself is watched.
        mail: an SMTP server and an address that notices go to; None for nobody.
    """
    lines = ["# What leadline watch does. `leadline watch check` tries it.", "sources:"]
    if has_linux:
        lines += ["  - name: this-machine", "    collector: linux"]
    for one in databases:
        lines += [f"  - name: {one.name}", f"    collector: {one.collector}", f'    target: "{one.target}"']
        lines += ["    # password_file: /etc/leadline/password"]
    lines += [
        "  # - name: other-machine   # nothing is installed there",
        "  #   collector: linux",
        "  #   target: ssh://watcher@db2.example.com",
        "  #   options: {identity: /etc/leadline/ssh_key}",
        "  # - name: vcenter",
        "  #   collector: vcenter",
        "  #   target: https://readonly@vc.example.com/sdk",
        "  #   password_file: /etc/leadline/vcenter",
        "  # - name: esxtop",
        "  #   follow: /captures/esxtop.csv",
        "",
        "store:",
        "  raw_days: 7      # samples as they came; roll-ups are kept for years",
        "  gib_max: 20",
        "  # victoriametrics: http://vm.example.com:8428   # keeps the samples instead, as long as it is told to",
        "",
    ]
    if mail is None:
        lines += [
            "# Who is told. Try it: leadline watch test-notification",
            "# tell:",
            "#   - name: oncall",
            "#     notifier: email",
            "#     settings: {host: mail.example.com, sender: leadline@example.com, recipients: [dba@example.com]}",
        ]
    else:
        server, address = mail
        lines += [
            "tell:",
            "  - name: oncall",
            "    notifier: email",
            f"    settings: {{host: {server}, sender: {address}, recipients: [{address}]}}",
        ]
    return "\n".join(lines) + "\n"
