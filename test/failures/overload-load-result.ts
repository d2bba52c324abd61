import { z } from "zod";

/** Callers who share a key. */
export const loadsSchema = z.array(
  z.strictObject({
    port: z.int(),
    authorization: z.string(),
    model: z.string(),
    connections: z.int().positive(),
    durationMs: z.number().positive(),
    /**
     * `busy`: each connection calls again when it was answered. `steady`: calls are due at a rate,
     * however slow the answers are. `heedful`: callers come back a second after their answer, or
     * when a refusal told them to.
     */
    manner: z.discriminatedUnion("kind", [
      z.strictObject({ kind: z.literal("busy") }),
      z.strictObject({ kind: z.literal("steady"), perSecond: z.number().positive() }),
      z.strictObject({ kind: z.literal("heedful"), callers: z.int().positive() }),
    ]),
  }),
);
export type Load = z.infer<typeof loadsSchema>[number];

const loadResultSchema = z.strictObject({
  /** Answered with 200 within two seconds from when they were due. */
  usefulPerSecond: z.number(),
  refusedPerSecond: z.number(),
  /** With 200. */
  answered: z.int(),
  /** With 503. */
  refused: z.int(),
  /** With anything else, or not at all. */
  failed: z.int(),
  /** Statuses and bodies of some that failed; those that were never answered are not here. */
  failures: z.array(z.string()),
  /** No connection was free for them. */
  unsent: z.int(),
  /** Milliseconds from when calls were due, of those answered with 200. */
  p50: z.number(),
  p99: z.number(),
  /** When the last one was refused, since the begin; 0: none was. */
  lastRefusedMs: z.number(),
});
export type LoadResult = z.infer<typeof loadResultSchema>;
export const loadResultsSchema = z.array(loadResultSchema);
