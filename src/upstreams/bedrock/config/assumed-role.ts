import { z } from "zod";
import { camelCased, optionalDuration, text } from "../../../settings/values.ts";

const mostTags = 50;
const tagCharacters = "letters, digits, spaces or any of '_.:/=+-@'";

/** The bounds are those of the provider's `AssumeRole`. */
export const assumedRoleSchema = z
  .strictObject({
    role_arn: z
      .string()
      .regex(
        /^arn:aws[a-z-]*:iam::[0-9]{12}:role\/[\x21-\x7e]{1,1900}$/,
        "must be the ARN of a role, such as arn:aws:iam::111122223333:role/sluice",
      )
      .describe("ARN of the role."),
    external_id: z
      .string()
      .regex(/^[\w+=,.@:/-]{2,1224}$/, "must be 2 to 1224 letters, digits or any of '_+=,.@:/-'")
      .optional()
      .describe("`sts:ExternalId` that the role's trust policy requires."),
    session_name: z
      .string()
      .regex(/^[\w+=,.@-]{2,64}$/, "must be 2 to 64 letters, digits or any of '_+=,.@-'")
      .prefault("sluice")
      .describe("Shown by the provider's audit log."),
    session_tags: z
      .record(
        text("Name.").regex(
          /^(?!aws:)[\p{L}\p{Z}\p{N}_.:/=+@-]{1,128}$/u,
          `must be 1 to 128 ${tagCharacters}, and not begin with aws:`,
        ),
        z
          .string()
          .regex(/^[\p{L}\p{Z}\p{N}_.:/=+@-]{0,256}$/u, `must be at most 256 ${tagCharacters}`),
      )
      .refine((tags) => Object.keys(tags).length <= mostTags, {
        error: `must have at most ${mostTags} tags`,
      })
      .refine(differInMoreThanCase, "must have names that differ in more than the case of letters")
      .prefault({})
      .describe("At most 50 tags, for the provider's policies and cost reports."),
    duration: optionalDuration("1h", ["15m", "12h"]).describe(
      "Lifetime of its credentials. Default: one hour.",
    ),
  })
  .transform(camelCased)
  .optional()
  .describe("Role that the credentials, keys or chain, are exchanged for.");

export type AssumedRole = NonNullable<z.output<typeof assumedRoleSchema>>;

/** The provider's token service refuses names that differ only in case. */
function differInMoreThanCase(tags: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(tags);
  return new Set(names.map((name) => name.toLowerCase())).size === names.length;
}
