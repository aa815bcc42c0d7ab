"""Answers that are read when they are looked at are what pyVmomi's own objects are."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from xml.parsers.expat import ExpatError

import pytest
import pyVmomi
import pyVmomi.SoapAdapter

from leadline.collectors import _vcenter_cluster as clusters
from leadline.collectors import _vcenter_host as hosts
from leadline.collectors import _vcenter_network as networks
from leadline.collectors import _vcenter_vm as machines
from leadline.estate.knowledge import vcenter_answers
from leadline.estate.knowledge.vcenter_answers import result_of
from leadline.estate.knowledge.vcenter_session import connect, context_of, disconnect, kind, objects
from tests.collectors.test_vcenter import VCSIM, simulated

vim: Any = pyVmomi.vim
query: Any = pyVmomi.vmodl.query.PropertyCollector
adapter: Any = pyVmomi.SoapAdapter
support: Any = pyVmomi.VmomiSupport
STUB: Any = adapter.SoapStubAdapter(host="127.0.0.1", version="vim.version.version9")
ENVELOPE = """<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>
<RetrievePropertiesExResponse xmlns="urn:vim25">{}</RetrievePropertiesExResponse></soapenv:Body></soapenv:Envelope>"""
VM = """<returnval><token>7</token><objects><obj type="VirtualMachine">vm-1</obj>
<propSet><name>name</name><val xsi:type="xsd:string">db &amp; co</val></propSet>
<propSet><name>empty</name><val xsi:type="xsd:string"></val></propSet>
<propSet><name>runtime.bootTime</name><val xsi:type="xsd:dateTime">2026-11-20T10:00:00.5Z</val></propSet>
<propSet><name>runtime.powerState</name><val xsi:type="VirtualMachinePowerState">poweredOn</val></propSet>
<propSet><name>config.template</name><val xsi:type="xsd:boolean">false</val></propSet>
<propSet><name>runtime.host</name><val type="HostSystem" xsi:type="ManagedObjectReference">host-9</val></propSet>
<propSet><name>datastore</name><val xsi:type="ArrayOfManagedObjectReference">
<ManagedObjectReference type="Datastore" xsi:type="ManagedObjectReference">datastore-3</ManagedObjectReference>
</val></propSet>
<propSet><name>files</name><val xsi:type="ArrayOfString"><string>a</string><string>b</string></val></propSet>
<propSet><name>config.cpuAllocation</name><val xsi:type="ResourceAllocationInfo"><reservation>0</reservation>
<limit>-1</limit><shares><shares>2000</shares><level>normal</level></shares></val></propSet>
<propSet><name>config.hardware</name><val xsi:type="VirtualHardware"><numCPU>4</numCPU><memoryMB>4096</memoryMB>
<device xsi:type="VirtualDisk"><key>2000</key><backing xsi:type="VirtualDiskFlatVer2BackingInfo">
<fileName>[gold] db/db.vmdk</fileName><diskMode>persistent</diskMode></backing><capacityInKB>1048576</capacityInKB>
</device>
<device xsi:type="ParaVirtualSCSIController"><key>1000</key><device>2000</device><busNumber>0</busNumber>
<sharedBus>noSharing</sharedBus></device></val></propSet>
<missingSet><path>snapshot</path><fault><fault xsi:type="NoPermission"><privilegeId>System.Read</privilegeId></fault>
<localizedMessage>no</localizedMessage></fault></missingSet></objects></returnval>"""


def assert_same(answered: Any, known: Any, where: str = "") -> int:
    """Fail where a value is not what pyVmomi has; how many values were compared."""
    if isinstance(known, list):
        assert len(answered) == len(known), where
        return sum(assert_same(*pair, f"{where}[]") for pair in zip(answered, known, strict=True))
    if isinstance(known, support.ManagedObject):
        assert (type(answered), answered._GetMoId()) == (type(known), known._GetMoId()), where
        return 1
    if isinstance(known, support.DataObject | Exception):
        assert kind(answered) == kind(known), where
        assert all(isinstance(answered, one) for one in type(known).__mro__), where
        typed: Any = known
        names = [info.name for info in typed._GetPropertyList()]
        if isinstance(known, Exception):  # what a person reads of a fault is not part of it here
            names = [name for name in names if name not in ("msg", "faultMessage", "faultCause")]
        return sum(assert_same(getattr(answered, name), getattr(known, name), f"{where}.{name}") for name in names)
    assert answered == known, where
    return 1


def both(text: str) -> tuple[Any, Any]:
    whole = ENVELOPE.format(text).encode()
    known = adapter.SoapResponseDeserializer(STUB).Deserialize(whole, query.RetrieveResult)
    return result_of(whole, query.RetrieveResult, STUB), known


def test_every_kind_of_value_is_as_pyvmomi_has_it() -> None:
    answered, known = both(VM)
    assert assert_same(answered, known) >= 100
    (vm,) = answered.objects
    values = {field.name: field.val for field in vm.propSet}
    disk, controller = values["config.hardware"].device
    assert (kind(disk), disk.backing.fileName, disk.capacityInKB) == ("VirtualDisk", "[gold] db/db.vmdk", 1048576)
    assert controller.device == [2000]
    assert not isinstance(disk, controller.__class__)
    assert values["files"] == ["a", "b"]
    assert kind(vm.missingSet[0].fault) == "NoPermission"
    assert not hasattr(disk, "macAddress")


def test_parts_of_another_namespace_are_found() -> None:
    text = VM.replace("<numCPU>", '<numCPU xmlns="urn:other">').replace("<token>", '<token xmlns="urn:other">')
    answered, known = both(text)
    assert answered.token == known.token == "7"
    assert assert_same(answered, known) >= 100


def test_an_answer_without_a_result_is_none() -> None:
    assert both("") == (None, None)


def test_an_answer_that_is_cut_is_an_error_of_the_parser() -> None:
    with pytest.raises(ExpatError):
        result_of(ENVELOPE.format(VM).encode()[:-200], query.RetrieveResult, STUB)


def test_a_type_that_is_newer_than_pyvmomi_is_read_as_the_declared_one() -> None:
    text = VM.replace('xsi:type="VirtualDisk"', 'xsi:type="VirtualDiskOfTomorrow"')
    answered = result_of(ENVELOPE.format(text).encode(), query.RetrieveResult, STUB)
    (hardware,) = [field.val for field in answered.objects[0].propSet if field.name == "config.hardware"]
    assert (kind(hardware.device[0]), hardware.device[0].key) == ("VirtualDevice", 2000)


class Answering(BaseHTTPRequestHandler):
    """Answers every question with a packed text."""

    text: bytes
    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append(self.headers["Accept-Encoding"])
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(self.text)))
        self.end_headers()
        self.wfile.write(self.text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_packed_answer_is_unpacked() -> None:
    whole = gzip.compress(ENVELOPE.format(VM).encode())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        # pyVmomi takes a negative port for one without TLS.
        stub = vcenter_answers.ReadingStub(host="127.0.0.1", port=-server.server_port, version="vim.version.version9")
        collector = query("propertyCollector", stub)
        Answering.text = whole
        assert collector.ContinueRetrievePropertiesEx("7").objects[0].propSet[0].val == "db & co"
        assert "gzip" in Answering.asked[-1]
        Answering.text = whole[:-30]
        with pytest.raises(ExpatError):
            collector.ContinueRetrievePropertiesEx("7")
        stub.DropConnections()
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.fixture(scope="module")
def sessions() -> Iterator[tuple[Any, Any]]:
    """A session whose answers are read when they are looked at, and one of pyVmomi's own."""
    if VCSIM is None:
        pytest.skip("vcsim is not installed (scripts/setup.sh does, where Go is)")
    with simulated("-cluster", "1", "-host", "2", "-vm", "4", "-standalone-host", "1", "-pg", "2") as access:
        answering = connect(access, context_of(access))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vcenter_answers, "ReadingStub", adapter.SoapStubAdapter)
            plain = connect(access, context_of(access))
        yield answering, plain
        disconnect(answering)
        disconnect(plain)


@pytest.mark.real
@pytest.mark.parametrize(
    ("type_name", "properties"),
    [
        ("VirtualMachine", machines.PROPERTIES),
        ("VirtualMachine", ["config", "runtime", "summary", "layoutEx.file", "guest"]),
        ("HostSystem", hosts.PROPERTIES),
        ("HostSystem", ["config", "hardware", "runtime", "summary"]),
        ("Datastore", clusters.DATASTORE_PROPERTIES),
        ("ClusterComputeResource", clusters.PROPERTIES),
        ("DistributedVirtualSwitch", networks.SWITCH_PROPERTIES),
    ],
)
def test_a_real_inventory_is_as_pyvmomi_has_it(
    sessions: tuple[Any, Any], type_name: str, properties: list[str]
) -> None:
    found = [
        {
            reference._GetMoId(): values
            for reference, values in objects(
                session.RetrieveContent(), getattr(vim, type_name), list(properties), refused=Counter()
            )
        }
        for session in sessions
    ]
    answered, known = found
    assert answered.keys() == known.keys() and known
    count = 0
    for key, values in known.items():
        assert answered[key].keys() == values.keys()
        count += sum(assert_same(answered[key][name], value, f"{key}.{name}") for name, value in values.items())
    assert count > 10
