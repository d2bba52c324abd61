import type { BodyLimits } from "../../src/edge/body/read-body.ts";

/** The configuration's defaults, except for what a test is about. */
export function bodyLimitsOf(limits: Partial<BodyLimits> = {}): BodyLimits {
  return {
    bodyLimitBytes: 4_000_000,
    decompressedLimitBytes: 4_000_000,
    decompressionRatio: 100,
    bodyTimeoutMs: 5_000,
    jsonDepth: 64,
    jsonValues: 600_000,
    bodyMemory: {
      allBytes: 512 * 1024 ** 2,
      ownBytes: 128 * 1024 ** 2,
      waitMs: 30_000,
      queue: 1_000,
    },
    ...limits,
  };
}
