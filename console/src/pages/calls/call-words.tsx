import type { CallRow } from "../../api/contract.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";

const tones: Readonly<Record<CallRow["outcome"], Tone>> = {
  completed: "ok",
  failed: "bad",
  abandoned: "warn",
  interrupted: "bad",
};
export const outcomes = Object.keys(tones);

export function OutcomeBadge({ call }: { readonly call: CallRow }) {
  return <Badge tone={tones[call.outcome]}>{outcomeText(call.outcome)}</Badge>;
}

/** The outcomes of the API are said as they are, but for this one. */
export function outcomeText(outcome: string): string {
  return outcome === "abandoned" ? "caller left" : outcome;
}

/** A call that failed without an attempt was refused by the gateway. */
export function isRefused({ outcome, attempts }: CallRow): boolean {
  return outcome === "failed" && attempts === 0;
}

export function statusText(status: number, code: string | null): string {
  return code === null ? String(status) : `${status} ${code}`;
}

export const sourceWords: Readonly<Record<CallRow["usage_source"], string>> = {
  upstream: "Counted by the upstream.",
  counted: "The upstream's counts are incomplete: output is what was delivered.",
  estimated: "Estimated, as a part of it has no count of the upstream.",
  bounded: "Counted by the upstream, limited to what the call can have used.",
};
