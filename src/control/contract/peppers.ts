import { z } from "zod";
import { timeSchema } from "./values.ts";

export const pepperSchema = z
  .object({
    pepper: z.string().describe("An identifier that does not reveal the pepper."),
    role: z
      .enum(["first", "older", "not_configured"])
      .describe(
        "The first pepper makes new digests. A pepper that is not configured verifies nothing.",
      ),
    secrets: z.int().describe("Live secrets of API keys with a digest under it."),
    tokens: z.int().describe("Live management tokens with a digest under it."),
  })
  .meta({ id: "PepperUse" });
export type PepperView = z.infer<typeof pepperSchema>;

export const peppersSchema = z
  .object({
    data: z.array(pepperSchema),
    first_since: timeSchema
      .nullable()
      .describe("When the current first pepper came into use; null: it always was."),
    kept_answers: z
      .int()
      .describe(
        "Stored answers from before that, which need an earlier pepper. They expire within a " +
          "day.",
      ),
  })
  .meta({ id: "Peppers" });
