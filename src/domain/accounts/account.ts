import type { Limits } from "../limits/plan.ts";
import type { Role } from "./user.ts";

/** The customer: owns applications and their keys. */
export interface Account {
  readonly id: string;
  readonly name: string;
  readonly note: string;
  /** Plans on which its account holders may issue keys; operators may use any. */
  readonly plans: readonly string[];
  /** Most keys that are not revoked, of all its applications together. */
  readonly maxKeys: number;
  /** What all its keys may use together, their provisioned throughput apart; undefined: no limit. */
  readonly limits: Limits | undefined;
  /** Milliseconds since the epoch, as all times of an entity. */
  readonly createdAt: number;
  /** Since when none of its keys may call. */
  readonly disabledAt: number | undefined;
  /** Counts changes; a change names the revision it was made from. */
  readonly revision: number;
}

/** What keys are issued to: a program of an account in one environment. */
export interface Application {
  readonly id: string;
  readonly accountId: string;
  readonly environment: string;
  /** Unique in its account and environment. */
  readonly name: string;
  readonly note: string;
  readonly createdAt: number;
  readonly disabledAt: number | undefined;
  /** Role of who disabled it; what an operator has disabled only operators enable. */
  readonly disabledBy: Role | undefined;
  readonly revision: number;
}
