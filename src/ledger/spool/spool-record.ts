import type {
  CallOutcome,
  CapacityClass,
  OpenedCall,
  UsageRecord,
  UsageSource,
} from "../../domain/usage/usage.ts";

/** One record of a call in the spool. */
export type SpoolRecord =
  | { readonly kind: "open"; readonly call: OpenedCall }
  | { readonly kind: "checkpoint"; readonly id: string; readonly delivered: Delivered }
  | { readonly kind: "close"; readonly record: UsageRecord };

export interface Delivered {
  readonly outputTokens: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * First byte of a payload of binary records. Earlier versions wrote one record as JSON, whose first
 * byte is a brace. A version that changes the format takes the next number, so that earlier
 * versions leave its files alone.
 */
export const binaryVersion = 1;

/** First byte of each entry in a payload. Texts are numbered in order, from 1. */
export const entryKinds = { text: 1, open: 2, checkpoint: 3, close: 4 } as const;

/** Numbers that stand for names in binary records; they are never reused. */
export const capacityCodes: Codes<CapacityClass> = {
  provisioned: 0,
  spillover: 1,
  "on-demand": 2,
};
export const sourceCodes: Codes<UsageSource> = {
  upstream: 0,
  counted: 1,
  estimated: 2,
  bounded: 3,
};
export const outcomeCodes: Codes<CallOutcome> = {
  completed: 0,
  failed: 1,
  abandoned: 2,
  interrupted: 3,
};

type Codes<Name extends string> = { readonly [Each in Name]: number };
