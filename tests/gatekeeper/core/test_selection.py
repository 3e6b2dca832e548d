"""Selection by gaze: one choice, nothing before it, and what an app could still try."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gazeveil.gatekeeper import (
    PRESETS,
    AuditLog,
    Denied,
    Gatekeeper,
    Grant,
    Ledger,
    LedgerError,
    Policy,
    Subscription,
    Target,
)
from gazeveil.gatekeeper.core.areas import LEVELS, MOST_TARGETS, place
from gazeveil.gatekeeper.core.ongoing_fixation import OngoingFixation
from gazeveil.gatekeeper.core.quantise import EventQuantiser
from gazeveil.gatekeeper.core.selection import (
    DWELLS_PER_MINUTE,
    LEAST_DWELL_MS,
    MOST_OPEN,
    PER_MINUTE,
    Selection,
)
from gazeveil.gaze.geometry import Grid, Screen, Sphere
from tests.support.gatekeeper_running import until
from tests.support.wearers import Trace, looks

RADIO, LAMP = Target("radio", 100, 80, 10, 10), Target("lamp", 140, 80, 10, 10)
ON_RADIO, ON_LAMP, NOWHERE = (105.0, 85.0), (145.0, 85.0), (230.0, 120.0)

SELECT = PRESETS["choose"].grant(calls_per_minute=10**6)


@dataclass
class Wearer:
    """A Gatekeeper whose apps may select and nothing else, a clock that follows the gaze, and what
    each app hears.
    """

    apps: tuple[str, ...] = ("a",)
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now_ns = 10**18
        ledger = self.options.pop("ledger", None) or Ledger.open("sqlite://")
        self.keeper = Gatekeeper(
            Policy(dict.fromkeys(self.apps, SELECT), consent=True),
            ledger,
            rate_hz=100.0,
            seed=1,
            clock_ns=lambda: self.now_ns,
            **self.options,
        )
        self.heard: list[tuple[str, str]] = []
        self.t_ns = 0

    def select(self, *targets: Target, app: str = "a", **options: Any) -> Subscription:
        subscription = self.keeper.app(app).select(
            targets or (RADIO, LAMP), lambda name: self.heard.append((app, name)), **options
        )
        subscription.on_end(lambda reason, code: self.heard.append((app, f"ended {code}")))
        return subscription

    def push(self, trace: Trace) -> None:
        t, x, y = trace
        self.now_ns += int(t[-1]) + 10_000_000
        self.keeper.push(t + self.t_ns, x, y)
        self.t_ns += int(t[-1]) + 10_000_000

    def look(self, *places: tuple[float, float], each_s: float = 0.4) -> None:
        """Come from elsewhere, then rest on places one after the other."""
        self.push(looks([NOWHERE, *places], each_s=each_s))


CHOSEN = [("a", "lamp"), ("a", "ended chosen")]


# --- choosing
# --------------------------------------------------------------------------------------------------


def test_a_rest_on_a_target_chooses_it_once_and_nothing_is_told_before() -> None:
    wearer = Wearer()
    subscription = wearer.select(by="dwell", dwell_ms=800)
    wearer.look(ON_RADIO, ON_LAMP, ON_RADIO, each_s=0.7)
    assert wearer.heard == []
    wearer.look(ON_LAMP, each_s=1.0)
    assert wearer.heard == CHOSEN
    assert (subscription.code, subscription.ended) == ("chosen", "The wearer has chosen.")
    wearer.look(ON_RADIO, ON_LAMP, each_s=2.0)
    assert wearer.heard == CHOSEN, "one choice, and no word after it"


def test_a_gesture_chooses_what_the_eye_rests_on() -> None:
    wearer = Wearer()
    wearer.select()
    wearer.look(ON_LAMP, ON_RADIO, ON_LAMP, each_s=5.0)
    assert wearer.heard == [], "without the gesture a look of any length is no choice"
    wearer.keeper.confirm()
    assert wearer.heard == CHOSEN
    wearer.keeper.confirm()
    assert wearer.heard == CHOSEN


def test_a_gesture_may_come_a_little_late_and_not_later() -> None:
    for away_s, heard in ((0.2, CHOSEN), (0.6, [])):
        wearer = Wearer()
        wearer.select()
        wearer.look(ON_LAMP, each_s=1.0)
        n = round(away_s * 100)
        wearer.push(
            (np.arange(n) * 10_000_000, np.full(n, np.nan), np.full(n, np.nan))
        )  # the eyes are closed
        wearer.keeper.confirm()
        assert wearer.heard == heard, away_s


def test_a_tracker_that_is_silent_or_gone_chooses_nothing() -> None:
    wearer = Wearer()
    wearer.select()
    wearer.look(ON_LAMP, each_s=1.0)
    wearer.now_ns += 21 * 10**8
    wearer.keeper.confirm()
    assert wearer.heard == []
    wearer.look(ON_LAMP, each_s=1.0)
    wearer.keeper.lost()
    wearer.keeper.confirm()
    assert wearer.heard == []
    # A step in time without samples is no rest.
    wearer = Wearer()
    wearer.select(by="dwell")
    wearer.look(ON_LAMP, each_s=0.4)
    wearer.t_ns += 5 * 10**9
    wearer.push(looks([ON_LAMP], each_s=0.4))
    assert wearer.heard == []


def test_small_saccades_and_blinks_do_not_break_a_rest_and_following_something_is_none() -> None:
    wearer = Wearer()
    wearer.select(by="dwell")
    wearer.look(ON_LAMP, (146.2, 85.0), (145.0, 86.0), (146.0, 85.5), each_s=0.25)
    assert wearer.heard == CHOSEN
    wearer = Wearer()
    wearer.select(Target("wide", 100, 60, 60, 60), by="dwell")
    wearer.look(
        (105.0, 85.0),
        (112.0, 85.0),
        (119.0, 85.0),
        (126.0, 85.0),
        (133.0, 85.0),
        (140.0, 85.0),
        each_s=0.45,
    )
    assert wearer.heard == [], "looking about inside a large target is no rest"
    wearer.look((105.0, 85.0))
    n = 300
    wearer.push(
        (np.arange(n) * 10_000_000, 105.0 + 0.1 * np.arange(n), np.full(n, 85.0))
    )  # 10 degrees a second
    assert wearer.heard == [], "nor is following something through it"


# --- what an app may try
# --------------------------------------------------------------------------------------------------


def test_one_look_cannot_be_searched_with_one_selection_after_the_other() -> None:
    """The attack: the wearer rests for long, and the app halves the place again and again with
    dwell targets.
    """
    wearer = Wearer()
    wearer.look(ON_LAMP, each_s=2.0)
    low, high = 0.0, 360.0
    for _ in range(PER_MINUTE):
        middle = (low + high) / 2
        subscription = wearer.select(
            Target("left", low, 0, middle - low, 180),
            Target("right", middle, 0, high - middle, 180),
            by="dwell",
            dwell_ms=500,
        )
        wearer.push(looks([ON_LAMP], each_s=1.0))
        low, high = (
            (low, middle)
            if ("a", "left") in wearer.heard
            else (middle, high)
            if ("a", "right") in wearer.heard
            else (low, high)
        )
        subscription.close()
        wearer.heard.clear()
    assert (low, high) == (0.0, 360.0), (
        "a look that began before the targets were known answers nothing"
    )
    # The control: a look that begins after them is a choice.
    wearer.now_ns += 60 * 10**9
    wearer.select(
        Target("left", 0, 0, 180, 180), Target("right", 180, 0, 180, 180), by="dwell", dwell_ms=500
    )
    wearer.push(looks([ON_RADIO, ON_LAMP], each_s=0.4))
    wearer.push(looks([ON_LAMP], each_s=0.4))
    assert ("a", "left") in wearer.heard


def test_selections_are_one_for_each_tab_and_thirty_a_minute() -> None:
    wearer = Wearer()
    open_now = [wearer.select() for _ in range(MOST_OPEN)]
    assert refusal(wearer.select) == "rate"
    for one in open_now:
        one.close()
    for _ in range(PER_MINUTE - MOST_OPEN):
        wearer.select().close()
        wearer.now_ns += 10**9
    assert refusal(wearer.select) == "rate"
    wearer.now_ns -= 10**12
    assert refusal(wearer.select) == "rate", "a clock that is put back gives nothing back"
    wearer.now_ns += 10**12 + 61 * 10**9
    wearer.select()


@pytest.mark.parametrize("by", ["dwell", "confirm"])
def test_selections_of_several_tabs_do_not_search_one_look(by: str) -> None:
    """The attack: each tab cuts the view elsewhere, and one look answers all of them."""
    wearer = Wearer()
    for number in range(MOST_OPEN):
        cut_deg = 60.0 * (number + 1)
        halves = Target("left", 0, 0, cut_deg, 180), Target("right", cut_deg, 0, 360 - cut_deg, 180)
        wearer.select(*halves, by=by)
    wearer.look(each_s=0.4)
    wearer.push(looks([ON_LAMP], each_s=3.0))
    for _ in range(2):
        wearer.keeper.confirm()
        wearer.push(looks([ON_LAMP], each_s=0.5))
    assert len([name for _, name in wearer.heard if name != "ended chosen"]) == 1


def test_an_app_that_covers_the_view_hears_of_ten_rests_a_minute_and_no_more() -> None:
    """The attack: targets everywhere, chosen by the shortest rest, opened again at once; the wearer
    reads on and means nothing by it.
    """
    wearer = Wearer()
    everywhere = [Target(f"{i} {j}", 45 * i, 45 * j, 45, 45) for i in range(8) for j in range(4)]
    begun, refused = wearer.now_ns, set()
    places = [(22.0 + 45 * i, 67.0 + 45 * (i % 2)) for i in range(8)]
    n = 0
    while wearer.now_ns - begun < 58 * 10**9:
        try:
            wearer.select(*everywhere, by="dwell", dwell_ms=LEAST_DWELL_MS)
        except Denied as no:
            refused.add(no.code)
        wearer.push(looks([places[n % 8], places[(n + 1) % 8]], each_s=0.9))
        n += 2
    choices = [name for _, name in wearer.heard if name != "ended chosen"]
    assert (len(choices), refused) == (DWELLS_PER_MINUTE, {"rate"})
    wearer.select(LAMP)  # a gesture is meant, and is not counted with them
    wearer.look(ON_LAMP, each_s=1.5)
    wearer.keeper.confirm()
    assert wearer.heard[-2:] == CHOSEN


def test_nothing_counts_for_a_second_after_a_choice() -> None:
    wearer = Wearer()
    wearer.select()
    wearer.look(ON_LAMP, each_s=1.0)
    wearer.keeper.confirm()
    assert wearer.heard == CHOSEN
    wearer.select()
    for _ in range(4):
        wearer.push(looks([ON_LAMP], each_s=0.2))
        wearer.keeper.confirm()
    assert wearer.heard == CHOSEN
    wearer.push(looks([ON_LAMP], each_s=0.4))
    wearer.keeper.confirm()
    assert wearer.heard == CHOSEN * 2
    wearer.select(by="dwell", dwell_ms=500)
    wearer.push(looks([ON_RADIO, ON_LAMP], each_s=0.7))
    assert wearer.heard == CHOSEN * 2, "both looks began in the pause"


@pytest.mark.parametrize("named", [None, "a", "b"])
def test_a_place_that_two_apps_claim_tells_neither_unless_the_platform_says_whose_it_is(
    named: str | None,
) -> None:
    """The attack: an app in the background covers the whole view to hear when the wearer uses
    another.
    """
    wearer = Wearer(("a", "b"))
    wearer.select(RADIO, LAMP, app="a")
    wearer.select(Target("all", 0, 0, 360, 180), app="b")
    wearer.look(ON_LAMP, each_s=1.0)
    wearer.keeper.confirm(named)
    assert (
        wearer.heard == {None: [], "a": CHOSEN, "b": [("b", "all"), ("b", "ended chosen")]}[named]
    )


def test_the_platform_may_highlight_what_is_looked_at_and_apps_hear_nothing_of_it() -> None:
    wearer = Wearer(("a", "b"))
    lit: list[tuple[str | None, str | None]] = []
    hovering = wearer.keeper.hover(lambda app, name: lit.append((app, name)))
    wearer.select()
    wearer.look(ON_LAMP, NOWHERE, ON_RADIO, each_s=1.0)
    assert (lit, wearer.heard) == ([("a", "lamp"), (None, None), ("a", "radio")], [])
    wearer.select(Target("all", 0, 0, 360, 180), app="b")
    wearer.look(ON_LAMP, each_s=1.0)
    assert lit[3:] == [("b", "all"), (None, None)], "a place that two apps claim is neither's"
    hovering.close()
    wearer.keeper.lost()
    assert len(lit) == 5


# --- targets
# --------------------------------------------------------------------------------------------------


def refusal(call: Any) -> str:
    with pytest.raises(Denied) as no:
        call()
    assert no.value.reason.endswith(".")
    return no.value.code


@pytest.mark.parametrize(
    ("targets", "code"),
    [
        ([], "parameter"),
        ([Target(str(i), 5.0 * i, 80, 5, 5) for i in range(MOST_TARGETS + 1)], "parameter"),
        ([RADIO, RADIO], "parameter"),
        ([Target("", 0, 0, 10, 10)], "parameter"),
        ([Target("x" * 65, 0, 0, 10, 10)], "parameter"),
        ([Target(7, 0, 0, 10, 10)], "parameter"),  # type: ignore[arg-type]
        ([("radio", 0, 0, 10, 10)], "parameter"),
        ("radio", "parameter"),
        ([Target("x", float("nan"), 0, 10, 10)], "area"),
        ([Target("x", 0, 0, 0, 10)], "area"),
        ([Target("x", 0, 0, 10, -1)], "area"),
        ([Target("x", "1", 0, None, 10)], "area"),  # type: ignore[arg-type]
        ([Target("x", 10**400, 0, 10, 10)], "area"),
    ],
)
def test_targets_that_are_none_are_refused(targets: Any, code: str) -> None:
    app = Wearer().keeper.app("a")
    assert refusal(lambda: app.select(targets, print)) == code


@pytest.mark.parametrize(
    "options",
    [
        {"by": "look"},
        {"by": None},
        {"dwell_ms": LEAST_DWELL_MS - 1},
        {"dwell_ms": 10_001},
        {"dwell_ms": 800.0},
        {"dwell_ms": True},
    ],
)
def test_ways_of_choosing_that_are_none_are_refused(options: dict[str, Any]) -> None:
    assert refusal(lambda: Wearer().select(**options)) == "parameter"


def test_a_target_is_whole_cells_at_least_one_and_a_cell_of_two_goes_to_the_nearest_middle() -> (
    None
):
    grid = Grid(Sphere(), 5.0)
    (tiny,) = place(grid, [Target("tiny", 102.2, 81.3, 0.01, 0.01)])
    assert (
        tiny.rectangle.row,
        tiny.rectangle.column,
        tiny.rectangle.rows,
        tiny.rectangle.columns,
    ) == (16, 20, 1, 1)

    def at(targets: list[Target], x_deg: float, y_deg: float = 85.0, on: Grid = grid) -> str | None:
        selection = Selection(None, place(on, targets), "confirm", 0, 0, print)
        held = selection.at(on, on.cell(x_deg, y_deg))
        return None if held is None else held.name

    # 12 degrees wide each: the cell from 110 to 115 is of both, and its middle is nearer to the
    # second one's.
    pair = [Target("first", 100, 80, 12, 10), Target("second", 112, 80, 12, 10)]
    assert [at(pair, x) for x in (99.0, 102.0, 109.0, 111.0, 116.0, 124.0, 126.0)] == [
        None,
        "first",
        "first",
        "second",
        "second",
        "second",
        None,
    ]
    assert at([RADIO, Target("over", 100, 80, 10, 10)], 105.0) == "radio", "of equals the first"
    assert [at([Target("behind", 355, 80, 10, 10)], x) for x in (356.0, 4.0, 180.0)] == [
        "behind",
        "behind",
        None,
    ]
    screen = Grid(Screen(1920, 1080, 530, 300, 600), 1.0)
    assert [at([Target("button", -3, -2, 2, 2)], x, -1.0, screen) for x in (-2.5, 0.5)] == [
        "button",
        None,
    ]


def test_near_a_pole_a_target_has_a_cell_or_is_never_hit() -> None:
    for level in LEVELS.values():
        grid = Grid(Sphere(), level.resolution_deg)
        together = grid.numbers[5]
        for row in (0, 1, 2, grid.rows - 1):
            wide, y = int(together[row]), (row + 0.2) * grid.row_deg
            for column in range(wide):
                target = Target("x", column * grid.column_deg, y, 0.1, 0.1)
                if column == wide // 2:  # the middle of a cell of several columns
                    assert place(grid, [target])[0].rectangle.has(row, column)
                else:
                    assert not place(grid, [target])[0].rectangle.has(row, wide // 2)


def test_a_target_outside_the_space_is_never_hit_until_it_is_moved_in() -> None:
    for grid in (Grid(Sphere(), 5.0), Grid(Screen(1920, 1080, 530, 300, 600), 5.0)):
        for x, y in ((-10_000, -10_000), (-10_000, 0), (0, 500)):
            (away,) = place(grid, [Target("x", x, y, 10, 10)])
            cells = [(row, column) for row in range(grid.rows) for column in range(grid.columns)]
            assert not any(away.rectangle.has(*cell) for cell in cells)


# --- blocks
# --------------------------------------------------------------------------------------------------


def ongoing_fixations(trace: Trace, cuts: list[int], level: str) -> list[OngoingFixation]:
    quantiser = EventQuantiser(
        100.0, Sphere(), Grid(Sphere(), LEVELS[level].resolution_deg), LEVELS[level].tick_ms
    )
    found: list[OngoingFixation] = []
    valid = np.isfinite(trace[1])
    for part in np.split(np.arange(len(trace[0])), cuts):
        if len(part) == 1:
            if quantiser.one(
                int(trace[0][part[0]]),
                float(trace[1][part[0]]),
                float(trace[2][part[0]]),
                bool(valid[part[0]]),
            ):
                quantiser.look()
        elif len(part):
            quantiser.block(*(a[part] for a in trace), valid[part])
        found += quantiser.ongoing_fixations()
    quantiser.look()
    return found + quantiser.ongoing_fixations()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 799), max_size=30, unique=True),
    st.sampled_from(["coarse", "fine"]),
)
def test_however_samples_are_cut_into_blocks_the_rests_and_the_choice_are_the_same(
    seed: int, cuts: list[int], level: str
) -> None:
    rng = np.random.default_rng(seed)
    places = [(100 + float(a), 80 + float(b)) for a, b in rng.uniform(0, 50, (30, 2))]
    t, x, y = (
        a[:800]
        for a in looks(places, each_s=float(rng.uniform(0.1, 1.5)), noise_deg=0.05, seed=seed)
    )
    gone = rng.random(len(t)) < 0.03
    t = t + np.cumsum(
        rng.choice([0, 0, 0, 0, 0, 250_000_000], len(t)) * (rng.random(len(t)) < 0.02)
    )
    trace = (t, np.where(gone, np.nan, x), y)
    whole = ongoing_fixations(trace, [], level)
    assert ongoing_fixations(trace, sorted(cuts), level) == whole
    assert ongoing_fixations(trace, list(range(1, len(t))), level) == whole
    assert whole
    assert all(rest.start_ns <= rest.end_ns for rest in whole)
    targets = [
        Target(f"{i} {j}", 100 + 10 * i, 80 + 10 * j, 10, 10) for i in range(5) for j in range(5)
    ]
    chosen = []
    for parts in ([], sorted(cuts), range(1, len(t))):
        wearer = Wearer(options={"level": level})
        wearer.select(*targets, by="dwell", dwell_ms=500)
        for part in np.split(np.arange(len(t)), list(parts)):
            if len(part):
                wearer.keeper.push(*(a[part] for a in trace))
        chosen.append((wearer.heard, wearer.keeper._state.selections._chosen_ns))
    assert chosen[0] == chosen[1] == chosen[2]


# --- the owner
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["revoke", "consent", "scope", "expire", "close"])
def test_a_selection_ends_with_its_grant_and_the_next_rest_chooses_nothing(end: str) -> None:
    wearer = Wearer()
    keeper = wearer.keeper
    keeper.grant("a", PRESETS["choose"].grant(expires_ns=wearer.now_ns + 10 * 10**9))
    wearer.select(by="dwell")
    code = {
        "revoke": "revoked",
        "consent": "no-consent",
        "scope": "scope",
        "expire": "expired",
        "close": "closed",
    }[end]
    if end == "revoke":
        keeper.revoke("a")
    elif end == "consent":
        keeper.consent(False)
        keeper.consent(True)
    elif end == "scope":
        keeper.grant("a", Grant(frozenset({"tile"})))
    elif end == "expire":
        wearer.now_ns += 11 * 10**9
        keeper.confirm()
    else:
        keeper.close()
    assert wearer.heard == [("a", f"ended {code}")]
    wearer.look(ON_LAMP, each_s=2.0)
    keeper.confirm()
    assert wearer.heard == [("a", f"ended {code}")]


def test_another_wearers_gesture_does_not_choose_what_the_last_one_looked_at() -> None:
    wearer = Wearer()
    keeper = wearer.keeper
    wearer.select()
    wearer.look(ON_LAMP, each_s=1.0)
    keeper.switch_wearer(None)
    assert wearer.heard == [("a", "ended wearer")]
    keeper.switch_wearer("owner")
    wearer.select()
    keeper.confirm()
    assert wearer.heard == [("a", "ended wearer")]
    wearer.look(ON_LAMP, each_s=1.0)
    keeper.confirm()
    assert wearer.heard[1:] == CHOSEN


def test_without_its_audit_row_a_choice_is_not_told_and_the_tracker_does_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Ledger.open("sqlite://")
    log = AuditLog(ledger)
    wearer = Wearer(options={"ledger": ledger, "audit": log})
    wearer.select()
    wearer.look(ON_LAMP, each_s=1.0)
    stuck = threading.Event()

    def broken(*_: object) -> None:
        assert stuck.wait(20)
        raise LedgerError("The disk is full.")

    monkeypatch.setattr(log, "record", broken)
    wearer.keeper.confirm()
    wearer.look(ON_LAMP, each_s=1.0)  # goes on while the disk hangs
    assert wearer.heard == []
    stuck.set()
    until(lambda: len(wearer.heard) == 1)
    assert wearer.heard == [("a", "ended ledger")]
    wearer.keeper.close()


def test_a_grant_that_is_taken_back_while_the_row_is_written_gives_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Ledger.open("sqlite://")
    log = AuditLog(ledger)
    wearer = Wearer(options={"ledger": ledger, "audit": log})
    wearer.select()
    wearer.look(ON_LAMP, each_s=1.0)
    stuck, record = threading.Event(), log.record

    def slow(kind: str, *more: Any) -> None:
        if kind == "choice":
            assert stuck.wait(20)
        record(kind, *more)

    monkeypatch.setattr(log, "record", slow)
    wearer.keeper.confirm()
    wearer.keeper.revoke("a")
    stuck.set()
    wearer.keeper.close()
    assert wearer.heard == [("a", "ended revoked")]
