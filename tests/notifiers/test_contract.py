"""What every notifier must keep: its docstring, its settings, its one function."""

from __future__ import annotations

import inspect
from typing import cast

import pytest

from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.docstrings import HEADINGS, sections, title
from leadline.core.contracts.notifier import Notifier

NOTIFIERS = load_units("notifier")


def test_the_receivers_of_the_guide_are_there() -> None:
    assert set(NOTIFIERS) >= {"alertmanager", "email", "run-command", "syslog", "webhook"}


@pytest.mark.parametrize("name", NOTIFIERS)
def test_notifier_keeps_the_contract(name: str) -> None:
    module = NOTIFIERS[name]
    assert [heading for heading in HEADINGS["notifier"] if not sections(module.__doc__).get(heading)] == []
    assert title(module.__doc__).endswith(".")
    notifier = cast("Notifier", module)
    assert notifier.META.receiver
    assert notifier.Settings.model_config.get("extra") == "forbid"
    assert notifier.Settings.model_config.get("frozen") is True
    assert list(inspect.signature(notifier.send).parameters) == ["settings", "notice"]


@pytest.mark.parametrize("name", NOTIFIERS)
def test_no_setting_holds_a_secret_and_each_is_explained(name: str) -> None:
    notifier = cast("Notifier", NOTIFIERS[name])
    fields = notifier.Settings.model_fields
    assert not {"password", "secret", "token", "key"} & set(fields)
    text = sections(NOTIFIERS[name].__doc__)["Settings"]
    assert [key for key in fields if f"`{key}`" not in text and f"`{key}:" not in text] == []
