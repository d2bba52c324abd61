import { z } from "zod";
import { oneLine, timeSchema, revisionSchema, idSchema, pageFields } from "./values.ts";

export const roleSchema = z.enum(["operator", "account_holder", "auditor"]);

export const userSchema = z
  .object({
    id: z.string().meta({ examples: ["user_2Wc5rN8eKj7Qv3Ht"] }),
    email: z.string(),
    name: z.string(),
    role: roleSchema,
    account_id: z.string().nullable().describe("The account it is bound to; null: all accounts."),
    account: z
      .string()
      .nullable()
      .optional()
      .describe("Name of the account. Not in answers about sessions."),
    has_password: z.boolean(),
    has_single_sign_on: z.boolean(),
    created_at: timeSchema,
    disabled_at: timeSchema.nullable(),
    last_sign_in_at: timeSchema.nullable(),
    revision: revisionSchema,
  })
  .meta({ id: "User", description: "A person who can sign in to the control plane." });
export type UserView = z.infer<typeof userSchema>;

export const tokenSchema = z
  .object({
    id: z.string().meta({ examples: ["tok_6Lm1xP4zBs9Dg8Fw"] }),
    user_id: z.string(),
    user: z.string().describe("Email address of the user."),
    made_with: z
      .string()
      .nullable()
      .describe("Id of the token that created it. It ends with that token."),
    name: z.string(),
    hint: z.string().describe("First characters of the token."),
    scopes: z.array(z.enum(["read", "write"])),
    created_at: timeSchema,
    expires_at: timeSchema,
    last_used_at: timeSchema.nullable(),
    revoked_at: timeSchema.nullable(),
  })
  .meta({ id: "Token", description: "A token for scripts. It acts as its user." });
export type TokenView = z.infer<typeof tokenSchema>;

export const emailSchema = z
  .string()
  .trim()
  .toLowerCase()
  .max(254)
  .regex(/^[^\s@<>"]+@[^\s@<>"]+$/, "use an email address")
  .meta({ description: "Unique; kept in lower case.", examples: ["ada@example.com"] });

const userNameSchema = z
  .string()
  .trim()
  .regex(...oneLine(0))
  .describe("Name of the person.");

/** Rules that need the email address are checked elsewhere. */
export const passwordSchema = z
  .string()
  .max(1024)
  .meta({ description: "12 to 256 characters.", format: "password" });

const boundAccount = idSchema
  .nullable()
  .describe("Required for account holders. Auditors see only this account. Not for operators.");

export const newUserSchema = z
  .strictObject({
    email: emailSchema,
    name: userNameSchema.optional(),
    role: roleSchema,
    account_id: boundAccount.optional(),
    password: passwordSchema
      .optional()
      .describe("12 to 256 characters. Without one, the user can only use single sign-on."),
  })
  .meta({ id: "NewUser", examples: [{ email: "ada@example.com", role: "auditor" }] });

export const userChangeSchema = z
  .strictObject({
    revision: revisionSchema,
    name: userNameSchema.optional(),
    role: roleSchema.optional(),
    account_id: boundAccount.optional(),
    disabled: z.boolean().optional().describe("If true, sessions and tokens end at once."),
    password: passwordSchema.optional(),
  })
  .meta({ id: "UserChange", examples: [{ revision: 1, disabled: true }] });

export const newLinkSchema = z
  .strictObject({
    expires_in_hours: z.int().min(1).max(168).default(24),
  })
  .meta({ id: "NewSignInLink", examples: [{ expires_in_hours: 24 }] });

export const issuedLinkSchema = z
  .object({
    user: userSchema,
    url: z.string().describe("The link. It is shown once, works once, and is never stored."),
    expires_at: timeSchema,
  })
  .meta({ id: "IssuedSignInLink", description: "A link with which a user sets a password." });

export const userQuerySchema = z.strictObject({
  account_id: idSchema.optional(),
  role: roleSchema.optional(),
  email: emailSchema.optional(),
  ...pageFields,
});

export const scopeSchema = z.enum(["read", "write"]);

export const newTokenSchema = z
  .strictObject({
    name: z
      .string()
      .trim()
      .regex(...oneLine(1))
      .describe("What it is for."),
    scopes: z
      .array(scopeSchema)
      .min(1)
      .max(2)
      .optional()
      .describe("Default: all scopes of the caller."),
    expires_in_days: z.int().min(1).max(365).default(90),
    user_id: idSchema
      .optional()
      .describe("Owner of the token; operators only. Default: the caller."),
  })
  .meta({ id: "NewToken", examples: [{ name: "nightly report", scopes: ["read"] }] });

export const tokenQuerySchema = z.strictObject({
  user_id: idSchema
    .optional()
    .describe("Tokens of this user; operators only. Default: your own; for operators, all."),
  ...pageFields,
});

export const issuedTokenSchema = z
  .object({
    token: tokenSchema,
    secret: z.string().describe("The token. It is shown once and never stored."),
  })
  .meta({ id: "IssuedToken", description: "A new management token with its secret." });

export const openSessionSchema = z
  .object({
    id: z.string(),
    user_id: z.string(),
    user: z.string().describe("Email address of the user."),
    address: z.string().nullable().describe("Where it was started."),
    created_at: timeSchema,
    last_seen_at: timeSchema.describe("To the minute."),
    expires_at: timeSchema.describe("When it ends at the latest."),
  })
  .meta({ id: "OpenSession", description: "A browser that is signed in." });
export type OpenSessionView = z.infer<typeof openSessionSchema>;

export const sessionQuerySchema = z.strictObject({
  user_id: idSchema
    .optional()
    .describe("Sessions of this user; operators only. Default: your own; for operators, all."),
  ...pageFields,
});
