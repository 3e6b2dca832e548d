"""Planted bugs of the Gatekeeper: what it charges, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.planted.plant import Plant, everywhere, method

CHARGES = "tests/gatekeeper/core/test_charges.py"
STREAMS = "tests/gatekeeper/streams/test_attack.py"
NUMBERS = "tests/gatekeeper/core/test_event_log.py"


def _half(old: Any) -> Any:
    def cost_of(*given: Any, **named: Any) -> Any:
        currency, amount = old(*given, **named)
        return currency, amount / 2

    return cost_of


def _apps_free(old: Any) -> Any:
    return lambda self, why, device, apps: old(self, why, device, ())


def _declared_at_once(old: Any) -> Any:
    def view_of(self: Any, mechanism: Any) -> Any:
        view = old(self, mechanism)
        self._graded.declare(view.scale_deg)
        return view

    return view_of


def _apps_r(old: Any) -> Any:
    return lambda self, r_deg: old(self, self.promise.numbers.get("r_deg", r_deg))


def _coarsest(old: Any) -> Any:
    def cost(self: Any, views: Any) -> Any:
        several = list(views)
        return old(self, [max(several, key=lambda v: v.scale_deg)] if several else [])

    return cost


def _whatever_is_open(old: Any) -> Any:
    def stream_for(self: Any, mechanism: Any) -> Any:
        reserved, active = self._reserved, self.active
        self._reserved, self.active = [], ()
        try:
            return old(self, mechanism)
        finally:
            self._reserved, self.active = reserved, active

    return stream_for


def _anything(old: Any) -> Any:
    from gazeveil.privacy.registry import mechanism

    return mechanism


def _any_mechanism(old: Any) -> Any:
    def denied(grant: Any, request: Any) -> Any:
        return old(replace(grant, mechanisms=(request.mechanism,)), request)

    return denied


def _not_counted(old: Any) -> Any:
    def request(self: Any, *given: Any, **named: Any) -> Any:
        self.opening.clear()
        return old(self, *given, **named)

    return request


PLANTS = (
    Plant(
        "a session for every set of parameters",
        "A family has as many sessions at a time as there are sets of parameters, each with noise"
        " of its own.",
        lambda p: method(
            p, "gatekeeper.streams.pool", "StreamPool", "_stream_for", _whatever_is_open
        ),
        (f"{STREAMS}::test_a_family_has_one_session_at_a_time_and_the_refusal_names_it",),
    ),
    Plant(
        "copies pass",
        "A mechanism without noise can be granted.",
        lambda p: everywhere(p, "gatekeeper.policy.grant", "granted_mechanism", _anything),
        (f"{STREAMS}::test_what_adds_no_noise_with_a_proved_promise_cannot_be_granted",),
    ),
    Plant(
        "mechanisms of an app's own",
        "An app gets whatever mechanism may be granted to anybody.",
        lambda p: everywhere(p, "gatekeeper.policy.decision", "_denied_samples", _any_mechanism),
        (f"{STREAMS}::test_an_app_gets_the_mechanisms_of_its_grant_word_for_word_and_no_others",),
    ),
    Plant(
        "streams counted too late",
        "Streams that are being paid for do not count as open.",
        lambda p: method(p, "gatekeeper.core.device_state", "DeviceState", "request", _not_counted),
        (f"{STREAMS}::test_twelve_threads_get_as_many_streams_as_are_allowed",),
    ),
    Plant(
        "the device's own event numbers",
        "Apps are told the numbers that events have in the event log.",
        lambda p: method(
            p,
            "gatekeeper.core.events",
            "EventNumbers",
            "told",
            lambda _: lambda self, entry, oldest: entry.event,
        ),
        (f"{NUMBERS}::test_numbers_have_no_gaps_where_the_wearer_looked_elsewhere",),
    ),
    Plant(
        "undercharging",
        "A lease of the Gatekeeper costs half of what its samples lose.",
        lambda p: everywhere(p, "gatekeeper.streams.billing", "cost_of", _half),
        (f"{CHARGES}::test_a_small_r_of_kaleido_costs_as_many_steps_as_it_takes_to_the_devices",),
    ),
    Plant(
        "apps do not pay",
        "The Gatekeeper charges leases to the device and not to the app.",
        lambda p: method(p, "gatekeeper.streams.billing", "Billing", "pay", _apps_free),
        (f"{CHARGES}::test_an_app_does_not_choose_what_it_is_charged_for",),
    ),
    Plant(
        "level before payment",
        "A level of noise is declared when an app asks for it, before it is paid for.",
        lambda p: method(
            p, "gatekeeper.streams.shared", "GradedStream", "view_of", _declared_at_once
        ),
        (f"{CHARGES}::test_requests_that_are_refused_do_not_part_the_noise_of_others",),
    ),
    Plant(
        "app-chosen r",
        "A lease is charged for the change that the app wrote into its mechanism.",
        lambda p: method(p, "gatekeeper.streams.shared", "SharedStream", "charge_at", _apps_r),
        (f"{CHARGES}::test_a_small_r_of_kaleido_costs_as_many_steps_as_it_takes_to_the_devices",),
    ),
    Plant(
        "coalition pays for its coarsest view",
        "The device pays for the coarsest of the views that apps have together.",
        lambda p: method(p, "gatekeeper.streams.shared", "GradedStream", "cost", _coarsest),
        (f"{CHARGES}::test_requests_that_are_refused_do_not_part_the_noise_of_others",),
    ),
)
