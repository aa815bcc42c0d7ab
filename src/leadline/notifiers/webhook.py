"""A webhook: chat services, pagers and scripts that take an HTTP POST.

Sends:
    One POST for each notice, as `application/json`. Its shape is `json` (every field of the notice; times in RFC 3339,
    the severity in words), `slack` (a message with blocks), `teams` (a card for a workflow of Microsoft Teams), or what
    a Jinja template of yours makes of it. Template and `json` know the same fields: `incident`, `state`, `severity`,
    `entity`, `cause`, `title`, `text`, `opened`, `closed`, `link`, `capture`.

Settings:
    `url`; or `url_file`, a file with it, since whoever knows the address of a hook can post there. `shape`: `json`, the
    default, `slack` or `teams`; or `template`, a file, in which `{{ title | tojson }}` quotes a field, and
    `content_type` of its result. `user` with `password_file`, `password_env` or `password_keyring` (Basic); without a
    user the password is a bearer token; with `password_header` it is the whole value of that header (`X-Api-Key`).
    `headers`: others by name, without secrets. `ca_file`: who signed the receiver's certificate.

When it fails:
    A status of 200 to 299 counts as taken. A redirection is not followed: the password would go with it. No answer for
    10 s, another status or an untrusted certificate is an error that names the server, and never the path. Proxies
    come from the environment (`https_proxy`). A template that fails, or that writes what is no JSON although
    `content_type` says so, is an error, too.

Sources:
    Slack API documentation, "Block Kit", section and header blocks: 3000 and 150 characters; "Formatting text".
    Microsoft Learn, "Create incoming webhooks with Workflows": a message with an Adaptive Card, at most 28 KB.
    Adaptive Cards schema 1.4, TextBlock.
    Jinja documentation, "Sandbox".
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from leadline.core.contracts.notifier import Notice, NotifierMeta
from leadline.core.model.errors import ToolError
from leadline.core.system.secret_sources import SecretSettings, first_line
from leadline.notifiers._connection import authorization, post
from leadline.notifiers._wording import facts, head_line, plain, web_link

if TYPE_CHECKING:
    from collections.abc import Callable

META = NotifierMeta(receiver="an HTTP server")
SLACK_TEXT_MAX, SLACK_HEADER_MAX = 2900, 150  # characters; the first leaves room for the marks around it
TEAMS_LINES_MAX, TEAMS_COLUMNS_MAX = 50, 100  # a card within 28 KB, whatever the letters
TEMPLATE_BYTES_MAX = 256 * 1024
_OURS = {"authorization", "content-type", "content-length", "host", "transfer-encoding"}
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class WebhookSettings(SecretSettings):
    """What ``watch.yaml`` may say of a webhook."""

    url: str | None = None
    url_file: Path | None = None
    shape: Literal["json", "slack", "teams"] = "json"
    template: Path | None = None
    content_type: str = Field("application/json", pattern=r"^[\x20-\x7e]+$")
    user: str = ""
    password_header: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    ca_file: Path | None = None

    @model_validator(mode="after")
    def _sound(self) -> Self:
        problem = ""
        if (self.url is None) == (self.url_file is None):
            problem = "url or url_file"
        elif self.url is not None and not _is_address(self.url):
            problem = "url is http://HOST/PATH or https://HOST/PATH, without user and password"
        elif self.template is not None and self.shape != "json":
            problem = "either a template or a shape"
        elif not self.template and self.content_type != "application/json":
            problem = "content_type only with a template"
        elif self.password_header and (self.user or not _HEADER_NAME.fullmatch(self.password_header)):
            problem = "password_header is the name of a header, and has no user"
        elif any(not _HEADER_NAME.fullmatch(name) or not value.isprintable() for name, value in self.headers.items()):
            problem = "headers are names and values of one line"
        elif any(name.casefold() in _OURS for name in self.headers):
            problem = f"headers other than {', '.join(sorted(_OURS))}"
        if problem:
            raise ValueError(problem)
        return self


Settings = WebhookSettings


def send(settings: WebhookSettings, notice: Notice) -> None:
    """Post a notice in the shape of the settings.

    Raises:
        ToolError: the receiver cannot be reached or refuses; a secret or template cannot be read; the template fails.
    """
    url = settings.url if settings.url_file is None else _address_in(settings.url_file)
    content = _shaped(settings, notice).encode()
    headers = {"User-Agent": "Leadline", **settings.headers, "Content-Type": settings.content_type}
    password = settings.password("password of the webhook")
    if password and settings.password_header:
        headers[settings.password_header] = password.reveal()
    elif password:
        headers["Authorization"] = authorization(settings.user, password)
    post(str(url), content, headers, settings.ca_file)


def _address_in(path: Path) -> str:
    url = first_line(path, "address of the webhook")
    if not _is_address(url):
        raise ToolError(
            "address of the webhook",
            found=f"no address in the first line of {path}",
            expected="http://HOST/PATH or https://HOST/PATH, without user and password",
            advice="Copy the address of the hook anew.",
        )
    return url


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    is_plain = text.isascii() and text.isprintable() and " " not in text and "@" not in parts.netloc
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain and port != 0


def _shaped(settings: WebhookSettings, notice: Notice) -> str:
    if settings.template is None:
        shapes: dict[str, Callable[[Notice], dict[str, Any]]] = {"json": plain, "slack": _slack, "teams": _teams}
        return json.dumps(shapes[settings.shape](notice), ensure_ascii=False)
    text = _rendered(settings.template.expanduser(), notice)
    if settings.content_type == "application/json":
        try:
            json.loads(text)
        except ValueError as error:
            raise _bad_template(settings.template, f"its result is no JSON ({error})") from error
    return text


def _rendered(path: Path, notice: Notice) -> str:
    from jinja2 import StrictUndefined, TemplateError  # noqa: PLC0415 - only templates need it
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    try:
        with path.open("rb") as stream:
            content = stream.read(TEMPLATE_BYTES_MAX + 1)
        if len(content) > TEMPLATE_BYTES_MAX:
            raise _bad_template(path, f"more than {TEMPLATE_BYTES_MAX >> 10} KiB")
        text = content.decode("utf-8")
        # The result is no HTML: quoting is the template's, by `tojson`.
        environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
        return environment.from_string(text).render(plain(notice))
    except (OSError, UnicodeDecodeError) as error:
        raise _bad_template(path, f"cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})") from error
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise _bad_template(path, f"fails ({error})") from error


def _bad_template(path: Path, problem: str) -> ToolError:
    return ToolError(
        str(path),
        found=problem,
        expected="a Jinja template that uses the fields of a notice",
        advice="Quote each field of a JSON text by `{{ title | tojson }}`.",
    )


def _slack(notice: Notice) -> dict[str, Any]:
    head = head_line(notice)
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": head[:SLACK_HEADER_MAX]}},
        {"type": "section", "text": {"type": "mrkdwn", "text": f"```\n{_slack_text(notice.text)}\n```"}},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": _slack_context(notice)}]},
    ]
    return {"text": _slack_quoted(head), "blocks": blocks}


def _slack_text(text: str) -> str:
    """The text quoted, cut at the end of a line where it is too long, and without marks that end its block."""
    quoted = _slack_quoted(text.replace("```", "'''").strip()) or "(no text)"
    return quoted if len(quoted) <= SLACK_TEXT_MAX else quoted[:SLACK_TEXT_MAX].rpartition("\n")[0] + "\n..."


def _slack_context(notice: Notice) -> str:
    words = " · ".join(f"{word}: {_slack_quoted(value)}" for word, value in facts(notice))
    link = web_link(notice)
    return f"{words} · <{_slack_quoted(link).replace('|', '%7C')}|Open>" if link else words


def _slack_quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _teams(notice: Notice) -> dict[str, Any]:
    lines = notice.text.rstrip().splitlines()
    more = [f"... {len(lines) - TEAMS_LINES_MAX} more lines"] if len(lines) > TEAMS_LINES_MAX else []
    line_blocks = [
        # A no-break space keeps columns and empty lines.
        {
            "type": "TextBlock",
            "text": line[:TEAMS_COLUMNS_MAX].replace(" ", "\u00a0") or "\u00a0",
            "fontType": "Monospace",
            "size": "Small",
            "spacing": "None",
            "wrap": False,
        }
        for line in [*lines[:TEAMS_LINES_MAX], *more]
    ]
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {"type": "TextBlock", "text": head_line(notice), "weight": "Bolder", "wrap": True},
            *line_blocks,
            {"type": "FactSet", "facts": [{"title": word, "value": value} for word, value in facts(notice)]},
        ],
        "msteams": {"width": "Full"},
    }
    if link := web_link(notice):
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": link}]
    return {
        "type": "message",
        "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}],
    }
