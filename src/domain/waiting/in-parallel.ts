import { anyOf, type EndSignal } from "./end-signal.ts";

export interface ParallelWork {
  readonly count: number;
  /** Limit on parallel runs. */
  readonly limit: number;
  /** Aborts when the caller leaves. */
  readonly signal: EndSignal;
}

/**
 * Runs `work` for the indexes from 0 and returns the results in order. The first failure aborts the
 * others and is thrown once they have ended.
 */
export async function inParallel<Result>(
  { count, limit, signal }: ParallelWork,
  work: (index: number, signal: AbortSignal) => Promise<Result>,
): Promise<readonly Result[]> {
  const failure = new AbortController();
  const either = anyOf(signal, failure.signal);
  const results: Result[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count && !failure.signal.aborted) {
      const index = next;
      next += 1;
      results[index] = await work(index, either);
    }
  };
  const workers = Array.from({ length: Math.min(limit, count) }, worker);
  try {
    await Promise.all(workers);
  } catch (error) {
    failure.abort();
    await Promise.allSettled(workers);
    throw error;
  }
  return results;
}
