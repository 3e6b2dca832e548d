"""The files of a release against the hashes of its certificate, the page against the certificate,
and the certificate against its signature.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gazeveil import __version__
from gazeveil.privacy.publication.certificate import JSON_NAME, PAGE_NAME, SIGNATURE_NAME, beside
from gazeveil.privacy.publication.page import digest, page
from gazeveil.privacy.publication.signing import signer

Certificate = Mapping[str, object]


@dataclass(frozen=True)
class VerifyCheck:
    """One question about a release, and the answer: what is wrong, one sentence each, or a note on
    what was seen, or why the question could not be asked.
    """

    name: str
    failures: tuple[str, ...] = ()
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.failures


@dataclass(frozen=True)
class VerifiedRelease:
    """All answers, in the order they were asked."""

    checks: tuple[VerifyCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[str, ...]:
        """All that is wrong."""
        return tuple(f for check in self.checks for f in check.failures)

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "passed": self.passed,
            "checks": [
                {"name": c.name, "passed": c.passed, "failures": list(c.failures), "note": c.note}
                for c in self.checks
            ],
        }


def check_files(found: Mapping[str, Mapping[str, object]], certificate: Certificate) -> VerifyCheck:
    """Every listed file is there, unchanged, and no other is; `found` are the hashes of those that
    are there.
    """
    listed = certificate.get("files")
    if not isinstance(listed, Mapping):
        return VerifyCheck("files", (f"{JSON_NAME} lists no files.",))
    failures = [f"{name} is missing." for name in sorted(listed.keys() - found.keys())]
    failures += [f"{name} is not in the certificate." for name in sorted(found.keys() - listed)]
    failures += [
        f"{name} was changed: its SHA-256 is not the one of the certificate."
        for name in sorted(found.keys() & listed.keys())
        if found[name] != listed[name]
    ]
    return VerifyCheck("files", tuple(failures), f"{len(found)} files, each with its hash")


def check_page(folder: Path, certificate: Certificate) -> VerifyCheck:
    """The page says what the certificate says.

    A page of this version is made again and compared. Another version may word it otherwise; its
    page must hold the hash of the statement.
    """
    try:
        written = beside(folder, PAGE_NAME).read_bytes()
        expected = page(certificate).encode("utf-8")
        version = certificate["versions"]["gazeveil"]  # type: ignore[index]
    except FileNotFoundError:
        return VerifyCheck("page", (f"{PAGE_NAME} is missing.",))
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        return VerifyCheck("page", (f"{JSON_NAME} is not whole: no page can be made from it.",))
    other = version != __version__
    if digest(certificate).encode() not in written or (written != expected and not other):
        failure = f"{PAGE_NAME} and {JSON_NAME} differ: one of them was edited."
        return VerifyCheck("page", (failure,))
    if other:
        note = f"{PAGE_NAME} is of version {version} and holds the hash of what {JSON_NAME} says"
        return VerifyCheck("page", note=note)
    return VerifyCheck("page", note=f"{PAGE_NAME} says what {JSON_NAME} says")


def check_signature(folder: Path, key: str | None) -> VerifyCheck:
    """The certificate is signed, and by the pinned key where one is given."""
    file = beside(folder, SIGNATURE_NAME)
    if not file.is_file():
        if key is None:
            return VerifyCheck("signature", note="not signed")
        return VerifyCheck("signature", (f"{SIGNATURE_NAME} is missing, and a key was given.",))
    try:
        signature = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        signature = None
    public = (
        signer(signature, beside(folder, JSON_NAME).read_bytes())
        if isinstance(signature, Mapping)
        else None
    )
    if public is None:
        failure = f"{SIGNATURE_NAME} does not fit {JSON_NAME}: one of them was changed."
        return VerifyCheck("signature", (failure,))
    if key is None:
        note = f"signed by {public}; pin the key you trust with --key"
        return VerifyCheck("signature", note=note)
    if public != key:
        return VerifyCheck("signature", (f"signed by {public}, not by the given key {key}.",))
    return VerifyCheck("signature", note=f"signed by the given key {public}")
