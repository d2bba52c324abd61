import { availableParallelism } from "node:os";
import { z } from "zod";
import { flag, wholeNumber } from "../../settings/values.ts";

/** The processes of a gateway. */

export const upstreamRequestsSchema = wholeNumber({
  about: "Maximum concurrent requests to upstreams in each process.",
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

const mostProcesses = 64;

export const processesSchema = z
  .union([z.literal("auto"), z.int().min(1).max(mostProcesses)], {
    error: "must be auto or a whole number from 1 to 64",
  })
  .default(1)
  .describe(
    "Number of processes that serve calls. Several need a server in `limits.store`. They divide " +
      "`overload.max_calls`, `http.body_memory` and `idempotency.memory_limit`. `auto`: one " +
      "per core.",
  )
  .transform((processes) =>
    processes === "auto" ? Math.min(availableParallelism(), mostProcesses) : processes,
  );
