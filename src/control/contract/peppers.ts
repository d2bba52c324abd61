import { z } from "zod";
import { timeSchema } from "./values.ts";

export const pepperSchema = z
  .object({
    pepper: z.string().describe("Tells peppers apart, and says nothing of them."),
    role: z
      .enum(["first", "older", "not_configured"])
      .describe("The first makes what is new. What is not configured verifies nothing."),
    secrets: z.int().describe("Live API key texts whose digest was made under it."),
    tokens: z.int().describe("Live management tokens alike."),
    audit_entries: z
      .int()
      .describe(
        "Entries with a seal under it. They need it no more: the end of the chain is sealed anew.",
      ),
  })
  .meta({ id: "PepperUse" });
export type PepperView = z.infer<typeof pepperSchema>;

export const peppersSchema = z
  .object({
    data: z.array(pepperSchema),
    first_since: timeSchema
      .nullable()
      .describe("Since when the first one makes what is new; null: it was the first of all."),
    kept_answers: z
      .int()
      .describe(
        "Answers for repetition from before that, of which some pepper is needed; they go in a day.",
      ),
  })
  .meta({ id: "Peppers" });
