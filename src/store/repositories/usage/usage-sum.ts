/** The sums of one group in one step. */
export interface UsageSum {
  calls: number;
  failedCalls: number;
  abandonedCalls: number;
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  estimatedTokens: number;
  /** Encoded by `domain/usage/latency-histogram.ts`. */
  durations: string;
  firstEvents: string;
  cacheWriteTokens: number;
}

export function addSum(sum: UsageSum, other: Readonly<UsageSum>): void {
  sum.calls += other.calls;
  sum.failedCalls += other.failedCalls;
  sum.abandonedCalls += other.abandonedCalls;
  sum.inputTokens += other.inputTokens;
  sum.outputTokens += other.outputTokens;
  sum.cachedInputTokens += other.cachedInputTokens;
  sum.estimatedTokens += other.estimatedTokens;
  sum.durations += other.durations;
  sum.firstEvents += other.firstEvents;
  sum.cacheWriteTokens += other.cacheWriteTokens;
}
