import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalAccess, localAccessFile, readLocalAccess } from "./local-access.ts";

let dataDir: string;
const url = "http://127.0.0.1:8081";
const random = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);
const options = { pid: 1, random };
const leader = { url, startedAt: 0 };

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "sluice-local-access-"));
});

afterEach(async () => {
  await rm(dataDir, { recursive: true });
});

test("the file has the address and a token of this process", async () => {
  const access = new LocalAccess({ ...options, dataDir });
  await access.write(leader);
  const found = readLocalAccess(dataDir);
  expect(found?.url).toBe(url);
  expect(access.isToken(found?.token ?? "")).toBe(true);
  expect(access.isToken(`${found?.token}x`)).toBe(false);
  expect(access.isToken("")).toBe(false);
});

test("only the owner may read the file, also when an open one was there before", async () => {
  const path = join(dataDir, localAccessFile);
  await writeFile(path, "{}", { mode: 0o644 });
  await new LocalAccess({ ...options, dataDir }).write(leader);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(dataDir)).toEqual([localAccessFile]);
});

test("each start of a gateway has its own token, and the previous one is invalid", async () => {
  const first = new LocalAccess({ ...options, dataDir });
  await first.write(leader);
  const old = readLocalAccess(dataDir);
  const second = new LocalAccess({ ...options, pid: 2, dataDir });
  await second.write(leader);
  expect(second.isToken(old?.token ?? "")).toBe(false);
});

test("the token stays valid when another process of the gateway leads", async () => {
  await new LocalAccess({ ...options, dataDir }).write(leader);
  const before = readLocalAccess(dataDir);
  const second = new LocalAccess({ ...options, dataDir });
  expect(second.isToken(before?.token ?? "")).toBe(true);
  await second.write({ url: "http://127.0.0.1:8082", startedAt: 1 });
  expect(readLocalAccess(dataDir)).toMatchObject({
    url: "http://127.0.0.1:8082",
    token: before?.token ?? "",
  });
});

test("a process removes its own file, but not that of its successor", async () => {
  const first = new LocalAccess({ ...options, dataDir });
  await first.write(leader);
  const second = new LocalAccess({ ...options, dataDir });
  await second.write({ url, startedAt: 1 });
  await first.remove();
  expect(readLocalAccess(dataDir)).toBeDefined();
  await second.remove();
  expect(await readdir(dataDir)).toEqual([]);
  await second.remove();
});

test("a missing or broken file reads as no running gateway", async () => {
  expect(readLocalAccess(dataDir)).toBeUndefined();
  await writeFile(join(dataDir, localAccessFile), '{"url": 7}');
  expect(readLocalAccess(dataDir)).toBeUndefined();
});

test("an unwritable directory is an error, and no file is left behind", async () => {
  await writeFile(join(dataDir, "file"), "");
  const access = new LocalAccess({ ...options, dataDir: join(dataDir, "file") });
  expect(access.write(leader)).rejects.toThrow();
  expect(await readFile(join(dataDir, "file"), "utf8")).toBe("");
});
