import { z } from "zod";
import { processRowSchema } from "./processes.ts";
import { callRowSchema, usageTotalSchema } from "./usage.ts";
import { timeSchema } from "./values.ts";

const machineFields = {
  machine: z.string().describe("The machine whose processes this is about."),
  other_machines: z.array(z.string()).describe("Others on the database; ask them for theirs."),
};

export const liveProcessSchema = z
  .object({
    process: z.int().describe("Number among the processes of the machine, from 1."),
    open_calls: z.int(),
    load_bound: z.int().describe("Most calls at once; it falls while the event loop is late."),
    spool_bytes: z.int().describe("Size of the rows that are not in the database yet."),
    spool_limit_bytes: z.int().describe("Calls are refused once it is that large."),
  })
  .meta({ id: "LiveProcess" });

/** The worst last. */
export const targetStates = ["in_service", "throttled", "out", "failing"] as const;

export const liveTargetSchema = z
  .object({
    id: z.string().describe("`upstream/identifier`."),
    upstream: z.string(),
    pool: z.string().nullable(),
    models: z
      .array(
        z.object({
          environment: z.string(),
          alias: z.string(),
          priority: z.number().describe("Lower ones are tried first."),
          weight: z.number().describe("Share among targets of one priority."),
        }),
      )
      .describe("The models that it serves."),
    state: z
      .enum(targetStates)
      .describe(
        "The worst of all processes. `throttled`: out since its provider refuses requests. `failing`: " +
          "its calls fail, but it is tried, as nothing else serves a model or other keys may succeed.",
      ),
    why: z.string().nullable().describe("Why it is out, or its calls fail."),
    out_until: timeSchema.nullable().describe("After that, the next answer ends it."),
    processes_out: z.int().describe("Processes for which it is out."),
    keys_out: z.int().describe("Keys for which alone it is out."),
    in_flight: z.int().describe("Attempts under way."),
    in_flight_limit: z.int().nullable().describe("Set while it is overloaded."),
    attempts: z
      .int()
      .describe(
        "Attempts that ended in this hour and the last; other targets may have served them.",
      ),
    failures: z.record(z.string(), z.int()).describe("Those of them that failed, by kind."),
    last_failure: z
      .object({ kind: z.string(), at: timeSchema })
      .nullable()
      .describe("The last failed attempt; null: none since the start."),
  })
  .meta({ id: "LiveTarget" });
export type LiveTargetView = z.infer<typeof liveTargetSchema>;

export const liveGateSchema = z
  .object({
    kind: z.enum(["pool", "upstream"]),
    name: z.string(),
    in_flight: z.int().describe("Places that are taken."),
    waiting: z.int().describe("Calls that wait for one."),
    bound: z.int().nullable().describe("Places of all processes together; null: no limit."),
  })
  .meta({ id: "LiveGate", description: "The places of a pool or an upstream." });

const { calls, failed_calls, abandoned_calls, first_event_ms } = usageTotalSchema.shape;

export const targetsSchema = z
  .object({
    ...machineFields,
    since: timeSchema.describe("Begin of calls, share and times to the first event."),
    data: z.array(
      liveTargetSchema.extend({
        calls,
        failed_calls: z.int().describe("Calls that failed; not those whose caller left."),
        share: z.number().describe("Of the calls of all these targets, from 0 to 1."),
        first_event_ms,
      }),
    ),
    gates: z.array(liveGateSchema),
    processes: z.array(liveProcessSchema),
  })
  .meta({ id: "Targets" });

const windowUse = z
  .object({
    limit: z.number(),
    used: z.number().describe("In the last 60 seconds, running calls as reserved."),
    remaining: z.number(),
    free_at: timeSchema
      .nullable()
      .describe("When all is free if nothing more is used; null: it is."),
    set_by: z
      .enum(["plan", "key", "account"])
      .describe("Whose limit leaves least; `key`: the key has limits of its own."),
  })
  .meta({ id: "WindowUse", description: "The limit in force." });
export type WindowUseView = z.infer<typeof windowUse>;

export const keyUseSchema = z
  .object({
    key_id: z.string(),
    account_id: z.string(),
    application: z.string(),
    environment: z.string(),
    plan: z.string().nullable().describe("The plan that sets its limits; null: they are its own."),
    open_calls: z.int().describe("In the processes of the machine."),
    requests: windowUse,
    tokens: windowUse,
    guarantee: windowUse
      .omit({ set_by: true })
      .extend({ seconds: z.int().describe("Length of its window.") })
      .nullable()
      .describe("Tokens that its units guarantee; null: it has none."),
    used_percent: z.int().describe("Of the requests or the tokens, whichever is more."),
  })
  .meta({ id: "KeyUse", description: "What a key uses of its limits." });
export type KeyUseView = z.infer<typeof keyUseSchema>;

export const keyLiveSchema = z
  .object({
    machine: machineFields.machine,
    use: keyUseSchema.nullable().describe("Null while no process of the machine accepts the key."),
    secrets: z.array(z.object({ public_id: z.string(), last_used_at: timeSchema.nullable() })),
  })
  .meta({ id: "KeyLive" });

/** A process of any machine on the database, without what changes each second. */
export const liveGatewaySchema = processRowSchema.pick({
  id: true,
  live: true,
  not_ready: true,
  degraded: true,
  keys_epoch: true,
  config_digest: true,
});

/** The worst first. Each begins with the type of its subject. */
export const badKinds = [
  "process_not_ready",
  "process_degraded",
  "configuration_differs",
  "target_failing",
  "target_out",
  "process_spool_filling",
  "pool_oversold",
] as const;
export const needKinds = [
  ...badKinds,
  "target_throttled",
  "budget_near_limit",
  "key_near_limit",
  "key_expires",
  "token_expires",
  "key_rotating",
  "key_leaked",
] as const;

const needSchema = z
  .object({
    kind: z.enum(needKinds),
    severity: z.enum(["bad", "warn"]),
    subject: z.object({ type: z.string(), id: z.string(), name: z.string() }),
    what: z.string().describe("What it is, and what to do."),
    at: timeSchema.nullable().describe("When it ends, expires or happened."),
  })
  .meta({ id: "Need" });
export type NeedView = z.infer<typeof needSchema>;

export const overviewSchema = z
  .object({
    ...machineFields,
    checked_at: timeSchema,
    needs: z.array(needSchema).describe("What needs you now, worst first, at most 50 of a kind."),
    keys: z.array(keyUseSchema).describe("The keys that are nearest to their limits, at most 20."),
    open_calls: z.int(),
    since: timeSchema.describe("Begin of `sums`: a day ago, at the full hour."),
    sums: usageTotalSchema
      .omit({ group: true, names: true })
      .nullable()
      .describe("Null without calls."),
    hours: z
      .array(z.object({ at: timeSchema, calls, failed_calls, abandoned_calls }))
      .describe("Each hour of them, those without calls included."),
  })
  .meta({ id: "Overview" });

export const newestCallSchema = callRowSchema.pick({ id: true, started_at: true });

export const liveTopics = [
  "processes",
  "gateways",
  "targets",
  "gates",
  "keys",
  "key",
  "calls",
] as const;
export type LiveTopic = (typeof liveTopics)[number];

export const liveQuerySchema = z.strictObject({
  topics: z
    .string()
    .max(100)
    .describe(`Separated by commas: ${liveTopics.join(", ")}.`),
  key_id: z
    .string()
    .max(1_000)
    .optional()
    .describe("For the topic `key`: one, or up to 10 separated by commas."),
});
