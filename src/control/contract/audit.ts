import { z } from "zod";
import { idSchema, pageFields, timeSchema } from "./values.ts";

const fieldsSchema = z
  .record(z.string(), z.json())
  .describe("For a change, only the fields that differ. Never a secret.");

/** All that is audited, by what is changed. */
export interface AuditVerbs {
  account: ["create", "update", "delete", ...ErasureSteps];
  application: ["create", "update", "delete"];
  key: ["create", "update", "rotate", "end_secret", "leak", "revoke"];
  budget: ["create", "update", "delete"];
  usage: ["reprice_begin", "reprice", "erase_end_user_begin", "erase_end_user"];
  user: ["create", "update", "link", "delete"];
  token: ["create", "revoke"];
  session: ["start", "end"];
  playground: ["call"];
}
type ErasureSteps = [
  "erase_begin",
  "erase_budgets",
  "erase_keys",
  "erase_applications",
  "erase_users",
  "erase",
];
export type AuditAction = {
  [Kind in keyof AuditVerbs]: `${Kind}.${AuditVerbs[Kind][number]}`;
}[keyof AuditVerbs];

export const auditEntrySchema = z
  .object({
    sequence: z.int().describe("1, 2, 3, ... without gaps."),
    at: timeSchema,
    actor: z.object({
      kind: z.enum(["session", "token", "local", "system"]),
      id: z.string().nullable(),
      name: z.string(),
    }),
    address: z.string().nullable().describe("Where the request came from."),
    request_id: z.string().nullable(),
    action: z.string().meta({ examples: ["key.rotate"] }),
    subject: z.object({ type: z.string(), id: z.string() }),
    account_id: z.string().nullable(),
    before: fieldsSchema.nullable(),
    after: fieldsSchema.nullable(),
    digest: z.string().describe("SHA-256 of the entry and of the digest before it."),
  })
  .meta({ id: "AuditEntry", description: "Who changed what." });
export type AuditEntryView = z.infer<typeof auditEntrySchema>;

export const auditQuerySchema = z.strictObject({
  account_id: idSchema.optional(),
  actor_id: idSchema.optional(),
  action: z.string().min(1).max(100).optional(),
  subject_id: idSchema.optional(),
  since: z.string().max(40).optional().describe("A time, or an age: `30m`, `12h`, `7d`."),
  until: z.string().max(40).optional().describe("Like `since`; excluded."),
  ...pageFields,
});

export const auditVerifyQuerySchema = z.strictObject({
  expect: z
    .string()
    .regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits")
    .optional()
    .describe("An earlier digest that some entry must have."),
  checkpoint: z
    .string()
    .max(1_000)
    .optional()
    .describe("A checkpoint from the log or the checkpoint file, which the chain must contain."),
});

export const auditVerdictSchema = z
  .object({
    is_intact: z.boolean(),
    entries: z.int(),
    last_digest: z.string().describe("Store it elsewhere, for `expect`."),
    first: z
      .object({ sequence: z.int(), at: timeSchema })
      .nullable()
      .describe("The first kept entry: retention has removed those before it."),
    problem: z.object({ sequence: z.int(), what: z.string() }).nullable(),
  })
  .meta({ id: "AuditVerdict" });
