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

/** A call that was admitted under a lease and is not settled. */
export type WireLeasedCall = readonly [
  callId: string,
  /** That it has of the lease. */
  tokens: number,
  /** What it may use beyond them. */
  overrun: number,
];

/** What no call got of a lease that has ended, and the calls that go on. */
export type WireRest = readonly [
  id: LeaseId,
  requests: number,
  tokens: number,
  overrun: number,
  open: readonly WireLeasedCall[],
];
