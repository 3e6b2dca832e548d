"""Pages from Jinja2 templates, which lie in the package beside their style sheets.

In a template of HTML every text is escaped unless it is `markupsafe.Markup`. A name that a template
does not get is an error. The security headers of pages and the host names of services on this
machine need no template.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

#: Sent with everything. Pages load nothing from elsewhere, run no inline script, and cannot be
#: framed.
HEADERS = {
    "content-security-policy": (
        "default-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action"
        " 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}

#: Host names of this machine: a page of elsewhere whose name is made to point here has another.
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


def render(template: str, **values: object) -> str:
    """Fill in a template.

    Parameters
    ----------
    template : str
        Its path in the package, such as `evaluation/report/report.html`.
    **values
        What it shows.
    """
    return _environment().get_template(template).render(values)


def macro(template: str, name: str) -> Callable[..., Any]:
    """One macro of a template, which gives a part of a page."""
    part: Callable[..., Any] = getattr(_environment().get_template(template).module, name)
    return part


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def host_name(value: str) -> str:
    """A Host header without its port.

    Examples
    --------
    >>> host_name("LocalHost:8765"), host_name("[::1]:80"), host_name("evil.example")
    ('localhost', '[::1]', 'evil.example')
    """
    name, colon, port = value.rpartition(":")
    return (name if colon and port.isdigit() else value).lower()


def capital(text: str) -> str:
    """A text as it begins a sentence; its other letters stay as they are."""
    return text[:1].upper() + text[1:]
