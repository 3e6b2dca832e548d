"""`PRIVACY.md`: what an ethics board reads about a release, made from its certificate alone."""

from __future__ import annotations

from collections.abc import Mapping


def page(certificate: Mapping[str, object]) -> str:
    """The page of a certificate; the same certificate always gives the same page."""
    return f"# What this release promises\n\n{certificate['sentence']}\n"
