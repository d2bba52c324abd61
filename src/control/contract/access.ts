import { z } from "zod";
import { timeSchema, revisionSchema } from "./values.ts";

/** Answers about users and tokens. */

export const roleSchema = z.enum(["operator", "account_holder", "auditor"]);

export const userSchema = z
  .object({
    id: z.string().meta({ examples: ["user_2Wc5rN8eKj7Qv3Ht"] }),
    email: z.string(),
    name: z.string(),
    role: roleSchema,
    account_id: z.string().nullable().describe("The account it is bound to; null: all accounts."),
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
