import { z } from "zod";
import {
  accountNameSchema,
  applicationNameSchema,
  disabledBySchema,
  idSchema,
  limitsSchema,
  noteSchema,
  pageFields,
  revisionSchema,
  timeSchema,
} from "./values.ts";

export const accountSchema = z
  .object({
    id: z.string().meta({ examples: ["acct_9fQ2mZ7LxW3kTb5N"] }),
    name: z.string(),
    note: z.string(),
    plans: z.array(z.string()).describe("Plans on which its account holders may issue keys."),
    max_keys: z.int().describe("Most keys that are not revoked, of all its applications together."),
    limits: limitsSchema.nullable().describe("What all its keys may use together; null: no limit."),
    created_at: timeSchema,
    disabled_at: timeSchema.nullable().describe("Since when none of its keys may call."),
    revision: revisionSchema,
  })
  .meta({ id: "Account", description: "The customer: owns applications and their keys." });
export type AccountView = z.infer<typeof accountSchema>;

const plans = z
  .array(z.string().min(1).max(100))
  .max(100)
  .describe("Names of plans of the configuration.");
const maxKeys = z.int().min(0).max(1_000_000).describe("Most keys that are not revoked.");
const limits = limitsSchema
  .nullable()
  .describe("What all its keys may use together, beside the plan of each; null: no limit.");
const disabled = z.boolean().describe("True: none of its keys may call, until it is false again.");

export const newAccountSchema = z
  .strictObject({
    name: accountNameSchema,
    note: noteSchema.optional(),
    plans: plans
      .optional()
      .describe("Plans on which its account holders may issue keys. Default: none."),
    max_keys: maxKeys.optional().describe("Default 100."),
    limits: limits.optional(),
  })
  .meta({ id: "NewAccount", examples: [{ name: "Example Ltd", plans: ["standard"] }] });

export const accountChangeSchema = z
  .strictObject({
    revision: revisionSchema,
    name: accountNameSchema.optional(),
    note: noteSchema.optional(),
    plans: plans.optional(),
    max_keys: maxKeys.optional(),
    limits: limits.optional(),
    disabled: disabled.optional(),
  })
  .meta({ id: "AccountChange", examples: [{ revision: 1, disabled: true }] });

export const accountQuerySchema = z.strictObject({
  name: z.string().max(100).optional().describe("Only the account of this name."),
  ...pageFields,
});

export const erasureSchema = z
  .strictObject({
    confirm: z.string().describe("The account's name, so that nobody erases another by mistake."),
  })
  .meta({ id: "Erasure", examples: [{ confirm: "Example Ltd" }] });

export const erasedSchema = z
  .object({
    id: z.string(),
    deleted: z.literal(true),
    removed: z.object({
      users: z.int(),
      keys: z.int(),
      applications: z.int(),
      usage_rows: z.int(),
    }),
  })
  .meta({ id: "Erased", description: "What was removed for good." });

export const applicationSchema = z
  .object({
    id: z.string().meta({ examples: ["app_4Gt8nK2vRm6Yc1Zd"] }),
    account_id: z.string(),
    environment: z.string(),
    name: z.string(),
    note: z.string(),
    created_at: timeSchema,
    disabled_at: timeSchema.nullable().describe("Since when none of its keys may call."),
    disabled_by: disabledBySchema,
    revision: revisionSchema,
  })
  .meta({
    id: "Application",
    description: "What keys are issued to: a program of an account in one environment.",
  });
export type ApplicationView = z.infer<typeof applicationSchema>;

export const newApplicationSchema = z
  .strictObject({
    account_id: idSchema
      .optional()
      .describe("Needed from operators; account holders make applications of their own account."),
    environment: z.string().min(1).max(100).describe("An environment of the configuration."),
    name: applicationNameSchema,
    note: noteSchema.optional(),
  })
  .meta({
    id: "NewApplication",
    examples: [{ account_id: "acct_9fQ2mZ7LxW3kTb5N", environment: "production", name: "search" }],
  });

export const applicationChangeSchema = z
  .strictObject({
    revision: revisionSchema,
    name: applicationNameSchema.optional(),
    note: noteSchema.optional(),
    disabled: disabled.optional(),
  })
  .meta({ id: "ApplicationChange", examples: [{ revision: 1, name: "search-2" }] });

export const applicationQuerySchema = z.strictObject({
  account_id: idSchema.optional(),
  environment: z.string().max(100).optional(),
  name: z.string().max(100).optional(),
  ...pageFields,
});
