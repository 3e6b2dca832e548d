/**
 * The owner's page: who asks, what each app gets, what it has cost, and the switch that ends it all.
 * @module
 */
import { appCard, askCard } from "./dash/apps.js";
import { showDevice } from "./dash/budgets.js";
import { byId, renew, say } from "./dash/dom.js";
import { openGrant } from "./dash/grant.js";
import { Live } from "./dash/live.js";
import { consent, dismiss, grant, newToken, owner, revoke } from "./dash/owner.js";
import { AuditTable, Certificate } from "./dash/records.js";
import { openAdd, showToken, startDemos } from "./dash/tokens.js";

const EVERY_MS = 2000;

/** @type {any} */
let device = null;
/** @type {Set<string>} */
const announced = new Set();
/** @type {{live: Live, audit: AuditTable, certificate: Certificate}|null} */
let parts = null;
let fetching = false;
let again = false;
let certified = "";

/** Runs a change, says how it went, and shows the new state. */
async function change(work, words) {
  await work();
  say(words);
  await refresh();
}

const quietly = (/** @type {Promise<any>} */ work) => work.catch((error) => say(error.message));

function decide(app, wanted, ask) {
  openGrant({
    app, presets: device.presets, wanted, ask,
    onGrant: async (body) => change(() => grant(app, body), device.consent ? `Granted to ${app}.` : `Granted to ${app}. It starts when sharing is on.`),
    // The card of the ask is gone: the keyboard goes on at the next ask, or at the app's own card.
    onDone: () => (document.querySelector('#asks-list [data-name="grant"]') ?? document.querySelector(`.app[data-app="${CSS.escape(app)}"] [data-name="grant"]`))?.focus(),
  });
}

const actions = {
  onGrant: (app) => decide(app.app, app.grant?.preset ?? null, app.state === "granted" && !app.grant?.preset ? app.grant : null),
  onRevoke: (app) => quietly(change(() => revoke(app.app), `${app.app} gets nothing from now on.`)),
  onToken: (app) => quietly(newToken(app.app).then((made) => { showToken(made.app, made.token); return refresh(); })),
};

const askActions = {
  onGrant: (ask) => decide(ask.app, ask.preset, ask),
  onDismiss: (ask) => quietly(change(() => dismiss(ask.id), `Dismissed what ${ask.app} asks.`)),
};

function showConsent(on) {
  const button = byId("consent");
  button.setAttribute("aria-checked", String(on));
  byId("consent-word").textContent = on ? "On" : "Off";
  byId("consent-means").textContent = on
    ? "On: each app gets what its grant says, and nothing else. Switch off and everything stops at once."
    : "Off: no app gets anything, whatever was granted. Nothing leaves this device.";
}

function showAsks(asks) {
  const presets = new Map(device.presets.map((preset) => [preset.name, preset]));
  byId("asks").hidden = asks.length === 0;
  renew(byId("asks-list"), asks, (ask) => String(ask.id), (ask) => askCard(ask, presets.get(ask.preset), askActions));
  for (const ask of asks) {
    if (announced.has(String(ask.id))) continue;
    announced.add(String(ask.id));
    say(`${ask.app} asks for ${ask.preset ?? "a custom grant"}.`);
  }
  document.title = asks.length ? `(${asks.length}) Gazeveil: who sees your gaze` : "Gazeveil: who sees your gaze";
}

function showAll(answer, asks, budgets) {
  device = answer;
  const { name, resolution_deg, tick_ms } = device.level;
  const seen = device.tracker ? `${device.tracker.name}${device.tracker.connected ? "" : " (not connected)"}, ` : "";
  byId("device").textContent = `${device.device}: ${seen}${Math.round(device.rate_hz)} Hz, level ${name} (${resolution_deg}°, ${tick_ms} ms)`;
  showConsent(device.consent);
  showAsks(asks);
  const cards = device.apps.map((app) => ({
    ...app, calls_last_minute: 0, streams: (app.streams ?? []).map(({ what, mechanism }) => ({ what, mechanism })), consent: device.consent, budgets: budgets.filter((budget) => budget.app === app.app),
  }));
  renew(byId("apps-list"), cards, (app) => app.app, (app) => appCard(app, actions));
  byId("apps-none").hidden = cards.length > 0;
  showDevice(byId("budgets-list"), budgets.filter((budget) => budget.app === null));
  parts?.live.describe(device);
  // The certificate speaks of grants and consent; what was spent since then is one press away.
  const promised = JSON.stringify([device.consent, device.apps.map(({ app, state, grant: given }) => [app, state, given])]);
  if (parts && promised !== certified) {
    certified = promised;
    quietly(parts.certificate.fetch());
  }
}

async function refresh() {
  if (fetching) { again = true; return; }
  fetching = true;
  try {
    do {
      again = false;
      const [answer, { asks }, { budgets }] = await Promise.all([owner("GET", "/v1/apps"), owner("GET", "/v1/asks"), owner("GET", "/v1/budgets")]);
      unlock();
      showAll(answer, asks, budgets);
      await parts?.audit.fetch();
    } while (again);
  } catch (error) {
    if (error.status === 401) lock("");
    else if (error.status === 403) lock(error.reason);
    else if (device) say(error.message);
    else lock(error.message);
  } finally {
    fetching = false;
  }
}

function lock(why) {
  byId("locked").hidden = false;
  byId("locked-why").textContent = why;
  for (const id of ["board", "nav", "device"]) byId(id).hidden = true;
}

function unlock() {
  byId("locked").hidden = true;
  for (const id of ["board", "nav", "device"]) byId(id).hidden = false;
  parts?.live.open();
  if (parts) return;
  parts = { live: new Live(() => { clearTimeout(soon); soon = setTimeout(refresh, 150); }), audit: new AuditTable(), certificate: new Certificate() };
  parts.live.open();
}

/** @type {any} */
let soon = 0;

byId("locked-again").addEventListener("click", refresh);
byId("consent").addEventListener("click", () => {
  const on = byId("consent").getAttribute("aria-checked") !== "true";
  quietly(change(() => consent(on), on ? "Sharing is on." : "Sharing is off. Nothing leaves this device."));
});
byId("add").addEventListener("click", () => openAdd((name, token) => { showToken(name, token); refresh(); }));
byId("demo").addEventListener("click", () => quietly(startDemos(device.apps.map((app) => app.app)).then(refresh)));
setInterval(() => { if (!document.hidden && device && !byId("board").hidden) refresh(); }, EVERY_MS);
refresh();
