"""The policy file while the service runs: comments stay, edits of others are not overwritten, and
it can be read again.
"""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper.policy.file import PolicyFile, merged
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.presets import PRESETS
from gazeveil.gatekeeper.policy.wearers import Wearer
from tests.support.gatekeeper_running import Process, Running, free_port, running, until

TEXT = """# The device in the hall. Ask Ada before changing anything.
version = 1
consent = true      # given on 3 May

[device]            # limits of all apps
epsilon = 20000
per = "day"

# The shop pays the rent.
[apps.shop]
preset = "count"
areas = 4           # one for each shelf
origins = [
  "https://shop.example",   # the real one
  "http://127.0.0.1:8000",
]

# Only for testing.
[apps.game]
scopes = ["tile"]
expires = 2099-01-31T12:00:00Z   # when the trial ends

[wearers.anna]      # since June
consent = true

[wearers.anna.apps.shop]
preset = "count"
"""


@pytest.fixture
def policy_path(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def here(tmp_path: Path, policy_path: Path) -> Iterator[Running]:
    with running(tmp_path / "home", policy=policy_path) as one:
        assert one.owner.post("/v1/wearer", json={"name": "owner"}).status_code == 200
        yield one


# The text.


GRANTS = st.sampled_from(
    [
        Grant(),
        Grant(frozenset({"tile"})),
        Grant(frozenset({"tile"}), revoked=True),
        PRESETS["follow"].grant(),
        Grant(expires_ns=10**18),
    ]
)
APPS = st.dictionaries(st.sampled_from(["shop", "game", "a.b", "9"]), GRANTS, max_size=3)
WEARERS = st.dictionaries(
    st.sampled_from(["anna", "b.c"]), st.builds(Wearer, st.booleans(), APPS), max_size=2
)
POLICIES = st.builds(
    lambda apps, consent, others: Policy(apps, consent=consent, others=others),
    APPS,
    st.booleans(),
    WEARERS,
)


@settings(max_examples=150, deadline=None)
@given(POLICIES, POLICIES, POLICIES)
def test_any_two_changes_of_a_file_meet(before: Policy, ours: Policy, theirs: Policy) -> None:
    assert Policy.parse(theirs.text()) == theirs
    both = merged(before, ours, theirs)
    assert merged(before, ours, before) == ours
    assert merged(before, before, theirs) == theirs
    for app in {*ours.apps, *before.apps}:
        if ours.apps.get(app) != before.apps.get(app):
            assert both.apps.get(app) == ours.apps.get(app), "the choice made last wins"


def test_a_file_keeps_its_rights_and_its_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "link.toml"
    real.write_text("consent = true  # yes\n")
    real.chmod(0o640)
    link.symlink_to(real)
    file = PolicyFile(link, True)
    file.load()
    file.write(Policy())
    assert link.is_symlink()
    assert Policy.load(link) == Policy()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_the_owners_text_with_its_comments_stays_beside(here: Running, policy_path: Path) -> None:
    here.app("other", grant={"scopes": ["tile"]})
    assert here.owner.post("/v1/apps/shop/revoke").status_code == 200
    assert here.owner.post("/v1/consent", json={"on": False}).status_code == 200
    assert policy_path.with_name("policy.toml.before").read_text() == TEXT
    found = Policy.load(policy_path)
    assert (
        found.consent,
        found.apps["shop"].revoked,
        sorted(found.apps),
        found.others["anna"].consent,
    ) == (False, True, ["game", "other", "shop"], True)


def test_an_edit_while_it_runs_is_not_overwritten_and_comes_in_force_with_the_next_choice(
    here: Running, policy_path: Path
) -> None:
    policy_path.write_text(
        policy_path.read_text()
        .replace('scopes = ["tile"]', 'scopes = ["tile", "areas"]  # more')
        .replace("areas = 4 ", "areas = 5 ")
    )
    here.app("other", grant={"scopes": ["tile"]}, consent=False)
    found = Policy.load(policy_path)
    assert (
        found.apps["shop"].areas,
        "areas" in found.apps["game"].scopes,
        "other" in found.apps,
    ) == (5, True, True)
    assert here.service is not None
    assert here.service.policy.apps["shop"].areas == 5
    assert "# more" in policy_path.with_name("policy.toml.before").read_text()


def test_an_app_taken_out_of_the_file_is_not_brought_back_by_a_choice_about_another(
    here: Running, policy_path: Path
) -> None:
    text = policy_path.read_text()
    policy_path.write_text(
        text[: text.index("# The shop")] + text[text.index("# Only for testing") :]
    )
    assert here.owner.post("/v1/apps/game/revoke").status_code == 200
    assert "shop" not in Policy.load(policy_path).apps
    assert here.service is not None
    assert "shop" not in here.service.policy.apps


def test_a_file_edited_into_nonsense_is_not_overwritten(here: Running, policy_path: Path) -> None:
    policy_path.write_text("consent = perhaps\n")
    no = here.owner.post("/v1/apps/shop/grant", json={"preset": "count"})
    assert (no.status_code, no.json()["error"]["code"]) == (409, "edited")
    assert "line 1" in no.json()["error"]["reason"]
    here.owner.post("/v1/apps/shop/revoke")
    assert here.service is not None
    assert here.service.policy.apps["shop"].revoked, "taking away works whatever the file says"
    assert policy_path.read_text() == "consent = perhaps\n"


def test_reload_takes_away_at_once_and_gives(here: Running, policy_path: Path) -> None:
    token = here.app("feed", grant={"scopes": ["events"]})
    with here.talk(token) as talk:
        assert talk.subscribe(what="fixation")["type"] == "subscribed"
        policy_path.write_text(
            policy_path.read_text()
            .replace("areas = 4\n", "areas = 7\n", 1)
            .replace('[apps."feed"]', '[apps."feed"]\nrevoked = true', 1)
            .replace("revoked = false\n", "")
        )
        answer = here.owner.post("/v1/policy/reload")
        assert answer.status_code == 200, answer.text
        assert talk.until("ended")["code"] == "revoked"
    assert here.service is not None
    assert here.service.policy.apps["shop"].areas == 7


def test_what_a_reload_gives_and_takes_is_in_the_audit_log(
    here: Running, policy_path: Path
) -> None:
    """An edit of the file used to leave one row that names no app."""
    service = here.service
    assert service is not None
    before = len(service.audit.entries())
    fresh = "[apps.fresh]\nscopes = ['tile']\n[wearers.anna.apps.fresh]\nscopes = ['events']\n"
    old = policy_path.read_text()
    for text in (old + fresh, old, old.replace("[apps.game]", "[apps.game]\nrevoked = true")):
        policy_path.write_text(text)
        service.reload_policy()
    rows = service.audit.entries()[before:]
    kinds = [
        (
            row.kind,
            row.app == service.audit.pseudonym("fresh"),
            dict(row.detail).get("scopes"),
            "wearer" in dict(row.detail),
        )
        for row in rows
    ]
    policy = ("policy", False, None, False)
    given = [("grant", True, "events", True), ("grant", True, "tile", False), policy]
    assert kinds == [
        *given,
        ("revoke", True, None, True),
        ("revoke", True, None, False),
        policy,
        ("revoke", False, None, False),
        policy,
    ]
    assert rows[6].app == service.audit.pseudonym("game")
    assert "anna" not in str(rows)


def test_a_reload_that_takes_away_does_not_wait_for_the_database(
    here: Running, policy_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gazeveil.gatekeeper.errors import LedgerError

    service = here.service
    assert service is not None
    token = here.app("feed", grant={"scopes": ["events"]})
    with here.talk(token) as talk:
        talk.subscribe(what="fixation")

        def broken(*_: object) -> int:
            raise LedgerError("The disk is full.")

        monkeypatch.setattr(service.audit, "record", broken)
        policy_path.write_text("consent = false\n[apps.shop]\npreset = 'study'\n")
        with pytest.raises(LedgerError):
            service.reload_policy()
        assert talk.until("ended")["code"] == "no-consent"
        assert service.policy.apps == {}, "nothing that both policies do not allow alike"


def test_what_a_failed_reload_gave_is_not_lost_and_comes_with_the_next(
    here: Running, policy_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gazeveil.gatekeeper.errors import LedgerError

    service = here.service
    assert service is not None

    def broken(*_: object) -> int:
        raise LedgerError("The disk is full.")

    edited_text = (
        policy_path.read_text()
        .replace("areas = 4 ", "areas = 9 ")
        .replace("[apps.game]", "[apps.fresh]\nscopes = ['tile']\n[apps.game]")
    )
    policy_path.write_text(edited_text)
    with monkeypatch.context() as patch:
        patch.setattr(service.audit, "record", broken)
        assert here.owner.post("/v1/policy/reload").status_code == 503
        assert "fresh" not in service.policy.apps
    assert policy_path.read_text() == edited_text
    assert here.owner.post("/v1/apps/game/revoke").status_code == 200, "a choice about another app"
    assert here.owner.post("/v1/policy/reload").status_code == 200
    found = Policy.load(policy_path)
    for policy in (found, service.policy):
        assert (policy.apps["shop"].areas, sorted(policy.apps), policy.apps["game"].revoked) == (
            9,
            ["fresh", "game", "shop"],
            True,
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("consent = true\nx x\n", "line 2"),
        ("[apps.shop]\nscopes = ['raw']\n", "apps.shop"),
        ("\x00", "TOML"),
    ],
)
def test_a_broken_file_leaves_the_old_policy_in_force_and_says_where(
    here: Running, policy_path: Path, text: str, words: str
) -> None:
    assert here.service is not None
    before = here.service.policy
    policy_path.write_text(text)
    no = here.owner.post("/v1/policy/reload")
    assert (no.status_code, no.json()["error"]["code"]) == (409, "policy")
    assert words in no.json()["error"]["reason"]
    assert "old policy stays in force" in no.json()["error"]["reason"]
    assert here.service.policy == before


def test_a_file_that_is_gone_leaves_the_old_policy_in_force(
    here: Running, policy_path: Path
) -> None:
    policy_path.unlink()
    no = here.owner.post("/v1/policy/reload")
    assert no.status_code == 409
    assert "does not exist" in no.json()["error"]["reason"]


def test_the_signal_reads_the_policy_again_and_a_broken_one_does_not_stop_the_service(
    tmp_path: Path,
) -> None:
    port, home = free_port(), tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "policy.toml").write_text("consent = false  # not yet\n")
    with Process(home, port) as service:
        owner = service.owner()
        assert service.process is not None
        for text, consent in (
            ("consent = true\n", True),
            ("consent = true\nbroken broken\n", True),
            ("consent = false\n", False),
        ):
            (home / "policy.toml").write_text(text)
            os.kill(service.process.pid, signal.SIGHUP)
            if "broken" in text:
                until(lambda: "line 2" in service.errors.read_text())
            else:
                until(lambda wanted=consent: owner.get("/v1/apps").json()["consent"] is wanted)
            time.sleep(0.1)
            assert owner.get("/v1/apps").json()["consent"] is consent
        owner.close()


def test_the_file_is_named_where_it_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(GazeveilError, match="does not exist"):
        PolicyFile(tmp_path / "none.toml", True).load()
    assert PolicyFile(tmp_path / "none.toml", False).load() == Policy()
