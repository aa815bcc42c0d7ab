"""The vCenter collector against a real vCenter API: govmomi's simulator, as it answers over TLS."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import socket
import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pyVim.connect
import pyVim.task
import pyVmomi

from leadline.app.auditing import audit
from leadline.app.collecting import collect
from leadline.core.capture import Capture
from leadline.core.collector import Access
from leadline.core.errors import ToolError, UsageError
from leadline.core.parquet import load, save
from leadline.core.vocabulary import EntityKind
from tests.conftest import ROOT

PLACES = os.pathsep.join([os.environ.get("PATH", ""), str(ROOT / ".tools" / "bin"), str(Path.home() / "go" / "bin")])
VCSIM = shutil.which("vcsim", path=PLACES)
vim: Any = pyVmomi.vim  # made at run time: no types to check against
SmartConnect: Any = pyVim.connect.SmartConnect
Disconnect: Any = pyVim.connect.Disconnect
WaitForTask: Any = pyVim.task.WaitForTask
SECRET = "not-to-be-seen-anywhere"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(VCSIM is None, reason="vcsim is not installed (scripts/setup.sh does, where Go is)"),
]


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
        yield Access("127.0.0.1", "ro", SECRET, port, verify=False)
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


def test_a_single_host_has_no_cluster() -> None:
    with simulated("-esx", "-vm", "2") as own:
        inventory = collect("vcenter", own).inventory
    (host,) = inventory.of_kind(EntityKind.HOST)
    assert inventory.of_kind(EntityKind.CLUSTER) == []
    assert inventory.get(host, "cluster") is None
    assert {vm.parent for vm in inventory.of_kind(EntityKind.VM)} == {host}


def test_templates_are_left_out_and_snapshots_counted(access: Access) -> None:
    session = SmartConnect(
        host=access.host, port=access.port, user=access.user, pwd=access.password, disableSslCertValidation=True
    )
    content = session.RetrieveContent()
    view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], recursive=True)
    made, kept = view.view[0], view.view[1]
    names = made.name, kept.name
    WaitForTask(made.PowerOffVM_Task())
    made.MarkAsTemplate()
    for name in ("first", "second"):
        WaitForTask(kept.CreateSnapshot_Task(name=name, description="", memory=False, quiesce=False))
    try:
        inventory = collect("vcenter", access).inventory
        vms = {vm.name: vm for vm in inventory.of_kind(EntityKind.VM)}
        assert names[0] not in vms
        assert inventory.get(vms[names[1]], "snapshot_count") == 2
        assert inventory.get(vms[names[1]], "snapshot_chain_count") == 2
        assert set(inventory.get(vms[names[1]], "snapshot_ages_days")) == {"first", "second"}
    finally:
        made.MarkAsVirtualMachine(pool=kept.resourcePool, host=made.runtime.host)
        WaitForTask(made.PowerOnVM_Task())
        WaitForTask(kept.RemoveAllSnapshots_Task())
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


@pytest.fixture
def leaking() -> Iterator[None]:
    """A refused login leaves pyVmomi's connection to the collector of garbage; it is picked up here, quietly."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.usefixtures("leaking")
def test_a_wrong_password_is_one_error(access: Access) -> None:
    with pytest.raises(ToolError, match="was refused") as caught:
        collect("vcenter", Access(access.host, "ro", "wrong", access.port, verify=False))
    assert "wrong" not in str(caught.value)


@pytest.mark.usefixtures("leaking")
def test_an_untrusted_certificate_is_refused(access: Access) -> None:
    with pytest.raises(ToolError, match="certificate"):
        collect("vcenter", Access(access.host, access.user, SECRET, access.port, verify=True))


@pytest.mark.usefixtures("leaking")
def test_nobody_there_is_one_error() -> None:
    with pytest.raises(ToolError, match="no answer"):
        collect("vcenter", Access("127.0.0.1", "ro", SECRET, free_port(), verify=False, timeout_s=5))


def test_an_unknown_source_is_a_usage_error(access: Access) -> None:
    with pytest.raises(UsageError, match="vcenter"):
        collect("vcentre", access)
