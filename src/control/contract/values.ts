import { z } from "zod";
import { roles } from "../../domain/accounts/user.ts";

/** Values that several resources have. */

export const timeSchema = z.iso.datetime().meta({
  description: "A time in UTC.",
  examples: ["2027-01-31T09:30:00.000Z"],
});

export const revisionSchema = z
  .int()
  .min(1)
  .describe("Counts changes. A change names the revision that it was made from.");

export const disabledBySchema = z
  .enum(roles)
  .nullable()
  .describe("Role of who disabled it. What an operator has disabled only operators enable.");

export const noteSchema = z.string().max(1000).describe("For people; Sluice does not read it.");

const idPattern = /^[A-Za-z0-9_-]{1,100}$/;

/** An id in a query or a body: of any kind, found or not. */
export const idSchema = z.string().regex(idPattern, "use an id such as a list gives it");

export const applicationNameSchema = z
  .string()
  .regex(/^[\w .:@/-]{1,100}$/, "use 1 to 100 letters, digits, spaces or . : @ / - _")
  .meta({ description: "Unique in its account and environment.", examples: ["search"] });

export const accountNameSchema = z
  .string()
  .regex(/^(?! )[^\p{Cc}\p{Zl}\p{Zp}]{1,100}(?<! )$/u, "use 1 to 100 characters on one line")
  .meta({ description: "Unique.", examples: ["Example Ltd"] });

/** Fields that every list takes. */
export const pageFields = {
  limit: numberText({ min: 1, max: 500, initial: 50 }).describe("Most items of the page."),
  cursor: z.string().min(1).max(500).optional().describe("`next_cursor` of the page before."),
};

export function listOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    data: z.array(item),
    next_cursor: z.string().nullable().describe("Where the next page begins; null at the end."),
  });
}

export interface NumberTextOptions {
  readonly min: number;
  readonly max: number;
  readonly initial: number;
}

/** A whole number in a query. */
export function numberText({ min, max, initial }: NumberTextOptions) {
  const advice = `use a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^[0-9]{1,9}$/, advice)
    .transform(Number)
    .refine((value) => value >= min && value <= max, advice)
    .prefault(String(initial));
}

/** Answer to the removal of something. */
export const removedSchema = z
  .object({ id: z.string(), deleted: z.literal(true) })
  .meta({ id: "Removed", description: "What was removed for good." });

const limit = z.int().min(1).max(999_999_999_999);
export const limitsSchema = z
  .strictObject({ requests_per_minute: limit, tokens_per_minute: limit })
  .meta({ id: "Limits", description: "What may be used in any 60 seconds." });
export type LimitsView = z.infer<typeof limitsSchema>;
