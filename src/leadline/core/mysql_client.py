"""Statements to MySQL and MariaDB by their own client; the password goes by the environment, where no list shows it."""

from __future__ import annotations

import os
import subprocess

from leadline.core import dsn
from leadline.core.errors import ToolError
from leadline.core.tools import find_program

CONNECT_TIMEOUT_S = 10
ANSWER_S = 600.0  # Judgement: to drop large tables on a busy disk
PASSWORD = "MYSQL_PWD"  # Source: mariadb(1), environment variables; libmariadb reads it too
_OPTIONS = {"host": "host", "port": "port", "user": "user", "socket": "socket", "dbname": "database"}


def ask(plain: str, secret: str | None, statement: str) -> list[list[str]]:
    """What one statement answers, as text; ``plain`` is a DSN without its password, which is None to leave it as set.

    Raises:
        ToolError: there is no client, or the server cannot be reached or refuses.
    """
    program = find_program("mariadb") or find_program("mysql")
    if program is None:
        raise ToolError(
            "mariadb", found="not installed", expected="MariaDB's client", advice="apt-get install mariadb-client-core"
        )
    found = dsn.parts(plain)
    # Option files may hold another password or another server.
    words = [program, "--no-defaults", "--batch", "--skip-column-names", f"--connect-timeout={CONNECT_TIMEOUT_S}"]
    words += [f"--{option}={found[key]}" for key, option in _OPTIONS.items() if found.get(key)]
    try:
        done = subprocess.run(
            words,
            input=statement,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=False,
            env={**os.environ, **({PASSWORD: secret} if secret is not None else {})},
        )
    except subprocess.TimeoutExpired:
        raise _failed(plain, f"no answer in {ANSWER_S:.0f} s") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason"])[-1][:240]
        raise _failed(plain, said.replace(secret, "***") if secret else said)
    return [line.split("\t") for line in done.stdout.splitlines()]


def _failed(plain: str, said: str) -> ToolError:
    return ToolError(
        dsn.masked(plain),
        found=said,
        expected="a MySQL or MariaDB server that lets this user in",
        advice="Try the same user and host with the mariadb client.",
    )
