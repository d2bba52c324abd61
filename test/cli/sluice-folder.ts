import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FinishedCommand } from "../support/sluice-process.ts";
import { runHere, type RunOptions } from "./run-here.ts";

/** A data directory of its own, and the command line on it. */
export interface SluiceFolder extends Disposable {
  readonly path: string;
  /** Runs `sluice ...` on the folder; `--offline` where the folder is so. */
  run(...commandLine: string[]): Promise<FinishedCommand>;
  runWith(options: RunOptions, ...commandLine: string[]): Promise<FinishedCommand>;
  /** The same, for its JSON; throws when the command failed. */
  json(...commandLine: string[]): Promise<JsonRecord>;
  /** Writes a file into the folder and gives its path. */
  write(name: string, text: string): Promise<string>;
}

export type JsonRecord = Readonly<Record<string, unknown>>;

export function createFolder({ isOffline }: { readonly isOffline: boolean }): SluiceFolder {
  const path = mkdtempSync(join(tmpdir(), "sluice-cli-"));
  const place = ["--data-dir", path, ...(isOffline ? ["--offline"] : [])];
  const runWith: SluiceFolder["runWith"] = (options, ...commandLine) =>
    runHere([...commandLine, ...place], options);
  const run: SluiceFolder["run"] = (...commandLine) => runWith({}, ...commandLine);
  return {
    path,
    run,
    runWith,
    async json(...commandLine) {
      const { exitCode, output, errors } = await run(...commandLine, "--json");
      if (exitCode !== 0) throw new Error(`${commandLine.join(" ")}: ${errors}`);
      return JSON.parse(output) as JsonRecord;
    },
    async write(name, text) {
      const file = join(path, name);
      await Bun.write(file, text);
      return file;
    },
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

export function idsOf(list: JsonRecord): string[] {
  return (list["data"] as { id: string }[]).map(({ id }) => id);
}
