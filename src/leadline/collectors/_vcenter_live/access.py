"""How a live vCenter is reached: address, user, password, and whose certificates are trusted."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from leadline.core.contracts.collector import Access
from leadline.core.model.errors import UsageError
from leadline.core.system.addresses import Address
from leadline.core.system.secret import of_environment
from leadline.estate.knowledge.vcenter_session import context_of

OPTIONS = ("user", "ca_file", "insecure", "every", "inventory_s", "timeout_s")


def live_access(target: Address, options: Mapping[str, int | str | bool]) -> tuple[Access, ssl.SSLContext]:
    """The way to a vCenter and how its certificate is checked.

    Raises:
        UsageError: an option is not known, the target is no address, no user is named, or the CA file cannot be read.
    """
    unknown = sorted(options.keys() - set(OPTIONS))
    if unknown:
        raise UsageError(
            f"option {unknown[0]}", found="not known", expected=", ".join(OPTIONS), advice="Correct the name."
        )
    text = target.text.strip()
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host, port = parts.hostname, parts.port or 443
    except ValueError:
        host, port = None, 0
    if host is None or parts.scheme != "https":
        raise UsageError(
            text or "target", found="no vCenter", expected="its name, or https://NAME:PORT", advice="Correct it."
        )
    user = str(options.get("user") or unquote(parts.username or ""))
    if not user:
        raise UsageError(
            host,
            found="no user",
            expected="one with the Read-only role",
            advice="Name it with user, or USER@ in the URL.",
        )
    insecure = options.get("insecure", False) is True
    password = target.secret or of_environment("LEADLINE_PASSWORD")
    timeout_s = float(options.get("timeout_s", 60))
    ca_file = str(options.get("ca_file") or "")
    access = Access(host, user, password, port, verify=not insecure, timeout_s=timeout_s, ca_file=ca_file)
    return access, context_of(access)
