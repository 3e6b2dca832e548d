"""Security headers of every page of this package, and host names of services on this machine.

It needs nothing but the standard library, so that pages can be served without a web framework.
"""

from __future__ import annotations

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


def host_name(value: str) -> str:
    """A Host header without its port.

    Examples
    --------
    >>> host_name("LocalHost:8765"), host_name("[::1]:80"), host_name("evil.example")
    ('localhost', '[::1]', 'evil.example')
    """
    name, colon, port = value.rpartition(":")
    return (name if colon and port.isdigit() else value).lower()
