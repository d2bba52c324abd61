import { z } from "zod";

export const callKinds = ["whole", "stream", "embeddings"] as const;
export type CallKind = (typeof callKinds)[number];

/** The dimensions of the doubles' embeddings. */
export const vectorLength = 32;

const loadSchema = z.object({
  name: z.string(),
  /** The gateway's address. */
  url: z.string(),
  key: z.string(),
  model: z.string(),
  kind: z.enum(callKinds),
  /** Calls begin at this pace, regardless of their duration. */
  perSecond: z.number().positive(),
  /** The caller's text; marks in it select the doubles' reaction to this call. */
  words: z.string().optional(),
  /** The size of additional text. */
  extraBytes: z.int().optional(),
  /** The time after which the caller leaves. */
  leavesAfterMs: z.int().optional(),
});

/** Calls of one kind with one key, at a steady pace. */
export type Load = z.infer<typeof loadSchema>;

export const loadPlanSchema = z.object({
  /** Wall clock. */
  startsAt: z.number(),
  seconds: z.number().positive(),
  loads: z.array(loadSchema),
});

/** The work of one process of callers. */
export type LoadPlan = z.infer<typeof loadPlanSchema>;

/** The result of one call, as a compact row. */
export const callRowSchema = z.tuple([z.number(), z.number(), z.string(), z.string()]);
export const loadResultSchema = z.record(z.string(), z.array(callRowSchema));

export interface Call {
  /** Wall clock, milliseconds. */
  readonly startedAt: number;
  /** Until the complete answer, the first event of a stream, or the failure. */
  readonly latencyMs: number;
  /** The name of the upstream; empty if there is none. */
  readonly servedBy: string;
  /** Empty for a complete and correct answer. */
  readonly failure: string;
}
