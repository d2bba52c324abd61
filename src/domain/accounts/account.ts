import type { Limits } from "../limits/plan.ts";
import type { Role } from "./user.ts";

/** A customer: owns applications and their keys. */
export interface Account {
  readonly id: string;
  readonly name: string;
  readonly note: string;
  /** Plans that its account holders may issue keys on; operators may use any. */
  readonly plans: readonly string[];
  /** Limit on unrevoked keys across all its applications. */
  readonly maxKeys: number;
  /** Limits on all its keys together, not counting provisioned throughput; undefined: no limit. */
  readonly limits: Limits | undefined;
  /** Milliseconds since the epoch, as all times of an entity. */
  readonly createdAt: number;
  /** Set while none of its keys may call. */
  readonly disabledAt: number | undefined;
  /** Incremented by each change; a change names the revision it is based on. */
  readonly revision: number;
}

/** A program of an account in one environment; keys are issued to it. */
export interface Application {
  readonly id: string;
  readonly accountId: string;
  readonly environment: string;
  /** Unique within account and environment. */
  readonly name: string;
  readonly note: string;
  readonly createdAt: number;
  readonly disabledAt: number | undefined;
  /** Role of the user who disabled it. Only operators can enable what an operator disabled. */
  readonly disabledBy: Role | undefined;
  readonly revision: number;
}

/** How long data is kept, and how it is removed. */
export interface RetentionSettings {
  readonly callsMs: number;
  readonly hoursMs: number;
  readonly daysMs: number;
  readonly auditMs: number;
  readonly revokedKeysMs: number;
  readonly intervalMs: number;
  /** Limit on rows that one transaction removes from a table. */
  readonly batchRows: number;
}
