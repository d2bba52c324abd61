import { z } from "zod";

/** Callers that share a key. */
export const loadsSchema = z.array(
  z.strictObject({
    port: z.int(),
    authorization: z.string(),
    model: z.string(),
    connections: z.int().positive(),
    durationMs: z.number().positive(),
    /**
     * `busy`: each connection calls again after its answer. `steady`: calls are due at a rate,
     * regardless of the answers. `obedient`: callers call again a second after their answer, or
     * after the Retry-After of a refusal.
     */
    manner: z.discriminatedUnion("kind", [
      z.strictObject({ kind: z.literal("busy") }),
      z.strictObject({ kind: z.literal("steady"), perSecond: z.number().positive() }),
      z.strictObject({ kind: z.literal("obedient"), callers: z.int().positive() }),
    ]),
  }),
);
export type Load = z.infer<typeof loadsSchema>[number];

const loadResultSchema = z.strictObject({
  /** Answered with 200 within two seconds after they were due. */
  usefulPerSecond: z.number(),
  refusedPerSecond: z.number(),
  /** Answered with 200. */
  answered: z.int(),
  /** Answered with 503. */
  refused: z.int(),
  /** Answered with anything else, or not at all. */
  failed: z.int(),
  /** Statuses and bodies of some failed calls; only answered ones. */
  failures: z.array(z.string()),
  /** Calls without a free connection. */
  unsent: z.int(),
  /** Milliseconds from when they were due, of calls answered with 200. */
  p50: z.number(),
  p99: z.number(),
  /** The time of the last refusal since the begin; 0: none. */
  lastRefusedMs: z.number(),
});
export type LoadResult = z.infer<typeof loadResultSchema>;
export const loadResultsSchema = z.array(loadResultSchema);
