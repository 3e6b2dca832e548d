"""The owner's page, the demo apps and client.js in a real Chromium, against the real service with a
simulated tracker.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.support.places import ROOT

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Browser, Page, Route, WebSocketRoute, expect

from tests.support.gatekeeper_browser import (
    CONNECT,
    WAIT_MS,
    Desk,
    browser,  # noqa: F401 - a fixture
    desk,  # noqa: F401 - a fixture
    panel,
    process,  # noqa: F401 - a fixture
    signed_in,  # noqa: F401 - a fixture
)
from tests.support.gatekeeper_running import ALL, Process, until

KALEIDO = "kaleido-uniform:epsilon=1,w=60,r_deg=5"


def taken(demo: Page) -> int:
    """Protected samples the foveated app says it has."""
    found = re.match(
        r"([\d,]+) protected samples",
        panel(demo, "Foveated gallery").locator(".facts").inner_text(),
    )
    return int(found.group(1).replace(",", "")) if found else 0


def test_a_stranger_is_told_what_to_do_and_sees_nothing(browser: Browser, process: Process) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(process.address)
        expect(page.locator("#locked")).to_be_visible(timeout=WAIT_MS)
        assert "owner link" in page.inner_text("#locked")
        expect(page.locator("#board")).to_be_hidden()
        assert page.locator("#apps-list > *").count() == 0
        page.goto(f"{process.address}/demo/")
        expect(page.locator("#none")).to_be_visible()
        assert "Start demo apps" in page.inner_text("#none")


def test_an_owner_grants_samples_arrive_the_owner_revokes_and_the_stream_stops(desk: Desk) -> None:
    owner = desk.owner()
    demo = desk.demo(owner)
    assert demo.url == f"{desk.process.address}/demo/", "tokens leave the address at once"
    expect(panel(demo, "Foveated gallery").locator(".state")).to_contain_text(
        "Waiting for the owner"
    )
    owner.bring_to_front()
    ask = owner.locator(".ask", has_text="foveated-gallery")
    expect(ask).to_contain_text("To draw the picture sharp where you look.")
    owner.click("#consent")
    expect(owner.locator("#consent")).to_have_attribute("aria-checked", "true")
    ask.get_by_role("button", name="Decide").click()
    expect(owner.locator("#grant-dialog input[name=preset]:checked")).to_have_value("research")
    owner.click("#grant-dialog button[type=submit]")
    card = owner.locator('.app[data-app="foveated-gallery"]')
    expect(card).to_contain_text("Granted")
    expect(ask).to_have_count(0)
    # Samples arrive at the app, the owner sees what it is sent, and its budget goes down by exact
    # amounts.
    expect(panel(demo, "Foveated gallery")).to_have_attribute("data-state", "running")
    expect(panel(demo, "Foveated gallery").locator(".facts")).to_have_text(
        re.compile(r"^([1-9]\d\d|[\d,]{5,}) protected samples")
    )
    expect(owner.locator("#live-apps figure", has_text="foveated-gallery")).to_contain_text(
        "protected samples"
    )
    expect(card.get_by_role("meter").first).to_have_attribute(
        "aria-valuetext", re.compile(r"^≈ .* of 50,?000 .* spent today$")
    )
    card.get_by_role("button", name="Revoke").click()
    expect(card).to_contain_text("Revoked")
    state = panel(demo, "Foveated gallery").locator(".state")
    expect(state).to_contain_text("Ended (revoked): ")
    before = taken(demo)
    assert before > 60
    demo.wait_for_timeout(500)
    assert taken(demo) == before
    assert desk.streams("foveated-gallery") == []


def test_a_budget_runs_out_and_the_app_sees_why(desk: Desk) -> None:
    desk.consent(True)
    owner = desk.owner()
    rule = {
        "name": "kaleido-uniform",
        "parameters": {"epsilon": ["=", "2"], "w": ["=", "30"], "r_deg": ["=", "2"]},
    }
    token = desk.app(
        "spender", grant={"scopes": ["samples"], "mechanisms": [rule], "budgets": {"epsilon": "4"}}
    )
    got = desk.blank().evaluate(
        f"""async (token) => {{ {CONNECT}
        const mechanism = "kaleido-uniform:epsilon=2,w=30,r_deg=2";
        let taken = 0;
        try {{
          for await (const batch of gaze.samples({{ mechanism }})) taken += batch.x_deg.length;
        }} catch (error) {{ return [taken, error.code, error.reason]; }} }}""",
        token,
    )
    # Two windows of 30 samples at epsilon 2 each were paid for, and no sample more was given.
    assert 0 < got[0] <= 60
    assert got[1] == "budget"
    assert "left today" in got[2]
    owner.bring_to_front()
    meter = owner.locator('.app[data-app="spender"]').get_by_role("meter").first
    expect(meter).to_have_attribute("aria-valuetext", "4 of 4 ε spent today")
    expect(meter).to_have_class("bar low")
    expect(owner.locator('.app[data-app="spender"] .badge')).to_have_text("Spent")


def test_switching_sharing_off_stops_every_app_and_on_lets_it_go_on(desk: Desk) -> None:
    desk.consent(True)
    owner = desk.owner()
    demo = desk.demo(owner)
    for name, preset in (("foveated-gallery", "research"), ("gallery-analytics", "aoi-analytics")):
        desk.grant(name, preset=preset)
    expect(panel(demo, "Foveated gallery").locator(".state")).to_contain_text("protected samples")
    expect(panel(demo, "Gallery analytics").locator(".state")).to_contain_text(
        "It knows numbers of 6 areas"
    )
    owner.bring_to_front()
    owner.click("#consent")
    expect(owner.locator("#consent")).to_have_attribute("aria-checked", "false")
    expect(owner.locator("#consent-means")).to_contain_text("Nothing leaves this device")
    for title in ("Foveated gallery", "Gallery analytics"):
        expect(panel(demo, title).locator(".state")).to_contain_text(
            "Waiting until the owner switches sharing on"
        )
    owner.click("#consent")
    expect(panel(demo, "Foveated gallery").locator(".state")).to_contain_text("protected samples")


def test_listeners_in_end_mode_get_landings_and_in_start_stop_mode_starts_without_a_place(
    desk: Desk,
) -> None:
    desk.consent(True)
    token = desk.app("listener", grant=ALL)
    heard = desk.blank().evaluate(
        f"""async (token) => {{ {CONNECT}
        const of = (mode) => new Promise((resolve, reject) => {{
          const got = [];
          const callback = (event) => {{
            got.push(event);
            if (got.length < 6) return;
            gaze.removeEventListener("saccade", callback);
            resolve(got);
          }};
          gaze.addEventListener("saccade", callback, {{ mode }}).catch(reject);
        }});
        return Promise.all([of("end"), of("start-stop")]); }}""",
        token,
    )
    until(
        lambda: desk.streams("listener") == [], WAIT_MS / 1000
    )  # removed listeners are closed at the service, the connection is still there
    ends, both = heard
    assert {event["type"] for event in ends} == {"event"}
    assert {event["kind"] for event in ends} == {"saccade"}
    starts = [event for event in both if event["type"] == "saccade-start"]
    assert starts
    assert all(set(event) == {"type", "id", "t_ms"} for event in starts)
    assert {event["type"] for event in both} == {"saccade-start", "event"}
    for event in (*ends, *both):
        assert event["t_ms"] % 100 == 0
        if event["type"] == "event":
            assert event["x_deg"] % 2.5 == 0
            assert event["y_deg"] % 2.5 == 0


def test_the_gaze_button_follows_the_mode_that_is_chosen(desk: Desk) -> None:
    desk.consent(True)
    owner = desk.owner()
    demo = desk.demo(owner)
    desk.grant("gaze-button", grant={"scopes": ["events"]})
    log = panel(demo, "Gaze button").locator(".log")
    expect(log).to_contain_text("saccade ended")
    expect(log).not_to_contain_text("saccade starts")
    demo.select_option("select[name=mode]", "start-stop")
    expect(log).to_contain_text("saccade starts at")


def test_questions_of_client_js_are_answered_in_cells_and_ticks(desk: Desk) -> None:
    desk.consent(True)
    token = desk.app("asker", grant=ALL)
    got = desk.blank().evaluate(
        f"""async (token) => {{ {CONNECT}
        const all = {{ x_deg: 0, y_deg: 0, width_deg: 360, height_deg: 180 }};
        const most = {{ x_deg: 1, y_deg: 1, width_deg: 357, height_deg: 177 }};
        const area = await gaze.registerArea("everything", most);
        await gaze.getFixations(all);
        let fixations = [];
        while (!fixations.length) {{ // one that began before the area was registered is not in it
          await new Promise((done) => gaze.addEventListener("fixation", done, {{ once: true }}));
          fixations = await gaze.getFixations(all);
        }}
        const refusals = [];
        const note = (error) => refusals.push([error.name, error.code]);
        await gaze.getDwellTime(10 ** 9).catch(note);
        await gaze.registerArea("tiny", {{ ...all, width_deg: 1 }}).catch(note);
        await gaze.addEventListener("pupil", () => {{}}).catch(note);
        const seen = {{
          area, fixations, refusals,
          dwell: await gaze.getDwellTime(fixations[0]), saccades: await gaze.getSaccades(area),
          metrics: await gaze.metrics(area), counter: await gaze.counter(area),
          tile: await gaze.currentTile(), areas: (await gaze.areas()).length,
        }};
        await gaze.removeArea(area);
        seen.left = (await gaze.areas()).length;
        gaze.close();
        return seen; }}""",
        token,
    )
    assert {k: got["area"][k] for k in ("x_deg", "y_deg", "width_deg", "height_deg")} == {
        "x_deg": 0,
        "y_deg": 0,
        "width_deg": 360,
        "height_deg": 180,
    }
    assert got["fixations"][0]["kind"] == "fixation"
    assert got["dwell"] == got["fixations"][0]["duration_ms"]
    assert got["metrics"]["fixations"] >= 1
    assert got["counter"]["guarantee"]["status"] == "proved"
    assert 0 <= got["tile"] < 32
    assert (got["areas"], got["left"]) == (2, 1), "a bare rectangle is registered once"
    assert got["refusals"] == [
        ["GazeError", "unknown"],
        ["GazeError", "area"],
        ["GazeError", "unknown"],
    ]


def test_both_encodings_bring_batches_and_leaving_or_aborting_ends_the_stream(desk: Desk) -> None:
    desk.consent(True)
    token = desk.app("streamer", grant=ALL)
    got = desk.blank().evaluate(
        f"""async ([token, mechanism]) => {{ {CONNECT}
        const seen = {{}};
        for (const encoding of ["binary", "json"]) {{
          const stream = gaze.samples({{ mechanism, encoding, batch: 5 }});
          const batches = [];
          for await (const batch of stream) if (batches.push(batch) === 3) break;
          seen[encoding] = batches.map(({{ sequence, x_deg, t_ms, dropped }}) =>
            [sequence, x_deg.length, t_ms[1] > t_ms[0], x_deg.constructor.name, dropped]);
          seen.guarantee = stream.guarantee.status;
        }}
        const ending = new AbortController();
        try {{
          const signal = ending.signal;
          for await (const batch of gaze.samples({{ mechanism, signal }})) ending.abort();
        }} catch (error) {{ seen.aborted = error.name; }}
        try {{
          const finer = {{ mechanism: "gaussian:sigma_deg=0.1" }};
          for await (const batch of gaze.samples(finer)) seen.never = true;
        }} catch (error) {{ seen.refused = [error.code, error.reason]; }}
        seen.wrong = await connect(location.origin, {{ token: "gv_app_wrong" }})
          .then(() => "let in", (error) => [error.code, error.status]);
        return seen; }}""",
        [token, KALEIDO],
    )
    # The page and its connection are still there.
    until(lambda: desk.streams("streamer") == [], WAIT_MS / 1000)
    for encoding in ("binary", "json"):
        assert [row[0] for row in got[encoding]] == [
            0,
            got[encoding][0][1],
            got[encoding][0][1] + got[encoding][1][1],
        ], "no sample is missing"
        assert all(
            row[1] >= 5 and row[2] and row[3] == "Float32Array" and row[4] == 0
            for row in got[encoding]
        )
    assert got["guarantee"] == "proved"
    assert got["aborted"] == "AbortError"
    assert "never" not in got
    assert got["refused"][0] == "parameter"
    assert "sigma_deg" in got["refused"][1]
    assert got["wrong"] == ["token", 401]


def test_a_connection_that_breaks_comes_back_by_itself_and_the_policy_decides_again(
    desk: Desk,
) -> None:
    desk.consent(True)
    token = desk.app("returner", grant=ALL)
    page = desk.blank()
    opened = 0

    def through(route: WebSocketRoute) -> None:
        nonlocal opened
        opened += 1
        if opened == 1:
            route.close(code=1012, reason="restart")
        else:
            route.connect_to_server()

    page.route_web_socket("**/v1/stream", through)
    got = page.evaluate(
        f"""async ([token, mechanism]) => {{ {CONNECT}
        const states = [];
        gaze.addEventListener("statechange", (event) => states.push(event.state));
        for await (const batch of gaze.samples({{ mechanism }})) break;
        gaze.close();
        return states; }}""",
        [token, KALEIDO],
    )
    assert got == ["connecting", "waiting", "connecting", "open", "closed"]
    assert opened == 2


def test_tokens_are_shown_once_and_the_certificate_and_the_audit_log_are_there(desk: Desk) -> None:
    page = desk.owner(accept_downloads=True)
    page.click("#add")
    page.fill("#add-dialog input[name=name]", "newcomer")
    page.click("#add-dialog button[type=submit]")
    token = page.inner_text("#token-dialog .secret")
    assert token.startswith("gv_app_")
    page.click("#token-dialog button[type=submit]")
    expect(page.locator('.app[data-app="newcomer"]')).to_contain_text("No grant")
    assert token not in page.content()
    page.locator('.app[data-app="newcomer"]').get_by_role("button", name="Grant").click()
    page.check("#grant-dialog input[value=aoi-analytics]")
    page.click("#grant-dialog button[type=submit]")
    expect(page.locator("#certificate-text")).to_contain_text("newcomer")
    with page.expect_download() as download:
        page.click("#certificate-save")
    assert "newcomer" in Path(download.value.path()).read_text(encoding="utf-8")
    expect(page.locator("#audit-rows tr").first).to_be_visible()
    page.click("#audit-check")
    expect(page.locator("#audit-state")).to_have_text("Chain verified")


def test_a_custom_grant_is_made_in_the_dialog_and_what_is_wrong_with_it_is_said_there(
    desk: Desk,
) -> None:
    desk.app("maker")
    page = desk.owner()
    card = page.locator('.app[data-app="maker"]')
    card.get_by_role("button", name="Grant").click()
    dialog = page.locator("#grant-dialog")
    dialog.get_by_label("Custom").check()
    dialog.get_by_label("protected samples").check()
    rules = dialog.get_by_label("Mechanisms for samples")
    problem = dialog.get_by_role("alert")
    for wrong, said in (
        ("kaleido:epsilon!1", "is not a rule"),
        ("kaleidoscope:epsilon<=1", "Did you mean 'kaleido'?"),
        ("gaussian", "sigma_deg"),
        ("temporal:K=4", "Put noise before it"),
    ):
        rules.fill(wrong)
        dialog.get_by_role("button", name="Grant").click()
        expect(problem).to_contain_text(said)
    rules.fill(
        "kaleido-uniform:epsilon<=1/2,w>=60,r_deg>=5\ngaussian:sigma_deg any,reading=published"
        " unproved"
    )
    dialog.get_by_label("For good").check()
    dialog.get_by_text("Budgets", exact=True).click()
    dialog.get_by_label("Budget ε").fill("3/2")
    dialog.get_by_label("The budget holds").select_option("session")
    dialog.get_by_role("button", name="Grant").click()
    expect(dialog).to_be_hidden()
    given = next(
        app["grant"] for app in desk.api.get("/v1/apps").json()["apps"] if app["app"] == "maker"
    )
    assert (given["scopes"], given["budgets"], given["per"]) == (
        ["samples"],
        {"epsilon": "3/2"},
        "session",
    )
    assert given["mechanisms"] == [
        "kaleido-uniform:epsilon<=1/2,w>=60,r_deg>=5",
        "gaussian:sigma_deg any,reading=published",
    ]
    assert (given["lasts"], given["expires_ns"]) == ("for-good", None)
    expect(card.get_by_role("meter")).to_have_attribute(
        "aria-valuetext", "0 of 1.5 ε spent this session"
    )
    card.get_by_text("Details").click()
    expect(card).to_contain_text("epsilon\u00a0≤\u00a01/2")
    expect(card).to_contain_text("0 of 1.5 ε spent this session")
    card.get_by_role("button", name="Change").click()
    expect(dialog.locator("input[name=preset]:checked")).to_have_value("")
    expect(rules).to_have_value(
        "kaleido-uniform:epsilon<=1/2,w>=60,r_deg>=5\ngaussian:sigma_deg any,reading=published"
    )


def test_the_ten_lines_of_the_manual_run(desk: Desk) -> None:
    desk.consent(True)
    token = desk.app("reader", preset="aoi-analytics")
    manual = (ROOT / "docs" / "howto" / "gatekeeper" / "apps.md").read_text(encoding="utf-8")
    lines = re.findall(r"```js\n(.+?)```", manual, re.DOTALL)[0].replace(
        "http://127.0.0.1:8765", desk.process.address
    )
    imported = re.sub(r'import (.+?) from (".+?");', r"const \1 = await import(\2);", lines)
    assert imported != lines
    page = desk.blank()
    with page.expect_console_message(lambda message: "fixations" in message.text) as said:
        page.evaluate(f"async (token) => {{ {imported} }}", token)
    assert set(said.value.args[0].json_value()) == {
        "fixations",
        "visits",
        "dwell_ms",
        "order",
        "first_fixation_ms",
        "first_saccade_ms",
    }
    assert (
        len([line for line in lines.splitlines() if line and not line.startswith(("import", "}"))])
        <= 10
    )


WEB = ROOT / "src" / "gazeveil" / "gatekeeper" / "web"
SCRIPTS = sorted(WEB.rglob("*.js"))


def test_scripts_are_short_parse_and_never_make_markup_of_text() -> None:
    assert len(SCRIPTS) > 15
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 400, script.name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
        ), script.name
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the scripts are parsed by Chromium alone")
    parse = (
        "for (const f of process.argv.slice(1)) new"
        " (require('vm').SourceTextModule)(require('fs').readFileSync(f, 'utf8'), { identifier:"
        " f })"
    )
    done = subprocess.run(
        [node, "--experimental-vm-modules", "--no-warnings", "-e", parse, *map(str, SCRIPTS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


EVIL = "<img src=x onerror=document.title='broken'>"


def test_what_apps_call_themselves_is_shown_as_text(desk: Desk) -> None:
    token = desk.app("honest")
    with httpx.Client(
        base_url=desk.process.address, headers={"Authorization": f"Bearer {token}"}
    ) as app:
        assert (
            app.post("/v1/ask", json={"scopes": ["events"], "purpose": "hands-free"}).status_code
            == 202
        )
    assert desk.api.post("/v1/apps", json={"name": EVIL, "origins": []}).status_code == 422, (
        "the service takes plain names alone"
    )

    def renamed(route: Route) -> None:
        # Were such a name to come through, the page must still hold.
        answer = route.fetch().json()
        for one in answer.get("apps", answer.get("asks", [])):
            one["app"] = EVIL
        route.fulfill(json=answer)

    page = desk.watch(desk.context().new_page())
    page.route(re.compile(r"/v1/(apps|asks)$"), renamed)
    page.goto(desk.process.address)
    expect(page.locator(".ask h3")).to_have_text(EVIL)
    expect(page.locator(".app h3").first).to_have_text(EVIL)
    page.get_by_role("button", name="Decide").first.click()
    expect(page.locator("#grant-title")).to_contain_text(EVIL)
    assert page.locator("img").count() == 1, "the one picture is the page's own"
    assert page.title() != "broken"
    # The page asks again and again: a request on its way when it closes is nobody's failure.
    page.unroute_all(behavior="ignoreErrors")


def test_narrow_pages_never_scroll_sideways(desk: Desk) -> None:
    desk.consent(True)
    page = desk.owner(viewport={"width": 768, "height": 740})
    demo = desk.demo(page)
    page.bring_to_front()
    desk.grant("foveated-gallery", preset="research")
    expect(page.locator("#live-apps figure")).to_be_visible()
    page.locator(".ask").first.get_by_role("button", name="Decide").click()
    for one, width in ((page, 768), (demo, 768), (page, 360), (demo, 360)):
        one.set_viewport_size({"width": width, "height": 740})
        assert one.evaluate("document.documentElement.scrollWidth <= innerWidth"), one.url
        over = one.evaluate(
            "[...document.querySelectorAll('main *, dialog[open] *')].filter((e) =>"
            " e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll')).map((e) =>"
            " e.tagName + '.' + e.className)"
        )
        assert over == []


CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour, under) => {
    for (const one of [under, colour]) { canvas.fillStyle = one; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const weights = [0.2126, 0.7152, 0.0722];
  const light = (c) => weights.reduce((sum, weight, i) => sum + linear(c[i] / 255) * weight, 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
    return "white";
  };
  const says = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  const poor = [];
  for (const e of document.querySelectorAll("main *, header *")) {
    if (!says(e) || !e.checkVisibility()) continue;
    const under = ground(e);
    const [a, b] = [light(rgb(getComputedStyle(e).color, under)), light(rgb(under, "white"))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const text = e.textContent.slice(0, 30);
    if (ratio < 4.5) poor.push([e.tagName, e.className, text, ratio.toFixed(2)]);
  }
  return { poor, page: light(rgb(getComputedStyle(document.body).backgroundColor, "white")) };
}"""


def test_text_is_readable_in_light_and_in_dark(desk: Desk) -> None:
    page = desk.owner(reduced_motion="reduce")
    demo = desk.demo(page)
    page.bring_to_front()
    desk.grant("gaze-button", preset="avatar")
    expect(page.locator('.app[data-app="gaze-button"]')).to_contain_text("Granted")
    expect(page.locator(".ask").first).to_be_visible()
    for one, dark in ((page, False), (demo, False), (page, True), (demo, True)):
        one.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        found = one.evaluate(CONTRAST)
        assert found["poor"] == []
        assert (found["page"] < 0.05) == dark
    assert (
        page.evaluate(
            "getComputedStyle(document.querySelector('.switch .knob')).transitionDuration"
        )
        == "0s"
    )


UNLABELLED = """() => {
  const said = (e) => e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length;
  const controls = document.querySelectorAll("button, input, select, textarea, canvas, a");
  return [...controls].filter((e) => !said(e)).length;
}"""


def test_the_pages_need_no_other_host_and_no_inline_script(desk: Desk) -> None:
    page = desk.watch(desk.context().new_page())
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    answer = page.goto(desk.process.address)
    assert answer is not None
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    expect(page.locator("#board")).to_be_visible()
    page.goto(f"{desk.process.address}/demo/")
    page.wait_for_load_state("networkidle")
    assert asked
    assert {url for url in asked if not url.startswith(desk.process.address)} == set()
    assert page.evaluate(
        "[...document.querySelectorAll('script')].every((s) => s.src && !s.textContent)"
    )
    assert page.evaluate(UNLABELLED) == 0
