/**
 * Loaded before the program: as soon as the file SLUICE_TEST_BOMB exists, the main thread of a gateway
 * process throws an uncaught exception with its content, or hangs if the content is `hang`.
 */
import { existsSync, readFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const path = process.env["SLUICE_TEST_BOMB"] ?? "";
const watch = (): void => {
  if (!existsSync(path)) return;
  const text = readFileSync(path, "utf8");
  if (text !== "hang") throw new TypeError(text);
  while (existsSync(path)) Bun.sleepSync(1);
};
if (isMainThread && process.env["SLUICE_PROCESS"] !== undefined) setInterval(watch, 20).unref();
