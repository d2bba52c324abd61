import { z } from "zod";

export const callKinds = ["whole", "stream", "embeddings"] as const;
export type CallKind = (typeof callKinds)[number];

/** Of the embeddings that doubles answer. */
export const vectorLength = 32;

const loadSchema = z.object({
  name: z.string(),
  /** Of the gateway. */
  url: z.string(),
  key: z.string(),
  model: z.string(),
  kind: z.enum(callKinds),
  /** Calls begin at this pace, however long they take. */
  perSecond: z.number().positive(),
  /** What the caller says; marks in it tell doubles what to do with this call. */
  words: z.string().optional(),
  /** So much is said besides. */
  extraBytes: z.int().optional(),
  /** The caller leaves so long after it has called. */
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

/** What one process of callers does. */
export type LoadPlan = z.infer<typeof loadPlanSchema>;

/** How one call ended, as a row: they are many. */
export const callRowSchema = z.tuple([z.number(), z.number(), z.string(), z.string()]);
export const loadResultSchema = z.record(z.string(), z.array(callRowSchema));

export interface Call {
  /** Wall clock, milliseconds. */
  readonly startedAt: number;
  /** To the whole answer, or to the first event of a stream, or to the failure. */
  readonly latencyMs: number;
  /** Name of the upstream; empty when none is told. */
  readonly servedBy: string;
  /** Empty for an answer that is whole and right. */
  readonly failure: string;
}
