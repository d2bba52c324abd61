import { z } from "zod";
import { roles } from "../../domain/accounts/user.ts";

/** Values that several resources share. */

export const timeSchema = z.iso.datetime().meta({
  description: "A time in UTC.",
  examples: ["2027-01-31T09:30:00.000Z"],
});

export const revisionSchema = z
  .int()
  .min(1)
  .describe("Number of changes. A change must send the revision that it is based on.");

export const disabledBySchema = z
  .enum(roles)
  .nullable()
  .describe(
    "Role of the user who disabled it. Only operators can enable what an operator disabled.",
  );

export const noteSchema = z.string().max(1000).describe("A comment.");

const idPattern = /^[A-Za-z0-9_-]{1,100}$/;

/** An id in a query or a body; it need not exist. */
export const idSchema = z.string().regex(idPattern, "use an id from a list");

export const applicationNameSchema = z
  .string()
  .regex(/^[\w .:@/-]{1,100}$/, "use 1 to 100 letters, digits, spaces or . : @ / - _")
  .meta({ description: "Unique in its account and environment.", examples: ["search"] });

export const accountNameSchema = z
  .string()
  .regex(/^(?! )[^\p{Cc}\p{Zl}\p{Zp}]{1,100}(?<! )$/u, "use 1 to 100 characters on one line")
  .meta({ description: "Unique.", examples: ["Example Ltd"] });

export const keyNameSchema = z
  .string()
  .regex(/^(?! )[^\p{Cc}\p{Zl}\p{Zp}]{0,100}(?<! )$/u, "use at most 100 characters on one line")
  .describe("A name shown in lists; need not be unique. Empty: none.");

/** Fields that every list takes. */
export const pageFields = {
  limit: numberText({ min: 1, max: 500, initial: 50 }).describe("Maximum number of items."),
  cursor: z.string().min(1).max(500).optional().describe("`next_cursor` of the previous page."),
};

export function listOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    data: z.array(item),
    next_cursor: z.string().nullable().describe("Cursor of the next page; null at the end."),
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

/** The answer after something was removed. */
export const removedSchema = z
  .object({ id: z.string(), deleted: z.literal(true) })
  .meta({ id: "Removed", description: "What was permanently removed." });

const limit = z.int().min(1).max(999_999_999_999);
export const limitsSchema = z
  .strictObject({ requests_per_minute: limit, tokens_per_minute: limit })
  .meta({ id: "Limits", description: "Limits in any 60 seconds." });
