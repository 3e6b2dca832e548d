"""The kit every mechanism passes, ours or a third party's.

Run it on a mechanism object::

    import gazeveil
    results = gazeveil.check_mechanism(my_mechanism)
    assert all(result.passed for result in results), results

Each check is a function that yields sentences about what is wrong; an empty list is a pass. The kit
brings its own small data for each kind of mechanism, so nothing has to be prepared. It looks at
form and honesty; whether the noise is right is for the audit and for the distribution tests.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pkgutil import resolve_name
from typing import Any

import numpy as np

from gazeveil.errors import GazeveilError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import DRAWINGS, KINDS, Mechanism, PlotRecipe
from gazeveil.privacy.registry import get
from gazeveil.privacy.release import Release
from gazeveil.registry import build, parse

#: Rows per recording of the kit's tables.
ROWS = 40
_PEOPLE, _STIMULI = 12, 2


def sample_data(kind: str, variant: int = 0) -> Any:
    """Small data for a kind of mechanism; variants differ in every private value and in nothing
    that is public.
    """
    rng = np.random.default_rng(variant)
    if kind == "table":
        recordings = [(f"p{i}", f"s{j}", "1", "") for i in range(_PEOPLE) for j in range(_STIMULI)]
        keys = Keys.of_recordings(recordings, [np.arange(ROWS, dtype=np.int64)] * len(recordings))
        values = rng.normal(0.5 + 0.2 * variant, 0.2, (len(keys), 3)).cumsum(axis=0) % 1.0
        return FeatureTable(
            values, ("a", "b", "c"), keys, np.array([[0.0, 1.0], [0.0, 2.0], [-1.0, 1.0]])
        )
    if kind == "people":
        return {
            f"p{i}": {"age": 20 + int(rng.integers(0, 30)), "gender": "fm"[int(rng.integers(0, 2))]}
            for i in range(40)
        }
    made, t_ns = [], np.arange(300) * 10**7
    for person, stimulus in product(range(_PEOPLE), range(_STIMULI)):
        x_deg = np.mod(180 + rng.normal(0, 2, 300).cumsum(), 360)
        y_deg = 90 + np.clip(rng.normal(0, 1, 300).cumsum(), -60, 60)
        names = (f"p{person}", f"s{stimulus}")
        made.append(Recording(*names, t_ns, x_deg, y_deg, space=Sphere(), rate_hz=100.0))
    return made[0] if kind == "stream" else Cohort(made)


def _key_rows(table: FeatureTable) -> list[tuple[object, ...]]:
    """Whose each row is."""
    names = ("person", "stimulus", "session", "task", "index")
    return list(zip(*(getattr(table.keys, name).tolist() for name in names), strict=True))


def fingerprint(data: Any) -> str:
    """Everything about released data that must not depend on private values: types, sizes, names,
    keys.
    """
    if isinstance(data, FeatureTable):
        bounds = None if data.bounds is None else data.bounds.tolist()
        shape = (data.columns, data.values.shape, str(data.values.dtype))
        return repr((*shape, _key_rows(data), dict(data.counts), bounds))
    if isinstance(data, Recording):
        header = (data.key, len(data), data.space, data.rate_hz, dict(data.metadata))
        return repr((*header, sorted(data.labels), data.t_ns.tobytes(), data.valid.tobytes()))
    if isinstance(data, Cohort):
        return repr([fingerprint(r) for r in data])
    if isinstance(data, Mapping):
        if data and all(isinstance(v, Mapping) for v in data.values()):
            # People: who they are, which attributes they have, of which type; not the values.
            return repr(
                [(k, sorted((n, type(x).__name__) for n, x in v.items())) for k, v in data.items()]
            )
        return repr([(k, fingerprint(v)) for k, v in data.items()])
    if dataclasses.is_dataclass(data):
        return repr(
            [(f.name, fingerprint(getattr(data, f.name))) for f in dataclasses.fields(data)]
        )
    if isinstance(data, np.ndarray):
        return repr((data.shape, str(data.dtype)))
    return repr((type(data).__name__, data))


def content(data: Any) -> bytes:
    """The released values as bytes, for comparing two releases."""
    return (
        pickle.dumps(data)
        if not isinstance(data, Cohort)
        else b"".join(pickle.dumps(r) for r in data)
    )


def _is_a_frozen_value(m: Mechanism[Any]) -> Iterator[str]:
    settings = getattr(type(m), "__dataclass_params__", None)
    if settings is None or not settings.frozen:
        yield "it must be a frozen dataclass"
    if m.kind not in KINDS:
        yield f"its kind '{m.kind}' is none of {', '.join(KINDS)}"
    if m.reading not in m.claims:
        yield f"its reading '{m.reading}' has no claim"
    if pickle.loads(pickle.dumps(m)) != m:
        yield "a copy sent to another process differs from it"
    if dataclasses.replace(m) != m:
        yield "checking its own parameters again changes them"


def _says_how_it_is_called_and_drawn(m: Mechanism[Any]) -> Iterator[str]:
    # Its base's label would be another mechanism's.
    label, plot = vars(type(m)).get("label"), getattr(m, "plot", None)
    if not isinstance(label, str) or not label.strip() or "\n" in label:
        yield "it has no `label` of its own: what readers of results call it, on one line"
    if not isinstance(plot, PlotRecipe):
        yield "it has no `plot`: the PlotRecipe of the picture on its page"
        return
    if plot.drawing not in DRAWINGS:
        try:
            resolve_name(plot.drawing)
        except (ImportError, AttributeError, ValueError):
            yield f"its drawing '{plot.drawing}' is no module:function and none of {DRAWINGS}"
    for text in plot.releases:
        name, parameters = parse(text)
        try:
            build("mechanism", get(name) if name else type(m), parameters)
        except GazeveilError as error:
            yield f"its plot cannot be drawn: {error}"


def _is_honest(m: Mechanism[Any]) -> Iterator[str]:
    release, seeded = m.release(sample_data(m.kind)), m.release(sample_data(m.kind), seed=1)
    for r in (release, seeded):
        if not isinstance(r, Release) or not isinstance(r.guarantee, Guarantee):
            yield "release must return a Release with a Guarantee"
            return
    claim = m.claim
    g = release.guarantee
    # A number that these data gave instead of a person makes a claim of any proof.
    derived = g.status == "claimed" and "is derived from the data" in g.reason
    if g.definition != claim.definition or (g.status != claim.status and not derived):
        yield (
            f"its guarantee is {g.definition} ({g.status}), its claim {claim.definition}"
            f" ({claim.status})"
        )
    if g.status == "proved" and g.definition != "none" and not g.reason:
        yield "a proved guarantee must name its proof"
    if g.status != "proved" and any(v is not None for v in (g.epsilon, g.rho, g.k)):
        yield "a number is readable although it is not proved"
    deterministic = content(release.data) == content(m.release(sample_data(m.kind)).data)
    if (
        seeded.guarantee.status == "proved"
        and seeded.guarantee.definition != "none"
        and not deterministic
    ):
        yield "a release with a seed must not call its guarantee proved"
    if seeded.provenance.seeded == release.provenance.seeded and not deterministic:
        yield "the provenance must say whether a seed was used"
    if release.provenance.mechanism != m.name or release.provenance.reading != m.reading:
        yield "the provenance names another mechanism"


def _repeats_under_a_test_stream(m: Mechanism[Any]) -> Iterator[str]:
    data = sample_data(m.kind)
    first, again, other = (m.release(data, seed=s).data for s in (7, 7, 8))
    if content(first) != content(again):
        yield "the same seed must give the same release"
    random = content(m.release(data).data) != content(m.release(data).data)
    if random and content(first) == content(other):
        yield "another seed must give another release"


def _leaves_its_input_alone(m: Mechanism[Any]) -> Iterator[str]:
    data = sample_data(m.kind)
    before = content(data)
    m.release(data, seed=1)
    if content(data) != before:
        yield "it changed the data it was given"


def _keeps_its_shape(m: Mechanism[Any]) -> Iterator[str]:
    # Published readings are allowed to leak; the rest may not, through sizes, keys or metadata.
    if m.reading != "corrected" or m.claim.definition in {
        "none",
        "k-anonymity",
        "plausible-deniability",
    }:
        return
    shapes = {fingerprint(m.release(sample_data(m.kind, v), seed=1).data) for v in (0, 1, 2)}
    if len(shapes) > 1:
        yield "sizes, keys or metadata of the release depend on private values"


def _tells_of_losses_only_what_it_lists(m: Mechanism[Any]) -> Iterator[str]:
    if m.kind != "stream" or m.reading.startswith("published"):
        return
    data, shapes, listed = sample_data("stream"), set(), True
    for variant in range(2):
        # A pause and a run of lost samples, elsewhere in each: all else that is public is the same.
        lost = np.arange(300) // 20 == 3 + 5 * variant
        t_ns = data.t_ns + 10**9 * (np.arange(300) >= 100 + 100 * variant)
        release = m.release(data.with_(t_ns=t_ns, valid=data.valid & ~lost), seed=1)
        shapes.add(fingerprint(release.data))
        listed &= any("lost" in clause for clause in release.guarantee.not_covered)
    if len(shapes) > 1 and not listed:
        yield "times and losses of the release show which samples are lost; it does not list that"


def _has_a_policy_for_missing_values(m: Mechanism[Any]) -> Iterator[str]:
    if m.kind != "table":
        return
    table = sample_data("table")
    values = table.values.copy()
    values[::7, 1] = np.nan
    try:
        out = m.release(FeatureTable(values, table.columns, table.keys, table.bounds), seed=1).data
    except GazeveilError:
        return
    if m.reading == "corrected" and not np.isfinite(out.values).all():
        yield "missing values must be filled publicly or refused, not released as NaN"


def _does_not_depend_on_the_order_of_rows(m: Mechanism[Any]) -> Iterator[str]:
    if m.kind != "table":
        return
    table = sample_data("table")
    shuffled = table.where(np.random.default_rng(3).permutation(len(table)))

    ours, theirs = (m.release(rows, seed=1).data for rows in (table, shuffled))
    if sorted(_key_rows(ours)) != sorted(_key_rows(theirs)):
        yield "shuffling the rows of the input changes which rows are released"


def _refuses_in_words(m: Mechanism[Any]) -> Iterator[str]:
    bad: list[tuple[str, Any]] = [("nothing", None), ("text", "gaze")]
    if m.kind == "table":
        table = sample_data("table")
        bad.append(("an empty table", table.where(np.zeros(len(table), dtype=bool))))
        if m.reading == "corrected" and m.claim.definition not in {"k-anonymity", "none"}:
            bad.append(("a table without bounds", table.with_bounds(None)))
    for description, data in bad:
        try:
            m.release(data)
        except GazeveilError as error:
            if len(str(error)) < 20:
                yield f"{description} is refused without saying why"
        except Exception as error:
            yield f"{description} gives {type(error).__name__} instead of a sentence"
        else:
            yield f"{description} is not refused"


CHECKS: tuple[Callable[[Mechanism[Any]], Iterator[str]], ...] = (
    _is_a_frozen_value,
    _says_how_it_is_called_and_drawn,
    _is_honest,
    _repeats_under_a_test_stream,
    _leaves_its_input_alone,
    _keeps_its_shape,
    _tells_of_losses_only_what_it_lists,
    _has_a_policy_for_missing_values,
    _does_not_depend_on_the_order_of_rows,
    _refuses_in_words,
)
