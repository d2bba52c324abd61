import { isTokenCount } from "../../../domain/limits/limit-scope.ts";
import { AddedCharges } from "../window.ts";
import type { Leases } from "./leases.ts";
import { isOfTokens, openOverrun, type OwnWindows } from "./own-windows.ts";
import { applyHere, type Account, type Reports, type Step } from "./reports.ts";
import type { RequestWindows } from "./scopes.ts";
import type { Trust } from "./trust.ts";

export interface OpenCall {
  readonly account: Account;
  readonly names: RequestWindows;
  readonly slot: number;
  readonly reserved: number;
  /** Tokens charged for the call so far. */
  charged: number;
  /** Tokens it may use beyond that. */
  overrun: number;
  added?: AddedCharges;
}

export interface OpenCallsOptions {
  readonly own: OwnWindows;
  readonly reports: Reports;
  readonly leases: Leases;
  readonly trust: Trust;
}

/** The tokens of calls that run, here and in the server. */
export class OpenCalls {
  readonly #options: OpenCallsOptions;
  readonly #calls = new Map<string, OpenCall>();

  constructor(options: OpenCallsOptions) {
    this.#options = options;
  }

  add(callId: string, call: OpenCall): void {
    this.#calls.set(callId, call);
  }

  use(callId: string, tokens: number): void | Promise<void> {
    const call = this.#calls.get(callId);
    if (call === undefined) return undefined;
    const more = tokens - call.charged;
    if (more <= 0) return undefined;
    const { reports } = this.#options;
    const overrun = Math.min(more, call.overrun);
    call.charged = tokens;
    call.overrun -= overrun;
    const own = this.#options.own.of(call.names, reports.slot).filter(isOfTokens);
    openOverrun(own, -overrun);
    // In one slot of all, no later than that of the server.
    const slot = Math.max(reports.slot, ...own.map(({ window }) => window.newest));
    for (const { window } of own) window.advance(slot);
    (call.added ??= new AddedCharges()).add(slot, more);
    const step = { kind: "m", slot, amount: more } as const;
    const steps = own.map((of) => ({ own: of, ...step }));
    return this.tell(call.account, steps, call.names);
  }

  settle(callId: string, tokens: number, now: number): void | Promise<void> {
    const call = this.#calls.get(callId);
    if (call === undefined) return undefined;
    this.#calls.delete(callId);
    const { account, names, slot, reserved, charged, overrun } = call;
    const own = this.#options.own.of(names, this.#options.reports.slot).filter(isOfTokens);
    // Runs where calls end, so it must not throw: an invalid count keeps the charge.
    const used = isTokenCount(tokens) ? tokens : charged;
    const difference = used - charged;
    openOverrun(own, -overrun);
    if (difference === 0 && overrun === 0) return undefined;
    if (difference <= 0 && charged === reserved) {
      const rest = { requests: 0, tokens: -difference, overrun };
      if (this.#options.leases.giveBack({ names, slot, rest }, now)) {
        openOverrun(own, overrun);
        for (const { window } of own) window.adjust(slot, difference);
        return undefined;
      }
    }
    const amount = Math.max(difference, -reserved);
    const back = call.added?.oldest(amount - difference) ?? [];
    const steps = own.flatMap((of): Step[] => [
      { own: of, kind: "s", slot, amount },
      ...back.map((part): Step => ({ own: of, kind: "t", slot: part.slot, amount: -part.amount })),
    ]);
    return this.tell(account, steps, names);
  }

  /** Applies steps here, and tells the server: at once, or with others if the key is busy. */
  tell(account: Account, steps: readonly Step[], names: RequestWindows): Promise<void> {
    const { reports, leases, trust } = this.#options;
    for (const step of steps) applyHere(step);
    reports.note(account, steps);
    if (!trust.answers || leases.isBusy(names)) return Promise.resolve();
    return reports.flush(account);
  }
}
