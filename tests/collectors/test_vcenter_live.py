"""The live source of vCenter against a real vCenter API: govmomi's simulator, behind a proxy that keeps the answers.

The simulator answers a query for every instance with one series of the instance ``*``; the proxy makes of it what a
vCenter answers: the whole and its instances. It drops, delays and cuts samples on request.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import re
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyVmomi
import pyVmomi.SoapAdapter

from leadline.app.collecting import collect
from leadline.app.watch.window import LiveWindow
from leadline.collectors._vcenter_live import sampling as live
from leadline.collectors.vcenter import watch
from leadline.core.contracts.collector import Access
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.addresses import Address
from leadline.estate.knowledge.vcenter_session import connect, context_of, disconnect
from tests.collectors.test_vcenter import SECRET, VCSIM, simulated, wait_for

vim: Any = pyVmomi.vim
adapter: Any = pyVmomi.SoapAdapter

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(VCSIM is None, reason="vcsim is not installed (scripts/setup.sh does, where Go is)"),
]

_ALL = re.compile(
    rb"<value[^>]*><id><counterId>(\d+)</counterId><instance>\*</instance></id><value>([^<]*)</value></value>"
)
_PARTS = {"cpu": ["", "0", "1"], "virtualDisk": ["scsi0:0"], "net": ["", "4000", "vmnic0"], "disk": ["", "naa.1"]}
_PARTS |= {"storageAdapter": ["vmhba0"], "storagePath": ["path-1"], "datastore": ["LocalDS_0"]}


@dataclass
class Proxy:
    """What the proxy knows and does."""

    access: Access
    port: int = 0
    groups: dict[int, str] = field(default_factory=dict)
    answers: list[bytes] = field(default_factory=list)
    change: Callable[[bytes, bytes], tuple[int, bytes]] = lambda _, answer: (200, answer)

    def answered(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPSConnection("127.0.0.1", self.access.port, context=context_of(self.access))
        with contextlib.closing(connection):
            connection.request("POST" if body else "GET", path, body or None, headers)
            answer = connection.getresponse()
            kept = {name: value for name, value in answer.getheaders() if name in ("Content-Type", "Set-Cookie")}
            return answer.status, kept, answer.read()

    def whole(self, answer: bytes) -> bytes:
        """The answer with the instances that a vCenter would tell of, each with values of its own."""

        def series(match: re.Match[bytes]) -> bytes:
            key, values = int(match[1]), match[2].split(b",")
            texts = []
            for place, instance in enumerate(_PARTS.get(self.groups.get(key, ""), [""])):
                moved = b",".join(str(int(value) + place).encode() for value in values)
                texts.append(
                    b"<value><id><counterId>%d</counterId><instance>%s</instance></id><value>%s</value></value>"
                    % (key, instance.encode(), moved)
                )
            return b"".join(texts)

        return _ALL.sub(series, answer)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "vc.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(path), "-out", f"{path}.crt"]
    subprocess.run(words, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@contextlib.contextmanager
def proxied(access: Access, certificate: Path) -> Iterator[Proxy]:
    proxy = Proxy(access)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            passed = {
                name: self.headers[name] for name in ("Cookie", "SOAPAction", "Content-Type") if self.headers[name]
            }
            status, kept, text = proxy.answered(self.path, body, passed)
            if b"<QueryPerf " in body and status == 200:
                status, text = proxy.change(body, proxy.whole(text))
                proxy.answers.append(text)
            self.send_response(status)
            for name, value in kept.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # a client that does not trust the certificate

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    proxy.port = server.server_port
    session = connect(access, context_of(access))
    proxy.groups = {c.key: c.groupInfo.key for c in session.RetrieveContent().perfManager.perfCounter}
    disconnect(session)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.fixture
def proxy(certificate: Path) -> Iterator[Proxy]:
    with (
        simulated("-cluster", "1", "-host", "1", "-standalone-host", "0", "-vm", "3") as access,
        proxied(access, certificate) as proxy,
    ):
        yield proxy


class Clock:
    """The simulator's clock as the source takes it: three hours ago, and what is added. It has samples of any time."""

    def __init__(self) -> None:
        self.now_s = time.time() // 300 * 300 - 3 * 3600.0 + 1.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(live.VcenterLive, "_server_now_ns", lambda _: round(clock.now_s * 1e9))
    return clock


def watched(proxy: Proxy, certificate: Path, **options: int | str | bool) -> live.VcenterLive:
    address = Address(f"https://ro@localhost:{proxy.port}", proxy.access.password)
    return watch(address, **{"ca_file": f"{certificate}.crt", **options})


def as_pyvmomi_has_it(answers: list[bytes]) -> dict[tuple[str, int, str], dict[int, int]]:
    """Every sample of answers as pyVmomi's own reader has it: by object, counter and instance, by time."""
    samples: dict[tuple[str, int, str], dict[int, int]] = {}
    stub = adapter.SoapStubAdapter(host="127.0.0.1", version="vim.version.version9")
    of_list = vim.PerformanceManager.EntityMetricBase.Array
    for text in answers:
        for one in adapter.SoapResponseDeserializer(stub).Deserialize(text, of_list):
            words = one.sampleInfoCSV.split(",") if one.sampleInfoCSV else []
            times = [round(datetime.fromisoformat(word).timestamp()) for word in words[1::2]]
            for series in one.value:
                values = [int(value) for value in series.value.split(",")]
                key = (one.entity._GetMoId(), series.id.counterId, series.id.instance)
                samples.setdefault(key, {}).update(zip(times, values, strict=True))
    return samples


def samples_of(capture: Capture) -> list[tuple[str, Entity, int]]:
    return [
        (group.metric, entity, int(time_ns))
        for group in capture.groups
        for row, entity in enumerate(group.entities)
        for column, time_ns in enumerate(group.times_ns)
        if not np.isnan(group.values[row, column])
    ]


def test_every_counter_is_what_pyvmomi_reads(proxy: Proxy, certificate: Path, clock: Clock) -> None:
    source = watched(proxy, certificate, every=True)
    capture = source.sample()
    source.close()
    expected = as_pyvmomi_has_it(proxy.answers)
    assert len({key for key, _, _ in expected if key.startswith("vm-")}) == 3
    by_name = {entity: reference[1] for reference, entity in source._estate.on.items()}
    compared = set()
    for family in source._families:
        counters = family.columns.placing.counters.values()
        for metric in {counter.metric for counter in counters}:
            same = [counter for counter in counters if counter.metric == metric]
            for group in (g for g in capture.groups if g.metric == metric and len(same) == 1):
                for row, entity in enumerate(group.entities):
                    owner = next(one for one in entity.lineage() if one in by_name)
                    if owner.kind is not family_kind(family.type_name):
                        continue
                    instance = "" if entity is owner else instance_of(entity)
                    if owner.kind is EntityKind.DATASTORE and (by_name[owner], same[0].key, "") not in expected:
                        instance = "LocalDS_0"  # a datastore may be an instance of itself
                    raw = expected[by_name[owner], same[0].key, instance]
                    scale = same[0].scale
                    if same[0].shares_vcpus and not instance:
                        scale /= source._estate.vcpu_count(owner) or 1
                    wanted = [raw[int(t) // 10**9] * scale for t in group.times_ns if int(t) // 10**9 in raw]
                    got = [v for v in group.values[row].tolist() if not np.isnan(v)]
                    assert got == pytest.approx(wanted[-len(got) :], rel=1e-6), (metric, entity)
                    compared.add((by_name[owner], same[0].key, instance))
    single = {c.key for f in source._families for c in f.columns.placing.counters.values()}
    for reference in ("vm-", "host-"):
        assert len({key for key in compared if key[0].startswith(reference)}) > 60
    assert len({key for _, key, _ in compared}) > 0.5 * len(single)
    assert {e.kind for g in capture.groups for e in g.entities} >= {
        EntityKind.VM, EntityKind.VCPU, EntityKind.VIRTUAL_DISK, EntityKind.HOST, EntityKind.ADAPTER,
        EntityKind.DATASTORE, EntityKind.CLUSTER,
    }  # fmt: skip


def family_kind(type_name: str) -> EntityKind:
    return next(kind for name, kind, _, _ in live._FAMILIES if name == type_name)


def instance_of(entity: Entity) -> str:
    return "4000" if entity.kind is EntityKind.NIC and entity.name == "ethernet-0" else entity.name


def test_parts_are_those_of_the_inventory(proxy: Proxy, certificate: Path, clock: Clock) -> None:
    source = watched(proxy, certificate)
    capture = source.sample()
    source.close()
    for metric, kind in (("disk_reads_per_s", EntityKind.VIRTUAL_DISK), ("net_rx_mbit_per_s", EntityKind.NIC)):
        of_vms = {
            e for g in capture.of(metric, kind) for e in g.entities if e.parent and e.parent.kind is EntityKind.VM
        }
        listed = {e for vm in capture.inventory.of_kind(EntityKind.VM) for e in capture.inventory.children(vm, kind)}
        assert listed
        assert listed <= of_vms


def test_a_sample_is_given_once(proxy: Proxy, certificate: Path, clock: Clock) -> None:
    source = watched(proxy, certificate)
    first = source.sample()
    assert source.sample().groups == []
    given = samples_of(first)
    columns = {label_of(group): group.entities for group in first.groups}
    for step in (10.0, 10.0, 45.0):
        clock.now_s += step
        capture = source.sample()
        given += samples_of(capture)
        for group in capture.groups:
            if label_of(group) in columns:
                assert group.entities is columns[label_of(group)]
    source.close()
    assert len(given) == len(set(given))
    assert len({time_ns for metric, _, time_ns in given if metric == "cpu_ready_pct"}) == 4
    assert not source.gaps


def label_of(group: SeriesGroup) -> tuple[str, float, bool]:
    return group.metric, group.interval_s, group.entities[0].ancestor(EntityKind.VM) is not None


def without(moment: str, machine: str) -> Callable[[bytes, bytes], tuple[int, bytes]]:
    """A change of answers: a VM has no sample of a moment."""

    def change(_: bytes, answer: bytes) -> tuple[int, bytes]:
        def cut(match: re.Match[bytes]) -> bytes:
            text = match[0]
            info = re.search(rb"<sampleInfoCSV>([^<]*)", text)
            if f">{machine}</entity>".encode() not in text or info is None or moment.encode() not in info[1]:
                return text
            words = info[1].split(b",")
            place = words.index(moment.encode()) // 2
            text = text.replace(info[1], b",".join(words[: 2 * place] + words[2 * place + 2 :]))

            def less(values: re.Match[bytes]) -> bytes:
                listed = values[1].split(b",")
                return b"</id><value>" + b",".join(listed[:place] + listed[place + 1 :]) + b"</value>"

            return re.sub(rb"</id><value>([^<]*)</value>", less, text)

        return 200, re.sub(rb"<returnval.*?</returnval>", cut, answer, flags=re.DOTALL)

    return change


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@pytest.mark.parametrize("comes", [True, False])
def test_a_late_sample_is_given_when_it_comes_and_a_gap_when_it_does_not(
    proxy: Proxy, certificate: Path, clock: Clock, comes: bool
) -> None:
    source = watched(proxy, certificate)
    source.sample()
    (reference, vm) = next((r, e) for r, e in source._estate.on.items() if e.kind is EntityKind.VM)
    late_s = clock.now_s // 20 * 20 + 20
    proxy.change = without(stamp(late_s), reference[1])
    clock.now_s += 40
    given = samples_of(source.sample())
    assert {t for m, e, t in given if e == vm and m == "cpu_ready_pct"} == {int(late_s + 20) * 10**9}
    clock.now_s += 20
    assert not source.gaps
    if comes:
        proxy.change = lambda _, answer: (200, answer)
        capture = source.sample()
        late = [g for g in capture.groups if int(g.times_ns[0]) == int(late_s) * 10**9]
        assert {e.ancestor(EntityKind.VM) for g in late for e in g.entities} == {vm}
        given += samples_of(capture)
        assert len(given) == len(set(given))
    clock.now_s += 1200
    source.sample()
    gaps = [(gap.key, gap.end_ns // 10**9) for gap in source.gaps if gap.key == reference[1]]
    assert ((reference[1], int(late_s)) in gaps) is not comes
    source.close()


def test_the_next_answer_is_asked_for_while_one_is_on_its_way(
    proxy: Proxy, certificate: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each object has a query of its own here. The first waits for a second; there are never three at once."""
    monkeypatch.setattr(live, "OBJECTS_MAX", 1)
    source = watched(proxy, certificate)
    expected = samples_of(source.sample())
    under_way, most = 0, 0
    change = threading.Condition()

    def waits(_: bytes, answer: bytes) -> tuple[int, bytes]:
        nonlocal under_way, most
        with change:
            under_way += 1
            most = max(most, under_way)
            change.notify_all()
            change.wait_for(lambda: most > 1, timeout=20.0)
        time.sleep(0.05)
        with change:
            under_way -= 1
        return 200, answer

    proxy.change = waits
    clock.now_s += 20
    given = samples_of(source.sample())
    source.close()
    assert most == 2
    realtime = [(metric, entity) for metric, entity, _ in given]
    assert len(realtime) == len(set(realtime))
    assert set(realtime) == {(m, e) for m, e, t in expected if (m, e) in set(realtime)}
    assert {entity.ancestor(EntityKind.VM) for _, entity in realtime if entity.ancestor(EntityKind.VM)} == {
        entity for entity in source._estate.on.values() if entity.kind is EntityKind.VM
    }


def test_no_sample_is_sent_twice(proxy: Proxy, certificate: Path, clock: Clock) -> None:
    """The simulator counts the moment asked from in; what it sends is one moment for each interval."""
    source = watched(proxy, certificate)
    source.sample()
    proxy.answers.clear()
    clock.now_s += 60
    source.sample()
    source.close()
    times = {key: len(values) for key, values in as_pyvmomi_has_it(proxy.answers).items() if key[0].startswith("vm-")}
    assert set(times.values()) == {3}


def test_a_session_that_ended_is_renewed(proxy: Proxy, certificate: Path, clock: Clock) -> None:
    source = watched(proxy, certificate)
    given = samples_of(source.sample())
    source._session.RetrieveContent().sessionManager.Logout()
    clock.now_s += 20
    given += samples_of(source.sample())
    source.close()
    assert len(given) == len(set(given))
    assert len({t for m, _, t in given if m == "cpu_ready_pct"}) == 2


def test_a_session_that_ends_between_two_queries_loses_nothing(proxy: Proxy, certificate: Path, clock: Clock) -> None:
    source = watched(proxy, certificate)
    count = len(source.sample().groups)
    fault = b"<Envelope><Body><Fault><detail><NotAuthenticatedFault/></detail></Fault></Body></Envelope>"
    calls = itertools.count(1)
    proxy.change = lambda _, answer: (500, fault) if next(calls) == 2 else (200, answer)
    clock.now_s += 20
    capture = source.sample()
    source.close()
    assert 0 < len(capture.groups) <= count
    given = samples_of(capture)
    assert len(given) == len(set(given))


def test_an_answer_that_is_cut_is_an_error_and_loses_nothing(proxy: Proxy, certificate: Path, clock: Clock) -> None:
    source = watched(proxy, certificate)
    source.sample()
    clock.now_s += 20
    proxy.change = lambda _, answer: (200, answer[: len(answer) // 2])
    with pytest.raises(ToolError, match="ends after"):
        source.sample()
    proxy.change = lambda _, answer: (200, answer)
    assert len({int(t) for g in source.sample().of("cpu_ready_pct") for t in g.times_ns}) == 1
    source.close()


def test_vms_go_and_stop_and_what_happened_is_told(proxy: Proxy, certificate: Path, clock: Clock) -> None:
    source = watched(proxy, certificate, inventory_s=0)
    before = source.sample()
    session = connect(proxy.access, context_of(proxy.access))
    content = session.RetrieveContent()
    vms = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], True).view
    by_name = {entity.name: entity for entity in source._estate.on.values()}
    gone, stopped, stays = (by_name[vm.name] for vm in vms[:3])
    for vm in vms[:2]:
        wait_for(vm.PowerOffVM_Task())
    wait_for(vms[0].Destroy_Task())
    disconnect(session)
    clock.now_s += 20
    after = source.sample()
    source.close()
    assert gone in before.inventory.facts and not before.inventory.gone
    assert gone not in after.inventory.facts
    assert gone in after.inventory.gone and stopped in after.inventory.gone
    # What did not change is not given again.
    assert stays in before.inventory.facts
    assert stays not in after.inventory.facts and stays not in after.inventory.gone
    assert after.inventory.get(stopped, "power_state") == "off"
    assert {e.ancestor(EntityKind.VM) for g in after.of("cpu_ready_pct") for e in g.entities} == {stays}
    kinds = {event["kind"] for event in after.inventory.get(stopped, "events") or ()}
    assert "vm-powered-off" in kinds
    assert not source.gaps


def test_a_vm_that_moved_is_given_where_it_is_now(certificate: Path, clock: Clock) -> None:
    estate = ("-cluster", "1", "-host", "2", "-standalone-host", "0", "-vm", "3")
    with simulated(*estate) as access, proxied(access, certificate) as proxy:
        source, window = watched(proxy, certificate, inventory_s=0), LiveWindow(600.0, [])
        window.take(source.sample())
        before = {vm.name: vm.parent for vm in window.inventory.of_kind(EntityKind.VM)}
        session = connect(access, context_of(access))
        content = session.RetrieveContent()
        (cluster,) = content.viewManager.CreateContainerView(content.rootFolder, [vim.ComputeResource], True).view
        vm = next(vm for host in cluster.host for vm in host.vm)
        to = next(host for host in cluster.host if host.name != vm.runtime.host.name)
        name, there = vm.name, to.name
        wait_for(vm.RelocateVM_Task(vim.vm.RelocateSpec(host=to, pool=cluster.resourcePool)))
        disconnect(session)
        clock.now_s += 20
        window.take(source.sample())
        source.close()
    known = window.inventory.of_kind(EntityKind.VM)
    after = {vm.name: vm.parent for vm in known}
    assert len(known) == len(before)
    assert before.pop(name) != after.pop(name) == Entity(EntityKind.HOST, there)
    assert after == before


def test_a_new_datastore_costs_no_reading_of_all_vms(
    proxy: Proxy, certificate: Path, clock: Clock, tmp_path: Path
) -> None:
    source, window = watched(proxy, certificate, inventory_s=0), LiveWindow(600.0, [])
    reader, asked = source._estate.reader, []

    def vms(content: Any, estate: Any, seen: Any, keys: Any) -> None:
        asked.append(keys)
        reader.vms(content, estate, seen, keys)

    source._estate.reader = replace(reader, vms=vms)
    window.take(source.sample())
    before = {entity: dict(facts) for entity, facts in window.inventory.facts.items()}
    on = dict(source._estate.on)
    session = connect(proxy.access, context_of(proxy.access))
    content = session.RetrieveContent()
    (host,) = content.viewManager.CreateContainerView(content.rootFolder, [vim.HostSystem], True).view
    host.configManager.datastoreSystem.CreateLocalDatastore("backup", str(tmp_path))
    disconnect(session)
    clock.now_s += 20
    window.take(source.sample())
    assert asked == [None, []]
    added = window.inventory.facts.keys() - before.keys()
    assert {entity.name for entity in added} == {"backup"}
    assert before.keys() <= window.inventory.facts.keys()
    vm = next(one for one in before if one.kind is EntityKind.VM)
    assert {name: fact.value for name, fact in window.inventory.facts[vm].items()} == {
        name: fact.value for name, fact in before[vm].items()
    }
    assert on.items() <= source._estate.on.items()
    source.close()


def test_only_the_given_ca_is_trusted(proxy: Proxy, certificate: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="certificate this machine does not trust"):
        watch(Address(f"https://ro@localhost:{proxy.port}", proxy.access.password))
    other = tmp_path / "other.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-out", str(other)]
    subprocess.run([*words, "-keyout", str(tmp_path / "key")], check=True, capture_output=True)
    with pytest.raises(ToolError, match="certificate this machine does not trust"):
        watched(proxy, certificate, ca_file=str(other))
    source = watched(proxy, certificate)
    assert source.notes == []
    source.close()
    # What is read once trusts the same authority.
    trusting = Access("localhost", "ro", proxy.access.password, proxy.port, ca_file=f"{certificate}.crt")
    assert any(entity.kind is EntityKind.VM for entity in collect("vcenter", trusting).inventory.facts)
    with pytest.raises(ToolError, match="certificate this machine does not trust"):
        collect("vcenter", replace(trusting, ca_file=str(other)))
    with pytest.raises(UsageError, match="no certificates"):
        collect("vcenter", replace(trusting, ca_file="/nowhere"))
    source = watched(proxy, certificate, ca_file="", insecure=True)
    source.sample()
    assert "the certificate of localhost is not checked" in source.notes
    source.close()
    assert SECRET not in repr(source.__dict__)


@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        ("vc", {}, "no user"),
        ("ftp://ro@vc", {}, "no vCenter"),
        ("https://ro@vc:port", {}, "no vCenter"),
        ("vc", {"user": "ro", "ca": "x"}, "not known"),
        ("vc", {"user": "ro", "ca_file": "/nowhere"}, "no certificates"),
    ],
)
def test_targets_and_options_that_are_none(text: str, options: dict[str, str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        watch(Address(text), **options)
