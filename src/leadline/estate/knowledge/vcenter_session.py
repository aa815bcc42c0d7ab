"""The session with a vCenter that collectors and the fleet of worker VMs share: connection, certificate, queries.

pyVmomi is imported where it is used: it takes 0.5 s, which only what talks to vCenter needs, and makes its types at run
time, so there are none to check against.

Sources: vSphere Web Services API reference: ServiceInstance, SessionManager, PropertyCollector, ViewManager;
Developer's Setup Guide, "Identifying the API version" (vimServiceVersions.xml).
"""

from __future__ import annotations

import contextlib
import ssl
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import ParseError
from xml.parsers.expat import ExpatError

from leadline.core.contracts.collector import Access
from leadline.core.model.errors import ToolError, UsageError

PAGE_SIZE = 500
REFUSED = "NoPermission"
_VERSIONS = "/sdk/vimServiceVersions.xml"
_VERSIONS_BYTES_MAX = 1 << 20


def of(value: Any, path: str) -> Any:  # noqa: ANN401
    """An attribute of an attribute, None as soon as one is missing."""
    for name in path.split("."):
        value = getattr(value, name, None)
        if value is None:
            return None
    return value


def kind(instance: Any) -> str:  # noqa: ANN401
    """The name of an object's type: ``VirtualDisk`` of ``vim.vm.device.VirtualDisk``."""
    return str(instance.__class__.__name__).rpartition(".")[2]


def id_of(reference: Any) -> str:  # noqa: ANN401
    """The id vCenter gives a managed object."""
    return str(reference._GetMoId())


def connect(access: Access, context: ssl.SSLContext) -> Any:  # noqa: ANN401
    """A session, whose end is `disconnect`; every question has the time limit of ``access``.

    pyVim's own connect asks for the versions without a time limit and loses the connection of a refused login.

    Raises:
        ToolError: it cannot be reached, its certificate is not trusted, or it refuses the login.
    """
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    from leadline.estate.knowledge.vcenter_answers import ReadingStub  # noqa: PLC0415

    try:
        stub = ReadingStub(
            host=access.host,
            port=access.port,
            version=_version(access, context),
            # Given explicitly: without a context pyVmomi does not check the certificate.
            sslContext=context,
            httpConnectionTimeout=access.timeout_s,
        )
        session: Any = vim.ServiceInstance("ServiceInstance", stub)
        try:
            session.RetrieveContent().sessionManager.Login(access.user, access.password.reveal(), None)
        except BaseException:
            _close(stub)
            raise
    except vim.fault.InvalidLogin as error:
        raise ToolError(
            access.host,
            found=f"the login of {access.user} was refused",
            expected="a user and password it accepts",
            advice="Check user and password; the password is read from LEADLINE_PASSWORD or asked for.",
        ) from error
    except ssl.SSLError as error:
        raise ToolError(
            access.host,
            found="a certificate this machine does not trust",
            expected="a trusted certificate",
            advice="Install the CA's certificate, or add --insecure when you know whom you talk to.",
        ) from error
    except (OSError, HTTPException, ExpatError, ParseError, vmodl.MethodFault, ValueError) as error:
        raise ToolError(
            f"{access.host}:{access.port}",
            found=f"no answer of a vCenter ({type(error).__name__})",
            expected="a vCenter or ESXi host",
            advice="Check name, port and network.",
        ) from error
    return session


def _version(access: Access, context: ssl.SSLContext) -> str:
    """PyVmomi's name of the newest version of the interface that both sides know.

    Raises:
        ValueError: there is none, or the answer is no list of versions.
    """
    from pyVmomi.VmomiSupport import GetServiceVersions, versionIdMap  # noqa: PLC0415

    connection = HTTPSConnection(access.host, access.port, timeout=access.timeout_s, context=context)
    with contextlib.closing(connection):
        connection.request("GET", _VERSIONS)
        answer = connection.getresponse()
        text = answer.read(_VERSIONS_BYTES_MAX)
        if answer.status != HTTPStatus.OK:
            raise ValueError(_VERSIONS)
    offered = {
        version.text
        for namespace in ElementTree.fromstring(text).iter("namespace")
        if namespace.findtext("name") == "urn:vim25"
        for version in (*namespace.findall("version"), *namespace.findall("priorVersions/version"))
    }
    known = (name for name in GetServiceVersions("vim25") if versionIdMap[name] in offered)
    version = next(known, None)
    if version is None:
        raise ValueError(_VERSIONS)
    return str(version)


def _close(stub: Any) -> None:  # noqa: ANN401
    """Close the connections; one that a thread still asks on is closed when its answer is there."""
    stub.poolSize = 0
    stub.DropConnections()


def context_of(access: Access) -> ssl.SSLContext:
    """How the certificate is checked.

    Raises:
        UsageError: the file of the authorities cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=access.ca_file if access.ca_file and access.verify else None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            access.ca_file,
            found=f"no certificates that can be read ({type(error).__name__})",
            expected="certificates in PEM form",
            advice="Name the file of the CA that signed the certificate of vCenter.",
        ) from error
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def disconnect(session: Any) -> None:  # noqa: ANN401
    """Log out and close the connections, also where the logout fails."""
    try:
        session.RetrieveContent().sessionManager.Logout()
    finally:
        _close(session._stub)


def objects(
    content: Any,  # noqa: ANN401
    type_of: Any,  # noqa: ANN401
    properties: list[str],
    only: list[Any] | None = None,
    *,
    refused: Counter[str],
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Reference and properties of every object of a kind, or of those named, in pages; the refused are counted."""
    from pyVmomi import vmodl  # noqa: PLC0415

    query = vmodl.query.PropertyCollector
    if only is not None:
        named = [query.ObjectSpec(obj=one, skip=False) for one in only]
        yield from read_answers(pages(content, type_of, properties, named), refused)
        return
    view = content.viewManager.CreateContainerView(content.rootFolder, [type_of], recursive=True)
    try:
        walk = query.TraversalSpec(name="view", path="view", skip=False, type=type(view))
        every = [query.ObjectSpec(obj=view, skip=True, selectSet=[walk])]
        yield from read_answers(pages(content, type_of, properties, every), refused)
    finally:
        view.Destroy()


def read_answers(answers: Iterator[Any], refused: Counter[str]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield reference and properties of each answer; objects the account may not read in full are counted by type."""
    for one in answers:
        if any(kind(missing.fault) == REFUSED for missing in one.missingSet or ()):
            refused[kind(one.obj)] += 1
        yield one.obj, {field.name: field.val for field in one.propSet}


def pages(
    content: Any,  # noqa: ANN401
    type_of: Any,  # noqa: ANN401
    properties: list[str],
    objects: list[Any],
) -> Iterator[Any]:
    """Answers page by page; what this vCenter does not have, or no longer, is left out and the rest asked for again."""
    from pyVmomi import vmodl  # noqa: PLC0415

    query = vmodl.query
    collector, asked = content.propertyCollector, list(properties)
    page: Any = None
    options = query.PropertyCollector.RetrieveOptions(maxObjects=PAGE_SIZE)
    while asked and objects:
        wanted = query.PropertyCollector.PropertySpec(type=type_of, pathSet=asked, all=False)
        spec = query.PropertyCollector.FilterSpec(objectSet=objects, propSet=[wanted])
        try:
            page = collector.RetrievePropertiesEx([spec], options)
            break
        except query.InvalidProperty as error:
            if error.name not in asked:
                raise
            asked.remove(error.name)
        except vmodl.fault.ManagedObjectNotFound as error:
            left = [spec for spec in objects if id_of(spec.obj) != id_of(error.obj)]
            if len(left) == len(objects):
                raise  # the view itself is gone
            objects = left
    while page is not None:
        yield from page.objects
        page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None
