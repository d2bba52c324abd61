import { z } from "zod";
import { adminSchema, auditSchema, retentionSchema } from "./sections/admin.ts";
import { limitsSchema } from "./sections/limits.ts";
import { hooksSchema } from "./sections/hooks.ts";
import { idempotencySchema } from "./sections/idempotency.ts";
import { imageFetchSchema } from "./sections/image-fetch.ts";
import { environmentsSchema } from "./sections/environments.ts";
import { endUsersSchema, tagsSchema } from "./sections/labels.ts";
import { modelsSchema } from "./sections/models.ts";
import { plansSchema } from "./sections/plans.ts";
import { pricesSchema } from "./sections/prices.ts";
import { overloadSchema, poolsSchema, routingSchema } from "./sections/routing.ts";
import {
  answersSchema,
  authSchema,
  dataDirectorySchema,
  listenSchema,
  processesSchema,
  shutdownSchema,
  storageSchema,
  streamsSchema,
  upstreamRequestsSchema,
} from "./sections/server.ts";
import { ledgerSchema } from "./sections/ledger.ts";
import { telemetrySchema } from "./sections/telemetry.ts";
import { httpSchema } from "./sections/http.ts";
import type { UpstreamKind } from "../upstreams/kind.ts";
import { upstreamKinds } from "../upstreams/kinds.ts";
import { upstreamsSchema } from "./sections/upstreams.ts";

/**
 * The configuration file: its keys, values, defaults, limits and descriptions.
 * `scripts/write-config-schema` makes `sluice.schema.json` and the text of `docs/configuration-reference.md`.
 */
export function configFileSchema(kinds: readonly UpstreamKind[]) {
  return z.strictObject({
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
    processes: processesSchema,
    image_fetch: imageFetchSchema,
    routing: routingSchema,
    overload: overloadSchema,
    idempotency: idempotencySchema,
    hooks: hooksSchema,
    environments: environmentsSchema,
    upstreams: upstreamsSchema(kinds),
    pools: poolsSchema,
    models: modelsSchema(kinds),
    plans: plansSchema,
    prices: pricesSchema,
    end_users: endUsersSchema,
    tags: tagsSchema,
  });
}

/** The file as read: defaults filled in, durations in milliseconds, sizes in bytes. */
export type ConfigFile = z.output<ReturnType<typeof configFileSchema>>;

export type JsonSchema = z.core.JSONSchema.BaseSchema;

/** The file as an operator writes it, before defaults and units. */
export function configInputSchema(kinds: readonly UpstreamKind[] = upstreamKinds): JsonSchema {
  return z.toJSONSchema(configFileSchema(kinds), { io: "input", override: describeRange });
}

/** A description ends with the range of the value. */
function describeRange({ jsonSchema: made }: { jsonSchema: JsonSchema }): void {
  if (typeof made["range"] !== "string") return;
  made.description = `${made.description ?? ""} ${made["range"]}`;
  delete made["range"];
}

export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
