import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import { idempotencyHeader } from "./refusals.ts";
import type { CapacityMode } from "../domain/limits/capacity.ts";
import { nextTurn } from "../domain/waiting/wait.ts";
import type { Peppers } from "../domain/keys/peppers.ts";
import { nameRequest, type AllRequestNames } from "./request-names.ts";

/** What identifies a call that may be repeated. */
export interface RepeatMark {
  /** As sent by the caller. */
  readonly idempotencyKey: string;
  /** Digest of the decompressed body (`digestOfBody`). */
  readonly bodyDigest: string;
}

/** The identity of an idempotent call. */
export interface RepeatableCall extends RepeatMark {
  readonly keyId: string;
  /** The endpoint, the same for all variants of its path. */
  readonly endpoint: string;
  readonly capacity: CapacityMode;
}

/** Undefined for a call whose answer is not shared. Throws 400 for an invalid key. */
export function readMark(call: KeyCall, body: Uint8Array): Promise<RepeatMark> | undefined {
  const idempotencyKey = readIdempotencyKey(call);
  if (idempotencyKey === undefined) return undefined;
  return digestOfBody(body).then((bodyDigest) => ({ idempotencyKey, bodyDigest }));
}

export function nameCall(call: RepeatableCall, peppers: Peppers): AllRequestNames {
  const { keyId, idempotencyKey: key, endpoint, capacity, bodyDigest } = call;
  const identity = ["call that may be repeated", keyId, key];
  const content = ["request of a call", endpoint, capacity, bodyDigest];
  return nameRequest({ key, identity, content }, peppers);
}

/** Bytes hashed in one turn of the event loop, which takes a few milliseconds. */
const turnBytes = 2 * 1024 * 1024;

/** SHA-256 of a body, in hexadecimal digits. */
export async function digestOfBody(body: Uint8Array): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  for (let start = 0; start < body.byteLength; start += turnBytes) {
    if (start > 0) await nextTurn();
    hasher.update(body.subarray(start, start + turnBytes));
  }
  return hasher.digest("hex");
}

/** Undefined when none was sent, or the caller's plan is not idempotent. Throws 400. */
function readIdempotencyKey({ request, snapshot, caller }: KeyCall): string | undefined {
  const written = request.headers.get(idempotencyHeader);
  if (written === null) return undefined;
  if (snapshot.plans.get(caller.key.plan)?.isIdempotent !== true) return undefined;
  // The runtime joins repeated headers with a comma and a space.
  if (/^[\x21-\x7e]{1,255}$/.test(written)) return written;
  throw new GatewayError("invalid_value", {
    message:
      `Invalid header '${idempotencyHeader}': must be 1 to 255 visible ASCII characters, ` +
      "without spaces.",
    param: idempotencyHeader,
  });
}
