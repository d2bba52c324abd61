import { z } from "zod";
import { emailSchema, passwordSchema, userSchema } from "./access.ts";
import { timeSchema } from "./values.ts";

export const credentialsSchema = z
  .strictObject({ email: z.string().trim().toLowerCase().max(254), password: passwordSchema })
  .meta({ id: "Credentials", examples: [{ email: "ada@example.com", password: "..." }] });

export const passwordChangeSchema = z
  .strictObject({ current_password: passwordSchema, new_password: passwordSchema })
  .meta({ id: "PasswordChange" });

export const bootstrapSchema = z
  .strictObject({
    token: z.string().min(1).max(1024).describe("The one-time token."),
    email: emailSchema,
    name: z.string().trim().max(100).optional(),
    password: passwordSchema,
  })
  .meta({ id: "NewOperator" });

export const linkExchangeSchema = z
  .strictObject({
    token: z.string().min(1).max(1024).describe("What follows `=` in the fragment of the link."),
    password: passwordSchema
      .optional()
      .describe("The new password, for a link that begins with `#new-password=`."),
  })
  .meta({ id: "LinkExchange" });

export const sessionSchema = z
  .object({
    id: z.string().nullable().describe("As in the list of sessions; null for tokens."),
    user: userSchema.nullable().describe("Null for local access."),
    csrf_token: z
      .string()
      .nullable()
      .describe("Value of the header x-csrf-token for changes; null for tokens, which need none."),
    expires_at: timeSchema.nullable().describe("When the session ends at the latest."),
  })
  .meta({ id: "Session", description: "Who is signed in." });
export type SessionView = z.infer<typeof sessionSchema>;

export const signInOptionsSchema = z
  .object({
    password: z.boolean(),
    single_sign_on: z.boolean(),
    needs_bootstrap: z.boolean().describe("Whether the first operator must still be created."),
  })
  .meta({ id: "SignInOptions", description: "The ways to sign in." });
export type SignInOptionsView = z.infer<typeof signInOptionsSchema>;

export const signedOutSchema = z.object({ signed_out: z.literal(true) }).meta({ id: "SignedOut" });
