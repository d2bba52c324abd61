import { z } from "zod";
import {
  disabledBySchema,
  idSchema,
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
      .describe("How the API key begins.")
      .meta({ examples: ["sk-slc_Zk3vQ9aT"] }),
    created_at: timeSchema,
    expires_at: timeSchema.nullable().describe("When it stops, or stopped, working."),
    last_used_at: timeSchema
      .nullable()
      .describe("Null: never. A secret that is silent may be ended without harm."),
    status: z.enum(["live", "ended"]),
  })
  .meta({
    id: "Secret",
    description: "One API key text of a key, of which only a digest is kept.",
  });
export type SecretView = z.infer<typeof secretSchema>;

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
    application_id: z.string(),
    application: z.string().describe("Name of the application."),
    environment: z.string(),
    plan: z.string(),
    limits: limitsSchema.nullable().describe("Of this key alone; null: the plan's."),
    effective_limits: limitsSchema
      .nullable()
      .describe("What holds now; null when the configuration has no such plan any more."),
    provisioned_units: z.int(),
    provisioned_pool: z
      .string()
      .nullable()
      .describe("Whose units they are; without a pool they guarantee nothing."),
    allowed_models: z.array(z.string()).nullable().describe("Null: all of the environment."),
    allowed_networks: z.array(z.string()).nullable().describe("Null: from anywhere."),
    expires_at: timeSchema.nullable(),
    note: z.string(),
    status: z
      .enum(keyStatuses)
      .describe(
        "Only `active` works. `application_disabled`, `account_disabled`: what it belongs to is; " +
          "`no_secret`: none of its secrets is live, rotate it.",
      ),
    created_at: timeSchema,
    disabled_at: timeSchema.nullable(),
    disabled_by: disabledBySchema,
    revoked_at: timeSchema.nullable(),
    revision: revisionSchema,
    secrets: z.array(secretSchema).describe("Newest first; at most two are live."),
  })
  .meta({ id: "Key", description: "What limits, usage and a plan attach to." });
export type KeyView = z.infer<typeof keySchema>;

const keySettings = z
  .object({
    limits: limitsSchema
      .nullable()
      .describe("Needed on a custom plan, refused on others. Only operators may set it."),
    provisioned_units: z
      .int()
      .min(0)
      .max(1_000_000)
      .describe(
        "Units of provisioned throughput; 0: none, and of no pool. Only operators may set it.",
      ),
    provisioned_pool: z
      .string()
      .min(1)
      .max(64)
      .nullable()
      .describe(
        "Pool of the units, which must serve a model of the key's environment. Not needed when the " +
          "configuration has one. Only operators may set it.",
      ),
    allowed_models: z
      .array(z.string().min(1).max(200))
      .min(1)
      .max(1000)
      .nullable()
      .describe("Aliases it may name; null: all of its environment."),
    allowed_networks: z
      .array(z.string().min(1).max(50))
      .min(1)
      .max(100)
      .nullable()
      .describe("Addresses and CIDR blocks it may be used from; null: anywhere."),
    expires_at: z.iso
      .datetime({ offset: true, error: "use a time such as 2027-01-31T00:00:00Z" })
      .nullable()
      .describe("When the key stops working; null: never."),
    expires_in_seconds: z
      .int()
      .min(1, "use a time that is still to come")
      .max(100_000_000_000)
      .describe("In place of `expires_at`: how long the key works from this change on."),
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
    examples: [{ application_id: "app_4Gt8nK2vRm6Yc1Zd", plan: "standard" }],
  });

export const keyChangeSchema = z
  .strictObject({
    revision: revisionSchema,
    plan: z.string().min(1).max(100).optional(),
    ...keySettings.shape,
    disabled: z.boolean().optional(),
  })
  .meta({ id: "KeyChange", examples: [{ revision: 1, allowed_networks: ["10.0.0.0/8"] }] });

/** The settings that a request names, as it names them: what is absent is not checked. */
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
    .describe("`active`: of this status; `inactive`: of any other."),
  ...pageFields,
});

const apiKey = z
  .string()
  .describe("The API key. It is shown this once; only a digest of it is kept.");

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
        "How long the secret in use works on. Default 86400: a day; never longer than before.",
      ),
    compromised: z
      .boolean()
      .optional()
      .describe("True: every other secret stops now, whoever still uses it."),
  })
  .meta({ id: "Rotation", examples: [{ overlap_seconds: 86_400 }] });

export const rotatedKeySchema = z
  .object({
    key: keySchema,
    api_key: apiKey,
    ended: z.array(z.string()).describe("Public ids of the secrets that stopped with this."),
    overlap_until: timeSchema
      .nullable()
      .describe("Until when the secret of before works on: no longer than the key."),
  })
  .meta({ id: "RotatedKey" });

export const leakReportSchema = z
  .strictObject({
    api_keys: z.array(z.string().min(1).max(1000)).min(1).max(1000),
    disable: z.boolean().optional().describe("Default true; false only looks."),
  })
  .meta({ id: "LeakReport" });

export const leakOutcomes = ["not_a_key", "unknown", "ended", "secret_ended", "live"] as const;

const leakFindingSchema = z.object({
  hint: z.string().describe("What may be shown of the text."),
  key_id: z.string().nullable(),
  application: z.string().nullable(),
  outcome: z
    .enum(leakOutcomes)
    .describe(
      "`secret_ended`: it was live, and this ended it; `live`: it is, as `disable` was false; " +
        "`ended`: it had stopped before.",
    ),
});
export type LeakFinding = z.infer<typeof leakFindingSchema>;

export const leakFindingsSchema = z
  .object({ data: z.array(leakFindingSchema).describe("In the order of the texts.") })
  .meta({ id: "LeakFindings" });
