import type { CapacityMode } from "../../domain/capacity.ts";
import type { KeyDigest, PepperKey, Peppers } from "../../domain/peppers.ts";

/** What tells a call that may be repeated from all others. */
export interface RepeatableCall {
  readonly keyId: string;
  /** As the caller sent it. */
  readonly idempotencyKey: string;
  /** What is called; the paths that lead there do not matter. */
  readonly endpoint: string;
  readonly capacity: CapacityMode;
  /** Decompressed. */
  readonly body: Uint8Array;
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
  const body = new Bun.CryptoHasher("sha256").update(call.body).digest("hex");
  const [, ...older] = all;
  return {
    ...nameUnder(call, body, first),
    older: older.map((pepper) => nameUnder(call, body, pepper)),
  };
}

function nameUnder(call: RepeatableCall, body: string, { digest }: PepperKey): CallNames {
  const { keyId, idempotencyKey, endpoint, capacity } = call;
  const digestOf = (...parts: readonly string[]): string =>
    Buffer.from(digest(JSON.stringify(parts))).toString("hex");
  return {
    idempotencyKey,
    id: digestOf("call that may be repeated", keyId, idempotencyKey),
    requestDigest: digestOf("request of a call", endpoint, capacity, body),
    digest,
  };
}
