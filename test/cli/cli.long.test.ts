import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiKeyPattern } from "../../src/domain/keys/api-key.ts";
import { streamOf } from "../support/bodies.ts";
import { commands } from "../../src/cli/command-list.ts";
import { runHere } from "./run-here.ts";
import {
  addressesIn,
  runSluice,
  startServing,
  type ServingProcess,
} from "../support/sluice-process.ts";

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

test("each start of the demo prints a link that signs in once", async () => {
  const seen = new Set<string>();
  for (let start = 0; start < 2; start += 1) {
    await using demo = await startDemo();
    await until(() => Promise.resolve(demo.text().includes("process.stdout.write")));
    const [, address = "", token = ""] = /(http\S+)\/#sign-in=(\w{43})/.exec(demo.text()) ?? [];
    expect(address).toBe(demo.adminUrl);
    const exchange = (): Promise<Response> =>
      fetch(`${demo.adminUrl}/admin/v1/session/link`, {
        method: "POST",
        headers: { origin: demo.adminUrl, "content-type": "application/json" },
        body: JSON.stringify({ token }),
      });
    const responses = await Promise.all([exchange(), exchange(), exchange()]);
    expect(responses.map(({ status }) => status).filter((status) => status === 401)).toHaveLength(
      2,
    );
    const cookie =
      responses
        .find(({ ok }) => ok)
        ?.headers.get("set-cookie")
        ?.split(";")[0] ?? "";
    const shown = await fetch(`${demo.adminUrl}/admin/v1/session`, { headers: { cookie } });
    expect(await shown.json()).toMatchObject({ user: { role: "operator" } });
    expect(demo.text()).not.toContain("one-time token");
    seen.add(token);
  }
  expect(seen.size).toBe(2);
});

/** A link that signs in without a password is only for this machine. */
const openAdmin = ["--data", "127.0.0.1:0", "--admin", "0.0.0.0:0"];

test("a demo that other machines reach tells a one-time token until there is an operator", async () => {
  {
    await using demo = await startServing(["--data-dir", folder, ...openAdmin]);
    await until(() => Promise.resolve(demo.text().includes("one-time token")));
    const [, token = ""] = /one-time token (\w{43})/.exec(demo.text()) ?? [];
    expect(demo.text()).toMatch(
      new RegExp(`\n  npx sluice users create you@\\S+ .* --data-dir ${folder}\n`),
    );
    const made = await fetch(`${demo.adminUrl}/admin/v1/bootstrap`, {
      method: "POST",
      headers: { origin: demo.adminUrl, "content-type": "application/json" },
      body: JSON.stringify({ token, email: "ada@example.com", password: "a long passphrase" }),
    });
    expect(made.status).toBe(201);
    expect(demo.text()).not.toContain("#sign-in=");
  }
  await using again = await startServing(["--data-dir", folder, ...openAdmin]);
  await until(() => Promise.resolve(again.text().includes("process.stdout.write")));
  expect(again.text()).not.toContain("one-time token");
});

test("secrets are piped in and out of a process: neither is in its arguments or its messages", async () => {
  const offline = ["--offline", "--data-dir", folder];
  const role = ["--role", "operator", "--password-file", "-"];
  const create = ["users", "create", "ada@example.com", ...role, ...offline];
  const made = await runSluiceWith("a long enough passphrase\n", create);
  expect(made.exitCode).toBe(0);
  expect(made.output + made.errors).not.toContain("passphrase");
  const set = ["users", "set-password", "ada@example.com", ...offline];
  expect((await runSluiceWith("another good passphrase", set)).exitCode).toBe(0);
  const leak = `see sk-slc_aaaaaaaa_${"b".repeat(49)}`;
  const checked = await runSluiceWith(leak, ["keys", "check-leak", ...offline]);
  expect(checked.output).toContain("not_a_key");
  const modes = ["sluice.db", "pepper"].map((name) => statSync(join(folder, name)).mode & 0o077);
  expect(modes).toEqual([0, 0]);
});

test("an export into a pipe that nobody reads ends well and says nothing", async () => {
  const main = join(import.meta.dir, "../../src/main.ts");
  const words = [process.execPath, main, "usage", "export", "--offline", "--data-dir", folder];
  const line = words.map((word) => `'${word}'`).join(" ");
  const child = Bun.spawn(["sh", "-c", `{ ${line}; echo "code $?" >&2; } | true`], {
    stdout: "ignore",
    stderr: "pipe",
  });
  expect(await new Response(child.stderr).text()).toBe("code 0\n");
});

async function runSluiceWith(input: string, commandLine: readonly string[]) {
  const main = join(import.meta.dir, "../../src/main.ts");
  const child = Bun.spawn([process.execPath, main, ...commandLine], {
    stdin: new Blob([input]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { output, errors, exitCode };
}

test("an audit that somebody altered is told by the exit code of its check", async () => {
  const offline = ["--offline", "--data-dir", folder];
  for (const name of ["One", "Two", "Three"]) {
    await runHere(["accounts", "create", name, ...offline]);
  }
  const before = await runHere(["audit", "verify", ...offline]);
  expect(before.exitCode).toBe(0);
  {
    using database = new Database(join(folder, "sluice.db"));
    database.run("DROP TRIGGER audit_is_never_changed");
    database.run("UPDATE audit SET actor_name = 'somebody else' WHERE sequence = 2");
  }
  const after = await runHere(["audit", "verify", ...offline]);
  expect(after.exitCode).toBe(1);
  expect(after.output).toContain("broken");
  const json = await runHere(["audit", "verify", "--json", ...offline]);
  expect(json.exitCode).toBe(1);
  expect(JSON.parse(json.output)).toMatchObject({ is_intact: false, problem: { sequence: 2 } });
});

test("a port that is taken is a clear failure, not a second server on it", async () => {
  await using demo = await startDemo();
  const { port } = new URL(demo.dataUrl);
  const taken = ["--data", `127.0.0.1:${port}`, "--admin", "127.0.0.1:0"];
  const second = await runSluice(["serve", "--data-dir", join(folder, "other"), ...taken]);
  expect(second.exitCode).toBe(1);
  expect(second.errors).toStartWith(`cannot start: cannot listen at http://127.0.0.1:${port}`);
  expect(second.errors).toContain("Other addresses: --data HOST:PORT");
  expect(second.output).toBe("");
  // The other listener would have served before.
  const { port: adminPort } = new URL(demo.adminUrl);
  const free = ["--data", "127.0.0.1:0", "--admin", `127.0.0.1:${adminPort}`];
  const third = await runSluice(["serve", "--data-dir", join(folder, "third"), ...free]);
  const problem = `cannot start: cannot listen at http://127.0.0.1:${adminPort}`;
  expect([third.exitCode, third.errors.startsWith(problem)]).toEqual([1, true]);
  expect(existsSync(join(folder, "third", "spool"))).toBe(false);
});

test("one address for both listeners is a mistake of the command line", async () => {
  const options = ["serve", "--data-dir", join(folder, "one-address"), "--data", "127.0.0.1:8081"];
  for (const [more, other] of [
    [[], "--admin"],
    [["--admin", "127.0.0.1:8081"], "--data"],
  ] as const) {
    const { exitCode, output, errors } = await runSluice([...options, ...more]);
    expect([exitCode, output]).toEqual([2, ""]);
    expect(errors).toContain(`the same address, 127.0.0.1:8081; name another one with ${other} `);
  }
});

test("the demo prints its banner first, and no line of the log", async () => {
  const fresh = mkdtempSync(join(tmpdir(), "sluice-banner-"));
  const demo = await startServing(["--data-dir", fresh, ...anyPort]);
  await until(() => Promise.resolve(demo.text().includes("process.stdout.write")));
  demo.signal("SIGINT");
  expect(await demo.exited).toBe(0);
  const text = demo.text();
  expect(text).toStartWith("Sluice demo:");
  expect(text.indexOf("API key")).toBeLessThan(text.indexOf("curl -N"));
  expect(text).not.toMatch(/^\d{4}-\d\d-\d\dT/m);
  rmSync(fresh, { recursive: true, force: true });
});

test("a second gateway on a data directory says which process has it, and what to do", async () => {
  await using first = await startDemo();
  const second = await runSluice(["serve", "--data-dir", folder, ...anyPort]);
  expect(second.exitCode).toBe(1);
  const told = /process (\d+) is using the data directory (\S+) since (\S+)/.exec(second.errors);
  expect(Number(told?.[1])).toBe(first.pid);
  expect(told?.[2]).toBe(folder);
  expect(Date.parse(told?.[3] ?? "")).toBeLessThanOrEqual(Date.now());
  expect(second.errors).toContain("--data-dir");
});

test("of two gateways that start on a data directory at the same moment one is refused", async () => {
  const fresh = mkdtempSync(join(tmpdir(), "sluice-twice-"));
  const commandLine = ["--data-dir", fresh, ...anyPort];
  // A first start would find out by the pepper that another one makes.
  await (await startServing(commandLine))[Symbol.asyncDispose]();
  const starts = await Promise.allSettled([1, 2].map(() => startServing(commandLine)));
  const serving = starts.flatMap((start) => (start.status === "fulfilled" ? start.value : []));
  const refused = starts.flatMap((start) =>
    start.status === "rejected" ? String(start.reason) : [],
  );
  await Promise.all(serving.map((each) => each[Symbol.asyncDispose]()));
  rmSync(fresh, { recursive: true, force: true });
  expect([serving.length, refused.length]).toEqual([1, 1]);
  expect(refused[0]).toContain("is using the data directory");
}, 180_000);

test("a simulator on a taken port says so and ends", async () => {
  const holder = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  const result = await runSluice(["simulator", "--listen", `127.0.0.1:${holder.port}`]);
  holder.stop(true);
  expect(result.exitCode).toBe(1);
  expect(result.output + result.errors).toContain(String(holder.port));
});

test("npm's own process hands the signal to end on to the gateway", async () => {
  const child = Bun.spawn(["npm", "start", "--", "--data-dir", folder, ...anyPort], {
    stdout: "pipe",
    stderr: "pipe",
  });
  let text = "";
  const decoder = new TextDecoder();
  const collecting = (async () => {
    for await (const chunk of child.stdout) text += decoder.decode(chunk, { stream: true });
  })();
  await until(() => Promise.resolve(addressesIn(text) !== undefined));
  child.kill("SIGTERM");
  // Ends with the last process that has the stream.
  await collecting;
  await child.exited;
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
  const asOption = await runSluice(["check-config", "--config", path]);
  expect([asOption.exitCode, asOption.errors]).toEqual([1, checked.errors]);
  expect((await runSluice(["check-config", "--config", path, path])).exitCode).toBe(2);
  const served = await runSluice(["serve", "--config", path]);
  expect(served.exitCode).toBe(1);
  expect(served.errors).toContain("base_url");
});

test("a good configuration that leaves the admin listener open is warned of", async () => {
  const path = join(folder, "open.yaml");
  await Bun.write(
    path,
    `listen: { admin: 0.0.0.0:8081 }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { up: { kind: openai, base_url: http://127.0.0.1:8000/v1 } }
models: { a: { kind: chat, context_window: 1000, targets: [{ upstream: up, model: a }] } }
`,
  );
  const checked = await runSluice(["check-config", path]);
  expect([checked.exitCode, checked.output]).toEqual([0, `${path}: good\n`]);
  expect(checked.errors).toContain("warning: listen.admin: 0.0.0.0");
  const asJson = await runSluice(["check-config", path, "--json"]);
  expect(JSON.parse(asJson.output)).toEqual({
    ok: true,
    problems: [],
    warnings: [expect.stringContaining("admin.public_url")],
    notices: [expect.stringContaining("not priced: up/a")],
  });
});

test.each([
  ["no command", [], 2],
  ["an unknown command", ["bogus"], 2],
  ["an unknown option", ["serve", "--bogus"], 2],
  ["an argument too many", ["serve", "extra"], 2],
  ["an address that is none", ["serve", "--data", "nowhere"], 2],
  ["a missing file", ["check-config", "no-such-file.yaml"], 1],
  ["no file to check", ["check-config"], 2],
  ["a verb that is none", ["keys", "bogus"], 2],
  ["no verb where one is needed", ["accounts"], 2],
  ["an unknown option of a verb", ["keys", "list", "--bogus"], 2],
  ["an argument too many of a verb", ["users", "list", "extra"], 2],
  ["no gateway to ask", ["keys", "list", "--data-dir", "no-such-folder"], 1],
] as const)("%s is refused with a message and its exit code", async (_, commandLine, exitCode) => {
  const result = await runSluice(commandLine);
  expect(result.exitCode).toBe(exitCode);
  expect((result.errors + result.output).length).toBeGreaterThan(20);
  expect(result.errors).not.toContain("    at ");
});

test("every command and every verb has help with examples, and a version", async () => {
  for (const { name } of commands) {
    const help = await runHere([name, "--help"]);
    expect(help.exitCode).toBe(0);
    expect(help.output.toLowerCase()).toContain(`usage: sluice ${name}`);
    expect((await runHere([name, "--version"])).output).toStartWith("0.0.0 (commit ");
    for (const verb of verbsIn(help.output)) {
      const more = await runHere([name, verb, "--help"]);
      expect(more.output).toContain(`Usage: sluice ${name} ${verb}`);
      expect(more.output).toMatch(/Examples:\n {2}(?:[a-z -]+ \| )?npx sluice /);
    }
  }
  expect((await runSluice(["--version"])).output).toMatch(
    /^\d+\.\d+\.\d+ \(commit [0-9a-f]{12}\)\n$/,
  );
  const overview = (await runSluice(["--help"])).output;
  for (const { name } of commands) expect(overview).toContain(`  ${name} `);
});

test("words that are nearly commands are answered with what was meant", async () => {
  const errorsOf = async (...words: string[]): Promise<string> => {
    const { exitCode, errors } = await runHere(words);
    expect(exitCode).toBe(2);
    return errors;
  };
  expect(await errorsOf("key", "list")).toContain("unknown command 'key'\n(Did you mean keys?)");
  expect(await errorsOf("keys", "lst")).toContain("(Did you mean list?)");
  const help = await runHere(["keys", "rotate", "--help"]);
  expect(await runHere(["help", "keys", "rotate"])).toEqual(help);
  expect((await runHere(["help"])).output).toContain("Commands:\n");
  expect((await runHere(["version"])).output).toStartWith("0.0.0 (commit ");
});

test("every example of the help is a command line that makes sense", async () => {
  const examples = new Set<string>();
  for (const { name } of commands) {
    const help = await runHere([name, "--help"]);
    const texts = [help.output];
    for (const verb of verbsIn(help.output)) {
      texts.push((await runHere([name, verb, "--help"])).output);
    }
    for (const text of texts) {
      for (const line of examplesIn(text)) examples.add(line);
    }
  }
  expect(examples.size).toBeGreaterThan(45);
  const config = join(folder, "example.yaml");
  await Bun.write(config, exampleConfig);
  for (const example of examples) {
    const needsGateway = !example.startsWith("prices import");
    const hasPlace = example.includes("--config") || !needsGateway;
    const place = hasPlace ? [] : ["--config", config, "--data-dir", folder];
    const isOffline = needsGateway && !/--url|--offline/.test(example);
    const line = [...splitLine(example), ...place, ...(isOffline ? ["--offline"] : [])];
    const { exitCode, errors } = await runHere(line, { input: "a long enough passphrase\n" });
    // What the examples name is not there; but nothing of it is a mistake.
    expect([example, exitCode === 2 ? errors : ""]).toEqual([example, ""]);
  }
});

/** Has what the examples name. */
const exampleConfig = `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { one: { kind: openai, base_url: "http://127.0.0.1:1" } }
models:
  alpha-sonnet-4:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: one, model: m }]
`;

/** The first words below the heading. */
function verbsIn(help: string): string[] {
  const [, verbs = ""] = /\nVerbs:\n([^]*?)\n\n/.exec(help) ?? [];
  return [...verbs.matchAll(/^ {2}(\S+)/gm)].map(([, verb = ""]) => verb);
}

/** What each line of the examples hands to the program; all of them must start it. */
function examplesIn(help: string): string[] {
  const [, block = ""] = /\nExamples:\n([^]*?)\n\n/.exec(help) ?? [];
  const lines = block === "" ? [] : block.split("\n");
  return lines.map((line) => {
    const [, words] = /^ {2}(?:git log -p \| )?npx sluice (.*)$/.exec(line) ?? [];
    if (words === undefined) throw new Error(`this would not run: ${line}`);
    return words;
  });
}

/** As a shell would, up to a redirection. */
function splitLine(line: string): string[] {
  const words = (line.split(" > ")[0] ?? "").matchAll(/"([^"]*)"|(\S+)/g);
  return [...words].map(([, quoted, plain]) => quoted ?? plain ?? "");
}
