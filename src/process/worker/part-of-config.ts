import type { Config } from "../../config/config.ts";

/**
 * The configuration of one of several workers: its part of the limits that apply to the gateway but
 * are counted in each process. The largest body and the largest answer still fit.
 */
export function partOfConfig(config: Config, number: number): Config {
  const { http, overload, idempotency, processes: workers } = config;
  if (workers === 1) return config;
  const share: WorkerShare = { workers, number };
  const oneBodyBytes = 2 * http.decompressedLimitBytes;
  const bodyMemoryPerKeyBytes = Math.max(partOf(http.bodyMemoryPerKeyBytes, share), oneBodyBytes);
  return {
    ...config,
    http: {
      ...http,
      bodyMemoryPerKeyBytes,
      bodyMemoryBytes: Math.max(partOf(http.bodyMemoryBytes, share), bodyMemoryPerKeyBytes),
      bodyMemoryQueue: partOf(http.bodyMemoryQueue, share),
    },
    overload: { ...overload, maxCalls: Math.max(partOf(overload.maxCalls, share), 1) },
    idempotency: {
      ...idempotency,
      memoryLimitBytes: Math.max(
        partOf(idempotency.memoryLimitBytes, share),
        idempotency.answerLimitBytes,
      ),
    },
  };
}

/** One of several workers. */
export interface WorkerShare {
  readonly workers: number;
  /** From 1. */
  readonly number: number;
}

/** The first workers get one more each of the remainder. */
export function partOf(limit: number, { workers, number }: WorkerShare): number {
  if (limit === Infinity) return limit;
  return Math.floor(limit / workers) + (number <= limit % workers ? 1 : 0);
}
