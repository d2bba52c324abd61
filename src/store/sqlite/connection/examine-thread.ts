import { Database } from "bun:sqlite";
import type { Verdict } from "./examine-database.ts";
import { troubleOf } from "./sqlite-trouble.ts";

declare const self: Worker;

self.onmessage = ({ data: path }: MessageEvent<string>) => self.postMessage(examine(path));

function examine(path: string): Verdict {
  try {
    using database = new Database(path, { readonly: true });
    database.run("PRAGMA busy_timeout = 1000");
    const row = database.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get();
    const found = row?.quick_check ?? "no answer";
    return { isRead: true, problem: found === "ok" ? undefined : found };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { isRead: troubleOf(error)?.cure === "restore", problem };
  }
}
