import { availableParallelism } from "node:os";
import { z } from "zod";
import { flag, wholeNumber } from "../../settings/values.ts";

/** The processes of a gateway. */

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
