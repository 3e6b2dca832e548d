/**
 * The owner's session is a key of this page: made here, kept by the browser for this page's own scheme, host and port, and readable by no script. Every call is
 * signed with it, so that whoever hears a call, also a program that has taken the service's port, has nothing that works a second time.
 * @module
 */

/** The header that carries a signature. */
export const HEADER = "X-Gazeveil-Session";

/** Browsers have keys on pages that nobody on the way can change. */
export const INSECURE = "This browser signs in over https, or at 127.0.0.1 or localhost on the device itself. Open the link there.";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const STORE = "owner";

const bytes = (/** @type {string} */ text) => new TextEncoder().encode(text);
const hex = (/** @type {ArrayBuffer} */ data) => Array.from(new Uint8Array(data), (byte) => byte.toString(16).padStart(2, "0")).join("");
const base64 = (/** @type {ArrayBuffer} */ data) => btoa(String.fromCharCode(...new Uint8Array(data))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** @param {IDBRequest} request @returns {Promise<any>} */
const answered = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/**
 * Works on what the browser keeps for this page, and waits until it is kept: a page that is left meanwhile must not have its number used again.
 * @template T @param {(kept: IDBObjectStore) => Promise<T>} work @returns {Promise<T>}
 */
async function kept(work) {
  const opening = indexedDB.open("gazeveil", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  const base = await answered(opening);
  try {
    const writing = base.transaction(STORE, "readwrite");
    const written = new Promise((resolve, reject) => {
      writing.oncomplete = resolve;
      writing.onabort = () => reject(writing.error);
    });
    const result = await work(writing.objectStore(STORE));
    await written;
    return result;
  } finally {
    base.close();
  }
}

/** A new key, for which `begin` opens a session. @param {(publicKey: string) => Promise<string>} begin gives the session's id */
export async function make(begin) {
  const pair = await crypto.subtle.generateKey(ALGORITHM, false, ["sign"]);
  const id = await begin(base64(await crypto.subtle.exportKey("raw", pair.publicKey)));
  await kept((store) => answered(store.put({ id, key: pair.privateKey, number: 0 }, STORE)));
}

export const forget = () => kept((store) => answered(store.clear()));

/** The session with a number that no call of this browser had before. */
const next = () => kept(async (store) => {
  const mine = await answered(store.get(STORE));
  if (mine) await answered(store.put({ ...mine, number: mine.number + 1 }, STORE));
  return mine && { ...mine, number: mine.number + 1 };
});

async function sign(method, target, body) {
  const mine = await next();
  if (!mine) return "";
  const head = [mine.id, mine.number, Date.now(), hex(await crypto.subtle.digest("SHA-256", bytes(body)))].join(".");
  return `${head}.${base64(await crypto.subtle.sign(ALGORITHM, mine.key, bytes(`${method} ${target}\n${head}`)))}`;
}

let last = Promise.resolve("");

/**
 * The signature of a call, nothing where nobody is signed in. Calls are signed in the order they are made in, so that they leave in it: the later press counts.
 * @param {string} method
 * @param {string} path
 * @param {string} [body] as it is sent
 * @returns {Promise<string>}
 */
export function signed(method, path, body = "") {
  const { pathname, search } = new URL(path, location.href);
  last = last.catch(() => "").then(() => sign(method, pathname + search, body));
  return last;
}
