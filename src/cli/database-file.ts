import type { Config } from "../config/config.ts";
import { CommandError } from "./command.ts";

/** The file of the database, for a command that works with files. */
export function databaseFileOf({ storage }: Pick<Config, "storage">, command: string): string {
  if (storage.backend === "sqlite") return storage.path;
  throw new CommandError(
    `${command} works with SQLite only, and storage.url is ${storage.path}; use PostgreSQL's own tools`,
  );
}
