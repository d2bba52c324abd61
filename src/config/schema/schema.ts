import { z } from "zod";
import { adminSchema, auditSchema, retentionSchema } from "./admin-schema.ts";
import { answersSchema } from "./answers-schema.ts";
import { hooksSchema } from "./hooks-schema.ts";
import { idempotencySchema } from "./idempotency-schema.ts";
import { imageFetchSchema } from "./image-fetch-schema.ts";
import { environmentsSchema, modelsSchema, plansSchema } from "./model-schema.ts";
import { overloadSchema, poolsSchema, routingSchema } from "./routing-schema.ts";
import {
  supervisorSchema,
  telemetrySchema,
  upstreamRequestsSchema,
  workersSchema,
} from "./process-schema.ts";
import {
  authSchema,
  dataDirectorySchema,
  ledgerSchema,
  limitsSchema,
  listenSchema,
  shutdownSchema,
  storageSchema,
  streamsSchema,
} from "./server-schema.ts";
import { httpSchema } from "./http-schema.ts";
import { upstreamsSchema } from "./upstream-schema.ts";

/**
 * The file an operator writes: its keys, values, defaults, limits and descriptions.
 * `sluice.schema.json` and the tables of `docs/configuration.md` are made from it.
 */
export const configFileSchema = z
  .strictObject({
    listen: listenSchema,
    storage: storageSchema,
    data_dir: dataDirectorySchema,
    limits: limitsSchema,
    http: httpSchema,
    streams: streamsSchema,
    answers: answersSchema,
    shutdown: shutdownSchema,
    auth: authSchema,
    admin: adminSchema,
    audit: auditSchema,
    ledger: ledgerSchema,
    retention: retentionSchema,
    telemetry: telemetrySchema,
    upstream_requests: upstreamRequestsSchema,
    workers: workersSchema,
    supervisor: supervisorSchema,
    image_fetch: imageFetchSchema,
    routing: routingSchema,
    overload: overloadSchema,
    idempotency: idempotencySchema,
    hooks: hooksSchema,
    environments: environmentsSchema,
    upstreams: upstreamsSchema,
    pools: poolsSchema,
    models: modelsSchema,
    plans: plansSchema,
  })
  .refine(({ workers, limits }) => workers === 1 || limits.store !== "memory", {
    path: ["workers"],
    error:
      "must be 1 with limits.store: memory; each process would grant the whole limit, so more " +
      "need a shared limits store",
  });

/** The file as read: defaults filled in, durations in milliseconds, sizes in bytes. */
export type ConfigFile = z.output<typeof configFileSchema>;
