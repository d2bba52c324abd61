import type { CapacityMode } from "../domain/limits/capacity.ts";
import { nextTurn } from "../domain/waiting/next-turn.ts";
import type { KeyDigest, PepperKey, Peppers } from "../domain/keys/peppers.ts";

/** What tells a call that may be repeated from all others. */
export interface RepeatableCall {
  readonly keyId: string;
  /** As the caller sent it. */
  readonly idempotencyKey: string;
  /** What is called; the paths that lead there do not matter. */
  readonly endpoint: string;
  readonly capacity: CapacityMode;
  /** Of the decompressed body (`digestOfBody`). */
  readonly bodyDigest: string;
}

export interface CallNames {
  /** As the caller sent it; stored nowhere. */
  readonly idempotencyKey: string;
  /** Of the API key and the `Idempotency-Key`: whatever secret it came with. */
  readonly id: string;
  /** Of all that the answer depends on. */
  readonly requestDigest: string;
  /** What all of this was made with, and the answer is encrypted with. */
  readonly digest: KeyDigest;
}

/** The names of a call now, and those under which it may have been answered before. */
export interface AllCallNames extends CallNames {
  readonly older: readonly CallNames[];
}

/** Digests under the peppers: who has them can neither read a request nor try out what it was. */
export function nameCall(call: RepeatableCall, { first, all }: Peppers): AllCallNames {
  const [, ...older] = all;
  return {
    ...nameUnder(call, first),
    older: older.map((pepper) => nameUnder(call, pepper)),
  };
}

function nameUnder(call: RepeatableCall, { digest }: PepperKey): CallNames {
  const { keyId, idempotencyKey, endpoint, capacity, bodyDigest } = call;
  const digestOf = (...parts: readonly string[]): string =>
    Buffer.from(digest(JSON.stringify(parts))).toString("hex");
  return {
    idempotencyKey,
    id: digestOf("call that may be repeated", keyId, idempotencyKey),
    requestDigest: digestOf("request of a call", endpoint, capacity, bodyDigest),
    digest,
  };
}

/** So much is hashed in one turn of the event loop, which takes some milliseconds. */
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
