"""Recording facts of a guest: from a made-up tree, so that every number is known."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from leadline.app.read.block_devices import free_share_pct
from leadline.app.read.machine_facts import kernel_clock, record_facts
from leadline.app.read.machine_files import SIZE_BYTES_MAX, Tree
from leadline.app.read.nics import NicAnswers, ask_driver
from leadline.core.model.errors import InputError
from leadline.formats.inventory_file import parse_inventory

NOW = datetime(2026, 11, 20, 22, 41, tzinfo=UTC)
SECRET = "hunter2"

FILES = {
    "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "etc/systemd/system/multi-user.target.wants/chrony.service": "",
    "etc/systemd/system/timers.target.wants/fstrim.timer": "",
    "etc/postgresql/16/main/postgresql.conf": (
        "data_directory = '/pgdata/16/main'   # use data in another directory\n"
        "shared_buffers = 16GB\n#work_mem = 4MB\nwal_compression on\nshared_buffers = 24GB\n"
        f"primary_conninfo = 'host=10.0.0.1 password={SECRET}'\narchive_command = 'copy %p'\narchive_mode = on\n"
        "include_dir = 'conf.d'\n"
    ),
    "etc/postgresql/16/main/conf.d/tuned.conf": "max_wal_size = '64GB'\n",
    "etc/corosync/corosync.conf": (
        "# token: 1\ntotem {\n  version: 2\n  token: 5000\n  interface {\n    token: 9\n  }\n}\n"
        "nodelist {\n" + "  node {\n    ring0_addr: 10.0.0.1\n  }\n" * 3 + "}\n"
    ),
    "proc/sys/kernel/hostname": "db01\n",
    "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/kernel/shmmax": "18446744073692774399\n",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "proc/meminfo": "MemTotal:       65830124 kB\nHugePages_Total:    1024\nHugepagesize:       2048 kB\n",
    "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu vme hypervisor\n",
    "proc/1/comm": "systemd\n",
    "proc/612/comm": "vmtoolsd\n",
    "proc/613/comm": "chronyd\n",
    "proc/900/comm": "postgres\n",
    "proc/900/stat": "900 (postgres) S 1 900 900 0 -1",
    "proc/900/cmdline": f"postgres\0--password={SECRET}\0",
    "proc/900/environ": f"PGPASSWORD={SECRET}\0",
    "proc/900/limits": (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max open files            1024                 1048576              files     \n"
        "Max locked memory         67108864             67108864             bytes     \n"
    ),
    "proc/901/comm": "postgres\n",
    "proc/901/stat": "901 (postgres) S 900 901 901 0 -1",
    "proc/self/mountinfo": (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
        "23 22 8:2 / /boot rw,relatime - ext4 /dev/sda2 rw\n"
        "24 22 253:0 / /pgdata rw,noatime - xfs /dev/mapper/vg-pg rw,attr2\n"
        "25 22 8:1 /var/lib/x /srv/bind\\040mount rw - ext4 /dev/sda1 rw\n"
        "26 22 0:22 / /proc rw - proc proc rw\n"
        "27 22 8:33 / /wal\\040disk rw,relatime - ext4 /dev/sdc1 rw,barrier=0\n"
    ),
    "sys/class/dmi/id/sys_vendor": "VMware, Inc.\n",
    "sys/class/dmi/id/product_serial": SECRET,
    "sys/devices/system/cpu/online": "0-7\n",
    "sys/devices/system/node/online": "0-1\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/module/vmw_pvscsi/parameters/cmd_per_lun": "64\n",
    "sys/module/vmw_pvscsi/parameters/use_msg": "Y\n",
    "sys/class/scsi_host/host2/proc_name": "vmw_pvscsi\n",
    "var/lib/dpkg/status": (
        "Package: sysstat-doc\nStatus: install ok installed\nVersion: 1\n\n"
        "Package: sysstat\nStatus: install ok installed\nVersion: 12.6.1-1\n"
    ),
}
DISKS = {
    "sda": ("8:0", 41943040, {"sda1": ("8:1", 2048), "sda2": ("8:2", 1050624)}),
    "sdb": ("8:16", 209715200, {}),
    "sdc": ("8:32", 20971520, {"sdc1": ("8:33", 63)}),
    "dm-0": ("253:0", 209707008, {}),
    "loop0": ("7:0", 8, {}),
    "sdd": ("8:48", 0, {}),
}


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A guest on VMware: system on sda, LVM over sdb for the data, a crooked partition on sdc for the log."""
    for path, text in FILES.items():
        put(tmp_path, path, text)
    for disk, (number, sectors, parts) in DISKS.items():
        base = f"sys/block/{disk}"
        put(tmp_path, f"{base}/dev", number)
        put(tmp_path, f"{base}/size", str(sectors))
        for name, (part_number, start) in parts.items():
            put(tmp_path, f"{base}/{name}/dev", part_number)
            put(tmp_path, f"{base}/{name}/start", str(start))
            put(tmp_path, f"{base}/{name}/partition", "1")
    put(tmp_path, "sys/block/dm-0/slaves/sdb", "")
    put(tmp_path, "sys/block/sdb/queue/scheduler", "none [mq-deadline] bfq")
    put(tmp_path, "sys/block/sdb/queue/read_ahead_kb", "128")
    put(tmp_path, "sys/block/sdb/queue/nr_requests", "256")
    put(tmp_path, "sys/block/sdb/queue/rotational", "1")
    scsi = "sys/devices/pci0000:00/host2/target2:0:1/2:0:1:0"
    put(tmp_path, f"{scsi}/timeout", "180")
    put(tmp_path, f"{scsi}/queue_depth", "64")
    (tmp_path / "sys/block/sdb/device").symlink_to(tmp_path / scsi)
    put(tmp_path, "sys/bus/pci/drivers/vmxnet3/module", "")
    put(tmp_path, "sys/class/net/lo/operstate", "unknown")
    put(tmp_path, "sys/class/net/ens192/operstate", "up")
    (tmp_path / "sys/class/net/ens192/device").mkdir()
    (tmp_path / "sys/class/net/ens192/device/driver").symlink_to(tmp_path / "sys/bus/pci/drivers/vmxnet3")
    (tmp_path / "pgdata/16/main").mkdir(parents=True)
    (tmp_path / "wal disk").mkdir()
    (tmp_path / "pgdata/16/main/pg_wal").symlink_to(tmp_path / "wal disk")
    return tmp_path


@pytest.fixture
def guest(root: Path) -> dict[str, Any]:
    answers = {"ens192": NicAnswers("1.7.0.0-k-NAPI", 512)}
    recorded = record_facts(
        root, NOW, free_share={"/pgdata": 12.5}.get, clock=lambda: True, ask_nic=answers.__getitem__
    )
    found: dict[str, Any] = recorded["guests"][0]
    return found


def device(guest: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in guest["devices"] if one["name"] == name)
    return found


def test_the_machine(guest: dict[str, Any]) -> None:
    assert (guest["name"], guest["guest_os"]) == ("db01", "Debian GNU/Linux 12 (bookworm)")
    assert (guest["kernel_version"], guest["virtualisation"]) == ("6.1.0-18-amd64", "vmware")
    assert (guest["cpu_count"], guest["numa_node_count"], guest["memory_mib"]) == (8, 2, 64287.2)
    assert (guest["huge_page_count"], guest["huge_page_size_kib"]) == (1024, 2048)
    assert (guest["transparent_huge_pages"], guest["clock_source"]) == ("madvise", "tsc")


def test_kernel_and_driver_settings(guest: dict[str, Any]) -> None:
    assert guest["sysctl"] == {
        "vm.swappiness": 60,
        "kernel.shmmax": 18446744073692774399,
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
    }
    assert guest["module_parameters"] == {"vmw_pvscsi.cmd_per_lun": 64, "vmw_pvscsi.use_msg": "Y"}


def test_clock_tools_and_units(guest: dict[str, Any]) -> None:
    assert (guest["clock_synchronised"], guest["time_services"], guest["tools_running"]) == (True, ["chronyd"], True)
    assert (guest["services"], guest["timers"]) == (["chrony.service"], ["fstrim.timer"])
    assert guest["sysstat_version"] == "12.6.1-1"


def test_a_disks_queue(guest: dict[str, Any]) -> None:
    assert device(guest, "sdb") == {
        "name": "sdb",
        "driver": "vmw_pvscsi",
        "size_gib": 100.0,
        "scheduler": "mq-deadline",
        "read_ahead_kib": 128,
        "nr_requests_count": 256,
        "queue_depth_count": 64,
        "rotational": True,
        "timeout_s": 180,
        "mount": "/pgdata",  # of the volume that alone lies on it
    }


def test_filesystems_belong_to_what_alone_holds_them(guest: dict[str, Any]) -> None:
    mapped, log = device(guest, "dm-0"), device(guest, "sdc")
    assert (mapped["mount"], mapped["filesystem"], mapped["filesystem_free_pct"]) == ("/pgdata", "xfs", 12.5)
    assert mapped["mount_options"] == ["rw", "noatime", "attr2"]
    assert (log["mount"], log["partition_starts_bytes"]) == ("/wal disk", {"sdc1": 32256})
    assert "barrier=0" in log["mount_options"]


def test_partitions_that_share_a_disk_stand_alone(guest: dict[str, Any]) -> None:
    assert "mount" not in device(guest, "sda")
    assert [device(guest, name)["mount"] for name in ("sda1", "sda2")] == ["/", "/boot"]
    assert [one["name"] for one in guest["devices"]] == ["dm-0", "sda", "sda1", "sda2", "sdb", "sdc"]


def test_interfaces_with_a_driver(guest: dict[str, Any]) -> None:
    told = {"driver_version": "1.7.0.0-k-NAPI", "rx_ring_count": 512}
    assert guest["nics"] == [{"name": "ens192", "type": "vmxnet3", "connected": True, **told}]


def test_the_token_timeout_grows_with_the_nodes(guest: dict[str, Any], root: Path) -> None:
    assert guest["cluster_token_timeout_s"] == 5.65  # three nodes: 650 ms for the third
    conf = root / "etc/corosync/corosync.conf"
    conf.write_text("totem {\n  token: 3000\n  token_coefficient: 0\n}\n" + conf.read_text().partition("}\n}\n")[2])
    assert record_facts(root, NOW)["guests"][0]["cluster_token_timeout_s"] == 3.0
    conf.write_text("totem {\n  version: 2\n}\n")
    assert "cluster_token_timeout_s" not in record_facts(root, NOW)["guests"][0]


def test_postgresql(guest: dict[str, Any]) -> None:
    assert guest["databases"] == [
        {
            "name": "16-main",
            "engine": "postgresql",
            "version": "16",
            "parameters": {
                "shared_buffers": "24GB",
                "wal_compression": "on",
                "archive_mode": "on",
                "max_wal_size": "64GB",
            },
            "data_device": "dm-0",
            "wal_device": "sdc",
            "open_files_limit_count": 1024,
            "memlock_limit_mib": 64.0,
        }
    ]


def test_no_secret_leaves_the_machine(root: Path) -> None:
    text = json.dumps(record_facts(root, NOW))
    assert SECRET not in text
    assert "10.0.0.1" not in text
    assert "archive_command" not in text


def test_a_made_up_tree_is_not_asked_of_the_running_system(root: Path) -> None:
    guest = record_facts(root, NOW)["guests"][0]
    assert "clock_synchronised" not in guest
    assert not any("filesystem_free_pct" in device for device in guest["devices"])


def test_the_document_is_an_inventory(root: Path) -> None:
    recorded = record_facts(root, NOW)
    assert list(recorded) == ["leadline_facts", "recorded", "guests", "unreadable"]
    assert (recorded["leadline_facts"], recorded["recorded"]) == (1, "2026-11-20T22:41:00+00:00")
    text = json.dumps({"guests": recorded["guests"]})
    names = {str(entity) for entity in parse_inventory(text, "facts").facts}
    assert {"guest:db01", "guest:db01/block-device:sdc", "guest:db01/database:16-main"} <= names


def test_hidden_processes_prove_nothing(root: Path) -> None:
    (root / "proc/1/comm").unlink()
    guest = record_facts(root, NOW)["guests"][0]
    assert "tools_running" not in guest
    assert "time_services" not in guest


def test_two_servers_and_one_configuration_are_not_matched(root: Path) -> None:
    put(root, "proc/950/comm", "postgres\n")
    put(root, "proc/950/stat", "950 (postgres) S 1 950 950 0 -1")
    (cluster,) = record_facts(root, NOW)["guests"][0]["databases"]
    assert "open_files_limit_count" not in cluster


def test_a_cluster_that_does_not_run_is_not_the_database(root: Path) -> None:
    """Debian makes a cluster when the package is installed; the server may be another one, in a folder of its own."""
    (root / "wal disk/other").mkdir(parents=True)
    put(root, "proc/900/cmdline", "/usr/lib/postgresql/15/bin/postgres\0-D\0/wal disk/other\0-p\0005433\0")
    (other,) = record_facts(root, NOW)["guests"][0]["databases"]
    assert (other["name"], other["data_device"], other["open_files_limit_count"]) == ("postgresql", "sdc", 1024)
    put(root, "proc/950/comm", "postgres\n")
    put(root, "proc/950/stat", "950 (postgres) S 1 950 950 0 -1")
    put(root, "proc/950/cmdline", "/usr/lib/postgresql/16/bin/postgres\0-D/pgdata/16/main\0")
    put(root, "proc/950/limits", "Max open files            4096                 4096                 files     \n")
    both = record_facts(root, NOW)["guests"][0]["databases"]
    limits = {one["name"]: (one["data_device"], one["open_files_limit_count"]) for one in both}
    assert limits == {"16-main": ("dm-0", 4096), "postgresql": ("sdc", 1024)}


def test_a_data_folder_of_a_container_is_none_of_the_machine(root: Path) -> None:
    put(root, "proc/900/cmdline", "postgres\0-D\0/var/lib/postgresql/data\0")
    (cluster,) = record_facts(root, NOW)["guests"][0]["databases"]
    assert cluster["name"] == "16-main"


@pytest.mark.parametrize(
    ("vendor", "flags", "expected"),
    [
        ("QEMU", "fpu", "kvm"),
        ("Microsoft Corporation\nVirtual Machine", "fpu", "hyperv"),
        ("Dell Inc.", "fpu vme", "none"),
        ("Acme", "fpu hypervisor", "other"),
    ],
)
def test_virtualisation(root: Path, vendor: str, flags: str, expected: str) -> None:
    put(root, "sys/class/dmi/id/sys_vendor", vendor)
    put(root, "proc/cpuinfo", f"processor: 0\nflags : {flags}\n")
    assert record_facts(root, NOW)["guests"][0]["virtualisation"] == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"sys/fs/selinux/enforce": "1"}, "enforcing"),
        ({"sys/fs/selinux/enforce": "0", "proc/filesystems": "nodev\tselinuxfs\n"}, "permissive"),
        ({"sys/fs/selinux/policyvers": "33"}, None),
        ({"proc/filesystems": "nodev\tsysfs\n\text4\n"}, "disabled"),
        ({"proc/filesystems": "nodev\tsysfs\nnodev\tselinuxfs\n"}, None),
        ({}, None),
    ],
)
def test_selinux(root: Path, files: dict[str, str], expected: str | None) -> None:
    for path, text in files.items():
        put(root, path, text)
    assert record_facts(root, NOW)["guests"][0].get("selinux") == expected


def test_a_bare_folder_is_refused_and_a_bare_system_is_short(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="root folder of a Linux system"):
        record_facts(tmp_path, NOW)
    (tmp_path / "etc").mkdir()
    guest = record_facts(tmp_path, NOW)["guests"][0]
    assert guest == {"name": "guest", "devices": [], "nics": [], "databases": []}


def test_what_may_not_be_read_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def refuse(path: Path, *args: Any, **options: Any) -> Any:
        if path.name == "postgresql.conf":
            raise PermissionError(13, "not allowed", str(path))
        return real(path, *args, **options)

    monkeypatch.setattr(Path, "open", refuse)
    recorded = record_facts(root, NOW)
    assert recorded["unreadable"] == ["/etc/postgresql/16/main/postgresql.conf"]
    expected = {"name": "postgresql", "engine": "postgresql", "open_files_limit_count": 1024, "memlock_limit_mib": 64.0}
    assert recorded["guests"][0]["databases"] == [expected]


def test_links_out_of_the_tree_are_not_followed_for_names(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/away").symlink_to("/usr")
    assert Tree(tmp_path).target("/etc/away") is None
    assert Tree(tmp_path).target("/etc/missing") is None


def test_a_huge_file_is_read_in_part(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(SIZE_BYTES_MAX + 100_000)
    text = Tree(tmp_path).text("/huge")
    assert text is not None
    assert len(text) == SIZE_BYTES_MAX


def test_the_running_system_can_be_asked() -> None:
    share = free_share_pct("/")
    assert share is not None
    assert 0.0 <= share <= 100.0
    assert free_share_pct("/no/such/mount") is None
    assert kernel_clock() in {True, False, None}
    recorded = record_facts(Path("/"), NOW)
    assert recorded["guests"][0]["kernel_version"]


@pytest.mark.real
def test_drivers_answer_an_ordinary_user() -> None:
    """Asked as nobody where this runs as root; virtio, vmxnet3 and e1000 all have rings and a version."""
    names = [nic["name"] for nic in record_facts(Path("/"), NOW)["guests"][0]["nics"]]
    if not names:
        pytest.skip("no interface here has a driver")
    asking = "import sys; from leadline.app.read.nics import ask_driver; print(ask_driver(sys.argv[1]))"
    nobody: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    for name in names:
        command = [sys.executable, "-c", asking, name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60.0, **nobody)
        except PermissionError:
            pytest.skip("this interpreter lies in a folder that is closed to other users")
        answers = ask_driver(name)
        assert done.stdout.strip() == str(answers)
        assert answers.driver_version
        assert answers.rx_ring_count is None or answers.rx_ring_count > 0
    assert ask_driver("lo") == ask_driver("no-such-interface") == NicAnswers()


@pytest.mark.real
def test_ethtool_says_the_same() -> None:
    ethtool = shutil.which("ethtool") or shutil.which("ethtool", path="/usr/sbin:/sbin")
    nics = record_facts(Path("/"), NOW)["guests"][0]["nics"]
    if ethtool is None or not nics:
        pytest.skip("ethtool is not installed" if ethtool is None else "no interface here has a driver")
    for nic in nics:
        told = subprocess.run([ethtool, "-g", nic["name"]], capture_output=True, text=True, check=False, timeout=60.0)
        now = told.stdout.partition("Current hardware settings:")[2]
        rings = [line.split()[1] for line in now.splitlines() if line.startswith("RX:")]
        assert rings == ([str(nic["rx_ring_count"])] if "rx_ring_count" in nic else [])
