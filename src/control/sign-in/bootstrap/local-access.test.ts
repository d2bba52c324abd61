import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalAccess, localAccessFile, readLocalAccess } from "./local-access.ts";

let dataDir: string;
const url = "http://127.0.0.1:8081";
const random = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);
const options = { url, pid: 1, startedAt: 0, random };

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "sluice-local-access-"));
});

afterEach(async () => {
  await rm(dataDir, { recursive: true });
});

test("the file has the address and a token of this process", async () => {
  const access = createLocalAccess({ ...options, dataDir });
  await access.write();
  const found = await readLocalAccess(dataDir);
  expect(found?.url).toBe(url);
  expect(access.isToken(found?.token ?? "")).toBe(true);
  expect(access.isToken(`${found?.token}x`)).toBe(false);
  expect(access.isToken("")).toBe(false);
});

test("only the owner may read the file, also when an open one was there before", async () => {
  const path = join(dataDir, localAccessFile);
  await writeFile(path, "{}", { mode: 0o644 });
  await createLocalAccess({ ...options, dataDir }).write();
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(dataDir)).toEqual([localAccessFile]);
});

test("each start has its own token, and the previous one is invalid", async () => {
  const first = createLocalAccess({ ...options, dataDir });
  await first.write();
  const old = await readLocalAccess(dataDir);
  const second = createLocalAccess({ ...options, dataDir });
  await second.write();
  expect(second.isToken(old?.token ?? "")).toBe(false);
});

test("a process removes its own file, but not that of its successor", async () => {
  const first = createLocalAccess({ ...options, dataDir });
  await first.write();
  const second = createLocalAccess({ ...options, dataDir });
  await second.write();
  await first.remove();
  expect(await readLocalAccess(dataDir)).toBeDefined();
  await second.remove();
  expect(await readdir(dataDir)).toEqual([]);
  await second.remove();
});

test("a missing or broken file reads as no running gateway", async () => {
  expect(await readLocalAccess(dataDir)).toBeUndefined();
  await writeFile(join(dataDir, localAccessFile), '{"url": 7}');
  expect(await readLocalAccess(dataDir)).toBeUndefined();
});

test("an unwritable directory is an error, and no file is left behind", async () => {
  await writeFile(join(dataDir, "file"), "");
  const access = createLocalAccess({ ...options, dataDir: join(dataDir, "file") });
  expect(access.write()).rejects.toThrow();
  expect(await readFile(join(dataDir, "file"), "utf8")).toBe("");
});
