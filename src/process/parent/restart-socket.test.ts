import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { acceptRestarts, askForRestart, hasParent } from "./restart-socket.ts";

let folder: string;
let path: string;
let restarts: Disposable | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-restart-"));
  path = join(folder, "parent.sock");
});
afterEach(() => {
  restarts?.[Symbol.dispose]();
  rmSync(folder, { recursive: true });
});

/** The restarts of a gateway that serves, and the lines of its log. */
function serving(restart: () => Promise<string | undefined>): readonly string[] {
  const lines: string[] = [];
  const logger = {
    log: (level: string, message: string) => void lines.push(`${level} ${message}`),
  };
  restarts = acceptRestarts(folder, { restart, logger: () => logger });
  return lines;
}

test.each([
  [undefined, "info restarted"],
  ["the new process ended before it served", "error the restart failed"],
])("who asks for a restart gets its outcome: %p", async (outcome, line) => {
  const lines = serving(() => Promise.resolve(outcome));
  expect(await askForRestart(folder)).toBe(outcome);
  expect(lines).toEqual(["info restarting", line]);
});

test("only its own user may ask a gateway, from when it serves until it ends", async () => {
  expect(await hasParent(folder)).toBe(false);
  serving(() => Promise.resolve(undefined));
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(await hasParent(folder)).toBe(true);
  restarts?.[Symbol.dispose]();
  expect(await hasParent(folder)).toBe(false);
  expect(existsSync(path)).toBe(false);
});

test("a look whether a gateway runs restarts nothing", async () => {
  const lines = serving(() => Promise.resolve(undefined));
  await hasParent(folder);
  const others = ["GET", "HEAD", "OPTIONS"].map((method) =>
    fetch("http://parent/restart", { unix: path, method }),
  );
  await Promise.all(others);
  expect(lines).toEqual([]);
});

test("a socket that a killed gateway left is replaced", async () => {
  writeFileSync(path, "");
  serving(() => Promise.resolve(undefined));
  expect(await askForRestart(folder)).toBeUndefined();
});

test("a gateway that cannot listen serves on and says so", async () => {
  const lines: string[] = [];
  const logger = {
    log: (level: string, message: string) => void lines.push(`${level} ${message}`),
  };
  const restart = (): Promise<undefined> => Promise.resolve(undefined);
  restarts = acceptRestarts(join(folder, "missing"), { restart, logger: () => logger });
  expect(lines).toEqual(["warn `sluice restart` will not reach this gateway"]);
});

test("who asks where nobody listens is told so", async () => {
  expect(await askForRestart(folder).catch((error: unknown) => error)).toBeInstanceOf(Error);
});

test("who asks a gateway that ends meanwhile is told so", async () => {
  serving(() => {
    restarts?.[Symbol.dispose]();
    return new Promise(() => undefined);
  });
  expect(await askForRestart(folder)).toBe("the gateway ended meanwhile");
});
