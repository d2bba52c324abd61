import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { Secret } from "../../src/domain/keys/secret.ts";
import { testNeeding } from "../support/requirement.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";
import { createFolder, idsOf, type JsonRecord, type SluiceFolder } from "./sluice-folder.ts";

let folder: SluiceFolder;
let gateway: ServingProcess;
beforeAll(async () => {
  folder = createFolder({ isOffline: false });
  const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  gateway = await startServing(["--data-dir", folder.path, ...anyPort]);
  await until(() => Promise.resolve(gateway.text().includes("process.stdout.write")));
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error("it never happened");
    await Bun.sleep(20);
  }
}

interface IssuedKey {
  readonly key: JsonRecord;
  readonly api_key: string;
}

async function createKey(...options: string[]): Promise<IssuedKey> {
  const place = options.includes("--application") ? [] : ["--application", "demo"];
  const issued = await folder.json("keys", "create", ...place, ...options);
  return issued as unknown as IssuedKey;
}

function call(key: string): Promise<Response> {
  return fetch(`${gateway.dataUrl}/v1/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "embed-text-v2", input: ["one text", "two texts"] }),
  });
}

function idOf(response: Response): string {
  return response.headers.get("x-request-id") ?? "";
}

/** The leader hears of an answer after its caller. */
function untilExplained(answer: Response): Promise<void> {
  return until(async () => (await folder.run("explain", idOf(answer))).exitCode === 0);
}

test("a new key works at once, a rotated one under both secrets, a revoked one no more", async () => {
  const { key, api_key: first } = await createKey("--plan", "pilot");
  const id = String(key["id"]);
  expect((await call(first)).status).toBe(200);
  const rotated = await folder.run("keys", "rotate", id);
  const second = rotated.output.trim();
  expect([(await call(first)).status, (await call(second)).status]).toEqual([200, 200]);
  await folder.run("keys", "rotate", id, "--compromised");
  expect([(await call(first)).status, (await call(second)).status]).toEqual([401, 401]);
  const revoked = await folder.run("keys", "revoke", id);
  expect(revoked.errors).toContain("is revoked.\n1 of 1 process has applied it.\n");
  expect(await folder.json("keys", "revoke", id)).toMatchObject({
    applied: { processes: 1, of: 1, silent: 0 },
  });
  const list = ["keys", "list", "--application", "demo", "--status", "inactive"];
  expect(idsOf(await folder.json(...list))).toContain(id);
});

test("what was called is in the totals, the series, the list and the export", async () => {
  const { key, api_key: text } = await createKey("--plan", "pilot");
  const id = String(key["id"]);
  const called = await call(text);
  expect(called.status).toBe(200);
  const read = async (...verb: string[]): Promise<JsonRecord[]> =>
    (await folder.json("usage", ...verb, "--key", id, "--since", "1h"))["data"] as JsonRecord[];
  await until(async () => (await read("totals")).length > 0);
  expect(await read("totals", "--by", "application,model,status")).toMatchObject([
    {
      group: { application: key["application_id"], model: "embed-text-v2", status: 200 },
      calls: 1,
      failed_calls: 0,
    },
  ]);
  expect(await read("series", "--step", "minute")).toMatchObject([{ calls: 1 }]);
  expect(await read("calls", "--outcome", "completed")).toMatchObject([{ id: idOf(called) }]);
  expect(await read("calls", "--outcome", "failed")).toEqual([]);
  const table = await folder.run("usage", "--since", "1h", "--application", "demo");
  expect(table.output).toMatch(new RegExp(`\\n${id} +demo +embed-text-v2 +1 +0 `));
  const point = await folder.run("usage", "series", "--key", text.slice(0, 15), "--by", "model");
  expect(point.output).toContain("embed-text-v2");
  const csv = await folder.run("usage", "export", "--key", id);
  expect(csv.output.split("\r\n")).toHaveLength(3);
  expect(csv.output).toContain(idOf(called));
  const lines = await folder.run("usage", "export", "--key", id, "--format", "ndjson");
  expect(JSON.parse(lines.output)).toMatchObject({ id: idOf(called), key_id: id });
});

test("a statement names an account, adds up, and calls are priced again", async () => {
  const { api_key: text } = await createKey("--plan", "pilot");
  await untilExplained(await call(text));
  const month = new Date().toISOString().slice(0, 7);
  const { data } = await folder.json("accounts", "list");
  const name = String((data as JsonRecord[])[0]?.["name"]);
  const shown = await folder.run("statement", name, "--month", month);
  expect(shown.exitCode).toBe(0);
  expect(shown.output).toMatch(/^TOTAL .*\d$/m);
  const csv = await folder.run("statement", name, "--month", month, "--format", "csv");
  expect(csv.output).toStartWith("model,item,tokens,cost_usd\r\n");
  expect(csv.output).toMatch(/,total,,\d+\.\d{9}\r\n/);
  expect((await folder.run("statement", name, "--month", "2026-13")).exitCode).not.toBe(0);
  const dry = await folder.json("prices", "reprice", "--since", "1h", "--dry-run");
  expect(dry).toMatchObject({ dry_run: true, price_version: 1 });
});

test("tables of usage have names, a line for all groups, and say when groups are left out", async () => {
  // Calls of other tests may reach the ledger between two commands.
  const place = ["--account", "Demo", "--environment", "local"];
  expect((await folder.run("applications", "create", "tables", ...place)).exitCode).toBe(0);
  const ids: string[] = [];
  for (const plan of ["pilot", "standard"]) {
    const { key, api_key: text } = await createKey("--plan", plan, "--application", "tables");
    expect([(await call(text)).status, (await call(text)).status]).toEqual([200, 200]);
    ids.push(String(key["id"]));
  }
  const ofTest = ["--since", "1h", "--application", "tables"];
  const read = async (...verb: string[]): Promise<JsonRecord[]> =>
    (await folder.json("usage", ...verb, ...ofTest))["data"] as JsonRecord[];
  await until(async () => {
    const found = await Promise.all(ids.map((id) => read("totals", "--by", "", "--key", id)));
    return found.every(([sum]) => sum?.["calls"] === 2);
  });
  const report = ["usage", ...ofTest, "--limit", "1", "--by"];
  for (const verb of [report, report.toSpliced(1, 0, "series")]) {
    const one = await folder.run(...verb, "key");
    const lines = one.output.trim().split("\n");
    expect(lines[0]).toMatch(/KEY +NAME +CALLS/);
    expect(new Set(one.output.match(/key_\w+/g)).size).toBe(1);
    expect(lines.at(-1)).toMatch(/^TOTAL +4 /);
    expect(one.errors).toStartWith("There may be more groups than 1: raise --limit");
  }
  const named = await folder.run("usage", ...ofTest, "--by", "account,application");
  expect(named.output).toMatch(/\nacct_\w+ +Demo +app_\w+ +tables +4 /);
  expect(named.errors).toBe("");
  expect((await folder.run("usage", "--limit", "1001")).exitCode).toBe(2);
});

test("the configuration in use is shown, with its sources and without its secrets", async () => {
  const { output } = await folder.run("configuration");
  expect(output).toMatch(/\nupstreams\.\S+\.secret_access_key +\[redacted\] +file +\d+ /);
  expect(output).toMatch(/\nlisten\.admin +127\.0\.0\.1:0 +command_line +- /);
  expect(output).toMatch(/\nhttp\.idle_timeout +\S+ +default +- /);
  const { processes } = await folder.json("configuration");
  expect(processes).toHaveLength(1);
});

test("a user signs in with a link, and its session is listed and ended", async () => {
  expect(
    (await folder.run("users", "create", "guest@example.com", "--role", "auditor")).exitCode,
  ).toBe(0);
  const linked = await folder.run("users", "link", "guest@example.com");
  const [, address = "", token = ""] =
    /^(\S+)\/#new-password=(\w{43})\n$/.exec(linked.output) ?? [];
  expect(address).toBe(gateway.adminUrl);
  expect(linked.errors).toStartWith("Send it to guest@example.com. It works once, until 2");
  const response = await fetch(`${gateway.adminUrl}/admin/v1/session/link`, {
    method: "POST",
    headers: { origin: gateway.adminUrl, "content-type": "application/json" },
    body: JSON.stringify({ token, password: "eleven green kettles" }),
  });
  const { id } = (await response.json()) as { id: string };
  const listed = await folder.json("sessions", "list", "--user", "guest@example.com");
  expect(idsOf(listed)).toEqual([id]);
  expect((await folder.run("sessions", "end", id)).errors).toBe("The session has ended.\n");
  const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
  const after = await fetch(`${gateway.adminUrl}/admin/v1/session`, { headers: { cookie } });
  expect(after.status).toBe(401);
});

test("an export stops without complaint when its reader has read enough", async () => {
  const options = { takenWrites: 0 };
  const result = await folder.runWith(options, "usage", "export", "--since", "1h");
  expect(result).toEqual({ exitCode: 0, output: "", errors: "" });
});

test("a request over the limit is explained by its rule, its window and when there is room", async () => {
  const limits = ["--requests-per-minute", "1", "--tokens-per-minute", "1000000"];
  const { key, api_key: text } = await createKey("--plan", "enterprise", ...limits);
  expect((await call(text)).status).toBe(200);
  const refused = await call(text);
  expect(refused.status).toBe(429);
  await untilExplained(refused);
  const explained = await folder.run("explain", idOf(refused));
  expect(explained.output).toContain("Refused with 429 rate_limit_exceeded");
  expect(explained.output).toMatch(/Rule +requests_per_minute/);
  expect(explained.output).toContain(String(key["id"]));
  expect(explained.output).toContain("1 of 1 used; the request needed 1");
  expect(explained.output).toMatch(/Free +(1 min|\d+ s|1 min \d s) later/);
  const json = await folder.json("explain", idOf(refused));
  expect(json).toMatchObject({ id: idOf(refused), rule: "requests_per_minute" });
  const listed = await folder.run("refusals", "--key", String(key["id"]));
  expect(listed.output).toContain(idOf(refused));
  const all = await folder.json("refusals", "--account", "Demo", "--limit", "500");
  expect(idsOf(all)).toContain(idOf(refused));
});

test("a call that was not refused is explained by its row of the ledger", async () => {
  const { api_key: text } = await createKey("--plan", "pilot");
  const answered = await call(text);
  const id = idOf(answered);
  await untilExplained(answered);
  const explained = await folder.run("explain", id);
  expect(explained.output).toContain("did not refuse");
  expect(explained.output).toMatch(/Model +embed-text-v2/);
  expect(explained.output).toContain("by the upstream");
});

test("a key that nobody issued is explained without a word of its secret", async () => {
  const { api_key: text } = await createKey("--plan", "pilot");
  await folder.run("keys", "revoke", text);
  const refused = await call(text);
  expect(refused.status).toBe(401);
  await untilExplained(refused);
  const explained = await folder.run("explain", idOf(refused));
  expect(explained.output).toMatch(/Rule +key_\w+/);
  expect(explained.output).toContain(text.slice(0, 15));
  expect(explained.output).not.toContain(text.slice(16));
});

test("a request that nobody knows is told to be unknown", async () => {
  const unknown = await folder.run("explain", `req_${"0".repeat(32)}`);
  expect(unknown.exitCode).toBe(1);
  expect(unknown.errors).toContain("no record of this request");
});

/** Signs in as people do, and makes the first management token. */
async function createToken(email: string, password: string): Promise<string> {
  const url = `${gateway.adminUrl}/admin/v1`;
  const origin = { origin: gateway.adminUrl, "content-type": "application/json" };
  const body = JSON.stringify({ email, password });
  const signedIn = await fetch(`${url}/session`, { method: "POST", headers: origin, body });
  expect(signedIn.status).toBe(200);
  const [cookie = ""] = (signedIn.headers.get("set-cookie") ?? "").split(";");
  const { csrf_token: csrf } = (await signedIn.json()) as { csrf_token: string };
  const made = await fetch(`${url}/tokens`, {
    method: "POST",
    headers: { ...origin, cookie, "x-csrf-token": csrf },
    body: JSON.stringify({ name: "first" }),
  });
  expect(made.status).toBe(201);
  return ((await made.json()) as { secret: string }).secret;
}

test("a user's management token works from a file and from the environment, as that user", async () => {
  const password = "correct horse battery staple";
  const place = ["--role", "account_holder", "--account", "Demo"];
  const create = ["users", "create", "ada@example.com", ...place, "--password-file", "-"];
  expect((await folder.runWith({ input: `${password}\n` }, ...create)).exitCode).toBe(0);
  const token = await createToken("ada@example.com", password);
  const file = await folder.write("token.txt", `${token}\n`);
  const asAda = ["--url", gateway.adminUrl, "--token-file", file];

  const made = await folder.run("tokens", "create", "script", "--expires-in", "1d", ...asAda);
  expect(made.output).toMatch(/^slc-mgt_\w+\n$/);
  expect(made.errors).not.toContain(made.output.trim());
  const tokens = (await folder.json("tokens", "list", ...asAda))["data"] as JsonRecord[];
  expect(new Set(tokens.map(({ name }) => name))).toEqual(new Set(["first", "script"]));
  const ofAda = await folder.json("tokens", "list", "--user", "ada@example.com");
  expect(ofAda["data"]).toHaveLength(2);

  const environment = { adminUrl: gateway.adminUrl, adminToken: new Secret(made.output.trim()) };
  const accounts = ["accounts", "create", "Another"];
  const refused = await folder.runWith({ environment }, ...accounts);
  expect([refused.exitCode, refused.output]).toEqual([1, ""]);
  const list = await folder.runWith({ environment }, "keys", "list", "--json");
  expect(list.exitCode).toBe(0);
  const script = tokens.find(({ name }) => name === "script");
  await folder.run("tokens", "revoke", String(script?.["id"]));
  const ended = await folder.runWith({ environment }, "keys", "list");
  expect([ended.exitCode, ended.output]).toEqual([1, ""]);
  const audit = await folder.json("audit", "list", "--action", "token.create");
  expect(audit["data"]).toMatchObject([
    { actor: { name: "ada@example.com" } },
    { actor: { name: "ada@example.com" } },
  ]);
});

testNeeding("script")("Ctrl-C at a question ends the command, and nothing is changed", async () => {
  const { key } = await createKey("--plan", "pilot");
  // Without `exec`, the shell may wait for the command and end of Ctrl-C itself.
  const revoke = `exec bin/sluice keys revoke ${String(key["id"])} --data-dir ${folder.path}`;
  await using terminal = Bun.spawn(["script", "-qec", revoke, "/dev/null"], {
    stdin: "pipe",
    stdout: "pipe",
  });
  let shown = "";
  const decoder = new TextDecoder();
  for await (const bytes of terminal.stdout) {
    const wasAsked = shown.includes("[y/N]");
    shown += decoder.decode(bytes, { stream: true });
    if (wasAsked || !shown.includes("[y/N]")) continue;
    await terminal.stdin.write("\u0003");
    await terminal.stdin.flush();
  }
  expect({ exitCode: await terminal.exited, shown }).toMatchObject({ exitCode: 1 });
  const { status } = await folder.json("keys", "show", String(key["id"]));
  expect(status).toBe("active");
});

test("a token that is none is refused, and an address without a token is a mistake", async () => {
  const file = await folder.write("wrong-token.txt", "slc-mgt_nobody");
  const wrong = await folder.run("keys", "list", "--url", gateway.adminUrl, "--token-file", file);
  expect([wrong.exitCode, wrong.output]).toEqual([1, ""]);
  expect((await folder.run("keys", "list", "--url", gateway.adminUrl)).exitCode).toBe(2);
  expect((await folder.run("keys", "list", "--url", "localhost")).exitCode).toBe(2);
  const both = ["--offline", "--url", gateway.adminUrl];
  expect((await folder.run("keys", "list", ...both)).exitCode).toBe(2);
  const empty = await folder.write("empty.txt", "\n");
  const none = await folder.run("keys", "list", "--url", gateway.adminUrl, "--token-file", empty);
  expect(none.errors).toContain("does not contain a management token");
});

test("changes of the database itself reach a running gateway too", async () => {
  const offline = ["--application", "demo", "--plan", "pilot", "--offline"];
  const made = await folder.run("keys", "create", ...offline);
  const text = made.output.trim();
  await until(async () => (await call(text)).status === 200);
  expect((await folder.run("keys", "disable", text, "--offline")).exitCode).toBe(0);
  await until(async () => (await call(text)).status === 401);
});

test("a gateway that was killed is told from one that was never started", async () => {
  using other = createFolder({ isOffline: false });
  const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  const killed = await startServing(["--data-dir", other.path, ...anyPort]);
  await until(() => Bun.file(join(other.path, "admin-access.json")).exists());
  await killed[Symbol.asyncDispose]();
  const result = await other.run("keys", "list");
  expect(result.exitCode).toBe(1);
  expect(result.errors).toContain("is not running");
  expect(result.errors).toContain("--offline");
});

test("what is live is shown: of a key, of all targets, and what needs somebody", async () => {
  const { key, api_key: text } = await createKey("--plan", "pilot", "--expires", "2d");
  expect((await call(text)).status).toBe(200);
  const shown = await folder.run("keys", "live", String(key["id"]));
  expect(shown.output).toMatch(/^requests +1 of \d+ a minute, set by plan pilot/);
  const { output: targets } = await folder.run("targets");
  expect(targets).toMatch(/^TARGET +STATE [^]*titan-embed[^]* in_service /);
  const { output: overview } = await folder.run("overview");
  expect(overview).toMatch(/warn +demo +It expires\./);
});
