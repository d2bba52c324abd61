import type { Limits } from "./plan.ts";

/** What limits, usage and a plan attach to. It has one or two live secrets. */
export interface Key {
  readonly id: string;
  readonly application: string;
  readonly environment: string;
  readonly plan: string;
  /** Values of this key alone, for custom plans; undefined means the plan's. */
  readonly limits: Limits | undefined;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly revokedAt: number | undefined;
}

/** One API key text of a key, known only by its digest. */
export interface KeySecret {
  readonly publicId: string;
  readonly keyId: string;
  /** HMAC-SHA-256 of the whole API key text under the pepper. */
  readonly digest: Uint8Array;
  readonly createdAt: number;
  readonly expiresAt: number | undefined;
}

/** Who is calling: a key and the limits that hold for it. */
export interface Caller {
  readonly key: Key;
  readonly publicId: string;
  readonly limits: Limits;
}
