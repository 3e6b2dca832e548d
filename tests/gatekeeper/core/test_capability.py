"""What no app and no coalition of apps can reach: nothing finer than the event log, and nothing of
other apps.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gazeveil.gatekeeper import LEVELS, Denied, PublicEvent
from gazeveil.gatekeeper.policy.grant import PRESETS
from gazeveil.gaze.geometry import Grid, Sphere
from tests.support.places import ROOT
from tests.support.recordings import real_cohort
from tests.support.wearers import grant, keeper, looks

#: Coordinates that nothing but the tracker can have produced.
TAINT_X, TAINT_Y = 123.456789, 81.987654


def walk(value: object, seen: set[int] | None = None) -> Iterator[object]:
    """Everything that can be read off a value: elements, fields and public attributes, all the way
    down.
    """
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if isinstance(value, str | bytes | int | float | Fraction | type(None) | bool) or callable(
        value
    ):
        return
    if isinstance(value, np.ndarray):
        yield from value.ravel().tolist()
        if value.base is not None:  # a view would lead to the samples it was cut from
            yield from walk(value.base, seen)
        return
    if isinstance(value, dict):
        parts: list[object] = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = list(value)
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, f.name) for f in dataclasses.fields(value)]
    else:
        parts = [getattr(value, name, None) for name in dir(value) if not name.startswith("_")]
    for part in parts:
        yield from walk(part, seen)


def floats(value: object) -> list[float]:
    return [float(v) for v in walk(value) if isinstance(v, float | np.floating)]


def texts(value: object) -> str:
    return " ".join(str(v) for v in walk(value) if isinstance(v, str))


def everything(k: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """All that apps can subscribe to, and the rest after the gaze came."""
    taken: dict[str, Any] = {"heard": [], "tiles": [], "ends": [], "areas": {}, "subscriptions": []}
    for name in names:
        app = k.app(name)
        taken["areas"][name] = [
            app.register_area("a", 100, 60, 40, 40),
            app.register_area("b", 120, 75, 10, 10),
        ]
        for subscription in (
            app.add_event_listener("fixation", taken["heard"].append),
            app.add_event_listener("saccade", taken["heard"].append, mode="start-stop"),
            app.on_tile(lambda tile, t_ms: taken["tiles"].append((tile, t_ms))),
        ):
            subscription.on_end(lambda reason, code: taken["ends"].append((reason, code)))
            taken["subscriptions"].append(subscription)
    return taken


def answers(k: Any, name: str, areas: list[Any]) -> list[object]:
    app = k.app(name)
    found: list[object] = [app.areas(), app.current_tile()]
    for area in areas:
        found += [app.metrics(area.id), app.get_fixations(area.id), app.get_saccades(area.id)]
        found += [app.get_dwell_time(f.number) for f in app.get_fixations(area.id)]
    return found


@pytest.mark.parametrize("level", ["coarse", "fine"])
def test_no_raw_coordinate_or_native_time_is_reachable_from_anything_an_app_gets(
    level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    k = keeper("a", "b", level=level, rate_hz=250.0)
    taken = everything(k, ("a", "b"))
    # Every fixation rests on the very coordinates, without noise, so that its mean is the taint
    # itself.
    t, x, y = looks(
        [(TAINT_X, TAINT_Y), (TAINT_X + 20, TAINT_Y), (TAINT_X, TAINT_Y)] * 4,
        rate_hz=250.0,
        noise_deg=0.0,
    )
    t = t + 7_654_321  # and times that lie on no tick
    for part in np.array_split(np.arange(len(t)), 50):
        k.push(t[part], x[part], y[part])
    k.lost()
    results = [answers(k, name, taken["areas"][name]) for name in ("a", "b")]
    refusals = []
    for call in (
        lambda: k.app("a").get_fixations(99),
        lambda: k.app("zzz").areas(),
        lambda: k.app("a").get_dwell_time(10**6),
    ):
        with pytest.raises(Denied) as no:
            call()
        refusals.append(no.value)
    k.revoke("a")
    k.close()
    reachable = [
        taken["heard"],
        taken["tiles"],
        taken["ends"],
        taken["areas"],
        taken["subscriptions"],
        results,
        refusals,
        [r.args for r in refusals],
    ]
    numbers = [v for part in reachable for v in floats(part)]
    assert len(taken["heard"]) > 40
    assert len(numbers) > 60
    raw = {*x.tolist(), *y.tolist()}
    assert not raw & set(numbers), "no float equals one of the tracker's"
    grid = Grid(Sphere(), LEVELS[level].resolution_deg)
    public = {
        v
        for row in range(grid.rows)
        for column in range(grid.columns)
        for v in grid.centre(row, column)
    }
    public |= {i * grid.column_deg for i in range(grid.columns + 1)}
    guarantees = {k.rate_hz}
    assert set(numbers) <= public | guarantees, (
        "every float an app sees is a public place of the grid"
    )
    whole = [
        v
        for part in (taken["heard"], taken["tiles"], results)
        for v in walk(part)
        if type(v) is int
    ]
    native = (
        {int(v) for v in t} | {int(v - t[0]) for v in t} | {int(v - t[0]) // 1000 for v in t[1:]}
    )
    assert not native & {v for v in whole if v > 10_000}
    for text in (
        *(texts(part) for part in reachable),
        caplog.text,
        repr(k.app("b")),
        repr(results),
    ):
        assert "123.45" not in text
        assert "81.98" not in text


def test_a_stream_gives_no_sample_back_and_its_arrays_lead_nowhere() -> None:
    k = keeper("a", rate_hz=250.0)
    got: list[tuple[np.ndarray, ...]] = []
    stream = k.app("a").open_private_stream(
        "gaussian:sigma_deg=2", lambda *block: got.append(block)
    )
    kaleido: list[tuple[np.ndarray, ...]] = []
    k.app("a").open_private_stream(
        "kaleido:epsilon=1,w=50,r_deg=2", lambda *block: kaleido.append(block)
    )
    t, x, y = looks([(TAINT_X, TAINT_Y), (TAINT_X + 20, TAINT_Y)] * 2, rate_hz=250.0, noise_deg=0.0)
    k.push(t[:100], x[:100], y[:100])
    for a, b, c in zip(t[100:].tolist(), x[100:].tolist(), y[100:].tolist(), strict=True):
        k.push(a, b, c)
    k.close()
    raw = {*x.tolist(), *y.tolist()}
    for blocks in (got, kaleido):
        assert sum(len(b[0]) for b in blocks) == len(t)
        assert not raw & set(floats([b[1:3] for b in blocks]))
    assert not raw & set(floats(stream))


def test_two_wearers_in_the_same_cells_look_the_same_to_everybody() -> None:
    """The event log is all there is: gaze that differs below the grid gives every app the same
    answers, bit for bit.
    """
    results = []
    for shift in (0.0, 1.3):
        k = keeper(*"abc")
        taken = everything(k, ("a", "b", "c"))
        places = [
            (121.0 + shift, 81.2 + shift),
            (141.5 + shift, 91.0 + shift),
            (101.0 + shift, 66.0 + shift),
        ] * 3
        k.push(*looks(places, noise_deg=0.0))
        k.lost()
        results.append(
            (
                taken["heard"],
                taken["tiles"],
                taken["areas"],
                [answers(k, name, taken["areas"][name]) for name in "abc"],
            )
        )
    assert results[0] == results[1]


def unnumbered(found: list[Any]) -> list[Any]:
    """Answers without the numbers of events, which are each app's own."""
    return [
        (
            tuple(replace(e, number=0) if isinstance(e, PublicEvent) else e for e in part)
            if isinstance(part, tuple)
            else part
        )
        for part in found
    ]


def test_the_same_question_has_the_same_answer_whoever_asks_and_ten_apps_know_what_one_knows() -> (
    None
):
    names = tuple("abcdefghij")
    k = keeper(*names)
    taken = everything(k, names)
    rng = np.random.default_rng(2)
    k.push(*looks([(110 + a, 65 + b) for a, b in rng.uniform(0, 30, (40, 2))]))
    k.lost()
    each = [unnumbered(answers(k, name, taken["areas"][name])) for name in names]
    assert all(other == each[0] for other in each)
    pooled = {
        e
        for found in each
        for part in found
        if isinstance(part, tuple)
        for e in part
        if isinstance(e, PublicEvent)
    }
    alone = {
        e for part in each[0] if isinstance(part, tuple) for e in part if isinstance(e, PublicEvent)
    }
    assert pooled == alone
    assert len(alone) > 30
    heard = {replace(e, number=0) for e in taken["heard"] if isinstance(e, PublicEvent)}
    assert alone <= heard, "areas tell nothing that the event log does not"


def test_what_belongs_to_another_app_cannot_be_told_from_what_is_not_there() -> None:
    k = keeper("a", "b")
    a, b = k.app("a"), k.app("b")
    areas = [a.register_area(str(i), 100, 60, 40, 40) for i in range(3)]
    k.push(*looks([(122, 82), (142, 82)] * 5))
    k.lost()
    mine = a.get_fixations(areas[0].id)
    assert mine
    for hidden, missing, call in (
        (areas[2].id, 10**9, b.get_fixations),
        (areas[2].id, -1, b.metrics),
        (areas[2].id, 77, b.get_saccades),
        (areas[2].id, 77, b.remove_area),
        (mine[0].number, 10**9, b.get_dwell_time),
    ):
        refusals = []
        for number in (hidden, missing, "1", None, 1.5, True):
            with pytest.raises(Denied) as no:
                call(number)  # type: ignore[arg-type]
            refusals.append((no.value.code, no.value.reason, no.value.args))
        assert (len(set(refusals)), refusals[0][0]) == (1, "unknown")
    assert a.get_dwell_time(mine[0].number) == mine[0].duration_ms
    saccade = next(e for e in a.get_saccades(areas[0].id))
    with pytest.raises(Denied, match="no such fixation"):
        a.get_dwell_time(saccade.number)
    # An area of b gets b's own number 1: numbers do not tell how many areas others have.
    assert b.register_area("x", 100, 60, 40, 40).id == 1


CALL = st.one_of(
    st.tuples(
        st.just("area"),
        st.sampled_from("ab"),
        st.floats(-400, 800),
        st.floats(-50, 200),
        st.floats(0, 400),
        st.floats(0, 200),
    ),
    st.tuples(
        st.sampled_from(["fixations", "saccades", "metrics", "remove", "dwell"]),
        st.sampled_from("ab"),
        st.integers(-2, 12),
        st.one_of(st.none(), st.integers(-1000, 5000)),
    ),
    st.tuples(st.just("tile"), st.sampled_from("ab")),
    st.tuples(
        st.just("listen"),
        st.sampled_from("ab"),
        st.sampled_from(["fixation", "saccade", "pursuit"]),
        st.sampled_from(["end", "start-stop"]),
    ),
    st.tuples(st.just("push"), st.integers(0, 10**6), st.integers(1, 8), st.booleans()),
    st.tuples(st.just("lost")),
    st.tuples(st.just("consent"), st.booleans()),
    st.tuples(st.just("revoke"), st.sampled_from("ab")),
    st.tuples(st.just("grant"), st.sampled_from("ab")),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CALL, min_size=5, max_size=40))
def test_whatever_is_called_every_answer_has_at_most_one_place_per_event_and_all_on_the_grid(
    calls: list[tuple[Any, ...]],
) -> None:
    k = keeper("a", "b")
    heard: list[object] = []
    results: list[object] = []
    clock = 0
    grid = Grid(Sphere(), 5.0)
    public = {
        v
        for row in range(grid.rows)
        for column in range(grid.columns)
        for v in grid.centre(row, column)
    } | {5.0 * i for i in range(73)}

    def push(seed: int, count: int, gaps: bool) -> None:
        nonlocal clock
        rng = np.random.default_rng(seed)
        places = zip(rng.uniform(0, 360, count), rng.uniform(5, 175, count), strict=True)
        t, x, y = looks(places, each_s=0.2, seed=seed)
        valid = rng.random(len(t)) > (0.1 if gaps else -1.0)
        k.push(t + clock, x, np.clip(y, 0, 179.9), valid)
        clock += int(t[-1]) + 10_000_000

    ways: dict[str, Callable[..., object]] = {
        "area": lambda app, *sides: k.app(app).register_area("x", *sides),
        "fixations": lambda app, area, since: k.app(app).get_fixations(area, since_ms=since),
        "saccades": lambda app, area, since: k.app(app).get_saccades(area, since_ms=since),
        "metrics": lambda app, area, _: k.app(app).metrics(area),
        "remove": lambda app, area, _: k.app(app).remove_area(area),
        "dwell": lambda app, number, _: k.app(app).get_dwell_time(number),
        "tile": lambda app: k.app(app).current_tile(),
        "listen": lambda app, kind, mode: (
            k.app(app).add_event_listener(kind, heard.append, mode=mode).close
        ),
        "push": push,
        "lost": k.lost,
        "consent": k.consent,
        "revoke": k.revoke,
        "grant": lambda app: k.grant(app, grant()),
    }
    for name, *given_to in calls:
        try:
            results.append(ways[name](*given_to))
        except Denied as no:
            results.append(no.reason)
    k.close()
    # Every event has one place: by number, whatever was asked and by whom, there is one answer.
    places: dict[int, PublicEvent] = {}
    for value in walk([results, heard]):
        if isinstance(value, PublicEvent):
            assert places.setdefault(value.number, value) == value
            assert value.t_ms % 100 == value.duration_ms % 100 == 0
    assert set(floats([results, heard])) <= public
    for answer in results:
        if isinstance(answer, tuple):
            numbers = [e.number for e in answer]
            assert len(numbers) == len(set(numbers))
            assert len(floats(answer)) <= 2 * len(numbers), "one place, two numbers, per event"


# --- Ten colluding apps on real people: what they find is what the level tells by itself. The
# full figures: benchmarks/gatekeeper_attack.py.
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bench() -> Any:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import gatekeeper_attack
    finally:
        sys.path.pop(0)
    return gatekeeper_attack


@pytest.mark.parametrize("level", ["coarse", "fine"])
def test_what_ten_apps_collect_from_a_person_is_the_sheet_and_no_more(
    bench: Any, level: str
) -> None:
    cohort = real_cohort("gazecom")
    person = list(cohort.select(people=list(cohort.people)[:1], stimuli=cohort.stimuli[:2]))
    events, streamed = bench.replay(person, level, listeners=True)
    own = [bench.rebuilt(r, bench.event_log(r, level), bench.LEVELS[level].tick_ms) for r in person]
    areas, _ = bench.replay(person, level, listeners=False)
    for together, alone, queried, raw, stream in zip(
        events, own, areas, person, streamed, strict=True
    ):
        assert together.x_deg.tobytes() == alone.x_deg.tobytes()
        assert together.y_deg.tobytes() == alone.y_deg.tobytes()
        assert queried.valid.sum() > 0.5 * alone.valid.sum(), (
            "areas that cover the screen tell most of it"
        )
        assert len(stream) == len(raw)


# --- The manual's example runs and prints what it says; the core needs no web server.
# --------------------------------------------------------------------------------------------------


DOCS = ROOT / "docs" / "howto" / "gatekeeper"


def test_the_ten_lines_of_embedding_print_what_the_page_says() -> None:
    page = (DOCS / "running.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    said = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert len([line for line in code[1].splitlines() if line.strip()]) <= 10
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code[1], "running.md", "exec"), {})
    assert out.getvalue() == said[1]


def test_the_core_imports_no_web_server_and_no_attack() -> None:
    wanted = (
        "import sys, gazeveil.gatekeeper.core.gatekeeper, gazeveil.gatekeeper.ledger.ledger,"
        " gazeveil.gatekeeper.policy.policy; print(' '.join(sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", wanted], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "gazeveil.gatekeeper.core.gatekeeper" in loaded
    roots = {name.partition(".")[0] for name in loaded}
    assert not roots & {
        "fastapi",
        "starlette",
        "uvicorn",
        "websockets",
        "httpx",
        "zmq",
        "polars",
        "sklearn",
        "torch",
    }
    assert not [
        name
        for name in loaded
        if name.startswith(("gazeveil.attacks", "gazeveil.utility", "gazeveil.evaluation"))
    ]


def test_every_preset_can_be_granted_where_files_and_figures_cannot_be_read() -> None:
    """As `packaging/device.txt` installs it."""
    absent = ("polars", "sklearn", "scipy", "matplotlib", "pandas", "jinja2")
    named = f"import sys; sys.modules.update(dict.fromkeys({absent}))\n"
    said = subprocess.run([sys.executable, "-c", named + DEVICE], capture_output=True, text=True)
    heard = [f"{text} 120" for text in PRESETS["study"].grant().mechanisms]
    assert said.stdout.splitlines() == [
        *PRESETS,
        *heard,
        "This needs the package 'polars', which is not installed. Install it with: pip install"
        " 'gazeveil[service]'",
    ], said.stderr


#: Grants every preset, gives samples through every mechanism of a study, puts the web application
#: together, and cannot replay a file.
DEVICE = """
import gazeveil.gatekeeper.service.application
from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper import Gatekeeper, Ledger, Policy
from gazeveil.gatekeeper.policy.grant import PRESETS
from gazeveil.gatekeeper.trackers import open_tracker
for name in PRESETS:
    assert PRESETS[name].grant().scopes
    print(name)
study = PRESETS["study"].grant()
for text in study.mechanisms:
    given = 0
    def take(t_ns, x_deg, y_deg, valid):
        global given
        given += len(t_ns)
    with Ledger.open("sqlite://") as ledger:
        keeper = Gatekeeper(Policy({"lab": study}, consent=True), ledger, rate_hz=120.0, seed=1)
        keeper.app("lab").open_private_stream(text, take)
        for i in range(120):
            keeper.push(i * 8_333_333, 180.0, 90.0)
    print(text, given)
try:
    open_tracker("replay:recording.csv")
except MissingExtraError as error:
    print(error)
"""


def test_the_threat_model_holds_the_table_of_selections() -> None:
    page = (DOCS / "threat-model.md").read_text(encoding="utf-8")
    table = page.partition("<!-- begin gatekeeper select -->")[2].partition(
        "<!-- end gatekeeper select -->"
    )[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()
        if line.startswith("| coarse")
    ]
    assert len(rows) == 3, (
        "run python benchmarks/gatekeeper_select.py --page docs/howto/gatekeeper/threat-model.md"
    )
    for _, by, choices, _ in rows:
        assert (choices == "0.0 (0.0)") == ("gesture" in by)
