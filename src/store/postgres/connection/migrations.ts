import { controlSchema } from "../migrations/control-schema.ts";
import { replicas } from "../migrations/replicas.ts";
import { replySchema } from "../migrations/reply-schema.ts";
import { usageSchema } from "../migrations/usage-schema.ts";

/**
 * Steps of the schema, applied in order and never changed once released; `schema_version` counts
 * how many a database has. The first one equals all steps of SQLite up to `key-names`.
 */
export const migrations: readonly string[] = [
  [controlSchema, replySchema, usageSchema].join("\n"),
  replicas,
];
