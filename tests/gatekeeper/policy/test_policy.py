"""The policy: decisions with their reasons, policies that are refused, and what holds for every
policy and every request.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil.errors import FormatError, GazeveilError, ParameterError
from gazeveil.gatekeeper.ledger.database import Database
from gazeveil.gatekeeper.policy.decision import Request, decide
from gazeveil.gatekeeper.policy.grant import PRESETS, SCOPES, DeviceLimits, Grant
from gazeveil.gatekeeper.policy.policy import Policy, Wearer
from gazeveil.gatekeeper.service.store import read_policy, write_policy
from tests.support.places import ROOT

SENTENCE = re.compile(r"[A-Z].*[.?]", re.DOTALL)
GAUSSIAN, KALEIDO = "gaussian:sigma_deg=9", "kaleido:epsilon=1,w=60,r_deg=2"
SHOP, EVIL = "https://shop.example", "https://shop.example.evil.example"
MOMENT_NS = 1896091200 * 10**9

POLICY = """
consent = true
[apps.shop]
scopes = ["areas", "tile"]
origins = ["https://shop.example"]
areas = 2
calls_per_minute = 10
[apps]
gone = { scopes = ["areas"], revoked = true }
dated = { scopes = ["areas"], expires = 2030-01-31T12:00:00Z }
both = { scopes = ["areas"], expires_ns = 1000, revoked = true }
nothing = {}
face = { preset = "follow" }
study = { preset = "study", streams = 2 }
poor = { scopes = ["samples"], mechanisms = ["gaussian:sigma_deg=9"], budgets = { epsilon = 1 } }
"""

DECISIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "an app gets what its grant names": ({}, "allowed", "The scope 'areas' is granted."),
    "a stranger gets nothing": ({"app": "x"}, "no-grant", "The app 'x' has no grant."),
    "names are compared to the letter": ({"app": "Shop"}, "no-grant", "'Shop'"),
    "a space makes another name": ({"app": "shop "}, "no-grant", "has no grant"),
    "control characters are made harmless": ({"app": "sh\nop'"}, "no-grant", "'sh?op?'"),
    "a long name is cut": ({"app": "a" * 80}, "no-grant", f"'{'a' * 40}' has no grant."),
    "a revoked grant is void": ({"app": "gone"}, "revoked", "was revoked"),
    "revoked comes before expired": ({"app": "both", "now_ns": 5000}, "revoked", "was revoked"),
    "a grant holds to its last moment": (
        {"app": "dated", "now_ns": MOMENT_NS - 1},
        "allowed",
        "granted",
    ),
    "at its end it is void": ({"app": "dated", "now_ns": MOMENT_NS}, "expired", "has expired"),
    "a grant of nothing gives nothing": ({"app": "nothing"}, "scope", "'areas' is not granted"),
    "a listed page may use it": ({"origin": SHOP}, "allowed", "granted"),
    "a longer host may not": ({"origin": EVIL}, "origin", f"Pages from '{EVIL[:40]}' may not use"),
    "another scheme may not": ({"origin": "http://shop.example"}, "origin", "may not use"),
    "a sandboxed page may not": ({"origin": "null"}, "origin", "may not use"),
    "a native app's grant is for no page": (
        {"app": "face", "action": "region", "origin": SHOP},
        "origin",
        "may not use",
    ),
    "raw gaze is no scope": ({"action": "raw"}, "scope", "There is no scope 'raw'. Scopes are: "),
    "a capital makes no scope": ({"action": "Tile"}, "scope", "There is no scope 'Tile'"),
    "one scope gives no other": ({"action": "events"}, "scope", "'events' is not granted"),
    "the last call of a minute": ({"calls_last_minute": 9}, "allowed", "granted"),
    "one call more": ({"calls_last_minute": 10}, "rate", "may ask 10 times a minute"),
    "the scope comes before the rate": (
        {"action": "events", "calls_last_minute": 99},
        "scope",
        "not granted",
    ),
    "one more area": ({"areas": 1}, "allowed", "granted"),
    "an area too many": ({"areas": 2}, "area", "may have 2 areas at a time. Remove one first"),
    "a preset gives its scope": ({"app": "face", "action": "region"}, "allowed", "granted"),
    "and no other": ({"app": "face", "action": "tile"}, "scope", "'tile' is not granted"),
    "a preset gives no other": (
        {"app": "face", "action": "samples", "mechanism": GAUSSIAN},
        "scope",
        "'samples' is not granted",
    ),
    "a granted mechanism": (
        {"app": "study", "action": "samples", "mechanism": KALEIDO},
        "allowed",
        "granted",
    ),
    "one written otherwise": (
        {"app": "study", "action": "samples", "mechanism": "kaleido:epsilon=1.0,w=60,r_deg=2"},
        "mechanism",
        "written as here: gaussian:sigma_deg=1; ",
    ),
    "copies of gaze": (
        {"app": "study", "action": "samples", "mechanism": "temporal:K=2"},
        "mechanism",
        "only through a mechanism that is granted",
    ),
    "no mechanism": ({"app": "study", "action": "samples"}, "mechanism", "that is granted"),
    "a stream too many": (
        {"app": "study", "action": "samples", "mechanism": KALEIDO, "open_streams": 2},
        "rate",
        "may have 2 streams open at a time",
    ),
    "a budget in another currency": (
        {"app": "poor", "action": "samples", "mechanism": GAUSSIAN},
        "budget",
        "The app 'poor' has no budget in rho, which this costs.",
    ),
    "a name that is a list": ({"app": ["shop"]}, "unknown", "cannot be read"),
    "an action that is a list": ({"action": ["tile"]}, "unknown", "cannot be read"),
    "a time that is a word": ({"now_ns": "soon"}, "unknown", "cannot be read"),
    "a count that is true": ({"calls_last_minute": True}, "unknown", "cannot be read"),
}

CODES = {code for _, code, _ in DECISIONS.values()} | {"no-consent"}


@pytest.mark.parametrize(("request_", "code", "reason"), DECISIONS.values(), ids=DECISIONS)
def test_the_policy_decides_and_says_why(request_: dict[str, Any], code: str, reason: str) -> None:
    policy, request = Policy.parse(POLICY), Request(**{"app": "shop", "action": "areas"} | request_)
    decision = decide(policy, request)
    assert (decision.allow, decision.code) == (code == "allowed", code), decision
    assert reason in decision.reason
    assert SENTENCE.fullmatch(decision.reason)
    assert "\n" not in decision.reason
    # What a policy says does not change by being written down and read again.
    assert decide(Policy.parse(policy.text()), request) == decision
    off = decide(replace(policy, consent=False), request)
    assert (off.allow, off.code) == (False, "no-consent"), "whatever a grant says"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("consents = true", "The policy has no key 'consents'. Allowed: consent, device, apps"),
        ("apps.shop.scope = []", "apps.shop has no key 'scope'. Allowed: scopes"),
        ("device.delta = 1", "device has no key 'delta'. Allowed: epsilon, rho, r_deg."),
        ("apps.shop.scopes = ['raw']", "select, tile. Got 'raw' instead."),
        ("apps.shop.scopes = 'areas'", "must be a list"),
        ("apps.s = {scopes = ['samples'], mechanisms = ['gausian']}", "Did you mean 'gaussian'?"),
        ("apps.s = {scopes = ['samples'], mechanisms = ['temporal:K=2']}", "with noise"),
        ("apps.s = {scopes = ['samples'], mechanisms = ['lpa:epsilon=1']}", "with noise"),
        (
            "apps.s = {scopes = ['samples'], mechanisms = ['gaussian:sigma_deg=2,losses=fill']}",
            "without the parameter 'losses'",
        ),
        (
            "[apps.s]\nscopes = ['samples']\n"
            "mechanisms = ['gaussian:sigma_deg=2,reading=published']",
            "with a proved promise",
        ),
        ("apps.s = {scopes = ['tile'], mechanisms = ['gaussian:sigma_deg=9']}", "Add 'samples'"),
        ("apps.shop.budgets.euro = 1", "must be one of epsilon, rho. Got 'euro' instead."),
        ("apps.shop.budgets.epsilon = -1", "must be an exact number of at least 0"),
        ("apps.shop.budgets.epsilon = inf", "must be an exact number"),
        ("device.epsilon = 1e999999999", "must be an exact number"),
        ("apps.shop.preset = 'folow'", "Did you mean 'follow'?"),
        ("apps.'../shop' = {}", "must be 1 to 64 letters, digits, dots, dashes and underscores"),
        ("apps.Owner = {}", "none of device, gazeveil, owner, tracker, wearer"),
        ("apps.shop.origins = ['https://shop.example/page']", "must be scheme and host"),
        ("apps.shop.origins = ['*']", "must be scheme and host"),
        ("apps.shop.expires = '2030-01-31T12:00:00'", "must be a date and time with its zone"),
        ("apps.shop.calls_per_minute = -1", "must be a whole number of at least 0"),
        ("apps.shop.revoked = 'no'", "must be true or false"),
        ("apps.shop.uid = 65534", "in a container all unknown users have this one"),
        ("apps.a.uid = 1\napps.b.uid = 1", "another than that of the app 'a'"),
        ("apps = ['shop']", "must be a table"),
        ("apps.shop = 'everything'", "must be a table"),
        ("consent = 'yes'", "must be true or false"),
        ("wearers.owner.consent = true", "of 'owner' stand at the top"),
        ("wearers.'a b' = {}", "must be 1 to 64 letters"),
        ("consent = tru", "The policy is not TOML"),
        ("a = " + "[" * 5000 + "]" * 5000, "not TOML"),
    ],
)
def test_a_policy_that_is_wrong_is_refused_with_the_key_and_what_is_allowed(
    text: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ParameterError, match=re.escape(reason)) as error:
        Policy.parse(text)
    assert "\n" not in str(error.value)
    with pytest.raises(FormatError, match=re.escape(str(error.value).rstrip("."))):
        Policy.load(path)


def test_a_policy_is_read_and_written_and_a_tenth_is_a_tenth(tmp_path: Path) -> None:
    policy = Policy.parse("[apps.a]\nbudgets = { epsilon = 0.1, rho = '1/3' }\n[device]\nrho = 0.3")
    assert dict(policy.apps["a"].budgets) == {"epsilon": Fraction(1, 10), "rho": Fraction(1, 3)}
    assert policy.device.rho == Fraction(3, 10)
    for path in (tmp_path / "nowhere.toml", tmp_path):
        with pytest.raises(FormatError, match="cannot be read"):
            Policy.load(path)
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FormatError, match="not UTF-8"):
        Policy.load(tmp_path / "b.toml")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_sentence_and_a_grant_that_can_be_used(name: str) -> None:
    preset = PRESETS[name]
    assert len(preset.sentence.split()) <= 15
    policy = Policy({"a": preset.grant()}, consent=True)
    assert f'preset = "{name}"' in policy.text()
    assert policy.text().count("=") == 5, "nothing else is written of it"
    for scope in preset.grant().scopes - {"samples"}:
        assert decide(policy, Request("a", scope)).allow
    for text in preset.grant().mechanisms:
        assert decide(policy, Request("a", "samples", text)).allow, text


def test_the_manual_tells_every_code_and_sentence_and_its_policy_works() -> None:
    apps, wearer, running = (
        (ROOT / "docs" / "howto" / "gatekeeper" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("apps", "wearer", "running")
    )
    for code in CODES - {"allowed"}:
        assert f"`{code}`" in apps, code
    for name, preset in PRESETS.items():
        could = "yes" if preset.recognise else "no"
        assert f"| `{name}` | {preset.sentence} | {could} |" in wearer
    policy = Policy.parse(re.findall(r"```toml\n(.*?)```", running, re.DOTALL)[0])
    assert policy.apps["shop"].scopes == PRESETS["count"].grant().scopes
    assert decide(policy, Request("game", "select")).allow


# --- for every policy and every request
# --------------------------------------------------------------------------------------------------

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
TEXTS = st.one_of(st.sampled_from([GAUSSIAN, KALEIDO, "temporal:K=2"]), st.text(max_size=40))
APPS = ("a", "b.c")
GRANTS = st.one_of(
    st.sampled_from([preset.grant(lasts="visit") for preset in PRESETS.values()]),
    st.builds(
        Grant,
        scopes=st.frozensets(st.sampled_from(sorted(SCOPES))).map(lambda s: s | {"samples"}),
        mechanisms=st.sets(st.sampled_from([GAUSSIAN, KALEIDO])).map(tuple),
        areas=st.integers(0, 3),
        calls_per_minute=st.integers(0, 3),
        streams=st.integers(0, 2),
        budgets=st.dictionaries(st.sampled_from(["epsilon", "rho"]), st.fractions(0, 3)),
        expires_ns=st.one_of(st.none(), st.integers(0, 10)),
        origins=st.sampled_from([(), ("https://a.example",) * 2]),
        revoked=st.booleans(),
    ),
)
GRANTED = st.dictionaries(st.sampled_from(APPS), GRANTS)
POLICIES = st.builds(
    Policy,
    GRANTED,
    st.builds(DeviceLimits, r_deg=st.fractions(1, 3)),
    st.sampled_from([True, True, True, False]),
    others=st.dictionaries(
        st.sampled_from(["anna", "b.c"]), st.builds(Wearer, st.booleans(), GRANTED)
    ),
)
REQUESTS = st.builds(
    Request,
    app=st.sampled_from(APPS),
    action=st.sampled_from(sorted(SCOPES)),
    mechanism=st.one_of(st.none(), TEXTS),
    now_ns=st.integers(0, 12),
    calls_last_minute=st.integers(0, 4),
    open_streams=st.integers(0, 3),
    origin=st.sampled_from([None, "https://a.example", "https://b.example"]),
    areas=st.one_of(st.none(), st.integers(0, 4)),
)
WILD = st.builds(Request, **dict.fromkeys(Request.__dataclass_fields__, ANYTHING))


@settings(max_examples=100)
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


@settings(max_examples=100)
@given(POLICIES, REQUESTS, st.data())
def test_taking_something_away_never_allows_more(
    policy: Policy, request: Request, data: st.DataObject
) -> None:
    app = data.draw(st.sampled_from(APPS))
    ways = [policy.without(app), replace(policy, consent=False)]
    if app in policy.apps:
        grant = policy.apps[app]
        scope = data.draw(st.sampled_from(sorted(set(SCOPES) - {"samples"})))
        changes: list[dict[str, Any]] = [
            {"revoked": True},
            {"scopes": grant.scopes - {scope}},
            {"mechanisms": grant.mechanisms[1:]},
            {"budgets": {}},
            {"origins": ()},
            {"areas": 0},
            {"streams": 0},
            {"calls_per_minute": 0},
            {"expires_ns": 0},
        ]
        ways += [policy.with_grant(app, replace(grant, **change)) for change in changes]
    if decide(data.draw(st.sampled_from(ways)), request).allow:
        assert decide(policy, request).allow


DATABASE = Database("sqlite://")


@settings(max_examples=100, deadline=None)
@given(POLICIES)
def test_every_policy_reads_back_as_itself_from_toml_and_from_the_database(policy: Policy) -> None:
    assert Policy.parse(policy.text()) == policy
    DATABASE.write(lambda sql: write_policy(sql, policy))
    assert read_policy(DATABASE) == policy


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
        policy = Policy.of(tree)
    except GazeveilError:
        return
    assert not any(grant.scopes for grant in policy.apps.values())
