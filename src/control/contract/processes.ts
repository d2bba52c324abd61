import { z } from "zod";
import { timeSchema } from "./values.ts";

/** In answers to changes of keys. */
export const receiptFields = {
  applied: z
    .object({
      processes: z.int().describe("Processes that have applied the change."),
      of: z.int().describe("All processes that report to the database."),
      silent: z
        .int()
        .describe(
          "Others that gave no sign for 10 s and have not ended in order. They may accept a key " +
            "until `auth.snapshot_max_age` is over.",
        ),
    })
    .meta({ id: "Applied" })
    .optional()
    .describe(
      "How many processes had the change within a second. A repeated request counts anew. Absent if " +
        "nobody can tell.",
    ),
};

export const processRowSchema = z
  .object({
    id: z.string().meta({ examples: ["mac_5Jm2kLx0Qa8fT1Zd@host-a"] }),
    name: z.string().describe("Name of its host."),
    number: z.int().describe("Among the processes of its host, from 1."),
    version: z.string(),
    live: z.boolean().describe("False if it has been silent for 10 s."),
    silent_ms: z.number().describe("Since it last reported."),
    ready: z.boolean(),
    not_ready: z.string().nullable().describe("Why it cannot serve."),
    degraded: z.string().nullable().describe("What it lacks although it can serve."),
    started_at: timeSchema,
    keys_epoch: z
      .int()
      .nullable()
      .describe("Number of the last change of keys that its calls see."),
    configured_at: timeSchema.describe("When it loaded its configuration."),
    config_digest: z.string().nullable().describe("Equal for equal files. Null without a file."),
    limits_digest: z
      .string()
      .nullable()
      .describe("`memory`, or equal for equal servers of `limits.store`. Null: it does not tell."),
    pepper_marks: z
      .string()
      .nullable()
      .describe("An identifier of each of its peppers, in their order. Null: not reported."),
    admin_url: z
      .string()
      .describe("Address of the admin listener of its host; empty if another process has it."),
  })
  .meta({ id: "ProcessRow", description: "A gateway process on the database." });
export type ProcessRowView = z.infer<typeof processRowSchema>;

export const processesSchema = z.object({
  machine: z.string().describe("The machine that answers."),
  data: z.array(processRowSchema),
  config_differs: z
    .boolean()
    .describe("Whether live processes have loaded different configurations."),
  warnings: z
    .array(z.string())
    .describe(
      "What live processes must have in common and have not (limits, peppers), what they lack although " +
        "they can serve, and who gives no sign.",
    ),
});

export const processSchema = z
  .object({
    process: z.int().describe("Number among the processes of the machine, from 1."),
    leads: z.boolean().describe("Whether it has the admin listener and the jobs of the machine."),
    ready: z.boolean(),
    not_ready: z.string().nullable().describe("Why it cannot serve."),
    degraded: z.string().nullable().describe("What it lacks although it can serve."),
    pid: z.int().nullable().describe("Null, like all fields below, while the process starts."),
    version: z.string().nullable().describe("Version of its program."),
    started_at: timeSchema.nullable(),
    age_ms: z.number().nullable(),
    open_calls: z.int().nullable().describe("Calls that run."),
    calls: z.int().nullable().describe("Since it started, including open ones."),
    resident_bytes: z.int().nullable(),
    loop_delay_longest_ms: z
      .number()
      .nullable()
      .describe("Longest delay of its event loop in the last minute."),
    loop_delay_p99_ms: z.number().nullable(),
    spool_bytes: z.int().nullable(),
    waiting_rows: z
      .int()
      .nullable()
      .describe("Rows in its spool that are not in the database yet."),
    dropped_log_lines: z
      .int()
      .nullable()
      .describe("Lines of its log that could not be written since it started."),
    keys_generation: z
      .int()
      .nullable()
      .describe(
        "Number of the last change of keys that it has. All processes agree within a second.",
      ),
    configured_at: timeSchema
      .nullable()
      .describe("When the configuration of the process was loaded."),
  })
  .meta({ id: "Process", description: "A gateway process, at most a second old." });
export type ProcessView = z.infer<typeof processSchema>;

export const statusSchema = z.object({ data: z.array(processSchema) });
