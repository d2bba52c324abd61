import type { Clock } from "../../../../domain/clock.ts";
import type { LimitRequest } from "../../../store.ts";
import type { LeaseAccount } from "../../leases/lease-account.ts";
import type { AccountUse, OpenCall } from "./account-use.ts";
import { holdAgainMs } from "./scripts/window-script.ts";

/** How a worker has admitted a call. */
export interface Admission {
  readonly account: AccountUse;
  /** In this process's time. */
  readonly slot: number;
  readonly isAlone: boolean;
  readonly leaseAccount: LeaseAccount | undefined;
}

/** The calls of a worker that are not settled. */
export class OpenCalls {
  readonly #clock: Clock;
  readonly #calls = new Map<string, OpenCall>();
  /** Those that may use more than they reserved, the one that was held first in front. */
  readonly #overrunning = new Map<string, OpenCall>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  open({ callId, scopes, tokens, mostTokens = tokens }: LimitRequest, admission: Admission): void {
    const overrun = Math.max(0, mostTokens - tokens);
    const heldAtMs = this.#clock.monotonic();
    const of = { callId, scopes, reserved: tokens, charged: tokens, overrun, heldAtMs };
    const call: OpenCall = { ...of, ...admission };
    this.#calls.set(callId, call);
    admission.account.calls.set(callId, call);
    if (overrun > 0) this.#overrunning.set(callId, call);
  }

  get(callId: string): OpenCall | undefined {
    return this.#calls.get(callId);
  }

  close(callId: string): OpenCall | undefined {
    const call = this.#calls.get(callId);
    if (call === undefined) return undefined;
    this.#calls.delete(callId);
    this.#overrunning.delete(callId);
    call.account.calls.delete(callId);
    return call;
  }

  accounts(): Iterable<AccountUse> {
    return new Set(Array.from(this.#calls.values(), ({ account }) => account));
  }

  /** Calls whose overrun Valkey would forget soon. They are not returned again for a while. */
  takeForgettable(): readonly OpenCall[] {
    const now = this.#clock.monotonic();
    const due: OpenCall[] = [];
    for (const [callId, call] of this.#overrunning) {
      if (now < call.heldAtMs + holdAgainMs) break;
      call.heldAtMs = now;
      this.#overrunning.delete(callId);
      this.#overrunning.set(callId, call);
      due.push(call);
    }
    return due;
  }
}
