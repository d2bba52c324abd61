import { z } from "zod";
import { roles } from "../../domain/principal.ts";

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

/**
 * The pattern of a name on one line, and what a message says of it. Ranges, because few languages
 * know the classes of Unicode by name.
 */
export function oneLine(least: 0 | 1): [RegExp, string] {
  const controls = String.raw`\u0000-\u001f\u007f-\u009f\u2028\u2029`;
  const pattern = new RegExp(`^(?! )[^${controls}]{${least},100}(?<! )$`, "u");
  return [pattern, `use ${least === 0 ? "at most" : "1 to"} 100 characters on one line`];
}

export const accountNameSchema = z
  .string()
  .regex(...oneLine(1))
  .meta({ description: "Unique.", examples: ["Example Ltd"] });

export const keyNameSchema = z
  .string()
  .regex(...oneLine(0))
  .describe("A name shown in lists; need not be unique. Empty: none.");

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

export function numberText({ min, max, initial }: { min: number; max: number; initial: number }) {
  const advice = `use a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^[0-9]{1,9}$/, advice)
    .transform(Number)
    .refine((value) => value >= min && value <= max, advice)
    .prefault(String(initial));
}

export const removedSchema = z
  .object({ id: z.string(), deleted: z.literal(true) })
  .meta({ id: "Removed", description: "What was permanently removed." });

const limit = z.int().min(1).max(999_999_999_999);
export const limitsSchema = z
  .strictObject({ requests_per_minute: limit, tokens_per_minute: limit })
  .meta({ id: "Limits", description: "Limits in any 60 seconds." });
