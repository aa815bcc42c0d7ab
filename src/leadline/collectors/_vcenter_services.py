"""The way to vCenter's other services, which know what its main interface does not: storage policies and vSAN."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from xml.parsers.expat import ExpatError

from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.core.contracts.collector import Access
from leadline.estate.knowledge.vcenter_session import REFUSED, kind


@dataclass(frozen=True, slots=True)
class Services:
    """Other services at the same address: under the same check of the certificate, in the session that is open."""

    access: Access
    context: ssl.SSLContext
    main: Any  # the stub of the session

    @contextmanager
    def at(self, path: str, version: str) -> Iterator[Any]:
        """A stub of the service at a path, in a version of its interface; its connection is closed afterwards."""
        from pyVmomi.SoapAdapter import SoapStubAdapter  # noqa: PLC0415 - 0.5 s that only this collector needs

        stub = SoapStubAdapter(
            host=self.access.host,
            port=self.access.port,
            path=path,
            version=version,
            sslContext=self.context,
            httpConnectionTimeout=self.access.timeout_s,
            # Some services look for the session in the SOAP header, others in the cookie.
            requestContext={"vcSessionCookie": self.main.GetSessionId()},
        )
        stub.cookie = self.main.cookie
        try:
            yield stub
        finally:
            stub.DropConnections()


@contextmanager
def asking(estate: VcenterInventory, subject: str, *, needs: str) -> Iterator[None]:
    """Leave out what vCenter refuses or does not have, with a note of the missing privilege or of the fault."""
    from pyVmomi import vmodl  # noqa: PLC0415

    try:
        yield
    except (vmodl.MethodFault, HTTPException, OSError, ExpatError) as error:
        answer = str(error) if isinstance(error, HTTPException) else kind(error)
        estate.left_out.append(f"{subject} ({needs if answer == REFUSED else f'vCenter answered {answer}'})")
