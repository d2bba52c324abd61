import type { LimitScope, LimitState } from "../../../domain/limits/limit-scope.ts";
import { UsageWindow } from "../window.ts";
import {
  firstOf,
  heldTo,
  auditedRefusal,
  refusalFor,
  stateOf,
  type ScopeWindow,
  countedSlotsOf,
} from "../decision.ts";
import type { RefusedByLimit } from "../limit-store.ts";
import type { Demanded } from "./own-windows.ts";

/** What the server has in a window: the sum of its slots and its debt, and how far it has changed. */
export interface WindowTold {
  readonly charged: number;
  readonly number: number;
}

export interface Lease {
  readonly requests: number;
  readonly tokens: number;
  readonly overrun: number;
}

interface Told {
  /** The server's time, in milliseconds. */
  readonly now: number;
  readonly slot: number;
}

/** What the script has decided. */
export type Decided = Told &
  (
    | {
        readonly is: "admitted";
        readonly state: LimitState;
        readonly lease: Lease;
        readonly windows: readonly WindowTold[];
        readonly wouldRefuse: RefusedByLimit | undefined;
      }
    | {
        readonly is: "refused";
        readonly refusal: RefusedByLimit;
        readonly windows: readonly WindowTold[];
      }
    | {
        readonly is: "full";
        /** Of each budget without room: its place, spend and reservations. None: nobody knows. */
        readonly full: readonly number[];
        /** Undefined: no windows were read. */
        readonly state: LimitState | undefined;
      }
    /** The server has not had all data for long enough. */
    | { readonly is: "young"; readonly ageMs: number }
    | { readonly is: "broken" }
  );

/** A refusal is explained from what the windows hold, as it is for limits in memory. */
export function readDecision(reply: unknown, asked: Demanded, random: () => number): Decided {
  const [verdict, now, slot, extra, ...told] = listOf(reply);
  const time: Told = { now: numberOf(now), slot: numberOf(slot) };
  const windows = told.map(numbersOf);
  switch (verdict) {
    case 0: {
      const audited = windows.slice(asked.scopes.length);
      const charges = chargesOf(asked, time.slot, (index) => contentsTold(windows[index]));
      const [requests = 0, tokens = 0, overrun = 0] = numbersOf(extra);
      const state = stateOf(firstOf(charges), charges, time.now);
      const lease = { requests, tokens, overrun };
      const wouldRefuse =
        audited.length === 0
          ? undefined
          : auditedRefusal(explainedTo(asked, time, audited), random);
      return {
        ...time,
        is: "admitted",
        state,
        lease,
        windows: windows.map(windowTold),
        wouldRefuse,
      };
    }
    case 1: {
      const refusal = refusalFor(explainedTo(asked, time, windows), random);
      if (refusal === undefined) throw new TypeError("a refusal by Valkey has no reason");
      return { ...time, is: "refused", refusal, windows: windows.map(refusedTold) };
    }
    case 2:
      return { ...time, is: "young", ageMs: numberOf(extra) };
    case 3:
      return { ...time, is: "broken" };
    case 4: {
      const charges = chargesOf(asked, time.slot, (index) => contentsTold(windows[index]));
      const state = windows.length === 0 ? undefined : stateOf(firstOf(charges), charges, time.now);
      return { ...time, is: "full", full: numbersOf(extra), state };
    }
    default:
      throw new TypeError("Valkey has not answered with a decision");
  }
}

/** A request and the windows that explain what refuses it. */
function explainedTo(
  asked: Demanded,
  { now, slot }: Told,
  windows: readonly (readonly number[])[],
) {
  const charges = chargesOf(asked, slot, (index) => {
    const [debt = 0, overrun = 0, , ...amounts] = windows[index] ?? [];
    return { debt, overrun, amounts };
  });
  return { charges, demand: asked.demand, overrun: asked.overrun, now };
}

/** The states of windows that were read: of each list of scopes in turn. */
export function readStates(
  reply: unknown,
  lists: readonly (readonly LimitScope[])[],
): readonly LimitState[] {
  const [, now, slot, ...told] = listOf(reply);
  const windows = told.map(numbersOf);
  let place = 0;
  return lists.map((scopes) => {
    const first = place;
    place += scopes.length;
    const contents = (index: number): Contents => contentsTold(windows[first + index]);
    const charges = chargesOf({ scopes }, numberOf(slot), contents);
    return stateOf(firstOf(charges), charges, numberOf(now));
  });
}

/** The whole sum stands in the newest slot that is used: it decides when all is free again. */
function contentsTold([sum = 0, debt = 0, newest = 0]: readonly number[] = []): Contents {
  return { debt, overrun: 0, amounts: [newest, sum] };
}

export interface Corrected extends Told {
  readonly isBroken: boolean;
  readonly ageMs: number;
  readonly windows: readonly WindowTold[];
}

export function readCorrection(reply: unknown): Corrected {
  const [verdict, now, slot, ageMs, ...told] = listOf(reply);
  return {
    now: numberOf(now),
    slot: numberOf(slot),
    isBroken: verdict === 3,
    ageMs: numberOf(ageMs),
    windows: told.map(numbersOf).map(windowTold),
  };
}

export interface Looked {
  readonly now: number;
  /** How long the server has had all of its data. */
  readonly ageMs: number;
}

export function readCheck(reply: unknown): Looked {
  const [, now = 0, ageMs = 0] = numbersOf(reply);
  return { now, ageMs };
}

function windowTold([sum = 0, debt = 0, , number = 0]: readonly number[]): WindowTold {
  return { charged: sum + debt, number };
}

function refusedTold([debt = 0, , number = 0, ...amounts]: readonly number[]): WindowTold {
  let charged = debt;
  for (let index = 1; index < amounts.length; index += 2) charged += amounts[index] ?? 0;
  return { charged, number };
}

function listOf(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw new TypeError("Valkey has not answered with a list");
  return reply;
}

function numbersOf(reply: unknown): readonly number[] {
  return listOf(reply).map(numberOf);
}

function numberOf(value: unknown): number {
  if (typeof value !== "number") throw new TypeError("Valkey has not answered with a number");
  return value;
}

interface Contents {
  readonly debt: number;
  readonly overrun: number;
  /** Slots, each followed by its amount. */
  readonly amounts: readonly number[];
}

function chargesOf(
  { scopes }: Pick<Demanded, "scopes">,
  slot: number,
  contentsOf: (index: number) => Contents,
): readonly ScopeWindow[] {
  return scopes.map((scope, index) => ({
    scope,
    window: windowOf(scope, contentsOf(index), slot),
  }));
}

function windowOf(scope: LimitScope, contents: Contents, slot: number): UsageWindow {
  const window = new UsageWindow(slot, countedSlotsOf(scope));
  window.holdTo(heldTo(scope));
  const { debt, overrun, amounts } = contents;
  for (let index = 0; index + 1 < amounts.length; index += 2) {
    const amount = amounts[index + 1] ?? 0;
    window.include({ slot: amounts[index] ?? slot, amounts: [amount], debt: 0, limit: Infinity });
  }
  if (debt > 0) window.include({ slot, amounts: [], debt, limit: scope.limit });
  window.openOverrun(overrun);
  return window;
}
