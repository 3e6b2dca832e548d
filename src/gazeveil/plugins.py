"""Every kind of part that another package can bring: where it is registered, and its kit.

`register` adds a part to the registry of its kind, `find` looks a part up by name or by
`module:attribute`, and `check` runs the conformance kit of its kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from gazeveil import checks
from gazeveil.attacks.conformance import check_attack
from gazeveil.attacks.registry import REGISTRY as ATTACKS
from gazeveil.conformance import CheckResult, run_kit
from gazeveil.errors import ParameterError
from gazeveil.gatekeeper import trackers
from gazeveil.io.conformance import check_format
from gazeveil.io.registry import REGISTRY as FORMATS
from gazeveil.io.registry import Format
from gazeveil.privacy.audit.run import audit
from gazeveil.privacy.conformance import CHECKS
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.registry import REGISTRY as MECHANISMS
from gazeveil.registry import Registry, build, parse
from gazeveil.relay.conformance import check_tracker
from gazeveil.utility.base import check_utility
from gazeveil.utility.registry import REGISTRY as UTILITIES

Part = TypeVar("Part")

REGISTRIES: dict[str, Registry[Any]] = {
    "mechanism": MECHANISMS,
    "format": FORMATS,
    "attack": ATTACKS,
    "utility": UTILITIES,
    "tracker": trackers.REGISTRY,
}

#: What `--kind` may say: a dataset is a format with a publisher, a licence and a layout.
KINDS = (*REGISTRIES, "dataset")

_TRIALS = 20_000


def register(part: Part, name: str | None = None) -> Part:
    """Add a mechanism, format, attack, utility or tracker of your own; usable as a decorator.

    Parameters
    ----------
    part : class, or Format
        The part; its kind is seen from what it is derived from.
    name : str, optional
        For trackers, which have no name of their own.

    Raises
    ------
    ParameterError
        For a part of no known kind, or a name that is taken.
    """
    kind = _kind_of(part)
    if kind is None:
        checks.refuse("register", "part", "a class of one of: " + ", ".join(REGISTRIES), part)
    REGISTRIES[kind].register(part, name)
    return part


def find(text: str, kind: str | None = None) -> tuple[str, str, Any]:
    """A part by name or by `module:attribute`, with parameters after another colon.

    Returns
    -------
    tuple of (kind, name, part)

    Raises
    ------
    ParameterError
        For a name that no kind knows, or that several do.
    """
    wanted = "format" if kind == "dataset" else kind
    name = text.partition(":")[0].partition("?")[0]
    kinds = [wanted] if wanted else list(REGISTRIES)
    matches = [k for k in kinds if name in REGISTRIES[k].names()]
    if len(matches) > 1:
        checks.refuse("check", "--kind", "given: " + " or ".join(matches), None)
    if matches:
        return matches[0], name, REGISTRIES[matches[0]].get(name)
    part = _imported(text)
    if part is None:
        names = [n for k in kinds for n in REGISTRIES[k].names()]
        checks.one_of("check", "name", name, names)
    own = _kind_of(part)
    if own is None or (wanted is not None and own != wanted):
        checks.refuse("check", "name", f"a {wanted or 'part of Gazeveil'}", text)
    return own, getattr(part, "name", name), part


def check(text: str, kind: str | None = None, sample: Path | None = None) -> list[CheckResult]:
    """Run the conformance kit of a part.

    Parameters
    ----------
    text : str
        A name or `module:attribute`; parameters may follow, as in `lpa:epsilon=1`.
    kind : str, optional
        One of :data:`KINDS`, where the name alone is not enough.
    sample : path, optional
        For formats and datasets: a file or folder to read; default the format's own sample.

    Raises
    ------
    ParameterError
        For an unknown name, wrong parameters, or a format without a sample.
    """
    if kind is not None:
        checks.one_of("check", "--kind", kind, KINDS)
    own_kind, name, part = find(text, kind)
    if own_kind == "format":
        return _check_form(part, sample, kind == "dataset")
    if own_kind == "tracker":
        return check_tracker(_opener(text, name, part))
    value = build(own_kind, part, _parameters(text, name, own_kind))
    if own_kind == "mechanism":
        return check_mechanism(value)
    kit: Callable[[Any], list[CheckResult]] = (
        check_attack if own_kind == "attack" else check_utility
    )
    return kit(value)


def check_mechanism(mechanism: Mechanism[Any]) -> list[CheckResult]:
    """Run the conformance kit and the audit game of a mechanism.

    Returns
    -------
    list of CheckResult
        One line for each check, with what is wrong.
    """
    results = run_kit(CHECKS, mechanism)

    def claim_stands_the_audit(chosen: Mechanism[Any]) -> Any:
        verdict = audit(chosen, _TRIALS, black_box=False)
        if verdict.refuted and chosen.claim.status != "refuted":
            yield str(verdict)

    return results + run_kit((claim_stands_the_audit,), mechanism)


def _check_form(form: Format, sample: Path | None, is_dataset: bool) -> list[CheckResult]:
    if sample is None and form.sample is None:
        raise ParameterError(
            f"The format {form.name} brings no sample. Give one with --sample PATH.",
            name="--sample",
            got=None,
        )
    with TemporaryDirectory() as folder:
        place = sample
        if place is None:
            assert form.sample is not None
            place = form.sample(Path(folder))
        if not place.exists():
            checks.refuse("check", "--sample", "a file or folder that exists", str(place))
        results = check_format(form, place)
    if is_dataset or form.dataset is not None:
        fields = {} if form.dataset is None else asdict(form.dataset)
        names = ("title", "publisher", "licence", "citation", "layout")
        missing = tuple(f"its {n} is missing" for n in names if not fields.get(n))
        results.append(CheckResult("says where the dataset comes from", missing))
    return results


def _opener(text: str, name: str, part: Any) -> Callable[[], Any]:
    if name in trackers.REGISTRY.names():
        return lambda: trackers.open_tracker(text)
    return lambda: part()


def _parameters(text: str, name: str, kind: str) -> dict[str, object]:
    """Parameters behind a name, or behind `module:attribute`."""
    if text.partition(":")[0] == name:
        return parse(text, kind)[1]
    return parse("x:" + text.partition(":")[2].partition(":")[2], kind)[1]


def _imported(text: str) -> Any:
    """What `module:attribute` names; None where there is no such thing."""
    module, _, rest = text.partition(":")
    attribute = rest.partition(":")[0]
    if not attribute or "=" in attribute:
        return None
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ParameterError(
            f"'{module}:{attribute}' cannot be imported: {str(error).rstrip('.')}.",
            name="name",
            got=text,
        ) from error


def _kind_of(part: object) -> str | None:
    return next((k for k, registry in REGISTRIES.items() if registry.accepts(part)), None)
