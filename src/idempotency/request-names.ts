import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import { idempotencyHeader } from "./refusals.ts";
import type { CapacityMode } from "../domain/limits/capacity.ts";
import { nextTurn } from "../domain/waiting/wait.ts";
import type { KeyDigest, PepperKey, Peppers } from "../domain/keys/peppers.ts";

/** An idempotent request. The elements of the lists must be JSON. */
export interface RepeatableRequest {
  /** The `Idempotency-Key` as the caller sent it. */
  readonly key: string;
  /** Owner and key: equal identities are the same request. */
  readonly identity: readonly unknown[];
  /** Everything that the answer depends on; it must be equal under the same identity. */
  readonly content: readonly unknown[];
}

/** The digests of a request under one pepper. */
export interface RequestNames {
  /** As the caller sent it; never stored. */
  readonly key: string;
  /** Digest of the identity. */
  readonly id: string;
  /** Digest of the content. */
  readonly requestDigest: string;
  /** Makes both digests, and the secret that encrypts the answer. */
  readonly digest: KeyDigest;
}

/** The current names of a request, and those under older peppers. */
export interface AllRequestNames extends RequestNames {
  readonly older: readonly RequestNames[];
}

/**
 * Digests that use the peppers, so that a copy of them can be neither read nor checked by guessing.
 */
export function nameRequest(
  { key, identity, content }: RepeatableRequest,
  { first, all }: Peppers,
): AllRequestNames {
  const nameUnder = ({ digest }: PepperKey): RequestNames => {
    const digestOf = (parts: readonly unknown[]): string =>
      Buffer.from(digest(JSON.stringify(parts))).toString("hex");
    return { key, id: digestOf(identity), requestDigest: digestOf(content), digest };
  };
  return { ...nameUnder(first), older: all.slice(1).map(nameUnder) };
}

/** The names under which a reply is kept; undefined for the answer to another request. */
export function namesOfReply(
  { id, requestDigest }: Pick<RequestNames, "id" | "requestDigest">,
  all: AllRequestNames,
): RequestNames | undefined {
  const names = [all, ...all.older].find((each) => each.id === id);
  return names?.requestDigest === requestDigest ? names : undefined;
}

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
