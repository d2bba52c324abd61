import { z } from "zod";
import { receiptFields } from "./processes.ts";
import {
  disabledBySchema,
  idSchema,
  keyNameSchema,
  limitsSchema,
  noteSchema,
  pageFields,
  revisionSchema,
  timeSchema,
} from "./values.ts";

export const secretSchema = z
  .object({
    public_id: z.string().meta({ examples: ["Zk3vQ9aT"] }),
    hint: z
      .string()
      .describe("First characters of the API key.")
      .meta({ examples: ["sk-slc_Zk3vQ9aT"] }),
    created_at: timeSchema,
    expires_at: timeSchema.nullable().describe("When it stops or stopped working."),
    last_used_at: timeSchema.nullable().describe("Null: never used."),
    status: z.enum(["live", "ended"]),
  })
  .meta({
    id: "Secret",
    description: "One secret of a key. Only its digest is stored.",
  });

export const keyStatuses = [
  "active",
  "disabled",
  "application_disabled",
  "account_disabled",
  "no_secret",
  "expired",
  "revoked",
] as const;
export type KeyStatus = (typeof keyStatuses)[number];

export const keySchema = z
  .object({
    id: z.string().meta({ examples: ["key_7Hd2pV9sXq4LmB6J"] }),
    account_id: z.string(),
    account: z.string().describe("Name of the account."),
    application_id: z.string(),
    application: z.string().describe("Name of the application."),
    environment: z.string(),
    plan: z.string(),
    limits: limitsSchema.nullable().describe("The key's own limits; null: those of the plan."),
    effective_limits: limitsSchema
      .nullable()
      .describe("The limits in force; null if the plan is no longer configured."),
    provisioned_units: z.int(),
    provisioned_pool: z
      .string()
      .nullable()
      .describe("The pool of the units. Without a pool they guarantee nothing."),
    allowed_models: z.array(z.string()).nullable().describe("Null: all models of the environment."),
    allowed_networks: z.array(z.string()).nullable().describe("Null: any address."),
    expires_at: timeSchema.nullable(),
    name: z.string().describe("Empty: it has none."),
    note: z.string(),
    status: z
      .enum(keyStatuses)
      .describe(
        "Only `active` keys work. `application_disabled` and `account_disabled`: its owner " +
          "is disabled. `no_secret`: it has no live secret; rotate it.",
      ),
    created_at: timeSchema,
    disabled_at: timeSchema.nullable(),
    disabled_by: disabledBySchema,
    revoked_at: timeSchema.nullable(),
    revision: revisionSchema,
    secrets: z.array(secretSchema).describe("Newest first. At most two are live."),
  })
  .meta({ id: "Key", description: "Has limits, usage and a plan." });
export type KeyView = z.infer<typeof keySchema>;

export const changedKeySchema = keySchema
  .extend(receiptFields)
  .meta({ id: "ChangedKey", description: "A key, and who has applied its change." });

const keySettings = z
  .object({
    limits: limitsSchema
      .nullable()
      .describe("Required on a custom plan, refused on others. Only operators can set it."),
    provisioned_units: z
      .int()
      .min(0)
      .max(1_000_000)
      .describe(
        "Units of provisioned throughput; 0: none, and no pool. Only operators can set it.",
      ),
    provisioned_pool: z
      .string()
      .min(1)
      .max(64)
      .nullable()
      .describe(
        "Pool of the units. It must serve a model of the key's environment. Optional if " +
          "there is only one pool. Only operators can set it.",
      ),
    allowed_models: z
      .array(z.string().min(1).max(200))
      .min(1)
      .max(1000)
      .nullable()
      .describe("Aliases it may use; null: all of its environment."),
    allowed_networks: z
      .array(z.string().min(1).max(50))
      .min(1)
      .max(100)
      .nullable()
      .describe("Addresses and CIDR blocks it may be used from; null: any."),
    expires_at: z.iso
      .datetime({ offset: true, error: "use a time such as 2027-01-31T00:00:00Z" })
      .nullable()
      .describe("When the key stops working; null: never."),
    expires_in_seconds: z
      .int()
      .min(1, "use a time in the future")
      .max(100_000_000_000)
      .describe("Instead of `expires_at`: how long the key works, from this change on."),
    name: keyNameSchema,
    note: noteSchema,
  })
  .partial();

export const newKeySchema = z
  .strictObject({
    application_id: idSchema,
    plan: z.string().min(1).max(100),
    ...keySettings.shape,
  })
  .meta({
    id: "NewKey",
    examples: [{ application_id: "app_4Gt8nK2vRm6Yc1Zd", plan: "standard", name: "night batch" }],
  });

export const keyChangeSchema = z
  .strictObject({
    revision: revisionSchema,
    plan: z.string().min(1).max(100).optional(),
    ...keySettings.shape,
    disabled: z.boolean().optional(),
  })
  .meta({ id: "KeyChange", examples: [{ revision: 1, allowed_networks: ["10.0.0.0/8"] }] });

/** The settings that a request contains; absent ones are not checked. */
export type WantedSettings = Partial<z.infer<typeof keyChangeSchema>>;

export const keyQuerySchema = z.strictObject({
  account_id: idSchema.optional(),
  application_id: idSchema.optional(),
  environment: z.string().max(100).optional(),
  plan: z.string().max(100).optional(),
  provisioned_pool: z.string().max(64).optional().describe("Only keys with units of this pool."),
  status: z
    .enum(["active", "inactive"])
    .optional()
    .describe("`active`: only active keys; `inactive`: all others."),
  ...pageFields,
});

const apiKey = z
  .string()
  .describe("The API key. It is shown only once; Sluice stores only a digest.");

export const issuedKeySchema = z.object({ key: keySchema, api_key: apiKey }).meta({
  id: "IssuedKey",
});

export const rotationSchema = z
  .strictObject({
    overlap_seconds: z
      .int()
      .min(0)
      .max(604_800)
      .optional()
      .describe(
        "How long the current secret keeps working. Default: 86400, a day. It never works " +
          "longer than before.",
      ),
    compromised: z
      .boolean()
      .optional()
      .describe("If true, all other secrets end now, even if they are in use."),
  })
  .meta({ id: "Rotation", examples: [{ overlap_seconds: 86_400 }] });

export const rotatedKeySchema = z
  .object({
    key: keySchema,
    api_key: apiKey,
    ended: z.array(z.string()).describe("Public ids of the secrets that this ended."),
    overlap_until: timeSchema
      .nullable()
      .describe("When the previous secret stops working, at the latest with the key."),
    ...receiptFields,
  })
  .meta({ id: "RotatedKey" });

export const leakReportSchema = z
  .strictObject({
    api_keys: z.array(z.string().min(1).max(1000)).min(1).max(1000),
    disable: z.boolean().optional().describe("False only looks them up. Default: true."),
  })
  .meta({ id: "LeakReport" });

export const leakOutcomes = ["not_a_key", "unknown", "ended", "secret_ended", "live"] as const;

const leakFindingSchema = z.object({
  hint: z.string().describe("First characters of the text."),
  key_id: z.string().nullable(),
  application: z.string().nullable(),
  outcome: z
    .enum(leakOutcomes)
    .describe(
      "`secret_ended`: it was live and has been ended. `live`: it still is, because " +
        "`disable` was false. `ended`: it had ended before.",
    ),
});
export type LeakFinding = z.infer<typeof leakFindingSchema>;

export const leakFindingsSchema = z
  .object({ data: z.array(leakFindingSchema).describe("In the order of the texts.") })
  .meta({ id: "LeakFindings" });
