import type { WireState } from "./limit-wire.ts";

/** Leases: what control has charged ahead, for calls that a worker then admits by itself. */

/** Counted by control for each worker. */
export type LeaseId = number;

/** Sent before the answer to the acquisition that wished for it. */
export type WireLease = readonly [
  id: LeaseId,
  /** Of the wish. */
  account: number,
  slot: number,
  /** When the slot ends, in milliseconds after the decision. */
  endsInMs: number,
  requests: number,
  tokens: number,
  /** What its calls may use beyond their tokens. */
  overrun: number,
  /** What is left beside the lease. */
  state: WireState,
];

/** A call that was admitted under a lease. */
export type WireLeasedCall = readonly [
  id: LeaseId,
  callId: string,
  tokens: number,
  overrun: number,
];

/** What no call got of a lease that has ended. */
export type WireRest = readonly [id: LeaseId, requests: number, tokens: number, overrun: number];
