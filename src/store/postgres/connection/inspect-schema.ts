import { nameOfDatabase } from "../../../domain/addresses/database-name.ts";
import { StorageUnavailable } from "../../errors.ts";
import type { SchemaCheck } from "../../schema-version.ts";
import { migrations } from "./migrations.ts";
import { createClient } from "./pool.ts";
import { troubleOf } from "./postgres-trouble.ts";
import { readSchema } from "./prepare-database.ts";

/** Reads the schema of a database, without changing it. Throws `StorageUnavailable`. */
export async function inspectSchema(url: string): Promise<SchemaCheck> {
  const name = nameOfDatabase(url);
  const client = await createClient({ url });
  try {
    await client.connect();
    return { name, found: await readSchema(client), migrations };
  } catch (error) {
    const what = troubleOf(error)?.what ?? "cannot be used";
    throw new StorageUnavailable(`the database ${name} ${what}`, { cause: error });
  } finally {
    client.end().catch(() => undefined);
  }
}
