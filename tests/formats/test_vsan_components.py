"""What the settings say of a vSAN object, whatever tool told of its components."""

from __future__ import annotations

import pytest

from leadline.formats.vcenter.vsan_objects import VsanPart, layout_name, placement_settings


def test_words_of_a_component() -> None:
    assert VsanPart(is_witness=False).words == "an unknown host"
    assert VsanPart(is_witness=True, host="esx3", device="naa.1", state="ACTIVE").words == "witness esx3 naa.1"
    part = VsanPart(is_witness=False, host="esx1", device="naa.2", group="naa.c", state="DEGRADED")
    assert part.words == "esx1 naa.2 in disk group naa.c (degraded)"


def test_what_is_not_active_is_counted() -> None:
    parts = [VsanPart(is_witness=False, host="esx1", state=state) for state in ("ACTIVE", "", "ABSENT", "DEGRADED")]
    assert placement_settings(parts)["vsan_absent_component_count"] == 2
    assert placement_settings([]) == {}


@pytest.mark.parametrize(
    ("levels", "name"),
    [
        ("", None),
        ("0", "raid-0"),
        ("100", "raid-1"),
        ("5", "raid-5"),
        ("66", "raid-6"),
        ("D", "raid-1"),
        ("155", "raid-5"),  # a mirror of sites, or a performance leg beside a capacity leg
    ],
)
def test_the_layout_that_keeps_the_data(levels: str, name: str | None) -> None:
    assert layout_name(levels) == name
