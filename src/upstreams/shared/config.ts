import { z } from "zod";
import { flag } from "../../settings/values.ts";

/** Keys in the chat section of a target, for kinds that cannot send everything as callers wrote it. */
export const repairFields = {
  drop_unsupported: flag(false).describe(
    "Drops fields that the model does not support, instead of answering 400.",
  ),
  conversation: z
    .enum(["repair", "strict"])
    .prefault("repair")
    .describe("`repair` adds a user turn where the provider requires one; `strict` refuses."),
};
