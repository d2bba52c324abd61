import { availableParallelism } from "node:os";
import { z } from "zod";
import { flag, size, wholeNumber } from "../../settings/values.ts";

/** The processes of a gateway and what they log. */

export const telemetrySchema = z
  .strictObject({
    log_level: z
      .enum(["debug", "info", "warn", "error", "off"])
      .prefault("info")
      .describe("Minimum severity to log."),
    log_format: z.enum(["text", "json"]).prefault("text").describe("Format of log lines."),
    access_log: flag(
      "Whether requests of the API are logged at `info`; otherwise they are logged at `debug`.",
      true,
    ),
    log_buffer: size({
      about: "Buffer for a slow reader of the log; further lines are dropped and counted.",
      min: "64KiB",
      max: "1GiB",
      initial: "1MiB",
    }),
    upstream_messages: flag(
      "Whether to log the error messages of upstreams, which may quote prompts.",
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
  about: "Maximum concurrent requests to upstreams in each worker.",
  min: 1,
  max: 65_336,
  initial: 8192,
});

export const supervisorSchema = z
  .strictObject({
    standby: flag(
      "Whether a preloaded process waits to replace one that ends. It needs 30 MB of memory.",
      true,
    ),
  })
  .prefault({})
  .describe("The process that restarts the others.")
  .transform(({ standby }) => ({ hasStandby: standby }));

/** More workers gain little, because control decides for all of them. */
const mostWorkers = 8;

export const workersSchema = z
  .union([z.literal("auto"), z.int().min(1).max(64)], {
    error: "must be auto or a whole number from 1 to 64",
  })
  .default("auto")
  .describe(
    "Number of processes that serve calls. They share all limits and divide " +
      "`overload.max_calls`, `http.body_memory` and `idempotency.memory_limit`. `auto`: one " +
      "per core, at most 8.",
  )
  .transform((workers) =>
    workers === "auto" ? Math.min(availableParallelism(), mostWorkers) : workers,
  );
