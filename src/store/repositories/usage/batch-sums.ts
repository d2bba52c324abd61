import { encodeLatency } from "../../../domain/usage/latency-histogram.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import type { UsageStep } from "../../../domain/usage/usage-report.ts";
import { type FoldPositions, liesBefore } from "./fold-positions.ts";
import { addSum, type UsageSum } from "./usage-sum.ts";
import { type Detail, stepStart } from "./usage-steps.ts";

/** The ids of a call's groups, by detail. */
export type GroupIds = Readonly<Record<Detail, number>>;

export function sumOfCall(record: UsageRecord): UsageSum {
  const { outcome, inputTokens, outputTokens, firstEventMs } = record;
  return {
    calls: 1,
    failedCalls: outcome === "completed" ? 0 : 1,
    abandonedCalls: outcome === "abandoned" ? 1 : 0,
    inputTokens,
    outputTokens,
    cachedInputTokens: record.cachedInputTokens,
    estimatedTokens: record.usageSource === "upstream" ? 0 : inputTokens + outputTokens,
    durations: outcome === "completed" ? encodeLatency(record.durationMs) : "",
    firstEvents: firstEventMs === undefined ? "" : encodeLatency(firstEventMs),
    cacheWriteTokens: record.cacheWriteTokens ?? 0,
  };
}

/** The sums of the groups of one detail in one step of time. */
export interface SumBucket {
  readonly step: UsageStep;
  readonly detail: Detail;
  readonly at: number;
  readonly sums: ReadonlyMap<number, UsageSum>;
}

/** Sums calls by step and detail, so that a batch writes one row for each sum it changes. */
export class BatchSums {
  readonly #buckets = new Map<string, SumBucket & { readonly sums: Map<number, UsageSum> }>();

  /** Counts the call in its minute and in the sums that its minute is already folded into. */
  add(record: UsageRecord, groups: GroupIds, positions: FoldPositions): void {
    const call = sumOfCall(record);
    const minute = { at: stepStart(record.startedAt, "minute"), groupId: groups.full };
    addTo(this.#sumsOf("minute", "full", minute.at), groups.full, call);
    for (const [{ step, detail }, position] of positions) {
      if (!liesBefore(minute, position)) continue;
      const at = stepStart(record.startedAt, step);
      addTo(this.#sumsOf(step, detail, at), groups[detail], call);
    }
  }

  get buckets(): Iterable<SumBucket> {
    return this.#buckets.values();
  }

  #sumsOf(step: UsageStep, detail: Detail, at: number): Map<number, UsageSum> {
    const name = `${step} ${detail} ${at}`;
    let bucket = this.#buckets.get(name);
    if (bucket === undefined) {
      bucket = { step, detail, at, sums: new Map() };
      this.#buckets.set(name, bucket);
    }
    return bucket.sums;
  }
}

function addTo(sums: Map<number, UsageSum>, groupId: number, call: UsageSum): void {
  const sum = sums.get(groupId);
  if (sum === undefined) sums.set(groupId, { ...call });
  else addSum(sum, call);
}
