/**
 * The page's half of the owner's session. It lies in the storage of this page's own scheme, host and port, which no other server on this machine sees; the other
 * half is a cookie that no script can read.
 * @module
 */
const NAME = "gazeveil-session";

/** The header that carries it. */
export const HEADER = "X-Gazeveil-Session";

/** @returns {string} the secret, or nothing where nobody is signed in */
export const secret = () => localStorage.getItem(NAME) ?? "";

/** @param {string} value */
export const keep = (value) => localStorage.setItem(NAME, value);

export const forget = () => localStorage.removeItem(NAME);
