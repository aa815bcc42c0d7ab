"""Machines reached over SSH: log in as OpenSSH would, run a script there, connect to a socket there.

Keys, the agent and ``~/.ssh/config`` are used as by ``ssh``. The machine's key must be in ``known_hosts``: this is
never skipped, also where the configuration would. asyncssh is loaded when the first machine is.

Source: asyncssh, ``connect``, ``SSHClientConnectionOptions``.
"""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from leadline.core.model.errors import ToolError
from leadline.core.system.secret import Secret, remember

if TYPE_CHECKING:
    import asyncssh

SCHEME = "ssh://"
LOGIN_S = 20.0
ALIVE_S = 10.0
ANSWER_S = 30.0


@dataclass(frozen=True, slots=True)
class Login:
    """Whom to log in as, and where; None for what the configuration says.

    Attributes:
        password: of the user; of the key where an identity is named.
        identity: the file of the key to log in with; empty for the agent's and the user's usual ones.
    """

    host: str
    user: str | None = None
    port: int | None = None
    password: Secret = field(default_factory=Secret, repr=False, compare=False)
    identity: str = field(default="", repr=False)

    @property
    def command(self) -> str:
        """How to log in by hand."""
        port = "" if self.port is None else f"-p {self.port} "
        return f"ssh {port}{'' if self.user is None else f'{self.user}@'}{self.host}"


def parse_login(address: str) -> Login:
    """``ssh://[user@]host[:port]``.

    Raises:
        ValueError: it is no such address, or holds a password; the message never repeats it.

    >>> parse_login("ssh://root@db01:2222")
    Login(host='db01', user='root', port=2222)
    """
    parts = urlsplit(address)
    if parts.password is not None:
        remember(parts.password)
        message = "a password in an address"
        raise ValueError(message)
    if parts.scheme != "ssh" or not parts.hostname or parts.path or parts.query or parts.fragment:
        message = "no address such as ssh://user@host:22"
        raise ValueError(message)
    if parts.hostname.startswith("-"):
        message = "a host that begins with -"
        raise ValueError(message)
    return Login(parts.hostname, parts.username, parts.port)


async def connect(login: Login) -> asyncssh.SSHClientConnection:
    """Log in.

    Raises:
        ToolError: it cannot be reached, is not known, or does not let us in.
    """
    import asyncssh  # noqa: PLC0415 - takes a tenth of a second, and most runs need none

    wanted: dict[str, Any] = {"connect_timeout": LOGIN_S, "login_timeout": LOGIN_S, "keepalive_interval": ALIVE_S}
    if login.user is not None:
        wanted["username"] = login.user
    if login.port is not None:
        wanted["port"] = login.port
    if login.identity:
        wanted |= {"client_keys": [login.identity], "passphrase": login.password.reveal() or None}
    elif login.password:
        wanted["password"] = login.password.reveal()
    try:
        planned = await asyncssh.SSHClientConnectionOptions.construct(config=(), host=login.host, **wanted)
        if planned.known_hosts is None:  # UserKnownHostsFile none: the user's own file is used instead of no check
            wanted["known_hosts"] = b""
        async with asyncio.timeout(2 * LOGIN_S):
            return await asyncssh.connect(login.host, config=(), **wanted)
    except asyncssh.HostKeyNotVerifiable as error:
        advice = f"Log in once and compare its fingerprint: {login.command}"
        raise _failed(login, "a host key that is not in known_hosts", advice) from error
    except asyncssh.PermissionDenied as error:
        advice = "Add your key to its authorized_keys, start an agent, or give a password."
        raise _failed(login, "login refused", advice) from error
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        cause = f"{login.identity or 'a key'}: {reason(error)}"
        raise _failed(login, cause, "Name the private key as identity, and its passphrase as the password.") from error
    except (OSError, TimeoutError, asyncssh.Error, ValueError) as error:
        raise _failed(login, reason(error), "Is the address right, and its SSH server up?") from error


def _failed(login: Login, cause: str, advice: str) -> ToolError:
    return ToolError(f"{SCHEME}{login.host}", found=cause, expected="a login over SSH", advice=advice)


def reason(error: BaseException) -> str:
    """What an error of a connection says, in a few words."""
    if isinstance(error, TimeoutError):
        return "no answer"
    text = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
    return str(text).strip()[:160] or type(error).__name__


def command_of(script: str, *words: str) -> str:
    """A command line that gives a POSIX shell a script and its words, whatever shell the user has."""
    return " ".join(["exec", "sh", "-c", *(shlex.quote(word) for word in (script, "leadline", *words))])


async def answer(connection: asyncssh.SSHClientConnection, script: str, *words: str) -> str:
    """What a script prints.

    Raises:
        ToolError: the connection is lost or it takes too long.
    """
    import asyncssh  # noqa: PLC0415

    try:
        done = await asyncio.wait_for(
            connection.run(command_of(script, *words), check=False, errors="replace", stdin=asyncssh.DEVNULL), ANSWER_S
        )
    except (OSError, TimeoutError, asyncssh.Error) as error:
        raise ToolError(
            "ssh", found=reason(error), expected="an answer", advice="Is the machine still there, and not overloaded?"
        ) from error
    return str(done.stdout or "")
