"""Who may ask for the page, and what every answer forbids.

On this machine alone nobody is asked for a token unless one is set, but the name in the request must be this machine's:
a page from elsewhere that has its name point to 127.0.0.1 is refused. Elsewhere a token is needed, and TLS.

Source: OWASP, "HTTP Security Response Headers"; RFC 6750 (bearer tokens); RFC 6265bis, section 4.1.2 (SameSite).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from leadline.core.system.secret import Secret

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from leadline.app.watch.settings import PageSettings

COOKIE = "leadline-watch"
COOKIE_DAYS = 30
THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "::1"})
PUBLIC = ("/login", "/assets/")  # nothing of the watch is in these
TEXT_PATHS = ("/api/", "/metrics", "/events")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
TLS_HEADERS = {"Strict-Transport-Security": "max-age=31536000"}


@dataclass(frozen=True, slots=True)
class PageAccess:
    """Who may ask.

    Attributes:
        token: what a request must know; an empty one where none is needed.
        is_local: it listens on this machine alone.
        is_tls: connections are encrypted.
        names: hosts that requests may name, where it listens on this machine alone.
    """

    token: Secret
    is_local: bool
    is_tls: bool
    names: frozenset[str] = field(default=THIS_MACHINE)

    @classmethod
    def of(cls, settings: PageSettings) -> PageAccess:
        """As the settings say.

        Raises:
            ToolError: the token is not where they say.
        """
        host, _ = settings.host_port()
        names = THIS_MACHINE | {urlsplit(settings.link).hostname or "localhost"}
        token = settings.password("token of the live page")
        return cls(token, host in THIS_MACHINE, settings.certificate is not None, names)

    def knows(self, token: str) -> bool:
        """Whether a token is the right one; compared in constant time."""
        return bool(self.token) and hmac.compare_digest(token.encode(), self.token.reveal().encode())

    def cookie(self) -> str:
        """What a browser keeps instead of the token: it ends when the token is changed."""
        return hmac.new(self.token.reveal().encode(), b"cookie of the live page", hashlib.sha256).hexdigest()

    def has_bearer(self, headers: Headers) -> bool:
        """Whether a request gives the token itself."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.casefold() == "bearer" and self.knows(token.strip())

    def allows(self, headers: Headers) -> bool:
        """Whether a request may see the watch."""
        if not self.token:
            return self.is_local
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            kept = None
        is_known = kept is not None and hmac.compare_digest(kept.value.encode(), self.cookie().encode())
        return is_known or self.has_bearer(headers)

    def is_named(self, headers: Headers) -> bool:
        """Whether a request names this machine."""
        host = headers.get("host", "")
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        return not self.is_local or name.casefold() in self.names


class PageGuard:
    """Refuses what may not ask before anything else sees it, and gives every answer its headers.

    Args:
        app: the pages.
        access: who may ask.
        login: the page that asks for a token.
    """

    def __init__(self, app: ASGIApp, access: PageAccess, login: Callable[[], str]) -> None:
        self._app, self._access, self._login = app, access, login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope["path"], Headers(scope=scope))

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add(MutableHeaders(scope=message), scope["path"])
            await send(message)

        await (self._app if refusal is None else refusal)(scope, receive, guarded)

    def _refusal(self, path: str, headers: Headers) -> Response | None:
        if not self._access.is_named(headers):
            text = "This page answers to the name of this machine only. For another name set page.link in watch.yaml.\n"
            return PlainTextResponse(text, 421)
        if path.startswith(PUBLIC) or self._access.allows(headers):
            return None
        challenge = {"WWW-Authenticate": "Bearer"}
        if path.startswith(TEXT_PATHS):
            return PlainTextResponse("The token is missing or wrong.\n", 401, challenge)
        return HTMLResponse(self._login(), 401, challenge)

    def _add(self, headers: Any, path: str) -> None:  # noqa: ANN401 - headers of a message
        for name, value in {**HEADERS, **(TLS_HEADERS if self._access.is_tls else {})}.items():
            headers[name] = value
        if not path.startswith("/assets/"):
            headers["Cache-Control"] = "no-store"
