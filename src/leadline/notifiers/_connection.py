"""Connections of notifiers: a limit of time on each, certificates always verified, and errors without secrets.

Source: Python documentation, "ssl", create_default_context; "urllib.request", OpenerDirector and ProxyHandler;
RFC 9110, section 15 (status codes); RFC 7617 (Basic); RFC 6750 (Bearer).
"""

from __future__ import annotations

import base64
import http.client
import re
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from leadline.core.model.errors import ToolError
from leadline.core.system.secret import HIDDEN, Secret, remember

TIMEOUT_S = 10.0  # Judgement: a receiver that is silent for longer is down; the notice is tried again
ANSWER_BYTES_MAX = 2000  # of a refusal that an error quotes
PATH_PART_MIN = 6  # Judgement: shorter parts of a path guard no hook


def tls_context(ca_file: Path | None, where: str) -> ssl.SSLContext:
    """TLS that verifies certificate and name, against the system's authorities or those of a file.

    Raises:
        ToolError: the file cannot be read, or holds no certificate.
    """
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else ca_file.expanduser())
    except (OSError, ValueError) as error:  # SSLError is one
        raise ToolError(
            where,
            found=f"ca_file {ca_file} cannot be used ({reason_of(error)})",
            expected="a file of certificates in PEM form",
            advice="Name the certificate of the authority that signed the receiver's.",
        ) from error


def reason_of(error: BaseException) -> str:
    """Why a connection failed, in the words of the system."""
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT_S:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def unreachable(where: str, error: BaseException) -> ToolError:
    """The error of a receiver that cannot be reached."""
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = "Name the authority that signed it as ca_file."
    else:
        advice = "Check the address, the port and the firewall; the notice is tried again."
    return ToolError(where, found=reason_of(error), expected="a receiver that answers", advice=advice)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would lose its content, and take its password to another server."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""
        return


def authorization(user: str, password: Secret) -> str:
    """The header for a user with a password (Basic) or a token alone (Bearer); empty where there is no secret."""
    if not password:
        return ""
    if not user:
        return f"Bearer {password.reveal()}"
    word = base64.b64encode(f"{user}:{password.reveal()}".encode()).decode()
    remember(word)
    return f"Basic {word}"


def post(url: str, content: bytes, headers: dict[str, str], ca_file: Path | None) -> None:
    """Send content by HTTP POST, through the proxy the environment names, and wait for a status of 200 to 299.

    No error names its path: whoever knows that of a chat service can post there.

    Raises:
        ToolError: no answer, a certificate that is not trusted, a redirection, or another status.
    """
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")
    try:
        request = urllib.request.Request(url, data=content, headers=headers, method="POST")
        opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=tls_context(ca_file, where)), _NoRedirect()
        )
        with opener.open(request, timeout=TIMEOUT_S):
            return
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(where, error.code, _answer(error, url)) from None
    except urllib.error.URLError as error:
        cause = error.reason if isinstance(error.reason, BaseException) else OSError(str(error.reason))
        raise unreachable(where, cause) from None
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a header with a line break
        raise unreachable(where, error) from None


def _answer(stream: IO[bytes], url: str) -> str:
    """The beginning of an answer on one line, without the parts of the path that it may repeat."""
    try:
        words = " ".join(stream.read(ANSWER_BYTES_MAX).decode("utf-8", errors="replace").split())
    except (OSError, http.client.HTTPException):
        return ""
    parts = urlsplit(url)
    for part in sorted({*parts.path.split("/"), *re.split("[=&]", parts.query)}, key=len, reverse=True):
        if len(part) >= PATH_PART_MIN:
            words = words.replace(part, HIDDEN)
    return words[:200]


def _refused(where: str, status: int, words: str) -> ToolError:
    advice = {
        401: "Check user and password.",
        403: "Check user and password.",
        404: "Check the path of the address; a chat service answers so when the hook was removed.",
        429: "The receiver limits the rate; the notice is tried again.",
    }.get(status, "Check the address." if status < 400 else "See the receiver's log; the notice is tried again.")
    return ToolError(
        where,
        found=f"status {status}{f' ({words})' if words else ''}",
        expected="a status of 200 to 299",
        advice=advice,
    )
