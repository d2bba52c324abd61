/**
 * Loaded before the program: a worker then throws, where nobody catches it, what the file that
 * SLUICE_TEST_BOMB names holds, as soon as that exists.
 */
import { existsSync, readFileSync } from "node:fs";

const path = process.env["SLUICE_TEST_BOMB"] ?? "";
const watch = (): void => {
  if (existsSync(path)) throw new TypeError(readFileSync(path, "utf8"));
};
if (process.env["SLUICE_WORKER"] !== undefined) setInterval(watch, 20).unref();
