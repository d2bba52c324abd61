import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { askSiblings, serveSiblings, type SiblingPages } from "./siblings.ts";

let dataDir: string;
const served: Disposable[] = [];
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "sluice-siblings-"));
});
afterEach(() => {
  for (const socket of served.splice(0)) socket[Symbol.dispose]();
  rmSync(dataDir, { recursive: true });
});

function serve(number: number, pages: SiblingPages): Disposable {
  const socket = serveSiblings({ dataDir, number }, pages);
  served.push(socket);
  return socket;
}

/** What the process with this number hears from all others. */
async function ask(number: number, path: string): Promise<ReadonlySet<unknown>> {
  return new Set(await askSiblings({ dataDir, number }, path));
}

const socketOf = (number: number): string =>
  join(dataDir, "processes", `${number}-${process.pid}.sock`);

test("a process hears all others and not itself, whether or not it has a socket", async () => {
  expect(await ask(1, "/name")).toEqual(new Set());
  for (const number of [1, 2, 3]) serve(number, { "/name": () => `process ${number}` });
  expect(await ask(1, "/name")).toEqual(new Set(["process 2", "process 3"]));
  expect(await ask(4, "/name")).toEqual(new Set(["process 1", "process 2", "process 3"]));
});

test("a question has parameters, and its answer may take a while", async () => {
  serve(2, {
    "/sum": async (query) => ({ sum: Number(query.get("one")) + Number(query.get("two")) }),
  });
  const query = new URLSearchParams({ one: "1", two: "2" });
  expect(await ask(1, `/sum?${query.toString()}`)).toEqual(new Set([{ sum: 3 }]));
});

test("who has nothing at a path, or fails, is left out", async () => {
  serve(2, { "/name": () => "process 2", "/nothing": () => undefined });
  serve(3, {
    "/name": () => {
      throw new Error("no");
    },
  });
  expect(await ask(1, "/name")).toEqual(new Set(["process 2"]));
  for (const path of ["/nothing", "/other", "/toString"]) {
    expect(await ask(1, path)).toEqual(new Set());
  }
});

test("a process that hangs is left out, and the others are heard", async () => {
  serve(2, { "/name": () => new Promise(() => undefined) });
  serve(3, { "/name": () => "process 3" });
  expect(await ask(1, "/name")).toEqual(new Set(["process 3"]));
});

test("sockets are for one user alone, and go with their process", async () => {
  const socket = serve(2, { "/name": () => "process 2" });
  expect(statSync(socketOf(2)).mode & 0o777).toBe(0o600);
  expect(statSync(join(dataDir, "processes")).mode & 0o777).toBe(0o700);
  socket[Symbol.dispose]();
  expect(existsSync(socketOf(2))).toBe(false);
  expect(await ask(1, "/name")).toEqual(new Set());
});

test("the socket of a killed process is removed by who asks it", async () => {
  serve(2, { "/name": () => "process 2" });
  const folder = JSON.stringify(join(dataDir, "processes"));
  const script = `
    import { serialize } from "node:v8";
    const unix = ${folder} + "/3-" + process.pid + ".sock";
    Bun.serve({ unix, fetch: () => new Response(serialize("process 3")) })`;
  const other = Bun.spawn([process.execPath, "-e", script]);
  while ((await ask(1, "/name")).size < 2) await Bun.sleep(10);
  other.kill("SIGKILL");
  await other.exited;
  expect(await ask(1, "/name")).toEqual(new Set(["process 2"]));
  expect(readdirSync(join(dataDir, "processes"))).toEqual([`2-${process.pid}.sock`]);
});

test("what an earlier process of the same number and id left is replaced", async () => {
  serve(1, {});
  writeFileSync(socketOf(2), "");
  serve(2, { "/name": () => "process 2" });
  expect(await ask(1, "/name")).toEqual(new Set(["process 2"]));
});
