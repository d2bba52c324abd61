import { countedSlots, guaranteeSlots } from "../../../../domain/limits/slots.ts";
import type { Inclusion, OpenCall } from "./account-use.ts";
import { callKey, epochKey, includeKey, windowsOf } from "./scope-parameters.ts";

export interface IncludeRequest {
  readonly tag: string;
  readonly inclusion: Inclusion;
  /** The current slot in this process's time. */
  readonly slot: number;
  readonly reservationTtlMs: number;
}

/** The keys and parameters of `includeScript`, without those that all scripts begin with. */
export function includeParameters(request: IncludeRequest): {
  readonly keys: readonly [string, ...string[]];
  readonly parameters: readonly string[];
} {
  const { tag, inclusion, slot, reservationTtlMs } = request;
  const { id, windows, calls } = inclusion;
  const numbers = new Map([...windows.keys()].map((key, index) => [key, index + 1]));
  // Slots of two clocks begin at different moments: the later one keeps the use at least as long.
  const ageOf = (since: number): number => Math.max(0, slot - since - 1);
  const parameters: (string | number)[] = [windows.size];
  for (const { name } of windows.values()) {
    parameters.push(name.seconds === 0 ? countedSlots : guaranteeSlots(name.seconds));
  }
  for (const { limit, debt, amounts } of windows.values()) {
    parameters.push(limit, debt, amounts.size);
    for (const [since, amount] of amounts) parameters.push(ageOf(since), amount);
  }
  for (const call of calls) {
    const { reserved, charged, overrun } = call;
    const ofTokens = tokenWindows(call).flatMap((key) => numbers.get(key) ?? []);
    parameters.push(ageOf(call.slot), reserved, charged, overrun, reservationTtlMs);
    parameters.push(ofTokens.length, ...ofTokens);
  }
  const callKeys = calls.map(({ callId }) => callKey(tag, callId));
  return {
    keys: [includeKey(tag, id), epochKey(tag), ...windows.keys(), ...callKeys],
    parameters: parameters.map(String),
  };
}

function tokenWindows({ scopes }: OpenCall): readonly string[] {
  const { keys, scopes: ofWindows } = windowsOf(scopes);
  return keys.filter((_, index) => ofWindows[index]?.unit === "tokens");
}
