import { z } from "zod";
import { timeZoneSchema } from "./budgets.ts";
import { receiptFields } from "./processes.ts";
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
    max_keys: z
      .int()
      .describe("Maximum number of keys that are not revoked, over all its applications."),
    limits: limitsSchema.nullable().describe("Limits that all its keys share; null: none."),
    time_zone: z.string().describe("Of its new budgets."),
    created_at: timeSchema,
    disabled_at: timeSchema.nullable().describe("Its keys have been refused since then."),
    revision: revisionSchema,
  })
  .meta({ id: "Account", description: "A customer, who owns applications and their keys." });

export const changedAccountSchema = accountSchema
  .extend(receiptFields)
  .meta({ id: "ChangedAccount", description: "An account, and who has applied its change." });

const disabled = z.boolean().describe("While true, its keys are refused.");

const accountSettings = z
  .object({
    name: accountNameSchema,
    note: noteSchema,
    plans: z
      .array(z.string().min(1).max(100))
      .max(100)
      .describe("Plans on which its account holders may issue keys. At first none."),
    max_keys: z
      .int()
      .min(0)
      .max(1_000_000)
      .describe("Maximum number of keys that are not revoked. At first 100."),
    limits: limitsSchema
      .nullable()
      .describe("Limits that all its keys share, in addition to their plans; null: none."),
    time_zone: timeZoneSchema.describe(
      "IANA name of the time zone of its new budgets. At first `UTC`.",
    ),
  })
  .partial();

export const newAccountSchema = z
  .strictObject({ ...accountSettings.shape, name: accountNameSchema })
  .meta({ id: "NewAccount", examples: [{ name: "Example Ltd", plans: ["standard"] }] });

export const accountChangeSchema = z
  .strictObject({
    revision: revisionSchema,
    ...accountSettings.shape,
    disabled: disabled.optional(),
  })
  .meta({ id: "AccountChange", examples: [{ revision: 1, disabled: true }] });

export const accountQuerySchema = z.strictObject({
  name: z.string().max(100).optional().describe("Only the account with this name."),
  ...pageFields,
});

export const erasureSchema = z
  .strictObject({
    confirm: z.string().describe("The account's name, to confirm that it is the right one."),
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
      budgets: z.int(),
      usage_rows: z.int(),
    }),
  })
  .meta({ id: "Erased", description: "What was permanently removed." });

export const applicationSchema = z
  .object({
    id: z.string().meta({ examples: ["app_4Gt8nK2vRm6Yc1Zd"] }),
    account_id: z.string(),
    account: z.string().describe("Name of the account."),
    environment: z.string(),
    name: z.string(),
    note: z.string(),
    created_at: timeSchema,
    disabled_at: timeSchema.nullable().describe("Its keys have been refused since then."),
    disabled_by: disabledBySchema,
    revision: revisionSchema,
  })
  .meta({
    id: "Application",
    description: "A program of an account in one environment, which keys are issued to.",
  });

export const changedApplicationSchema = applicationSchema.extend(receiptFields).meta({
  id: "ChangedApplication",
  description: "An application, and who has applied its change.",
});

export const newApplicationSchema = z
  .strictObject({
    account_id: idSchema
      .optional()
      .describe(
        "Required for operators. Account holders create applications in their own account.",
      ),
    environment: z.string().min(1).max(100).describe("A configured environment."),
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
