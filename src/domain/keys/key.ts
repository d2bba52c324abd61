import type { Limits } from "../limits/plan.ts";
import type { Role } from "../accounts/user.ts";

/** What limits, usage and a plan attach to. It has one or two live secrets. */
export interface Key {
  readonly id: string;
  readonly accountId: string;
  readonly applicationId: string;
  /** Name of the application. */
  readonly application: string;
  readonly environment: string;
  readonly plan: string;
  /** Where its limits are counted: its own id, or what a key that was revoked has left to it. */
  readonly limitScope: string;
  /** Values of this key alone, for custom plans; undefined means the plan's. */
  readonly limits: Limits | undefined;
  /** Units of provisioned throughput bought for the key. */
  readonly provisionedUnits: number;
  /** Name of the pool whose units they are; undefined when it has none. */
  readonly provisionedPool?: string | undefined;
  /** Aliases it may name; undefined: all of its environment. */
  readonly allowedModels: readonly string[] | undefined;
  /** CIDR blocks it may be used from; undefined: anywhere. */
  readonly allowedNetworks: readonly string[] | undefined;
  readonly note: string;
  /** Milliseconds since the epoch, as all times of a key. */
  readonly createdAt: number;
  readonly expiresAt: number | undefined;
  /** May be enabled again. */
  readonly disabledAt: number | undefined;
  /** Role of who disabled it; what an operator has disabled only operators enable. */
  readonly disabledBy: Role | undefined;
  /** Deleted: for good. */
  readonly revokedAt: number | undefined;
  /** Counts changes; a change names the revision it was made from. */
  readonly revision: number;
}

/** One API key text of a key, known only by its digest. */
export interface KeySecret {
  readonly publicId: string;
  readonly keyId: string;
  /** HMAC-SHA-256 of the whole API key text under a pepper. */
  readonly digest: Uint8Array;
  /** Mark of that pepper; undefined where it was never noted. */
  readonly pepper?: string | undefined;
  readonly createdAt: number;
  /** When it stops, or stopped, working; undefined: not planned. */
  readonly expiresAt: number | undefined;
  readonly lastUsedAt: number | undefined;
}

/** Who is calling: a key and the limits that hold for it. */
export interface Caller {
  readonly key: Key;
  readonly publicId: string;
  readonly limits: Limits;
  /** What all keys of its account may use together; undefined: no limit. */
  readonly accountLimits?: Limits | undefined;
}
