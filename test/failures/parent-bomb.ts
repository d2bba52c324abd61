/**
 * Loaded before the program: as soon as the file SLUICE_TEST_BOMB exists, the main thread of a gateway
 * process throws an uncaught exception with its content, or hangs if the content is `hang`. If it is
 * `control`, the control thread removes the file and throws.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const path = process.env["SLUICE_TEST_BOMB"] ?? "";
const watch = (): void => {
  if (!existsSync(path)) return;
  const text = readFileSync(path, "utf8");
  // It may not be written yet.
  if (text === "" || (text === "control") === isMainThread) return;
  if (!isMainThread) rmSync(path);
  if (text !== "hang") throw new TypeError(text);
  while (existsSync(path)) Bun.sleepSync(1);
};
if (process.env["SLUICE_PROCESS"] !== undefined) setInterval(watch, 20).unref();

/** The runtime loads nothing before the program of a thread, unless it is told to. */
class WatchedWorker extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    super(url, { ...options, preload: [import.meta.path] });
  }
}
if (isMainThread) globalThis.Worker = WatchedWorker;
