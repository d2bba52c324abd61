import { availableParallelism } from "node:os";
import { z } from "zod";
import { wholeNumber } from "../../settings/values.ts";

/** The processes of a gateway. */

export const upstreamRequestsSchema = wholeNumber({
  about: "Maximum concurrent requests to upstreams in each process.",
  min: 1,
  max: 65_336,
  initial: 8192,
});

const mostProcesses = 64;

export const processesSchema = z
  .union([z.literal("auto"), z.int().min(1).max(mostProcesses)], {
    error: "must be auto or a whole number from 1 to 64",
  })
  .default(1)
  .describe(
    "Number of gateway processes. Several need a server in `limits.store`. Each has " +
      "`overload.max_calls`, `http.body_memory` and the like for itself. `auto`: one per core.",
  )
  .transform((processes) =>
    processes === "auto" ? Math.min(availableParallelism(), mostProcesses) : processes,
  );
