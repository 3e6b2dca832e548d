"""The certificate of a release: `PRIVACY.json`, which a program can check, and `PRIVACY.md`, which
a person can read.

`PRIVACY.json` says which mechanism made the files, with which parameters, what that promises, to
whom, under which assumptions and what it leaves out, and lists the SHA-256 of every file beside it,
`PRIVACY.md` included. `PRIVACY.sig`, where there is one, signs its exact bytes. None of the three
holds a date, a path or a name of what went in.

Signatures of certificates (Ed25519, RFC 8032): the publisher of a release, and its unedited
certificate.

A signature proves only that the holder of a key signed. Whose key it is, a reader must know from
elsewhere: the lab's page, the paper. So verification without a pinned key names the key and does
not call it anybody's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.privacy import registry
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.promise.loss import Change, PromiseError
from gazeveil.privacy.publication.page import page
from gazeveil.privacy.rational import short_bound
from gazeveil.privacy.release import Provenance

FORMAT = "gazeveil-certificate"
VERSION = 1

JSON_NAME, PAGE_NAME, SIGNATURE_NAME = "PRIVACY.json", "PRIVACY.md", "PRIVACY.sig"

#: Caveat of measurements: no mechanism stands between them and the recordings. An attacker with
#: recordings can test membership.
FIGURES = "the figures of attackers and analyses below, which come from the recordings, rounded"

#: Files that `PRIVACY.json` cannot list: itself, and what is made from its bytes.
UNLISTED = frozenset({JSON_NAME, SIGNATURE_NAME})

#: Parts of a certificate whose words are ours.
PARTS = frozenset(
    [
        "format",
        "version",
        "mechanism",
        "seeded",
        "versions",
        "guarantee",
        "sentence",
        "per_person",
        "people_table",
        "assumptions",
        "not_covered",
        "kept",
        "alignment",
        "contents",
        "attack",
        "utility",
    ]
)


@dataclass(frozen=True)
class Description:
    """Everything that a certificate says, besides the hashes of files.

    Parameters
    ----------
    guarantee : Guarantee
        What the released gaze promises; its assumptions and what it does not cover include those
        of the alignment and of what was kept.
    origin : Provenance
        How the release was made.
    people_table : Guarantee, optional
        What the table of people's attributes promises; None where none is released.
    kept : tuple of str
        Fields that were released unchanged, on request.
    alignment : mapping
        `time_zero`, `rate_hz`, `durations`, `pseudonyms` and `sessions`, as they are in the files;
        `frame` where degrees are relative to the head.
    contents : mapping
        `people`, `recordings`, `stimuli`, `samples` and `format`.
    attack : mapping, optional
        What the strongest attacker got: `attacker`, `found` and `guessing` (people, of `people`),
        `tried` (how many attackers) and `protocol`.
    utility : mapping, optional
        What still works: `analyses`, a list of `analysis`, `metric`, `value`, `unit` and
        `reference` (the value of an analyst without the data).
    """

    guarantee: Guarantee
    origin: Provenance
    people_table: Guarantee | None = None
    kept: tuple[str, ...] = ()
    alignment: Mapping[str, object] = field(default_factory=dict)
    contents: Mapping[str, object] = field(default_factory=dict)
    attack: Mapping[str, object] | None = None
    utility: Mapping[str, object] | None = None

    @property
    def promise(self) -> Guarantee:
        """The guarantee, which does not speak of what was measured on the recordings."""
        measured = self.attack is not None or self.utility is not None
        return self.guarantee.with_not_covered(FIGURES) if measured else self.guarantee

    def to_dict(self) -> dict[str, object]:
        """The certificate as JSON has it, without `files`."""
        promise, table, origin = self.promise, self.people_table, self.origin
        known = origin.mechanism in registry.mechanisms()
        return {
            "format": FORMAT,
            "version": VERSION,
            "mechanism": {
                "name": origin.mechanism,
                "reading": origin.reading,
                "summary": registry.get(origin.mechanism).summary if known else "",
                "parameters": {k: str(v) for k, v in origin.parameters.items()},
            },
            "seeded": origin.seeded,
            "versions": dict(origin.versions),
            "guarantee": promise.to_dict(),
            "sentence": str(promise),
            "per_person": per_person(promise),
            "people_table": (
                None if table is None else {"guarantee": table.to_dict(), "sentence": str(table)}
            ),
            "assumptions": list(promise.assumptions),
            "not_covered": list(promise.not_covered),
            "kept": list(self.kept),
            "alignment": dict(self.alignment),
            "contents": dict(self.contents),
            "attack": None if self.attack is None else dict(self.attack),
            "utility": None if self.utility is None else dict(self.utility),
        }


def per_person(promise: Guarantee) -> dict[str, object]:
    """What the whole release adds up to for everything of one person: `numbers`, exact, as text, or
    the `reason` why that is not known.
    """
    if promise.counts and promise.losses is None:
        return {"numbers": {k: str(v) for k, v in promise.counts.items()}, "status": promise.status}
    metric = "space" if promise.change is None else promise.change.metric
    try:
        loss = promise.claimed_loss(Change.person(metric=metric))
    except PromiseError as error:
        return {"reason": str(error)}
    numbers = {name: str(value) for name, value in loss.numbers().items()}
    if loss.delta_num:
        numbers["delta_num"] = short_bound(loss.delta_num)
    return {"numbers": numbers, "status": promise.status}


def write_certificate(
    path: Path, description: Description, signing_key: SigningKey | None = None
) -> None:
    """Certify a folder whose other files are all written, whatever their names; or one file (a
    table, maps), with `<file>.PRIVACY.json` and `<file>.PRIVACY.md` beside it. Without a signing
    key there is no `PRIVACY.sig`.

    Raises
    ------
    DataError
        Where the folder holds something that is neither a file nor a folder.
    """
    # The page is made from what a reader of the JSON gets back, so that both can be compared.
    certificate = json.loads(_text(description.to_dict()))
    beside(path, PAGE_NAME).write_text(page(certificate), encoding="utf-8", newline="\n")
    certificate["files"] = hashes(path)
    data = _text(certificate).encode("utf-8")
    beside(path, JSON_NAME).write_bytes(data)
    if signing_key is not None:
        signature = json.dumps(sign(signing_key, data), indent=1) + "\n"
        beside(path, SIGNATURE_NAME).write_text(signature, encoding="utf-8", newline="\n")
    _one_time(path)


def _one_time(path: Path) -> None:
    """Give everything of a release the time of its certificate: archives keep times, and how long
    each recording took tells how long it was before it was cut.
    """
    stamp_ns = beside(path, JSON_NAME).stat().st_mtime_ns
    certifying = (beside(path, n) for n in (PAGE_NAME, JSON_NAME, SIGNATURE_NAME))
    for place in (path, *(certifying if path.is_file() else path.rglob("*"))):
        if place.exists():
            os.utime(place, ns=(stamp_ns, stamp_ns))


def _text(certificate: Mapping[str, object]) -> str:
    return json.dumps(certificate, indent=1, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: object) -> object:
    """Exact numbers as text; anything else that JSON has no word for is a mistake."""
    if isinstance(value, Fraction):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in a certificate")


def hashes(path: Path) -> dict[str, dict[str, object]]:
    """SHA-256 and size of every file of a release, by its path inside it; of a release that is one
    file, of that and of its page.

    Raises
    ------
    DataError
        For a link or a device: what it leads to is not part of the release.
    """
    if path.is_file():
        certifying = [beside(path, n) for n in (PAGE_NAME, JSON_NAME, SIGNATURE_NAME)]
        for place in certifying:
            _refuse_special(place)
        return {p.name: _hashed(p) for p in (path, certifying[0]) if p.is_file()}
    found = {}
    for place in sorted(path.rglob("*")):
        _refuse_special(place)
        name = place.relative_to(path).as_posix()
        if place.is_file() and name not in UNLISTED:
            found[name] = _hashed(place)
    return found


def _refuse_special(path: Path) -> None:
    if path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir())):
        raise DataError(
            f"{path} is neither a file nor a folder, and a release holds nothing else. Remove it."
        )


def _hashed(path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size}


def has_certificate(path: Path) -> bool:
    """Whether a folder, or a file with a certificate beside it, calls itself a release."""
    return beside(path, JSON_NAME).is_file()


def beside(path: Path, name: str) -> Path:
    """Where the file of that name is that certifies a folder or one file."""
    return path.with_name(f"{path.name}.{name}") if path.is_file() else path / name


def read_certificate(path: Path) -> dict[str, object]:
    """The certificate of a folder or of one file, as it stands there; whether it is true is another
    question.

    Raises
    ------
    FormatError
        If there is none, or it cannot be read.
    DataError
        If it is a link or a device.
    """
    file = beside(path, JSON_NAME)
    _refuse_special(file)
    try:
        certificate = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise FormatError(
            file,
            "there is no certificate",
            "Name a folder that `gazeveil publish` or `gazeveil protect` wrote.",
        ) from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise FormatError(
            file, "the certificate is cut or damaged", "Copy the folder again."
        ) from error
    if not isinstance(certificate, dict) or certificate.get("format") != FORMAT:
        raise FormatError(file, "this is not a certificate of Gazeveil", "Name another folder.")
    if certificate.get("version") != VERSION:
        raise FormatError(
            file, f"version {certificate.get('version')!r} is not known", "Upgrade Gazeveil."
        )
    return certificate


ALGORITHM = "ed25519"
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64


@dataclass(frozen=True)
class SigningKey:
    """The secret half of a key: 32 bytes, never printed."""

    secret: bytes = field(repr=False)

    @property
    def public(self) -> str:
        """The public half, as hexadecimal digits."""
        key = Ed25519PrivateKey.from_private_bytes(self.secret).public_key()
        raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
        return key.public_bytes(*raw).hex()


def new_key(path: Path) -> SigningKey:
    """Make a key: the secret half goes to `path` with mode 0600, the public half to `path`.pub.

    Raises
    ------
    DataError
        If one of them exists: a lost key cannot sign again.
    """
    key = SigningKey(os.urandom(_KEY_BYTES))
    public = path.with_name(path.name + ".pub")
    for place, text, mode in ((path, key.secret.hex(), 0o600), (public, key.public, 0o644)):
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            raise DataError(
                f"{place} exists already, and a key that is overwritten is lost. Name another file."
            ) from None
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text + "\n")
    return key


def read_key(path: Path) -> SigningKey:
    """A secret key that :func:`new_key` wrote.

    Raises
    ------
    FormatError
        If the file holds none.
    """
    secret = _hexadecimal(path)
    if secret is None:
        raise FormatError(
            path,
            "this is not a signing key, which is 64 hexadecimal digits",
            "Make one: `gazeveil verify --new-key FILE`.",
        )
    return SigningKey(secret)


def read_public_key(key: str | Path) -> str:
    """A public key, from the digits themselves or from a file that holds them.

    Raises
    ------
    ParameterError
        If it is neither.
    """
    text = str(key).strip().lower()
    if len(text) == 2 * _KEY_BYTES and set(text) <= set("0123456789abcdef"):
        return text
    found = _hexadecimal(Path(key))
    if found is None:
        raise ParameterError(
            "The '--key' option must be a public key of 64 hexadecimal digits, or a file that holds"
            f" one. Got '{text[:80]}' instead. Ask whoever published the release for it.",
            name="key",
            got=text[:80],
        )
    return found.hex()


def _hexadecimal(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = bytes.fromhex(file.read(4096).decode("ascii").strip())
    except (OSError, ValueError):
        return None
    return data if len(data) == _KEY_BYTES else None


def sign(key: SigningKey, data: bytes) -> dict[str, str]:
    """The signature of some bytes, as JSON has it."""
    signature = Ed25519PrivateKey.from_private_bytes(key.secret).sign(data)
    return {"algorithm": ALGORITHM, "public_key": key.public, "signature": signature.hex()}


def signer(signature: Mapping[str, object], data: bytes) -> str | None:
    """The public key that signed those bytes, or None where the signature does not fit them."""
    if signature.get("algorithm") != ALGORITHM:
        return None
    try:
        public = bytes.fromhex(str(signature["public_key"]))
        value = bytes.fromhex(str(signature["signature"]))
        if len(public) != _KEY_BYTES or len(value) != _SIGNATURE_BYTES:
            return None
        Ed25519PublicKey.from_public_bytes(public).verify(value, data)
    except (KeyError, ValueError, InvalidSignature):
        return None
    return public.hex()
