"""Answers of vCenter's property collector, of which a value is made when somebody looks at it.

pyVmomi makes an object of every element of an answer. Of a VM hundreds are sent and a few dozen looked at, so that the
inventory of 10,000 VMs took a minute of processor time. Here the text becomes a tree (in C), and pyVmomi's descriptions
of types say what an element of it is: names, types and what is missing are as in pyVmomi's own objects.

This module imports pyVmomi, which takes 0.5 s: import it where a session begins.

Source: vSphere Web Services API reference, PropertyCollector, LocalizedMethodFault; SOAP 1.1; XML Schema, Part 2.
"""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Callable
from datetime import datetime
from functools import cache
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from xml.etree import ElementTree
from xml.parsers.expat import ExpatError

import pyVmomi
import pyVmomi.SoapAdapter
from pyVmomi.VmomiSupport import F_OPTIONAL, DataObject, Enum, ManagedObject

Element = ElementTree.Element
_library: Any = pyVmomi  # its functions have no types
_Adapter: Any = pyVmomi.SoapAdapter.SoapStubAdapter
_READ = frozenset({"RetrievePropertiesEx", "ContinueRetrievePropertiesEx", "WaitForUpdatesEx"})
_XSI_TYPE = "{http://www.w3.org/2001/XMLSchema-instance}type"
_VIM, _PACKED = "urn:vim25", "gzip"
_ARRAY, _REFERENCE, _RESULT = "ArrayOf", "ManagedObjectReference", "returnval"
_PLAIN: dict[str, type] = {
    **dict.fromkeys(("int", "long", "short", "byte"), int),
    **dict.fromkeys(("double", "float"), float),
    **dict.fromkeys(("string", "anyURI"), str),
    "boolean": bool,
    "dateTime": datetime,
    "base64Binary": bytes,
}


class AnsweredObject:
    """A data object of an answer: its attributes are those of pyVmomi's type, read when they are asked for."""

    __slots__ = ("_answered_type", "_element", "_stub")

    def __init__(self, element: Element, answered_type: Any, stub: Any) -> None:  # noqa: ANN401 - pyVmomi's
        self._element, self._answered_type, self._stub = element, answered_type, stub

    @property  # type: ignore[misc] # mypy knows no class of which an object can tell another one
    def __class__(self) -> Any:  # noqa: ANN401 - pyVmomi's
        """The type of pyVmomi that this is an object of, so that `isinstance` knows it."""
        return self._answered_type

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the property is
        info = self._answered_type._GetPropertyInfo(name)  # AttributeError where the type has no such property
        parts = _parts(self._element, name)
        if issubclass(info.type, list):
            return [value_of(part, info.type.Item, self._stub) for part in parts]
        if parts:
            return value_of(parts[0], info.type, self._stub)
        return None if info.flags & F_OPTIONAL else _default(info.type)


class ReadingStub(_Adapter):  # type: ignore[misc] # a class without types
    """A connection whose answers of the property collector are read when they are looked at."""

    def InvokeMethod(self, mo: Any, info: Any, args: Any, outerStub: Any = None) -> Any:  # noqa: ANN401
        """Ask for the result of a method.

        Raises:
            Exception: a fault of pyVmomi's types; OSError, HTTPException: no answer; ExpatError: it breaks off.
        """
        if info.wsdlName not in _READ:
            return super().InvokeMethod(mo, info, args, outerStub)
        request = self.SerializeRequest(mo, info, args)
        headers = {
            "Cookie": self.cookie,
            "SOAPAction": self.versionId,
            "Content-Type": "text/xml; charset=UTF-8",
            "Accept-Encoding": _PACKED,
        }
        connection = self.GetConnection()
        try:
            connection.request("POST", self.path, request, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, HTTPException):
            connection.close()
            self.DropConnections()
            raise
        self.ReturnConnection(connection)
        if answer.getheader("Content-Encoding", "").casefold() == _PACKED:
            text = _unpacked(text)
        if answer.status == HTTPStatus.OK:
            return result_of(text, info.result, self)
        if answer.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            raise _library.SoapAdapter.SoapResponseDeserializer(self).Deserialize(text, info.result)
        raise HTTPException(f"{answer.status} {answer.reason}")


def result_of(text: bytes, result_type: Any, stub: Any) -> Any:  # noqa: ANN401 - pyVmomi's
    """The result of a method of its answer; None where it has none.

    Args:
        text: a SOAP envelope.
        result_type: pyVmomi's type of the result.
        stub: whose objects references become.

    Raises:
        ExpatError: it is not whole.
    """
    try:
        envelope = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ExpatError(str(error)) from error
    result = next((one for body in envelope for answer in body for one in answer if one.tag.endswith(_RESULT)), None)
    return None if result is None else value_of(result, result_type, stub)


def _parts(element: Element, name: str) -> list[Element]:
    """The parts of an element that have a name, whatever their namespace is: nearly always it is the element's own."""
    space = element.tag[: element.tag.rfind("}") + 1]
    if all(part.tag.startswith(space) for part in element[:1]):
        return element.findall(space + name)
    return [part for part in element if part.tag.rpartition("}")[2] == name]


def _unpacked(text: bytes) -> bytes:
    try:
        return gzip.decompress(text)
    except (OSError, EOFError, zlib.error) as error:
        raise ExpatError(str(error)) from error


def value_of(element: Element, declared: Any, stub: Any) -> Any:  # noqa: ANN401 - whatever it is
    """The value of an element, of the type that it names itself, else of the declared one."""
    name = element.get(_XSI_TYPE)
    if name is not None:
        local = name.rpartition(":")[2]
        if local.startswith(_ARRAY):
            item = _named(local.removeprefix(_ARRAY))
            return [value_of(part, item, stub) for part in element]
        declared = _named(local) or declared
    return _maker(declared)(element, stub)


@cache
def _named(name: str) -> Any:  # noqa: ANN401 - pyVmomi's
    """The type of a name of the schema; None where this pyVmomi has none."""
    if name in _PLAIN:
        return _PLAIN[name]
    if name.endswith(_REFERENCE):
        return ManagedObject
    try:
        return _library.VmomiSupport.GetWsdlType(_VIM, name)
    except KeyError:
        pass
    try:
        return _library.VmomiSupport.GuessWsdlType(name)
    except KeyError:
        return None


@cache
def _maker(declared: Any) -> Callable[[Element, Any], Any]:  # noqa: ANN401 - pyVmomi's
    """What makes values of a type."""
    if declared is None or declared is object:
        return lambda element, _: element.text or ""
    makers: tuple[tuple[type, Callable[[Element, Any], Any]], ...] = (
        (ManagedObject, _reference),
        (Exception, _fault),
        (DataObject, lambda element, stub: AnsweredObject(element, declared, stub)),
        (bool, lambda element, _: (element.text or "").casefold() in ("1", "true")),
        (int, lambda element, _: int(element.text or "0")),
        (float, lambda element, _: float(element.text or "nan")),
        (datetime, lambda element, _: _library.Iso8601.ParseISO8601(element.text)),
        (bytes, lambda element, _: base64.b64decode(element.text or "")),
    )
    return next((make for base, make in makers if issubclass(declared, base)), lambda element, _: element.text or "")


def _reference(element: Element, stub: Any) -> Any:  # noqa: ANN401 - pyVmomi's
    return (_named(element.get("type", "")) or ManagedObject)(element.text, stub)


def _fault(element: Element, stub: Any) -> Any:  # noqa: ANN401 - pyVmomi's
    """A fault is sent in a LocalizedMethodFault."""
    inner = next((part for part in element if part.tag.endswith("fault")), element)
    return AnsweredObject(inner, _named((inner.get(_XSI_TYPE) or "MethodFault").rpartition(":")[2]), stub)


def _default(declared: Any) -> Any:  # noqa: ANN401 - pyVmomi's
    """What a property that is required and was not sent is to pyVmomi."""
    if declared is bool:
        return False
    if issubclass(declared, Enum):
        return None
    for base, empty in ((str, ""), (int, 0), (float, 0.0)):
        if issubclass(declared, base):
            return empty
    return None
