"""Kaleido with an r that follows the regions of a stimulus: public, or not."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.gatekeeper.policy.decision import Request, decide
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.run import judge as judge_game
from gazeveil.privacy.promise.loss import Change
from gazeveil.privacy.rational import format_exact
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.stream.chain import Chain
from gazeveil.privacy.stream.kaleido.mechanism import regions_on
from gazeveil.privacy.stream.mechanism import StreamMechanism

SCREEN = Screen(1920, 1080, 600.0, 340.0, 600.0)
FAMILY = ("kaleido", "kaleido-uniform")

AREAS = """unit = "deg"
area = [
  {stimulus = "page", name = "title", left = -8.0, top = -6.0, right = 8.0, bottom = 6.0},
  {stimulus = "page", name = "button", left = 10.0, top = 2.0, right = 13.0, bottom = 6.0},
  {stimulus = "face", name = "eyes", left = 0.0, top = 0.0, right = 4.0, bottom = 3.0},
]
"""


@pytest.fixture
def areas(tmp_path: Path) -> str:
    path = tmp_path / "areas.toml"
    path.write_text(AREAS, "utf-8")
    return str(path)


def _recording(stimulus: str, space: Any = SCREEN, n: int = 400) -> Recording:
    t = np.arange(n)
    x, y = 9.0 + 3.0 * np.sin(t / 9.0), 4.0 * np.cos(t / 7.0)
    return Recording("p", stimulus, t * 10_000_000, x, y, space=space, rate_hz=100.0)


def _kaleido(areas: str, name: str = "kaleido", **more: Any) -> Any:
    return mechanism(name, **{"epsilon": 2, "w": 50, "r_deg": "largest", "regions": areas, **more})


# --- which r
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "stimulus", "r_deg"),
    [("largest", "page", 20), ("median", "page", 5), ("largest", "face", 5)],
)
def test_r_is_as_wide_as_a_region_of_the_stimulus(
    areas: str, rule: str, stimulus: str, r_deg: int
) -> None:
    made = _kaleido(areas, r_deg=rule, stimulus=stimulus)
    assert made.radius_deg(SCREEN) == r_deg


@pytest.mark.parametrize("across", [0.1, 1 / 3, 7.3, 21.21])
def test_widths_are_rounded_up_and_by_less_than_a_1024th(tmp_path: Path, across: float) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"name,left_deg,top_deg,right_deg,bottom_deg\na,0,0,{across!r},{across!r}\n")
    (width,) = regions_on("k", str(path), "s", SCREEN).widths_deg
    exact = 2 * Fraction(across) ** 2
    assert (width - Fraction(1, 1024)) ** 2 < exact <= width**2


@pytest.mark.parametrize("polar", [(80.0, 100.0), (5.0, 20.0), (0.0, 180.0), (150.0, 175.0)])
@pytest.mark.parametrize("across", [10.0, 170.0, 350.0])
def test_no_two_places_of_a_region_on_a_sphere_are_farther_apart_than_r(
    tmp_path: Path, polar: tuple[float, float], across: float
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "stimulus,name,left_deg,top_deg,right_deg,bottom_deg\n"
        f"s,a,0,{polar[0]},{across},{polar[1]}\n"
    )
    r_deg = float(regions_on("k", str(path), "s", Sphere()).r_deg("largest"))
    x, y = np.meshgrid(np.linspace(0, across, 12), np.linspace(*polar, 12))
    places = Sphere().vectors(x.ravel(), y.ravel())
    apart = np.degrees(np.arccos(np.clip(places @ places.T, -1, 1)))
    assert apart.max() <= r_deg + 1e-6


@pytest.mark.parametrize("name", FAMILY)
def test_a_recording_is_released_as_with_the_r_of_its_stimulus_given_as_a_number(
    areas: str, name: str
) -> None:
    made = _kaleido(areas, name)
    for stimulus in ("page", "face"):
        radius = _kaleido(areas, name, stimulus=stimulus).radius_deg(SCREEN)
        plain = mechanism(name, epsilon=2, w=50, r_deg=radius)
        ours = made.release(_recording(stimulus), seed=3).data
        theirs = plain.release(_recording(stimulus), seed=3).data
        np.testing.assert_array_equal(ours.x_deg, theirs.x_deg)
        assert made.noise_scale_deg(ours) is not None
    live = _kaleido(areas, name, stimulus="face").open(100.0, SCREEN, seed=3)
    assert isinstance(plain, StreamMechanism)  # that of the face
    fixed = plain.open(100.0, SCREEN, seed=3)
    r = _recording("face")
    samples = r.t_ns, r.x_deg, r.y_deg, r.valid
    np.testing.assert_array_equal(live.push(*samples)[1], fixed.push(*samples)[1])


def test_r_does_not_depend_on_gaze(areas: str) -> None:
    # The same noise on gaze elsewhere, shifted by whole steps of the lattice, is shifted as much.
    made = _kaleido(areas, l_thresh_deg=0, epsilon=1000)
    one = _recording("page").with_(x_deg=np.full(400, -12.0), y_deg=np.zeros(400))
    two = one.with_(x_deg=np.full(400, 12.0))
    left, right = (made.release(r, seed=1).data.x_deg for r in (one, two))
    np.testing.assert_allclose(right[:5] - left[:5], 24.0, atol=1e-9)


# --- what is promised
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILY)
def test_the_guarantee_gives_the_r_of_every_stimulus_and_that_regions_are_public(
    areas: str, name: str
) -> None:
    made = _kaleido(areas, name)
    cohort = Cohort([_recording("page"), _recording("face")])
    promised = made.release(cohort).guarantee
    face, page = (_kaleido(areas, stimulus=s).radius_deg(SCREEN) for s in ("face", "page"))
    assert promised.map(Change.window(50, move_deg=face)).epsilon == 2
    assert promised.map(Change.window(50, move_deg=page)).epsilon == 2 * -(-page // face)
    text = str(promised)
    for r in (face, page):
        assert f"on a stimulus whose r is {format_exact(r)} degrees, moved by at most that" in text
    assert "page" not in text  # a release may withhold names of stimuli
    assert "face" not in text
    assert "regions of interest of every stimulus are public" in text
    assert promised.status == "proved"


def test_the_median_says_which_regions_it_does_not_span(areas: str) -> None:
    promised = _kaleido(areas, r_deg="median", stimulus="page").promise(100.0, SCREEN)
    assert any("inside the region that is wider" in clause for clause in promised.not_covered)
    assert not _kaleido(areas, stimulus="page").promise(100.0, SCREEN).not_covered


def test_regions_on_every_stimulus_serve_those_without_any(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(AREAS.replace('"face"', '"*"'), "utf-8")
    made = _kaleido(str(path))
    assert made.release(_recording("anything"), seed=1).data.x_deg.shape == (400,)
    assert len(made.promise(100.0, SCREEN).also) == 2


@pytest.mark.parametrize("chained", [False, True])
def test_where_the_file_lies_is_not_told(areas: str, chained: bool, tmp_path: Path) -> None:
    Path(areas).write_text(AREAS.replace("-8.0", "4.0").replace("-6.0", "4.0"), "utf-8")
    made: Any = mechanism(f"kaleido:epsilon=2,w=50,r_deg=largest,regions={areas},stimulus=page")
    if chained:
        made = mechanism("chain", stages=[made])
    release = made.release(_recording("page"), seed=1)
    shown = str(release.provenance.to_dict())
    assert "areas.toml" in shown
    assert str(tmp_path) not in shown + str(release.guarantee)
    assert str(mechanism(str(made))) == str(made)


def test_a_chain_takes_regions_of_several_stimuli_in_pixels_of_a_screen(tmp_path: Path) -> None:
    path = tmp_path / "pixels.csv"
    path.write_text(
        "stimulus,name,left_px,top_px,right_px,bottom_px\n"
        "page,text,100,100,700,300\nface,eyes,500,200,600,250\n",
        "utf-8",
    )
    stage = f"kaleido(epsilon=200;w=50;r_deg=largest;regions={path})"
    alone, chain = _kaleido(str(path), epsilon=200), mechanism("chain", stages=stage)
    assert isinstance(chain, Chain)
    assert chain.claim.definition == "epsilon-w-r-dp"
    cohort = Cohort([_recording("page"), _recording("face")])
    released = chain.release(cohort, seed=1)
    assert released.guarantee.numbers == alone.release(cohort, seed=1).guarantee.numbers
    assert len(released.guarantee.also) >= 2  # the r of each stimulus
    page, face = (chain.on_stimulus(s).stages[0].radius_deg(SCREEN) for s in ("page", "face"))
    assert page > 3 * face  # each has the noise of its own regions
    # A stage before it moves gaze farther: r costs more than epsilon, and nothing else is said.
    moved = mechanism("chain", stages=f"spatial(L=64)+{stage}")
    assert isinstance(moved, Chain)
    behind = moved.promise(100.0, SCREEN)
    assert behind.numbers["epsilon"] > alone.promise(100.0, SCREEN).numbers["epsilon"]
    assert behind.also == ()


def test_the_audit_of_one_r_per_stimulus_finds_nothing(areas: str) -> None:
    game = _kaleido(areas, stimulus="face", epsilon=1).audit_game(None)
    # One run in a million refutes honest noise by chance.
    assert not judge_game("largest", game, 2000, 1 - 1e-6).refuted


# --- what is refused
# --------------------------------------------------------------------------------------------------


def test_a_stimulus_without_regions_is_an_error_that_names_it(areas: str) -> None:
    with pytest.raises(DataError, match=r"No region .* lies on the stimulus 'desert'"):
        _kaleido(areas).release(_recording("desert"))


def test_a_live_stream_must_say_what_it_shows(areas: str) -> None:
    with pytest.raises(ParameterError, match="'stimulus' parameter of kaleido"):
        _kaleido(areas).open(100.0, SCREEN)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"r_deg": "largest"}, "'regions' parameter of kaleido"),
        ({"r_deg": "widest", "regions": "a.toml"}, "'r_deg' parameter of kaleido"),
        ({"r_deg": 2, "regions": "a.toml"}, "'r_deg' parameter of kaleido"),
        ({"r_deg": 2, "stimulus": "s"}, "'stimulus' parameter of kaleido"),
        ({"r_deg": "wide"}, "'r_deg' parameter of kaleido"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_file_is_opened(
    parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        mechanism("kaleido", epsilon=1, w=50, **parameters)


def test_a_file_that_is_not_there_is_one_sentence() -> None:
    made = _kaleido("/nowhere/areas.toml")
    with pytest.raises(FormatError):
        made.promise(100.0, SCREEN)


def test_an_app_cannot_make_a_gatekeeper_open_a_file(areas: str, tmp_path: Path) -> None:
    plain = "kaleido:epsilon=1,w=60,r_deg=2"
    grant = Grant(frozenset({"samples"}), (plain,), budgets={"epsilon": 10}, streams=1)
    policy = Policy({"app": grant}, consent=True)
    (tmp_path / "secret.json").write_text('{"password": 1}')
    reasons = set()
    for file in (tmp_path / "secret.json", areas, "none.toml"):
        text = f"kaleido:epsilon=1,w=60,r_deg=largest,regions={file}"
        decision = decide(policy, Request("app", "samples", text))
        assert decision.code == "mechanism"
        reasons.add(decision.reason)
    assert len(reasons) == 1  # it was not even looked at
    assert decide(policy, Request("app", "samples", plain)).code == "allowed"


def test_a_grant_names_no_file_because_the_app_is_told_its_grant(areas: str) -> None:
    named = f"kaleido:epsilon=1,w=60,r_deg=largest,regions={areas},stimulus=page"
    with pytest.raises(ParameterError, match="would be told where a file"):
        Grant(frozenset({"samples"}), (named,))


def test_results_and_pages_give_the_name_of_the_file_alone(areas: str, tmp_path: Path) -> None:
    from gazeveil.explore.board import parse_slider

    people = [_recording("page").with_(person=f"p{i}", session=s) for i in range(3) for s in "ab"]
    text = f"kaleido:epsilon=2,w=50,r_deg=largest,regions={areas}"
    (tmp_path / "broken.toml").write_text("[[area]]\nleft = 'x'\n")
    utilities = ["signal", f"aoi:areas={areas}", f"dwell:areas={tmp_path / 'broken.toml'}"]
    results = gazeveil.evaluate(Cohort(people), [text], attacks=[], utilities=utilities, seed=1)
    assert "aoi:areas=areas.toml" in results.frame["utility"].to_list()
    assert results.failures[0]["cell"].startswith("dwell:areas=broken.toml,")
    results.write(tmp_path / "results")
    results.report(tmp_path / "report.html")
    written = [tmp_path / "report.html", *(tmp_path / "results").rglob("*")]
    for held in (f.read_bytes() for f in written if f.is_file()):
        assert str(tmp_path).encode() not in held
    assert set(results.frame["parameters"].to_list()) >= {
        mechanism(text).public_text.partition(":")[2].removesuffix(",reading=corrected")
    }
    shown = parse_slider(f"kaleido:epsilon=2|3,w=50,r_deg=largest,regions={areas}").public_texts
    assert "regions=areas.toml" in shown[1]
    other = tmp_path / "other"
    other.mkdir()
    (other / "areas.toml").write_text(Path(areas).read_text())
    twice = f"kaleido:epsilon=2,w=50,r_deg=largest,regions={other / 'areas.toml'}"
    with pytest.raises(ParameterError, match="same name in different folders"):
        gazeveil.evaluate(Cohort(people), [text, twice], utilities=["signal"])
    same = [f"aoi:areas={areas}", f"aoi:areas={other / 'areas.toml'}"]
    with pytest.raises(ParameterError, match="Two files of aoi have the same name"):
        gazeveil.evaluate(Cohort(people), [], utilities=same)


def test_a_relay_takes_the_r_of_what_is_shown(areas: str) -> None:
    from gazeveil.relay.protector import Protector

    text = f"kaleido-uniform:epsilon=5,w=60,r_deg=largest,regions={areas},stimulus=page"
    assert "r = 20 degrees" in str(Protector(text, 100.0, SCREEN).guarantee)
