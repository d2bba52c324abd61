import { nextTurn } from "../../domain/waiting/wait.ts";
import type { RunOperation } from "./run-operation.ts";

/**
 * Lets reads of an account wait for each other, so that its users, who may ask often, hold up neither
 * other accounts nor changes nor the feed by which a revoked key stops.
 */
export function readsInTurn(run: RunOperation): RunOperation {
  /** By account: ends with its latest read. */
  const latest = new Map<string, Promise<void>>();
  return async (operation, request) => {
    const { principal, signal } = request.call;
    const { accountId } = principal;
    if (operation.method !== "GET" || accountId === undefined) return run(operation, request);
    const before = latest.get(accountId);
    const { promise: end, resolve } = Promise.withResolvers<void>();
    latest.set(accountId, end);
    try {
      await before;
      signal.throwIfAborted();
      return await run(operation, request);
    } finally {
      if (latest.get(accountId) === end) latest.delete(accountId);
      // What else waits in the thread comes first.
      void nextTurn().then(resolve);
    }
  };
}
