/**
 * The one error of the client: what the Gatekeeper refused or ended, with its code and its reason.
 *
 * Codes are words: "no-consent" "no-grant" "expired" "revoked" "scope" "mechanism" "parameter" "rate" "budget" "area" "unknown" from the
 * policy and the ledger, "token" where the token is not accepted, "network" where nobody answered.
 * @module
 */

export class GazeError extends Error {
  /**
   * @param {string} code a word a program can compare
   * @param {string} reason one sentence for people
   * @param {number} [status] HTTP status where the answer had one
   */
  constructor(code, reason, status = 0) {
    super(reason);
    this.name = "GazeError";
    this.code = code;
    this.reason = reason;
    this.status = status;
  }
}

/**
 * The error in a message or body of the Gatekeeper, whatever shape a proxy in between gave it.
 * @param {any} body parsed JSON or null
 * @param {number} status HTTP status
 * @returns {GazeError}
 */
export function errorFrom(body, status) {
  const said = body && typeof body === "object" ? body.error ?? body : {};
  const code = typeof said.code === "string" ? said.code : status === 401 ? "token" : "unknown";
  const reason = typeof said.reason === "string" ? said.reason : `The Gatekeeper answered with status ${status}.`;
  return new GazeError(code, reason, status);
}
