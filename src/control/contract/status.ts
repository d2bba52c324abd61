import { z } from "zod";
import { timeSchema } from "./values.ts";

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
