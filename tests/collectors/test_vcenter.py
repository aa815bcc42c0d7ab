"""The vCenter collector against a real vCenter API: govmomi's simulator, as it answers over TLS."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest
import pyVim.connect
import pyVmomi

from leadline.app.collecting import collect
from leadline.app.diagnose.auditing import audit
from leadline.collectors import _vcenter_events as events
from leadline.collectors import _vcenter_policies as policies
from leadline.collectors import _vcenter_vsan as vsan
from leadline.collectors import _vcenter_vsan_objects as vsan_objects
from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.collectors._vcenter_services import Services, asking
from leadline.core.contracts.collector import Access
from leadline.core.io.parquet import load, save
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.secret import Secret
from leadline.estate.knowledge import vcenter_session
from tests.conftest import ROOT

PLACES = os.pathsep.join([os.environ.get("PATH", ""), str(ROOT / ".tools" / "bin"), str(Path.home() / "go" / "bin")])
VCSIM = shutil.which("vcsim", path=PLACES)
vim: Any = pyVmomi.vim  # made at run time: no types to check against
pbm: Any = pyVmomi.pbm
SmartConnect: Any = pyVim.connect.SmartConnect
Disconnect: Any = pyVim.connect.Disconnect
SECRET = "not-to-be-seen-anywhere"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(VCSIM is None, reason="vcsim is not installed (scripts/setup.sh does, where Go is)"),
]


def wait_for(task: Any) -> None:
    """Wait for a task's success; the library's own way trips over task names of the simulator."""
    for _ in range(1000):
        state = task.info.state
        if state not in {"queued", "running"}:
            break
        time.sleep(0.01)
    assert state == "success"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def simulated(*shape: str) -> Iterator[Access]:
    """A running simulator of a shape."""
    port = free_port()
    words = ["-l", f"127.0.0.1:{port}", *shape, "-username", "ro", "-password", SECRET]
    server = subprocess.Popen([str(VCSIM), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    try:
        yield Access("127.0.0.1", "ro", Secret(SECRET), port, verify=False)
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(scope="module")
def access() -> Iterator[Access]:
    with simulated("-cluster", "2", "-host", "2", "-vm", "10", "-standalone-host", "1") as own:
        yield own


@pytest.fixture(scope="module")
def capture(access: Access) -> Capture:
    return collect("vcenter", access)


@pytest.mark.smoke
def test_hosts_vms_and_their_parts(capture: Capture) -> None:
    inventory = capture.inventory
    vms = inventory.of_kind(EntityKind.VM)
    assert len(inventory.of_kind(EntityKind.CLUSTER)) == 2
    assert len(inventory.of_kind(EntityKind.HOST)) == 5
    assert len(vms) == 30
    for vm in vms:
        assert vm.parent is not None
        assert inventory.get(vm, "vcpu_count") == 1
        assert inventory.get(vm, "memory_mib") == 32
        (disk,) = inventory.children(vm, EntityKind.VIRTUAL_DISK)
        adapters = {a.name for a in inventory.children(vm, EntityKind.ADAPTER)}
        assert inventory.get(disk, "adapter") in adapters
        assert inventory.get(disk, "datastore") == "LocalDS_0"
        assert len(inventory.children(vm, EntityKind.NIC)) == 1
    host = inventory.of_kind(EntityKind.HOST)[0]
    assert inventory.get(host, "core_count") == 2
    assert inventory.get(host, "version")


def test_state_of_vms_datastores_and_networks(capture: Capture) -> None:
    inventory = capture.inventory
    for vm in inventory.of_kind(EntityKind.VM):
        assert inventory.get(vm, "power_state") == "on"
        assert inventory.get(vm, "config_datastore") == "LocalDS_0"
        assert inventory.get(vm, "tools_running_status") == "guestToolsNotRunning"
        assert inventory.get(vm, "snapshot_count") == 0
        (disk,) = inventory.children(vm, EntityKind.VIRTUAL_DISK)
        assert inventory.get(disk, "mode") == "persistent"
        (nic,) = inventory.children(vm, EntityKind.NIC)
        assert inventory.get(nic, "network") == "DC0_DVPG0"
    (store,) = inventory.of_kind(EntityKind.DATASTORE)
    assert 0 < inventory.get(store, "free_gib") < inventory.get(store, "capacity_gib")
    assert inventory.get(store, "accessible") is True
    for host in inventory.of_kind(EntityKind.HOST):
        assert inventory.get(host, "connection_state") == "connected"
        assert inventory.get(host, "hyperthreading_available") is False
        assert inventory.get(host, "bios_date") == "2015-07-02"
        cards = {nic.name: nic for nic in inventory.children(host, EntityKind.NIC)}
        assert inventory.get(cards["vmnic0"], "speed_mbit_per_s") == 10_000
        assert inventory.get(cards["vmk0"], "traffic") == ["management"]
        assert len(inventory.children(host, EntityKind.ADAPTER)) > 0
        device = inventory.children(host, EntityKind.DEVICE)[0]
        assert inventory.get(device, "path_active_count") == 1
    assert all(inventory.get(c, "drs_rules") == {} for c in inventory.of_kind(EntityKind.CLUSTER))


def test_what_the_simulator_cannot_tell_is_left_out_with_a_warning(capture: Capture) -> None:
    (source,) = capture.sources
    assert [(own.code, own.message) for own in source.warnings] == [
        ("left-out", "left out: storage policies (vCenter answered MethodNotFound)")
    ]


def test_the_verb_says_what_was_left_out(access: Access, tmp_path: Path) -> None:
    words = ["collect", "vcenter", access.host, "--port", str(access.port), "--insecure", "-u", access.user]
    done = subprocess.run(
        [Path(sys.executable).parent / "leadline", *words, "-o", str(tmp_path / "vc.parquet")],
        env=os.environ | {"LEADLINE_PASSWORD": SECRET},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"vcenter:{access.host}: left out: storage policies" in done.stderr
    assert "virtual-disk" in done.stdout
    assert SECRET not in done.stdout + done.stderr


def test_ids_and_processors_are_told(capture: Capture) -> None:
    inventory = capture.inventory
    ids = {inventory.get(vm, "uuid") for vm in inventory.of_kind(EntityKind.VM)}
    assert len(ids) == 30
    assert all(isinstance(own, str) and len(own) == 36 for own in ids)
    assert all(inventory.get(host, "aes_ni") is True for host in inventory.of_kind(EntityKind.HOST))
    assert inventory.of_kind(EntityKind.DISK_GROUP) == []


@contextlib.contextmanager
def opened(access: Access) -> Iterator[tuple[Any, ssl.SSLContext]]:
    """A session of the collector's own, and the context it was opened with."""
    context = vcenter_session.context_of(access)
    session = vcenter_session.connect(access, context)
    try:
        yield session, context
    finally:
        vcenter_session.disconnect(session)


def test_policies_are_read_through_the_second_service(access: Access) -> None:
    with opened(access) as (session, context):
        services = Services(access, context, session._stub)
        with services.at(policies._SERVICE, policies._VERSION) as stub:
            manager = pbm.ServiceInstance("ServiceInstance", stub).RetrieveContent().profileManager
            found = {own.name: own.demands for own in policies.policies_of(manager).values()}
    assert found["vSAN Default Storage Policy"] == {
        "vsan_ftt": 1,
        "vsan_raid": "raid-1",
        "vsan_stripe_count": 1,
        "vsan_space_reservation_pct": 0,
        "vsan_force_provisioning": False,
    }
    assert found["VM Encryption Policy"] == {}


def test_the_second_service_checks_the_certificate_too(access: Access) -> None:
    with opened(access) as (session, _):
        services = Services(access, vcenter_session.context_of(replace(access, verify=True)), session._stub)
        with services.at(policies._SERVICE, policies._VERSION) as stub, pytest.raises(ssl.SSLCertVerificationError):
            pbm.ServiceInstance("ServiceInstance", stub).RetrieveContent()


def test_the_vsan_service_is_asked_and_what_it_lacks_left_out(access: Access) -> None:
    estate = VcenterInventory(Inventory(), "vc")
    with opened(access) as (session, context):
        content = session.RetrieveContent()
        found = list(vcenter_session.objects(content, vim.ClusterComputeResource, ["name"], refused=estate.refused))
        asked = [(thing, Entity(EntityKind.CLUSTER, own["name"])) for thing, own in found]
        vsan.read_services(estate, Services(access, context, session._stub), asked)
    ids = {estate.inventory.get(cluster, "uuid") for _, cluster in asked}
    assert len(ids - {None}) == 2
    assert estate.left_out == ["results of the vSAN health check (vCenter answered ManagedObjectNotFound)"]


def test_a_vcenter_without_vsan_tells_of_no_placement(capture: Capture) -> None:
    disks = capture.inventory.of_kind(EntityKind.VIRTUAL_DISK)
    assert len(disks) == 30
    assert {name for disk in disks for name in capture.inventory.settings(disk) if name.startswith("vsan_")} == set()


def test_a_server_that_does_not_know_objects_is_noted_once(access: Access) -> None:
    estate = VcenterInventory(Inventory(), "vc")
    host, cluster = Entity(EntityKind.HOST, "esx01"), Entity(EntityKind.CLUSTER, "prod")
    disk = estate.add(Entity(EntityKind.VIRTUAL_DISK, "scsi0:0", Entity(EntityKind.VM, "db01", host)))
    estate.add(host, cluster=cluster.name)
    estate.objects[disk] = ["06cbdc58-30a2-11c5-7a1c-020010d5dfa3"]
    with opened(access) as (session, context):
        manager = vim.host.VsanInternalSystem("ha-vsan-internal-system", session._stub)
        vsan_objects.read_placement(estate, cluster, manager)
        asked = [(vim.ClusterComputeResource("domain-c1", session._stub), cluster)]
        vsan.read_services(estate, Services(access, context, session._stub), asked)
    placement, *_, health = estate.left_out
    assert placement == "placement of disks on vSAN cluster prod (vCenter answered ManagedObjectNotFound)"
    assert health == "health of vSAN objects (vCenter answered ManagedObjectNotFound)"
    assert estate.inventory.settings(disk) == {}


def test_a_service_that_is_not_there_is_no_error(access: Access) -> None:
    estate = VcenterInventory(Inventory(), "vc")
    with opened(access) as (session, context):
        services = Services(access, context, session._stub)
        with services.at("/nothing", policies._VERSION) as stub, asking(estate, "nothing", needs="a privilege"):
            pbm.ServiceInstance("ServiceInstance", stub).RetrieveContent()
    assert estate.left_out == ["nothing (vCenter answered 404 Not Found)"]


def test_events_are_asked_for(access: Access) -> None:
    estate = VcenterInventory(Inventory(), "vc", hosts={"host-1": Entity(EntityKind.HOST, "esx01")})
    with opened(access) as (session, _):
        events.read(estate, session.RetrieveContent().eventManager, datetime.now(UTC))
    assert (estate.left_out, estate.inventory.facts) == ([], {})


def test_free_ports_of_a_port_group_that_does_not_grow(access: Access) -> None:
    with opened(access) as (session, _):
        content = session.RetrieveContent()
        view = content.viewManager.CreateContainerView(
            content.rootFolder, [vim.DistributedVirtualSwitch], recursive=True
        )
        spec = vim.dvs.DistributedVirtualPortgroup.ConfigSpec(
            name="fixed", type="earlyBinding", numPorts=5, autoExpand=False
        )
        wait_for(view.view[0].AddDVPortgroup_Task(spec=[spec]))
        inventory = collect("vcenter", access).inventory
    (group,) = [own for own in inventory.of_kind(EntityKind.PORT_GROUP) if own.name == "fixed"]
    assert inventory.get(group, "ports_free_count") == 5
    assert inventory.get(group, "ports_elastic") is False


def test_a_single_host_has_no_cluster() -> None:
    with simulated("-esx", "-vm", "2") as own:
        inventory = collect("vcenter", own).inventory
    (host,) = inventory.of_kind(EntityKind.HOST)
    assert inventory.of_kind(EntityKind.CLUSTER) == []
    assert inventory.get(host, "cluster") is None
    assert {vm.parent for vm in inventory.of_kind(EntityKind.VM)} == {host}


def test_templates_are_left_out_and_snapshots_counted(access: Access) -> None:
    session = SmartConnect(
        host=access.host,
        port=access.port,
        user=access.user,
        pwd=access.password.reveal(),
        disableSslCertValidation=True,
    )
    content = session.RetrieveContent()
    view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], recursive=True)
    made, kept = view.view[0], view.view[1]
    names = made.name, kept.name
    wait_for(made.PowerOffVM_Task())
    made.MarkAsTemplate()
    for name in ("first", "second"):
        wait_for(kept.CreateSnapshot_Task(name=name, description="", memory=False, quiesce=False))
    try:
        inventory = collect("vcenter", access).inventory
        vms = {vm.name: vm for vm in inventory.of_kind(EntityKind.VM)}
        assert names[0] not in vms
        assert inventory.get(vms[names[1]], "snapshot_count") == 2
        assert inventory.get(vms[names[1]], "snapshot_chain_count") == 2
        assert set(inventory.get(vms[names[1]], "snapshot_ages_days")) == {"first", "second"}
    finally:
        made.MarkAsVirtualMachine(pool=kept.resourcePool, host=made.runtime.host)
        wait_for(made.PowerOnVM_Task())
        wait_for(kept.RemoveAllSnapshots_Task())
        Disconnect(session)
        session._stub.DropConnections()


def test_it_is_saved_and_audited_without_the_password(capture: Capture, tmp_path: Path) -> None:
    save(capture, tmp_path / "vc.parquet")
    assert SECRET.encode() not in (tmp_path / "vc.parquet").read_bytes()
    again = load(tmp_path / "vc.parquet", "vc.parquet")
    found = audit(again)
    assert "vm-unused-virtual-devices" in found.rules_run


def test_a_secret_is_not_in_what_is_printed(access: Access) -> None:
    assert SECRET not in repr(access)


def test_a_wrong_password_is_one_error(access: Access) -> None:
    with pytest.raises(ToolError, match="was refused") as caught:
        collect("vcenter", Access(access.host, "ro", Secret("wrong"), access.port, verify=False))
    assert "wrong" not in str(caught.value)
    gc.collect()  # a connection left open is told here, and fails this test


def test_an_untrusted_certificate_is_refused(access: Access) -> None:
    with pytest.raises(ToolError, match="certificate"):
        collect("vcenter", Access(access.host, access.user, Secret(SECRET), access.port, verify=True))


def test_nobody_there_is_one_error() -> None:
    with pytest.raises(ToolError, match="no answer"):
        collect("vcenter", Access("127.0.0.1", "ro", Secret(SECRET), free_port(), verify=False, timeout_s=5))


def test_what_accepts_and_never_answers_is_one_error_in_time() -> None:
    """The handshake waits for an answer that does not come."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        access = Access("127.0.0.1", "ro", Secret(SECRET), silent.getsockname()[1], verify=False, timeout_s=0.5)
        with pytest.raises(ToolError, match="no answer of a vCenter"):
            collect("vcenter", access)


@pytest.mark.parametrize(
    "answer",
    [b"", b"<html>", b"<namespaces><namespace><name>urn:vim25</name></namespace></namespaces>"],
)
def test_another_server_is_no_vcenter(access: Access, answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HTTPResponse, "read", lambda *_: answer)
    with pytest.raises(ToolError, match="no answer of a vCenter"):
        collect("vcenter", access)


def test_an_unknown_source_is_a_usage_error(access: Access) -> None:
    with pytest.raises(UsageError, match="vcenter"):
        collect("vcentre", access)
