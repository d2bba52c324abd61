import type { Migration } from "../../schema-version.ts";
import { compatibleVersions } from "../migrations/compatible-versions.ts";
import { controlSchema } from "../migrations/control-schema.ts";
import { replicaDifferences, replicas } from "../migrations/replicas.ts";
import { replySchema } from "../migrations/reply-schema.ts";
import { usageSchema } from "../migrations/usage-schema.ts";

/**
 * Steps of the schema, applied in order and never changed once released; `schema_version` counts
 * how many a database has. The first one equals all steps of SQLite up to `key-names`.
 */
export const migrations: readonly Migration[] = [
  {
    name: "first-schema",
    sql: [controlSchema, replySchema, usageSchema].join("\n"),
    compatibleSince: 1,
  },
  // Programs from before this step refuse every newer schema.
  { name: "compatible-versions", sql: compatibleVersions, compatibleSince: 2 },
  { name: "replicas", sql: replicas, compatibleSince: 2 },
  { name: "replica-differences", sql: replicaDifferences, compatibleSince: 2 },
];
