import type {
  GrantedLease,
  LeaseId,
  LeaseRest,
} from "../../store/coordinator/leases/lease-account.ts";
import { stateFromWire, type WireState } from "./limit-wire.ts";

/** Leases: what control has charged in advance for calls that a worker then admits by itself. */

/** Sent before the answer to the acquisition that asked for it. */
export type WireLease = readonly [
  id: LeaseId,
  /** The account of the wish. */
  account: number,
  slot: number,
  /** When the slot ends, in milliseconds after the decision. */
  endsInMs: number,
  requests: number,
  tokens: number,
  /** What its calls may use beyond their reserved tokens. */
  overrun: number,
  /** What is left apart from the lease. */
  state: WireState,
];

/** A call that was admitted under a lease and is not settled. */
export type WireLeasedCall = readonly [
  callId: string,
  /** Its tokens of the lease. */
  tokens: number,
  /** What it may use beyond them. */
  overrun: number,
];

/** What no call used of a lease that has ended, and the calls that still run. */
export type WireRest = readonly [
  id: LeaseId,
  requests: number,
  tokens: number,
  overrun: number,
  open: readonly WireLeasedCall[],
];

export function leaseFromWire(lease: WireLease): GrantedLease {
  const [id, account, slot, endsInMs, requests, tokens, overrun, state] = lease;
  return { id, account, slot, endsInMs, requests, tokens, overrun, state: stateFromWire(state) };
}

export function restToWire({ id, requests, tokens, overrun, calls }: LeaseRest): WireRest {
  const open = Array.from(calls, ([callId, call]) => [callId, call.tokens, call.overrun] as const);
  return [id, requests, tokens, overrun, open];
}
