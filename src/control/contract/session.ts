import { z } from "zod";
import { emailSchema, passwordSchema } from "./access-requests.ts";
import { userSchema } from "./access.ts";
import { timeSchema } from "./values.ts";

/** Requests and answers of signing in. */

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

export const sessionSchema = z
  .object({
    user: userSchema.nullable().describe("Null for the local access of the machine itself."),
    csrf_token: z
      .string()
      .nullable()
      .describe("For the header x-csrf-token of every change; null for tokens, which need none."),
    expires_at: timeSchema.nullable().describe("The end, however busy the session is."),
  })
  .meta({ id: "Session", description: "Who is signed in." });
export type SessionView = z.infer<typeof sessionSchema>;

export const signInOptionsSchema = z
  .object({
    password: z.boolean(),
    single_sign_on: z.boolean(),
    needs_bootstrap: z.boolean().describe("Whether the first operator is still to be made."),
  })
  .meta({ id: "SignInOptions", description: "How one can sign in." });
export type SignInOptionsView = z.infer<typeof signInOptionsSchema>;

export const signedOutSchema = z.object({ signed_out: z.literal(true) }).meta({ id: "SignedOut" });
