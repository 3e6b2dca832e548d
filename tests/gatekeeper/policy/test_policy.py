"""The policy: a corpus of decisions with their reasons, and what holds for every policy and every
request.
"""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil.errors import FormatError, GazeveilError, ParameterError
from gazeveil.gatekeeper.policy.decision import Request, decide
from gazeveil.gatekeeper.policy.grant import ACTIONS, SCOPES, DeviceLimits, Grant
from gazeveil.gatekeeper.policy.policy import Policy, policy_of
from gazeveil.gatekeeper.policy.presets import PRESETS
from gazeveil.gatekeeper.policy.rules import MechanismRule, judge
from tests.support.places import ROOT

CORPUS = Path(__file__).parent / "corpus"
CODES = {
    "allowed",
    "no-consent",
    "no-grant",
    "expired",
    "revoked",
    "scope",
    "mechanism",
    "parameter",
    "rate",
    "budget",
    "area",
    "origin",
    "unknown",
}
SENTENCE = re.compile(r"[A-Z].*[.?]", re.DOTALL)


def _cases(key: str) -> list[Any]:
    found = []
    for path in sorted(CORPUS.glob("*.yaml")):
        page = yaml.safe_load(path.read_text(encoding="utf-8"))
        found += [
            pytest.param({"policy": page.get("policy"), **case}, id=f"{path.stem}: {case['case']}")
            for case in page.get(key, [])
        ]
    return found


def test_the_corpus_is_large_and_meets_every_code_from_both_sides() -> None:
    cases = [p.values[0] for p in _cases("cases")]
    assert len(cases) >= 60
    assert {c["expect"]["code"] for c in cases} == CODES
    assert sum(c["expect"]["allow"] for c in cases) >= 25
    names = [c["case"] for c in [*cases, *(p.values[0] for p in _cases("refused"))]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("case", _cases("cases"))
def test_the_policy_decides_as_the_corpus_says(case: dict[str, Any]) -> None:
    policy = policy_of(case["policy"])
    decision = decide(policy, Request(**case["request"]))
    expect = case["expect"]
    assert (decision.allow, decision.code) == (expect["allow"], expect["code"]), decision
    assert expect["reason"] in decision.reason
    assert SENTENCE.fullmatch(decision.reason)
    assert "\n" not in decision.reason
    # What a policy says does not change by being written down and read again.
    assert decide(Policy.parse(policy.text()), Request(**case["request"])) == decision


@pytest.mark.parametrize("case", _cases("refused"))
def test_a_policy_that_is_wrong_is_refused_with_the_key_and_what_is_allowed(
    case: dict[str, Any],
) -> None:
    with pytest.raises(ParameterError) as error:
        policy_of(case["policy"])
    assert case["reason"] in str(error.value)
    assert "\n" not in str(error.value)


def test_a_policy_is_read_and_written_and_a_tenth_is_a_tenth() -> None:
    toml = """
        consent = true
        [device]
        epsilon = 0.3
        [apps.shop]
        scopes = ["samples"]
        budgets = { epsilon = 0.1, rho = "1/3" }
        most_hz = 59.94
        expires = 2030-01-31T12:00:00Z
        [[apps.shop.mechanisms]]
        name = "kaleido"
        parameters = { epsilon = "<= 0.3", w = "60..240", r_deg = 2.5, h = [2, 3], after = "any" }
    """
    one = Policy.parse(toml)
    assert one == Policy.parse(one.text())
    grant = one.apps["shop"]
    assert (one.device.epsilon, dict(grant.budgets)) == (
        Fraction(3, 10),
        {"epsilon": Fraction(1, 10), "rho": Fraction(1, 3)},
    )
    assert grant.mechanisms[0].parameters["r_deg"] == ("=", Fraction(5, 2))
    assert grant.expires_ns == 1896091200 * 10**9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("consent = tru", "The policy is not TOML"),
        ("consent: true", "The policy is not TOML"),
        ("consent = true\nconsent = false", "The policy is not TOML"),
        ("[device]\nepsilon = 1e999999999", "must be an exact number"),
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply|not TOML"),
        ("#" * 1_000_001, "at most 1000000 characters"),
    ],
)
def test_texts_that_are_no_policies_get_one_clear_sentence(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message) as error:
        Policy.parse(text)
    assert "\n" not in str(error.value)


def test_a_policy_is_loaded_from_a_file_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.TOML").write_text("consent = true")
    assert Policy.load(tmp_path / "a.TOML").consent
    (tmp_path / "a.yaml").write_text("consent: true")
    with pytest.raises(FormatError, match=r"ends in \.toml"):
        Policy.load(tmp_path / "a.yaml")
    with pytest.raises(FormatError, match="cannot be read"):
        Policy.load(tmp_path / "nowhere.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FormatError, match="not UTF-8"):
        Policy.load(tmp_path / "b.toml")
    (tmp_path / "c.toml").write_text("consents = true")
    with pytest.raises(FormatError, match=r"c\.toml: The policy has no key 'consents'"):
        Policy.load(tmp_path / "c.toml")


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda p: p.name)
def test_a_preset_says_what_it_means_and_names_the_platform_level(preset: Any) -> None:
    assert SENTENCE.fullmatch(preset.means)
    assert "removed" in preset.means or "recognised" in preset.means
    assert preset.platform in {"coarse", "fine"}
    assert preset.grant() == Grant(**{k: getattr(preset, k) for k in Grant.__dataclass_fields__})
    assert Policy.parse(Policy({"a": preset.grant()}).text()).apps["a"] == preset.grant()
    # A grant that can never be used would be a trap.
    policy = Policy({"a": preset}, consent=True)
    for scope in preset.scopes - {"samples"}:
        assert decide(policy, Request("a", scope)).allow
    for rule in preset.mechanisms:
        assert any(
            decide(policy, Request("a", "stream", text, rate_hz=60.0)).allow
            for text in _inside(rule)
        ), rule
    assert pickle.loads(pickle.dumps(preset)) == preset


def _inside(rule: MechanismRule) -> list[str]:
    """Texts that take every bound at its edge."""
    edges = {n: v for n, (sign, v) in rule.parameters.items() if sign in {"<=", ">=", "="}}
    return [f"{rule.name}:" + ",".join(f"{n}={v}" for n, v in edges.items())]


def test_the_manual_tells_every_code_and_sentence_and_its_policy_works() -> None:
    apps, wearer, running = (
        (ROOT / "docs" / "howto" / "gatekeeper" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("apps", "wearer", "running")
    )
    for code in set(CODES) - {"allowed"}:
        assert f"`{code}`" in apps, code
    for name, preset in PRESETS.items():
        could = "yes" if preset.recognise else "no"
        assert f"| `{name}` | {preset.sentence} | {could} |" in wearer
    policy = Policy.parse(re.findall(r"```toml\n(.*?)```", running, re.DOTALL)[0])
    assert policy.apps["shop"].scopes == PRESETS["count"].scopes
    assert decide(policy, Request("game", "select")).allow


def test_no_preset_offers_what_is_not_proved() -> None:
    assert not [p.name for p in PRESETS.values() if any(r.unproved for r in p.mechanisms)]


def test_a_verdict_names_the_currency_and_the_stride() -> None:
    rules = (
        MechanismRule("gaussian", {"sigma_deg": ("any", None)}),
        MechanismRule(
            "gaussian", {"sigma_deg": ("any", None), "reading": ("=", "published")}, unproved=True
        ),
        MechanismRule("chain", {"stages": ("=", "gaussian(sigma_deg=3)+temporal(K=3)")}),
        MechanismRule(
            "kaleido", {"epsilon": ("any", None), "w": ("any", None), "r_deg": ("any", None)}
        ),
    )
    texts = (
        "gaussian:sigma_deg=3",
        "gaussian:sigma_deg=3,reading=published",
        "chain:stages=gaussian(sigma_deg=3)+temporal(K=3)",
        "kaleido:epsilon=1,w=60,r_deg=2",
    )
    assert [(v.currency, v.stride) for v in (judge(rules, text) for text in texts)] == [
        ("rho", 1),
        ("samples", 1),
        ("rho", 3),
        ("epsilon", 1),
    ]


@pytest.mark.parametrize("word", ["any", "<= 5", "1..9", "table", 'a"b', "none"])
def test_a_word_that_looks_like_a_bound_reads_back_as_the_word(word: str) -> None:
    rule = MechanismRule(
        "kaleido",
        {"epsilon": ("in", (1, 2)), "w": ("=", 60), "r_deg": ("=", 2), "after": ("=", word)},
    )
    policy = Policy({"a": Grant(frozenset({"samples"}), (rule,))})
    assert Policy.parse(policy.text()) == policy


def test_nought_and_one_are_not_false_and_true() -> None:
    rules = (MechanismRule("clock-render", {"epsilon": ("any", None), "r_deg": ("any", None)}),)
    assert judge(rules, "clock-render:epsilon=1,r_deg=2,pursuit=True").code == "allowed"
    assert (
        judge(rules, "clock-render:epsilon=1,r_deg=2,pursuit=1").reason
        == "The parameter 'pursuit' of clock-render must be true; 1 was asked for."
    )


def test_a_stride_counts_for_the_rate() -> None:
    three, two = (f"gaussian(sigma_deg=3)+temporal(K={K})" for K in (3, 2))
    rules = tuple(MechanismRule("chain", {"stages": ("=", stages)}) for stages in (three, two))
    policy = Policy(
        {"a": Grant(frozenset({"samples"}), rules, most_hz=40.0, budgets={"rho": Fraction(1)})},
        consent=True,
    )
    assert decide(policy, Request("a", "stream", f"chain:stages={three}", rate_hz=120.0)).allow
    assert (
        decide(policy, Request("a", "stream", f"chain:stages={two}", rate_hz=120.0)).code == "rate"
    )


def test_values_cannot_be_changed_and_equal_rules_are_one_key() -> None:
    rule = MechanismRule("gaussian", {"sigma_deg": (">=", "0.5")})
    same = MechanismRule("gaussian", {"sigma_deg": (">=", 0.5)})
    assert (rule, hash(rule)) == (same, hash(same))
    with pytest.raises(TypeError):
        rule.parameters["sigma_deg"] = ("any", None)  # type: ignore[index]
    policy = Policy({"a": Grant(budgets={"epsilon": Fraction(1)})})
    for table in (policy.apps, policy.apps["a"].budgets):
        with pytest.raises(TypeError):
            table["b"] = None  # type: ignore[index]
    assert pickle.loads(pickle.dumps(policy)) == policy


# --- for every policy and every request
# -------------------------------------------------------------------------------------------

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
TEXTS = st.one_of(
    st.sampled_from(
        [
            "gaussian:sigma_deg=5",
            "gaussian:sigma_deg=1",
            "kaleido:epsilon=1,w=60,r_deg=2",
            "temporal:K=2",
            "spatial:L=64",
            "gaussian:",
            "x:y=z",
        ]
    ),
    st.text(max_size=40),
    st.builds(
        "{}:{}={}".format,
        st.sampled_from(["gaussian", "kaleido", "chain", "temporal"]),
        st.text(max_size=9),
        st.text(max_size=9),
    ),
    st.builds(
        "gaussian:sigma_deg={}".format,
        st.one_of(st.floats(), st.integers(), st.fractions(), st.text(max_size=12)),
    ),
)
APPS = ("a", "b")
GRANTS = st.builds(
    Grant,
    scopes=st.frozensets(st.sampled_from(sorted(SCOPES))).map(lambda s: s | {"samples"}),
    mechanisms=st.lists(
        st.sampled_from(
            [
                MechanismRule("gaussian", {"sigma_deg": (">=", 3)}),
                MechanismRule(
                    "gaussian",
                    {"sigma_deg": ("any", None), "reading": ("any", None)},
                    unproved=True,
                ),
                MechanismRule(
                    "kaleido", {"epsilon": ("<=", 1), "w": (">=", 60), "r_deg": (">=", 2)}
                ),
                MechanismRule("chain", {"stages": ("=", "gaussian(sigma_deg=5)+temporal(K=2)")}),
            ]
        ),
        max_size=3,
    ).map(tuple),
    areas=st.integers(0, 3),
    calls_per_minute=st.integers(0, 3),
    streams=st.integers(0, 2),
    most_hz=st.one_of(st.none(), st.floats(1, 1000)),
    budgets=st.dictionaries(st.sampled_from(["epsilon", "rho", "samples"]), st.fractions(0, 3)),
    expires_ns=st.one_of(st.none(), st.integers(0, 10)),
    origins=st.sampled_from([(), ("https://a.example",), ("https://a.example",) * 2]),
    revoked=st.booleans(),
)
POLICIES = st.builds(
    Policy,
    st.dictionaries(st.sampled_from(APPS), GRANTS),
    st.just(DeviceLimits()),
    st.sampled_from([True, True, True, False]),
)
REQUESTS = st.builds(
    Request,
    app=st.sampled_from(APPS),
    action=st.sampled_from(ACTIONS),
    mechanism=st.one_of(st.none(), TEXTS),
    now_ns=st.integers(0, 12),
    calls_last_minute=st.integers(0, 4),
    open_streams=st.integers(0, 3),
    origin=st.sampled_from([None, "https://a.example", "https://b.example"]),
    rate_hz=st.one_of(st.none(), st.floats()),
    areas=st.one_of(st.none(), st.integers(0, 4)),
)
WILD = st.builds(Request, **dict.fromkeys(Request.__dataclass_fields__, ANYTHING))


@settings(max_examples=150)
@given(POLICIES, st.one_of(REQUESTS, WILD))
def test_a_decision_never_raises_is_always_the_same_and_always_has_a_reason(
    policy: Policy, request: Request
) -> None:
    decision = decide(policy, request)
    assert decision == decide(policy, request)
    assert decision.code in CODES
    assert decision.allow == (decision.code == "allowed")
    assert SENTENCE.fullmatch(decision.reason)
    assert len(decision.reason) < 700


@settings(max_examples=150)
@given(POLICIES, REQUESTS, st.data())
def test_taking_something_away_never_allows_more(
    policy: Policy, request: Request, data: st.DataObject
) -> None:
    app = data.draw(st.sampled_from(APPS))
    ways = [policy.without(app), replace(policy, consent=False)]
    if app in policy.apps:
        grant = policy.apps[app]
        less = [
            replace(grant, revoked=True),
            replace(
                grant,
                scopes=grant.scopes
                - {data.draw(st.sampled_from(sorted(set(SCOPES) - {"samples"})))},
            ),
            replace(grant, mechanisms=grant.mechanisms[1:]),
            replace(grant, mechanisms=tuple(r for r in grant.mechanisms if not r.unproved)),
            replace(grant, budgets={}),
            replace(grant, origins=()),
            replace(grant, areas=0),
            replace(grant, streams=0),
            replace(grant, calls_per_minute=0),
            replace(grant, most_hz=1e-3),
            replace(grant, expires_ns=0),
        ]
        ways += [policy.with_grant(app, one) for one in less]
    chosen = data.draw(st.sampled_from(ways))
    if decide(chosen, request).allow:
        assert decide(policy, request).allow


@settings(max_examples=150)
@given(POLICIES)
def test_every_policy_reads_back_as_itself(policy: Policy) -> None:
    assert Policy.parse(policy.text()) == policy


@settings(max_examples=200)
@given(
    st.recursive(
        ANYTHING,
        lambda inner: st.dictionaries(
            st.sampled_from(["apps", "device", "consent", "shop", "scopes", "mechanisms", "x"]),
            inner,
        ),
    )
)
def test_tables_that_are_no_policies_are_refused_by_our_own_error_alone(tree: object) -> None:
    try:
        policy = policy_of(tree)
    except GazeveilError:
        return
    assert not any(g.scopes for g in policy.apps.values()) or policy.apps


@pytest.mark.parametrize(
    "text",
    [
        "gaussian:sigma_deg=1" + "0" * 60,
        "gaussian:sigma_deg=1/" + "9" * 41,
        "gaussian:sigma_deg=1e99",
        "gaussian:sigma_deg=1e-99",
    ],
)
def test_numbers_of_unusual_size_get_a_verdict_at_once(text: str) -> None:
    rules = (MechanismRule("gaussian", {"sigma_deg": ("any", None)}),)
    assert judge(rules, text).code in {"allowed", "parameter", "mechanism"}
