"""Statements to MySQL and MariaDB by their own client; the password goes by an option file that has no name."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from leadline.core.model.errors import ToolError
from leadline.core.system import dsn
from leadline.core.system.secret import Secret, child_environment, in_memory, of_environment
from leadline.core.system.tools import find_program, require_program

CONNECT_TIMEOUT_S = 10
ANSWER_S = 600.0  # Judgement: to drop large tables on a busy disk
PASSWORD = "MYSQL_PWD"  # Source: mariadb(1), environment variables
_OPTIONS = {"host": "host", "port": "port", "user": "user", "socket": "socket", "dbname": "database"}


def ask(plain: str, secret: Secret | None, statement: str) -> list[list[str]]:
    """What one statement answers, as text; ``plain`` is a DSN without its password, which is None for MYSQL_PWD's.

    Raises:
        ToolError: there is no client, or the server cannot be reached or refuses.
    """
    program = find_program("mariadb") or find_program("mysql") or require_program("mariadb", "MariaDB's client")
    parameters = dsn.parts(plain)
    words = ["--batch", "--skip-column-names", f"--connect-timeout={CONNECT_TIMEOUT_S}"]
    words += [f"--{option}={parameters[key]}" for key, option in _OPTIONS.items() if parameters.get(key)]
    try:
        with _options(of_environment(PASSWORD) if secret is None else secret) as (option, descriptors):
            done = subprocess.run(
                [program, option, *words],
                input=statement,
                capture_output=True,
                text=True,
                timeout=ANSWER_S,
                check=False,
                env=child_environment(),
                pass_fds=descriptors,
            )
    except subprocess.TimeoutExpired:
        raise _failed(plain, f"no answer in {ANSWER_S:.0f} s") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason"])[-1][:240]
        raise _failed(plain, reason)
    return [line.split("\t") for line in done.stdout.splitlines()]


@contextmanager
def _options(secret: Secret) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The option about option files, which may hold another password or server, and what must stay open for it."""
    if not secret:
        yield "--no-defaults", ()
        return
    value = secret.reveal().replace("\\", "\\\\").replace('"', '\\"')
    with in_memory(f'[client]\npassword="{value}"\n') as (descriptor, path):
        yield f"--defaults-file={path}", (descriptor,)


def _failed(plain: str, reason: str) -> ToolError:
    return ToolError(
        dsn.masked(plain),
        found=reason,
        expected="a MySQL or MariaDB server that lets this user in",
        advice="Try the same user and host with the mariadb client.",
    )
