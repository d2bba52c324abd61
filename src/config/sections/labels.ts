import { z } from "zod";

export const endUsersSchema = z
  .enum(["off", "pseudonym", "clear"])
  .prefault("pseudonym")
  .describe("How calls are stored with the end user that their caller names.");

const mostTags = 5;

export const tagsSchema = z
  .array(
    z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, "must be 1 to 64 letters, digits or any of _.-"),
  )
  .max(mostTags, `must be at most ${mostTags} keys: each is stored with every call`)
  .refine((keys) => new Set(keys).size === keys.length, "must have each key once")
  .prefault([])
  .describe(
    "At most 5 keys of `metadata`, and of the header `x-sluice-tags`, whose values are " +
      "stored with calls.",
  );
