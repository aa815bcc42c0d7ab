"""Get-NetAdapterRss and Get-NetAdapterAdvancedProperty: lists and tables say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import net_adapter
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of

LIST = (ROOT / "tests" / "importers" / "seeds" / "net_adapter.txt").read_text()
TABLE = """
Name      InterfaceDescription                       Enabled NumberOfReceiveQueues Profile
----      --------------------                       ------- --------------------- -------
Ethernet0 vmxnet3 Ethernet Adapter                   False                       8 NUMAStatic
Ethernet1 Intel(R) 82574L Gigabit Network Connection True                        2 Closest

"""
PROPERTIES = """
Name      DisplayName          DisplayValue RegistryKeyword   RegistryValue
----      -----------          ------------ ---------------   -------------
Ethernet0 Jumbo Packet         Standard ... *JumboPacket      {1514}
Ethernet0 Receive Side Scaling Enabled      *RSS              {1}
Ethernet0 Rx Ring #1 Size      1024         RxRing1           {1024}
Ethernet0 Small Rx Buffers     8192         SmallRxBuffers    {8192}
"""


def read(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert net_adapter.sniff(source) == 93
    return net_adapter.read(source, Request())


def adapters(capture: Capture) -> dict[str, dict[str, Any]]:
    nics = capture.inventory.of_kind(EntityKind.NIC)
    return {str(nic): {name: fact.value for name, fact in capture.inventory.facts[nic].items()} for nic in nics}


def test_the_list_and_the_table(tmp_path: Path) -> None:
    expected = {
        "guest:guest/nic:Ethernet0": {"rss_enabled": False, "type": "vmxnet3"},
        "guest:guest/nic:Ethernet1": {"rss_enabled": True, "type": "e1000e"},
    }
    capture = read(tmp_path, LIST)
    assert adapters(capture) == expected
    assert codes(capture) == ["no-guest"]
    assert adapters(read(tmp_path, TABLE)) == expected


def test_the_properties_of_the_driver(tmp_path: Path) -> None:
    expected = {"rss_enabled": True, "rx_ring_count": 1024, "rx_small_buffers_count": 8192}
    assert adapters(read(tmp_path, PROPERTIES)) == {"guest:guest/nic:Ethernet0": expected}
    rows = [line.split(maxsplit=1) for line in PROPERTIES.splitlines()[3:]]
    values = {"Receive Side Scaling": "Enabled", "Rx Ring #1 Size": "1024", "Small Rx Buffers": "8192"}
    text = "".join(
        f"\nifAlias         : {row[0]}\nName            : {row[0]}\nInterfaceDescription : vmxnet3 Ethernet Adapter\n"
        f"DisplayName     : {name}\nDisplayValue    : {value}\nRegistryKeyword : x\n"
        for row, (name, value) in zip(rows, values.items(), strict=False)
    )
    assert adapters(read(tmp_path, text)) == {"guest:guest/nic:Ethernet0": {**expected, "type": "vmxnet3"}}


def test_both_commands_in_one_file(tmp_path: Path) -> None:
    nic = adapters(read(tmp_path, LIST + PROPERTIES.replace("*RSS ", "*other ")))["guest:guest/nic:Ethernet0"]
    assert nic == {"rss_enabled": True, "type": "vmxnet3", "rx_ring_count": 1024, "rx_small_buffers_count": 8192}


def test_each_computer_has_its_adapters(tmp_path: Path) -> None:
    text = LIST.replace("IndirectionTable: [Group:Number]", "PSComputerName : SQL01\nIndirectionTable: [Group:Number]")
    capture = read(tmp_path, text)
    assert list(adapters(capture)) == ["guest:SQL01/nic:Ethernet0", "guest:SQL01/nic:Ethernet1"]
    assert codes(capture) == []


def test_a_name_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    capture = read(tmp_path, TABLE.replace("Ethernet1 ", "Etherne..."))
    assert list(adapters(capture)) == ["guest:guest/nic:Ethernet0"]
    assert codes(capture) == ["no-guest", "left-out"]


@pytest.mark.parametrize("text", [LIST.replace(" : True", " : ").replace(" : False", " : Vrai"), TABLE[:170]])
def test_a_text_without_a_setting_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="no network adapter"):
        net_adapter.read(source_of(tmp_path, text), Request())


def test_as_powershell_redirects_it(tmp_path: Path) -> None:
    known = recognise(source_of(tmp_path, LIST.replace("\n", "\r\n").encode("utf-16")), load_units("importer"))
    assert known is not None
    assert known[0] == "net-adapter"


def test_other_lists_are_not_taken(tmp_path: Path) -> None:
    assert net_adapter.sniff(source_of(tmp_path, "Name : W32Time\nEnabled : True\nDisplayName : Windows Time\n")) == 0
    assert net_adapter.sniff(source_of(tmp_path, "InterfaceDescription : vmxnet3\nIPv4Enabled : True\n")) == 0
