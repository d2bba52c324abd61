import type { Limits } from "../limits/plan.ts";
import type { Budget } from "../money/budget.ts";
import type { CallOrigin } from "../usage/usage.ts";
import type { Role } from "../principal.ts";

/** A key: limits, usage and a plan belong to it. It has one or two live secrets. */
export interface Key {
  readonly id: string;
  readonly accountId: string;
  readonly applicationId: string;
  /** Name of the application. */
  readonly application: string;
  readonly environment: string;
  readonly plan: string;
  /** Scope of its limits: its own id, or one inherited from a revoked key. */
  readonly limitScope: string;
  /** Limits of this key alone; undefined: those of the plan. */
  readonly limits: Limits | undefined;
  /** Provisioned units of the key. */
  readonly provisionedUnits: number;
  /** Pool of these units; undefined if it has none. */
  readonly provisionedPool?: string | undefined;
  /** Aliases it may use; undefined: all of its environment. */
  readonly allowedModels: readonly string[] | undefined;
  /** CIDR blocks it may be used from; undefined: any address. */
  readonly allowedNetworks: readonly string[] | undefined;
  /** What people call it; empty: nothing. Need not be unique. */
  readonly name: string;
  readonly note: string;
  /** Milliseconds since the epoch, as all times of a key. */
  readonly createdAt: number;
  readonly expiresAt: number | undefined;
  /** May be enabled again. */
  readonly disabledAt: number | undefined;
  /** Role of the user who disabled it. Only operators can enable what an operator disabled. */
  readonly disabledBy: Role | undefined;
  /** Deleted permanently. */
  readonly revokedAt: number | undefined;
  /** Incremented by each change; a change names the revision it is based on. */
  readonly revision: number;
}

export function mayUseModel({ allowedModels }: Pick<Key, "allowedModels">, alias: string): boolean {
  return allowedModels === undefined || allowedModels.includes(alias);
}

/** A secret of a key, stored only as a digest. */
export interface KeySecret {
  readonly publicId: string;
  readonly keyId: string;
  /** HMAC-SHA-256 of the whole API key text under a pepper. */
  readonly digest: Uint8Array;
  /** Mark of that pepper; undefined if unknown. */
  readonly pepper?: string | undefined;
  readonly createdAt: number;
  /** When it expires or expired; undefined: never. */
  readonly expiresAt: number | undefined;
  readonly lastUsedAt: number | undefined;
}

/** The caller of a request: its key and limits. */
export interface Caller {
  readonly key: Key;
  readonly publicId: string;
  readonly limits: Limits;
  /** Limits on all keys of the account together; undefined: no limit. */
  readonly accountLimits?: Limits | undefined;
  /** Those of mode `refuse` that its calls can be under; undefined: none. */
  readonly budgets?: readonly Budget[] | undefined;
  /** Undefined: it sent a secret. */
  readonly via?: CallOrigin | undefined;
}
