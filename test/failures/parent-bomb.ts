/**
 * Loaded before the program: makes a worker throw an uncaught exception with the content of the
 * file SLUICE_TEST_BOMB as soon as that exists.
 */
import { existsSync, readFileSync } from "node:fs";

const path = process.env["SLUICE_TEST_BOMB"] ?? "";
const watch = (): void => {
  if (existsSync(path)) throw new TypeError(readFileSync(path, "utf8"));
};
if (process.env["SLUICE_WORKER"] !== undefined) setInterval(watch, 20).unref();
