import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import { errorCode } from "../../domain/system-files.ts";
import type { Finding } from "./finding.ts";

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
  return [folder, ...other, ...checkDisk(dataDir), ...checkOpenFiles()];
}

function checkFolder(subject: string, path: string, setting: string): Finding {
  const existing = nearestExisting(path);
  const problem = whyNotWritable(existing);
  if (problem !== undefined) {
    const advice = `let the user of the gateway write there, or set ${setting} to another place`;
    return { state: "failed", subject, text: `${existing} ${problem}`, advice };
  }
  const isThere = existing === resolve(path);
  return {
    state: "ok",
    subject,
    text: isThere ? `${path} can be written` : `${path} can be created`,
  };
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

function checkDisk(dataDir: string): readonly Finding[] {
  const { bavail, bsize } = statfsSync(nearestExisting(dataDir));
  const free = bavail * bsize;
  const text = `${formatSize(free)} free`;
  if (free >= littleDiskBytes) return [{ state: "ok", subject: "disk", text }];
  const state = free < noDiskBytes ? "failed" : "warning";
  const advice = "make room: without it calls are refused, because their usage cannot be recorded";
  return [{ state, subject: "disk", text, advice }];
}

function formatSize(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;
}

/** No findings if the system does not report its limits. */
function checkOpenFiles(): readonly Finding[] {
  const soft = readOpenFiles();
  if (soft === undefined) return [];
  const subject = "open files";
  if (soft >= fewOpenFiles) return [{ state: "ok", subject, text: `at most ${soft}` }];
  const text = `at most ${soft}, so about ${Math.floor(soft / 2)} calls at once`;
  const advice = "raise it: `ulimit -n 65536` in the shell, LimitNOFILE=65536 in systemd";
  return [{ state: "warning", subject, text, advice }];
}

function readOpenFiles(): number | undefined {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8");
    const [, soft] = /^Max open files\s+(\d+|unlimited)/m.exec(limits) ?? [];
    if (soft === undefined) return undefined;
    return soft === "unlimited" ? Infinity : Number(soft);
  } catch {
    return undefined;
  }
}
