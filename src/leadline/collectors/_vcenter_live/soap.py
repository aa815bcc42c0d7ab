"""Samples as text: `QueryPerf` over one connection that stays open, in the format ``csv``.

Source: vSphere Web Services API reference, PerformanceManager.QueryPerf, PerfQuerySpec; SOAP 1.1, Fault.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from typing import Any
from xml.sax.saxutils import escape

from leadline.core.contracts.collector import Access
from leadline.core.model.errors import ToolError

_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<soapenv:Envelope '
    'xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><QueryPerf xmlns="urn:vim25">'
    '<_this type="PerformanceManager">'
)
_TAIL = "</QueryPerf></soapenv:Body></soapenv:Envelope>"
_FAULT_BYTES_MAX = 1 << 16
_FAULT_TEXT = re.compile(rb"<faultstring[^>]{0,200}>([^<]{0,300})")
_GONE = re.compile(rb"<obj\b[^>]{0,200}>([^<]{1,200})</obj>")
_TRIES = 2  # the first may meet a connection that the server has closed meanwhile


class SessionEndedError(Exception):
    """The server does not know the session any more."""


class ObjectGoneError(Exception):
    """One of the objects is not there any more; its id is the argument."""


class PerformanceText:
    """The way to the samples of a vCenter, in a session that is open."""

    def __init__(self, access: Access, context: ssl.SSLContext, session: Any, manager: str) -> None:  # noqa: ANN401
        self._access = access
        self._connection = HTTPSConnection(access.host, access.port, timeout=access.timeout_s, context=context)
        stub = session._stub
        self._path = stub.path
        self._headers = {"Cookie": stub.cookie, "SOAPAction": stub.versionId, "Content-Type": "text/xml; charset=UTF-8"}
        self._head = f"{_HEAD}{escape(manager)}</_this>"

    def query(self, specs: Iterable[str]) -> bytes:
        """The text of the answer to queries.

        Raises:
            SessionEndedError: the session is over.
            ObjectGoneError: an object is not there any more.
            ToolError: the server cannot be reached or refuses.
        """
        body = f"{self._head}{''.join(specs)}{_TAIL}".encode()
        status, text = self._posted(body)
        if status == HTTPStatus.OK:
            return text
        beginning = text[:_FAULT_BYTES_MAX]
        if b"NotAuthenticated" in beginning:
            raise SessionEndedError
        gone = _GONE.search(beginning) if b"ManagedObjectNotFound" in beginning else None
        if gone is not None:
            raise ObjectGoneError(gone[1].decode(errors="replace"))
        fault = _FAULT_TEXT.search(beginning)
        problem = fault[1].decode(errors="replace").strip() if fault else ""
        raise ToolError(
            self._access.host,
            found=f"status {status} for samples ({problem or 'no fault'})",
            expected="samples",
            advice="Look at the rights of the user and at the size of queries that vCenter allows.",
        )

    def _posted(self, body: bytes) -> tuple[int, bytes]:
        for attempt in range(1, _TRIES + 1):
            try:
                self._connection.request("POST", self._path, body, self._headers)
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (OSError, HTTPException) as error:
                self._connection.close()
                if attempt == _TRIES or isinstance(error, ssl.SSLError):
                    raise ToolError(
                        f"{self._access.host}:{self._access.port}",
                        found=f"no answer with samples ({type(error).__name__})",
                        expected="an answer",
                        advice="Check the network; it is asked again.",
                    ) from error
        raise AssertionError  # the loop returns or raises

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def query_spec(entity: tuple[str, str], start_ns: int, end_ns: int, metrics: str, interval_s: int) -> str:
    """A query for the samples of an entity (type and id) after a moment and until another, UTC nanoseconds."""
    kind, key = entity
    return (
        f'<querySpec><entity type="{kind}">{escape(key)}</entity><startTime>{_stamp(start_ns)}</startTime>'
        f"<endTime>{_stamp(end_ns)}</endTime>{metrics}<intervalId>{interval_s}</intervalId><format>csv</format>"
        "</querySpec>"
    )


def metric_ids(keys: Iterable[int]) -> str:
    """Every instance of counters, and the counter of the whole."""
    return "".join(f"<metricId><counterId>{key}</counterId><instance>*</instance></metricId>" for key in keys)


def _stamp(time_ns: int) -> str:
    seconds, rest = divmod(time_ns, 10**9)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{rest // 10**6:03}Z" if rest else f"{whole}Z"
