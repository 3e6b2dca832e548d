"""What `gazeveil inspect` prints about a folder that has a certificate."""

from __future__ import annotations

from pathlib import Path

from gazeveil.cli.arguments import say
from gazeveil.privacy.publication.certificate import has_certificate, read_certificate
from gazeveil.privacy.publication.page import summary

#: What a release holds that is one file and no recordings, as its certificate calls it.
ONE_FILE = ("feature table", "heat maps", "table of people")


def holds_one_file(path: Path) -> bool:
    """Whether a release holds a table or maps, and no recordings."""
    if not has_certificate(path):
        return False
    contents = read_certificate(path).get("contents")
    return isinstance(contents, dict) and contents.get("format") in ONE_FILE


def holds_pieces(path: Path) -> bool:
    """Whether a release holds pieces, whose names are nobody's."""
    if not path.is_dir() or not has_certificate(path):
        return False
    contents = read_certificate(path).get("contents")
    return isinstance(contents, dict) and "pieces" in contents


def show_certificate(path: Path) -> dict[str, object] | None:
    """Print what the certificate of a release says, and return it; nothing where there is none."""
    if not has_certificate(path):
        return None
    certificate = read_certificate(path)
    try:
        lines = summary(certificate)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        lines = ["It is not whole: somebody edited it."]
    say("Certificate, as it stands there; `gazeveil verify` checks it:")
    for line in lines:
        say(f"  {line}")
    return certificate
