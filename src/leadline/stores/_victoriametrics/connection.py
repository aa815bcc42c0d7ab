"""The connection to VictoriaMetrics: limits of time, certificates always verified, errors without secrets.

Source: Python documentation, "ssl", create_default_context; "urllib.request", OpenerDirector and ProxyHandler;
RFC 7617 (Basic); RFC 6750 (Bearer). VictoriaMetrics, "URL format": paths of the cluster version.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn
from urllib.parse import urlencode, urlsplit

from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.secret import Secret, remember

TIMEOUT_S = 30.0  # Judgement: a server that takes no samples for so long is down; they are given again
QUERY_TIMEOUT_S = 300.0
ANSWER_BYTES_MAX = 2000  # of a refusal that an error quotes
Parameters = Sequence[tuple[str, str]]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would lose its content, and take its password to another server."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""
        return


@dataclass(frozen=True, slots=True)
class MetricsServer:
    """A server that takes samples by remote write and answers PromQL.

    Attributes:
        address: that ``/api/v1/...`` is put behind; of a cluster that of vmselect with ``/select/0/prometheus``.
        write_address: the same for writing: vminsert with ``/insert/0/prometheus``; empty for the same address.
        user: with a password; without a user the password is a bearer token.
        password: empty where none is needed.
        ca_file: authorities of its certificate; the system's where it is left out.
    """

    address: str
    write_address: str = ""
    user: str = ""
    password: Secret = field(default_factory=Secret, repr=False)
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        for address in (self.address, self.write_address or self.address):
            parts = urlsplit(address)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.password:
                raise UsageError(
                    "address of VictoriaMetrics",
                    found=f"{parts.scheme}://{parts.hostname or ''}",
                    expected="http://HOST:PORT or https://HOST:PORT, without password and query",
                    advice="Name the password by password_file, password_env or password_keyring.",
                )

    def write(self, content: bytes) -> None:
        """Send samples as the remote write protocol has them.

        Raises:
            ToolError: the server cannot be reached, or does not take them.
        """
        headers = {
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "snappy",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
        }
        url = f"{(self.write_address or self.address).rstrip('/')}/api/v1/write"
        with self._opened(url, content, headers, TIMEOUT_S):
            pass

    def query(self, expression: str, time_ms: int) -> list[dict[str, Any]]:
        """The vector that an expression has at a moment.

        Raises:
            ToolError: the server cannot be reached, or does not answer it.
        """
        return self._result("query", [("query", expression), ("time", seconds(time_ms))])

    def query_range(self, expression: str, start_ms: int, end_ms: int, step_ms: int) -> list[dict[str, Any]]:
        """The values that an expression has at moments; both ends are among them.

        Raises:
            ToolError: as `query`.
        """
        span = [("start", seconds(start_ms)), ("end", seconds(end_ms)), ("step", f"{step_ms}ms")]
        return self._result("query_range", [("query", expression), *span])

    def names(self, label: str, selector: str, span_ms: tuple[int, int]) -> list[str]:
        """The values that a label has had in a span, which the server takes for whole days.

        Raises:
            ToolError: as `query`.
        """
        start_ms = max(span_ms[0], 1000)  # of zero it makes a few minutes before the end
        span = [("start", seconds(start_ms)), ("end", seconds(span_ms[1]))]
        answer: list[str] = self._json(f"label/{label}/values", [("match[]", selector), *span])["data"]
        return answer

    @contextmanager
    def exported(self, selectors: Sequence[str], start_ms: int, end_ms: int) -> Iterator[IO[bytes]]:
        """The raw samples of series, one a line as JSON; the ends may be exceeded by a millisecond.

        Raises:
            ToolError: as `query`.
        """
        span = [("start", seconds(max(start_ms - 1, 0))), ("end", seconds(end_ms + 1))]
        parameters = [*(("match[]", selector) for selector in selectors), *span]
        with self._read("export", parameters) as answer:
            yield answer

    def own_metrics(self) -> str:
        """What the server says of itself, as text; empty of a cluster."""
        parts = urlsplit(self.address)
        if "/select/" in parts.path:
            return ""
        try:
            url = f"{self.address.rstrip('/').removesuffix('/prometheus')}/metrics"
            with self._opened(url, None, {}, TIMEOUT_S) as answer:
                return answer.read().decode("utf-8", errors="replace")
        except ToolError:
            return ""  # it may be hidden from those who ask for samples

    def _result(self, name: str, parameters: Parameters) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = self._json(name, [*parameters, ("nocache", "1")])["data"]["result"]
        return result

    def _json(self, name: str, parameters: Parameters) -> dict[str, Any]:
        try:
            with self._read(name, parameters) as stream:
                answer: dict[str, Any] = json.load(stream)
                if answer["status"] == "success":
                    return answer
        except (ValueError, KeyError, TypeError) as error:
            self._refuse(f"an answer that is none of PromQL ({error})")
        self._refuse(str(answer.get("error", "an error without words")))

    @contextmanager
    def _read(self, name: str, parameters: Parameters) -> Iterator[IO[bytes]]:
        url = f"{self.address.rstrip('/')}/api/v1/{name}"
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        with self._opened(url, urlencode(parameters).encode(), headers, QUERY_TIMEOUT_S) as answer:
            yield answer

    @contextmanager
    def _opened(
        self, url: str, content: bytes | None, headers: dict[str, str], timeout_s: float
    ) -> Iterator[IO[bytes]]:
        try:
            # Reading the authorities takes 30 ms, longer than most questions.
            tls = [urllib.request.HTTPSHandler(context=self._tls())] if url.startswith("https:") else []
            opener = urllib.request.build_opener(*tls, _NoRedirect())
            word = authorization(self.user, self.password)
            more = {"User-Agent": "Leadline", **headers, **({"Authorization": word} if word else {})}
            request = urllib.request.Request(url, data=content, headers=more)
            with opener.open(request, timeout=timeout_s) as answer:
                yield answer
        except urllib.error.HTTPError as error:
            with error:
                words = " ".join(error.read(ANSWER_BYTES_MAX).decode("utf-8", errors="replace").split())
            self._refuse(f"status {error.code}{f' ({words[:200]})' if words else ''}", error.code)
        except urllib.error.URLError as error:
            cause = error.reason if isinstance(error.reason, BaseException) else OSError(str(error.reason))
            self._refuse(_reason(cause))
        except (OSError, http.client.HTTPException) as error:
            self._refuse(_reason(error))

    def _tls(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=None if self.ca_file is None else self.ca_file.expanduser())
        except OSError as error:  # SSLError is one
            self._refuse(f"ca_file {self.ca_file} cannot be used ({_reason(error)})")

    def _refuse(self, problem: str, status: int = 0) -> NoReturn:
        advice = {
            401: "Check user and password.",
            403: "Check user and password.",
            404: "Check the path of the address; that of a cluster ends with /select/0/prometheus.",
        }.get(status, "Check the address and the server's log; samples that were refused are given again.")
        raise ToolError(self.address, found=problem, expected="VictoriaMetrics that answers", advice=advice) from None


def authorization(user: str, password: Secret) -> str:
    """The header for a user with a password (Basic) or a token alone (Bearer); empty where there is no secret."""
    if not password:
        return ""
    if not user:
        return f"Bearer {password.reveal()}"
    word = base64.b64encode(f"{user}:{password.reveal()}".encode()).decode()
    remember(word)
    return f"Basic {word}"


def seconds(time_ms: int) -> str:
    """A moment as the server reads it: it cuts off what is beyond milliseconds of a float, so a little is added."""
    whole, rest = divmod(time_ms, 1000)
    return f"{whole}.{rest:03}4"


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
