import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiKeyPattern } from "../../src/domain/api-key.ts";
import { streamOf } from "../support/bodies.ts";
import { runSluice, startServing, type ServingProcess } from "../support/sluice-process.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-cli-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
const startDemo = (): Promise<ServingProcess> => startServing(["--data-dir", folder, ...anyPort]);

function keyIn(text: string): string {
  return apiKeyPattern.exec(text)?.[0] ?? "";
}

function authorized(key: string): { headers: Record<string, string> } {
  return { headers: { authorization: `Bearer ${key}`, "content-type": "application/json" } };
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error("it never happened");
    await Bun.sleep(20);
  }
}

test("the demo prints a key once, serves every alias with it, and keeps only a digest", async () => {
  let key: string;
  {
    await using demo = await startDemo();
    await until(() => Promise.resolve(demo.text().includes("process.stdout.write")));
    key = keyIn(demo.text());
    expect(demo.text()).toContain(`-H "Authorization: Bearer ${key}"`);
    const list = await fetch(`${demo.dataUrl}/v1/models`, authorized(key));
    const { data } = (await list.json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual([
      "alpha-sonnet-4",
      "alpha-haiku-3.5",
      "alpha-sonnet-3.5",
      "beta-3-70b",
      "beta-3-405b",
      "gamma-8x7b",
      "gamma-large",
      "embed-text-v2",
    ]);
    for (const { id } of data) {
      const isChat = id !== "embed-text-v2";
      const body = isChat ? { messages: [{ role: "user", content: "Hello!" }] } : { input: "hi" };
      const path = isChat ? "/v1/chat/completions" : "/v1/embeddings";
      const init = { method: "POST", body: JSON.stringify({ model: id, ...body }) };
      const response = await fetch(`${demo.dataUrl}${path}`, { ...init, ...authorized(key) });
      expect([id, response.status]).toEqual([id, 200]);
    }
  }
  await using again = await startDemo();
  await until(() => Promise.resolve(again.text().includes("process.stdout.write")));
  expect(keyIn(again.text())).toBe("");
  expect((await fetch(`${again.dataUrl}/v1/models`, authorized(key))).status).toBe(200);
  const files = ["sluice.db", "sluice.db-wal", "pepper"].map((name) => join(folder, name));
  for (const file of files) expect(readFileSync(file, "latin1")).not.toContain(key.slice(16));
});

test("the curl line of the demo streams an answer when it is pasted", async () => {
  await using demo = await startDemo();
  await until(() => Promise.resolve(demo.text().includes("process.stdout.write")));
  const line =
    demo
      .text()
      .split("\n")
      .find((candidate) => candidate.includes("curl -N")) ?? "";
  const child = Bun.spawn(["sh", "-c", line], { stdout: "pipe", stderr: "ignore" });
  const { chunks, isDone } = await streamOf(new Response(child.stdout));
  expect(chunks.length).toBeGreaterThan(5);
  expect(isDone).toBe(true);
});

test("keys are created, listed and revoked beside a running gateway, which follows", async () => {
  await using demo = await startDemo();
  const inFolder = ["--data-dir", folder, "--json"];
  const created = await runSluice([
    "keys",
    "create",
    "--application",
    "search",
    "--plan",
    "pilot",
    ...inFolder,
  ]);
  expect(created.exitCode).toBe(0);
  const { id, api_key: key } = JSON.parse(created.output) as Record<string, string>;
  const statusWith = async (): Promise<number> =>
    (await fetch(`${demo.dataUrl}/v1/models`, authorized(key ?? ""))).status;
  await until(async () => (await statusWith()) === 200);

  const listed = await runSluice(["keys", "list", ...inFolder]);
  const keys = JSON.parse(listed.output) as Record<string, unknown>[];
  expect(keys[0]).toMatchObject({ id, application: "search", plan: "pilot", revoked_at: null });
  expect(listed.output).not.toContain(key ?? "");
  expect(keys[0]?.["prefix"]).toBe((key ?? "").slice(0, 15));

  const revoked = await runSluice(["keys", "revoke", key ?? "", ...inFolder]);
  expect(JSON.parse(revoked.output)).toEqual({ id, is_revoked: true });
  await until(async () => (await statusWith()) === 401);
});

test("usage sums up what was called", async () => {
  await using demo = await startDemo();
  await until(() => Promise.resolve(demo.text().includes("process.stdout.write")));
  const body = JSON.stringify({ model: "embed-text-v2", input: ["one text", "two texts"] });
  const init = { method: "POST", body, ...authorized(keyIn(demo.text())) };
  await fetch(`${demo.dataUrl}/v1/embeddings`, init);
  const read = (): ReturnType<typeof runSluice> =>
    runSluice(["usage", "--since", "1h", "--json", "--data-dir", folder]);
  await until(async () => (JSON.parse((await read()).output) as unknown[]).length > 0);
  const [row] = JSON.parse((await read()).output) as Record<string, unknown>[];
  expect(row).toMatchObject({ application: "demo", model: "embed-text-v2", calls: 1 });
  const table = await runSluice(["usage", "--data-dir", folder]);
  expect(table.output).toContain("APPLICATION");
});

test("a port that is taken is a clear failure, not a second server on it", async () => {
  await using demo = await startDemo();
  const { port } = new URL(demo.dataUrl);
  const taken = ["--data", `127.0.0.1:${port}`, "--admin", "127.0.0.1:0"];
  const second = await runSluice(["serve", "--data-dir", folder, ...taken]);
  expect(second.exitCode).toBe(1);
  expect(second.errors).toContain(port);
  expect(second.errors).toContain("--data");
});

test("a simulator on a taken port says so and ends", async () => {
  const holder = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  const result = await runSluice(["simulator", "--listen", `127.0.0.1:${holder.port}`]);
  holder.stop(true);
  expect(result.exitCode).toBe(1);
  expect(result.output + result.errors).toContain(String(holder.port));
});

test("whoever is neither id nor key cannot be revoked, and is not repeated", async () => {
  const secret = `sk-slc_aaaaaaaa_${"b".repeat(49)}`;
  const result = await runSluice(["keys", "revoke", secret, "--data-dir", folder]);
  expect(result.exitCode).toBe(1);
  expect(result.errors).not.toContain("bbbb");
});

test("npm's own process hands the signal to end on to the gateway", async () => {
  const child = Bun.spawn(["npm", "start", "--", "--data-dir", folder, ...anyPort], {
    stdout: "pipe",
    stderr: "pipe",
  });
  let text = "";
  const decoder = new TextDecoder();
  const collecting = (async () => {
    for await (const chunk of child.stderr) text += decoder.decode(chunk, { stream: true });
  })();
  await until(() => Promise.resolve(text.includes("listening")));
  child.kill("SIGTERM");
  await until(() => Promise.resolve(text.includes("stopped")));
  await child.exited;
  await collecting;
});

test("a database whose pepper was lost is told at the start", async () => {
  {
    await using demo = await startDemo();
    await until(() => Promise.resolve(demo.text().includes("process.stdout.write")));
  }
  rmSync(join(folder, "pepper"));
  await using again = await startDemo();
  await until(() => Promise.resolve(again.text().includes("a new pepper was made")));
});

test("a bad configuration is told with all its problems, and nothing starts", async () => {
  const path = join(folder, "bad.yaml");
  await Bun.write(path, "environmentz: []\nupstreams: { a: { kind: openai } }\n");
  const checked = await runSluice(["check-config", path]);
  expect(checked.exitCode).toBe(1);
  expect(checked.errors).toContain("environments");
  expect(checked.errors).toContain("base_url");
  const asJson = await runSluice(["check-config", path, "--json"]);
  expect(JSON.parse(asJson.output)).toMatchObject({ ok: false });
  const served = await runSluice(["serve", "--config", path]);
  expect(served.exitCode).toBe(1);
  expect(served.errors).toContain("base_url");
});

test.each([
  ["no command", [], 2],
  ["an unknown command", ["bogus"], 2],
  ["an unknown option", ["serve", "--bogus"], 2],
  ["an argument too many", ["serve", "extra"], 2],
  ["an address that is none", ["serve", "--data", "nowhere"], 2],
  ["a missing file", ["check-config", "no-such-file.yaml"], 1],
  ["no file to check", ["check-config"], 2],
  ["an unknown plan", ["keys", "create", "--application", "a", "--plan", "gold"], 2],
  [
    "a custom plan without limits",
    ["keys", "create", "--application", "a", "--plan", "enterprise"],
    2,
  ],
  [
    "an unknown environment",
    ["keys", "create", "--application", "a", "--plan", "pro", "--environment", "x"],
    2,
  ],
  ["a key without a name", ["keys", "create", "--plan", "pro"], 2],
  ["an unknown key", ["keys", "revoke", "key_nobody"], 1],
  ["a time that is none", ["usage", "--since", "soon"], 2],
] as const)("%s is refused with a message and its exit code", async (_, commandLine, exitCode) => {
  const needsFolder = ["keys", "usage"].includes(commandLine[0] ?? "");
  const result = await runSluice([...commandLine, ...(needsFolder ? ["--data-dir", folder] : [])]);
  expect(result.exitCode).toBe(exitCode);
  expect((result.errors + result.output).length).toBeGreaterThan(20);
  expect(result.errors).not.toContain("    at ");
});

test("every command has help and a version", async () => {
  for (const command of ["serve", "check-config", "keys", "usage", "simulator"]) {
    const help = await runSluice([command, "--help"]);
    expect(help.exitCode).toBe(0);
    expect(help.output.toLowerCase()).toContain(`usage: sluice ${command}`);
    expect((await runSluice([command, "--version"])).output).toMatch(/^\d+\.\d+\.\d+\n$/);
  }
  expect((await runSluice(["--version"])).output).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect((await runSluice(["--help"])).output).toContain("check-config");
});
