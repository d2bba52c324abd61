import { z } from "zod";
import { timeSchema } from "./values.ts";

export const processSchema = z
  .object({
    process: z
      .enum(["control", "worker", "single"])
      .describe("`single`: control and worker in one, as with `--unsupervised`."),
    number: z.int().nullable().describe("Of a worker; counts from 1."),
    ready: z.boolean(),
    not_ready: z.string().nullable().describe("Why it cannot serve."),
    pid: z.int().nullable().describe("Null, as all that follows, while the process is not there."),
    version: z.string().nullable().describe("Of the program that it runs."),
    started_at: timeSchema.nullable(),
    age_ms: z.number().nullable(),
    open_calls: z.int().nullable().describe("Null for control, which serves none."),
    calls: z.int().nullable().describe("Since it started, open ones included."),
    resident_bytes: z.int().nullable(),
    loop_delay_longest_ms: z
      .number()
      .nullable()
      .describe("The longest delay of its event loop in the last minute."),
    loop_delay_p99_ms: z.number().nullable(),
    spool_bytes: z.int().nullable(),
    waiting_rows: z.int().nullable().describe("Rows of its spool that are not stored yet."),
    keys_generation: z
      .int()
      .nullable()
      .describe("Of the newest change of keys that it has: the same in all, half a second later."),
    configured_at: timeSchema
      .nullable()
      .describe("When control took the configuration that the process has."),
  })
  .meta({ id: "Process", description: "A process of the gateway, as of a second ago." });
export type ProcessView = z.infer<typeof processSchema>;

export const statusSchema = z.object({ data: z.array(processSchema) });
