import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import { errorCode } from "../../domain/system-files.ts";
import { type Finding, findingsOn } from "./finding.ts";

/** With less free space, the ledger's spool may fill the disk within a busy day. */
const littleDiskBytes = 1e9;
const noDiskBytes = 50e6;
/** A call needs two open files: the connection to its caller and that to its upstream. */
const fewOpenFiles = 4096;

/** Checks where the gateway stores its data, and the limits of the machine. */
export function checkMachine({ dataDir, storage }: Pick<Config, "dataDir" | "storage">): Finding[] {
  const folder = checkFolder("data directory", dataDir, "data_dir");
  const database = storage.backend === "sqlite" ? dirname(storage.path) : dataDir;
  const isInside = resolve(database) === resolve(dataDir);
  const other = isInside ? [] : [checkFolder("database", database, "storage.url")];
  return [folder, ...other, checkDisk(dataDir), ...checkOpenFiles()];
}

function checkFolder(subject: string, path: string, setting: string): Finding {
  const { ok, failed } = findingsOn(subject);
  const existing = nearestExisting(path);
  const problem = whyNotWritable(existing);
  if (problem !== undefined) {
    const advice = `let the user of the gateway write there, or set ${setting} to another place`;
    return failed(`${existing} ${problem}`, advice);
  }
  return ok(`${path} can be ${existing === resolve(path) ? "written" : "created"}`);
}

function whyNotWritable(path: string): string | undefined {
  try {
    if (!statSync(path).isDirectory()) return "is not a directory";
    accessSync(path, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `cannot be written (${errorCode(error) ?? "unknown error"})`;
  }
}

function nearestExisting(path: string): string {
  let folder = resolve(path);
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

function checkDisk(dataDir: string): Finding {
  const { ok, warning, failed } = findingsOn("disk");
  const { bavail, bsize } = statfsSync(nearestExisting(dataDir));
  const free = bavail * bsize;
  const text = `${(free / 1e9).toFixed(free >= 1e9 ? 1 : 2)} GB free`;
  if (free >= littleDiskBytes) return ok(text);
  const advice = "make room: without it calls are refused, because their usage cannot be recorded";
  return free < noDiskBytes ? failed(text, advice) : warning(text, advice);
}

/** No findings if the system does not report its limits. */
function checkOpenFiles(): readonly Finding[] {
  const { ok, warning } = findingsOn("open files");
  const path = "/proc/self/limits";
  const limits = existsSync(path) ? readFileSync(path, "utf8") : "";
  const [, limit] = /^Max open files\s+(\d+|unlimited)/m.exec(limits) ?? [];
  if (limit === undefined) return [];
  if (limit === "unlimited" || Number(limit) >= fewOpenFiles) return [ok(`at most ${limit}`)];
  const text = `at most ${limit}, so about ${Math.floor(Number(limit) / 2)} calls at once`;
  const advice = "raise it: `ulimit -n 65536` in the shell, LimitNOFILE=65536 in systemd";
  return [warning(text, advice)];
}
