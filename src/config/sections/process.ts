import { availableParallelism } from "node:os";
import { z } from "zod";
import { flag, size, wholeNumber } from "../../settings/values.ts";

/** The processes of a gateway and what they log. */

export const telemetrySchema = z
  .strictObject({
    log_level: z
      .enum(["debug", "info", "warn", "error", "off"])
      .prefault("info")
      .describe("Least severity that is logged."),
    log_format: z.enum(["text", "json"]).prefault("text").describe("Form of a log line."),
    access_log: flag(
      "Whether the log has a line for each request of the API, at the level `info`; else at `debug`.",
      true,
    ),
    log_buffer: size({
      about:
        "Most of the log that waits for a slow reader; lines beyond it are dropped and counted.",
      min: "64KiB",
      max: "1GiB",
      initial: "1MiB",
    }),
    upstream_messages: flag(
      "Whether the log has the words of upstreams' errors. They may quote prompts.",
      false,
    ),
  })
  .prefault({})
  .describe("Logs.")
  .transform((telemetry) => ({
    logLevel: telemetry.log_level,
    logFormat: telemetry.log_format,
    logBufferBytes: telemetry.log_buffer,
    logsAccess: telemetry.access_log,
    logsUpstreamMessages: telemetry.upstream_messages,
  }));

export const upstreamRequestsSchema = wholeNumber({
  about: "Most requests to upstreams at one time, of each worker.",
  min: 1,
  max: 65_336,
  initial: 8192,
});

export const supervisorSchema = z
  .strictObject({
    standby: flag(
      "Whether a process is started ahead and waits to take the place of one that ends. It needs 30 MB more memory.",
      true,
    ),
  })
  .prefault({})
  .describe("What starts the process that serves again.")
  .transform(({ standby }) => ({ hasStandby: standby }));

/** More than these gain little: control decides for all of them. */
const mostWorkers = 8;

export const workersSchema = z
  .union([z.literal("auto"), z.int().min(1).max(64)], {
    error: "must be auto or a whole number from 1 to 64",
  })
  .default("auto")
  .describe(
    "Processes that serve calls at one address and share all limits. Each has its part of " +
      "`overload.max_calls`, `http.body_memory` and `idempotency.memory_limit`. `auto`: one for " +
      "each core, at most 8.",
  )
  .transform((workers) =>
    workers === "auto" ? Math.min(availableParallelism(), mostWorkers) : workers,
  );
