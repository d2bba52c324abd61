import type { CallRow } from "../../api/contract.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";

const outcomes: Readonly<Record<CallRow["outcome"], readonly [text: string, tone: Tone]>> = {
  completed: ["completed", "ok"],
  failed: ["failed", "bad"],
  abandoned: ["caller left", "warn"],
  interrupted: ["interrupted", "bad"],
};

export function OutcomeBadge({ call }: { readonly call: CallRow }) {
  const [text, tone] = outcomes[call.outcome];
  return <Badge tone={tone}>{isRefused(call) ? "refused" : text}</Badge>;
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
