import type { CapacityMode } from "../../domain/capacity.ts";
import type { KeyDigest } from "../../domain/peppers.ts";

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
}

/** Digests under the pepper: who has them can neither read a request nor try out what it was. */
export function nameCall(call: RepeatableCall, digest: KeyDigest): CallNames {
  const { keyId, idempotencyKey, endpoint, capacity } = call;
  const body = new Bun.CryptoHasher("sha256").update(call.body).digest("hex");
  const digestOf = (...parts: readonly string[]): string =>
    Buffer.from(digest(JSON.stringify(parts))).toString("hex");
  return {
    idempotencyKey,
    id: digestOf("call that may be repeated", keyId, idempotencyKey),
    requestDigest: digestOf("request of a call", endpoint, capacity, body),
  };
}
