"""The certificate says what follows from the grants, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gazeveil.gatekeeper import Grant, MechanismRule, Policy
from gazeveil.gatekeeper.service.certificate import raw_statement
from tests.support.gatekeeper_running import running

NEVER = "Raw samples, pupils, velocities and the tracker's own timing are never given"
PUBLISHED = {
    "name": "gaussian",
    "parameters": {"sigma_deg": [">=", "1"], "reading": ["=", "published"]},
    "unproved": True,
}
GAUSSIAN = {"name": "gaussian", "parameters": {"sigma_deg": [">=", "2"]}}


def test_what_is_never_given_follows_from_the_grants(tmp_path: Path) -> None:
    """It once said "never given" while a granted mechanism gave raw gaze bit for bit."""
    with running(tmp_path / "home") as here:

        def said() -> tuple[str, dict[str, Any]]:
            answer = here.owner.get("/v1/certificate").json()
            return answer["text"], answer["certificate"]

        assert NEVER in said()[0]
        here.app(
            "safe",
            grant={"scopes": ["samples"], "mechanisms": [GAUSSIAN], "budgets": {"rho": "7200"}},
        )
        text, figures = said()
        assert f"{NEVER}: every mechanism that is granted adds noise with a proved promise." in text
        assert figures["raw"] == {"never_given": True, "unproved": [], "copies": [], "native": []}
        assert (
            "Averaging this stream alone: who watches resting eyes for ten seconds finds them to"
            " about 0.07 degrees." in text
        )
        assert "It has spent 0 of 7200 rho a day; the limit is about 0.13 hours of use." in text
        assert (
            "The device has spent 0 of 100000 rho a day; the limit is about 1.85 hours of use."
            in text
        )
        here.app("loose", grant={"scopes": ["samples"], "mechanisms": [PUBLISHED]})
        text, figures = said()
        assert NEVER not in text
        assert (
            "App 'loose': its mechanism gaussian:sigma_deg>=1,reading=published adds noise that"
            " proves nothing" in text
        )
        assert (
            "App 'loose': its mechanism gaussian:sigma_deg>=1,reading=published passes the"
            " tracker's own times on." in text
        )
        assert figures["raw"]["never_given"] is False
        refused = here.owner.post(
            "/v1/apps/loose/grant",
            json={
                "grant": {
                    "scopes": ["samples"],
                    "mechanisms": [{"name": "temporal", "parameters": {"K": ["=", "2"]}}],
                }
            },
        )
        assert refused.status_code == 422
        assert "adds no noise" in refused.text


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        (
            MechanismRule(
                "gaussian",
                {"sigma_deg": ("any", None), "reading": ("=", "published")},
                unproved=True,
            ),
            "unproved",
        ),
        (
            MechanismRule(
                "kaleido",
                {
                    "epsilon": ("=", 1),
                    "w": ("=", 60),
                    "r_deg": ("=", 2),
                    "reading": ("=", "published"),
                },
                unproved=True,
            ),
            "unproved",
        ),
        (MechanismRule("gaussian", {"sigma_deg": ("any", None)}, unproved=True), None),
        (MechanismRule("chain", {"stages": ("=", "gaussian(sigma_deg=3)+temporal(K=2)")}), None),
    ],
)
def test_a_mechanism_whose_noise_proves_nothing_is_named(
    rule: MechanismRule, kind: str | None
) -> None:
    found = raw_statement(Policy({"a": Grant(frozenset({"samples"}), (rule,))}))
    assert found["never_given"] is (kind is None)
    assert [name for name in ("unproved", "copies") if found[name]] == (
        [] if kind is None else [kind]
    )


def test_of_a_mechanism_that_cannot_be_made_nothing_is_claimed() -> None:
    """One such rule took the certificate of the whole device away."""
    rule = MechanismRule(
        "kaleido",
        {
            "epsilon": ("=", 1),
            "w": ("=", 60),
            "r_deg": ("=", 2),
            "losses": ("=", "keep"),
            "duration_s": ("=", 5),
        },
    )
    grant = Grant(frozenset({"samples"}), mechanisms=(rule,))
    raw = raw_statement(Policy({"shop": grant}, consent=True))
    assert not raw["never_given"]
    assert [app for app, _ in raw["unproved"]] == ["shop"]
