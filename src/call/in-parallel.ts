import { type EndSignal, endingWith } from "../domain/waiting/end-signal.ts";

interface ParallelWork {
  readonly count: number;
  /** Limit on parallel runs, asked again after each run while more are to come. One may always run. */
  readonly limit: number | (() => number | Promise<number>);
  /** Aborts when the caller leaves. */
  readonly signal: EndSignal;
}

/** Results of `work` in order. The first failure aborts the others, and is thrown at their end. */
export async function inParallel<Result>(
  { count, limit, signal }: ParallelWork,
  work: (index: number, signal: EndSignal) => Promise<Result>,
): Promise<readonly Result[]> {
  const end = endingWith(signal);
  const results: Result[] = [];
  let failed: { readonly error: unknown } | undefined;
  let next = 0;
  let running = 0;
  let ended = Promise.withResolvers<void>();
  const run = async (index: number): Promise<void> => {
    try {
      results[index] = await work(index, end);
    } catch (error) {
      failed ??= { error };
      end.abort();
    }
    running -= 1;
    ended.resolve();
  };
  for (;;) {
    if (next < count && failed === undefined) {
      const allowed = typeof limit === "number" ? limit : await limit();
      while (next < count && failed === undefined && running < Math.max(1, allowed)) {
        running += 1;
        void run(next);
        next += 1;
      }
    }
    if (running === 0) break;
    await ended.promise;
    ended = Promise.withResolvers();
  }
  if (failed !== undefined) throw failed.error;
  return results;
}
