import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issuedKeySchema, rotatedKeySchema } from "../../src/control/contract/keys.ts";
import { generateApiKey } from "../../src/domain/keys/api-key.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";
import { CanarySearch } from "./canary-search.ts";
import { quotingModes, startQuotingUpstream, type QuotingUpstream } from "./quoting-upstream.ts";

const kinds = ["openai", "bedrock"] as const;

/** A gateway process with full logging, upstreams of both kinds, and texts that must not leak. */
class CanaryBench implements AsyncDisposable {
  readonly search = new CanarySearch();
  readonly folder = mkdtempSync(join(tmpdir(), "sluice-canary-"));
  readonly configPath = join(this.folder, "sluice.yaml");
  readonly bootstrapToken = this.search.make("bootstrap token");
  readonly quoting: QuotingUpstream = startQuotingUpstream();
  readonly simulator: Simulator;
  gateway: ServingProcess | undefined;

  constructor() {
    const make = (name: string): string => this.search.make(`upstream ${name}`);
    const apiKey = make("API key");
    const accessKeyId = make("access key id");
    const secretAccessKey = make("secret access key");
    const sessionToken = make("session token");
    const pair = { accessKeyId, secretAccessKey, sessionToken };
    this.simulator = startSimulator({ apiKeys: [apiKey], bedrock: { credentials: [pair] } });
    const signed =
      `region: us-east-1, access_key_id: ${accessKeyId}, ` +
      `secret_access_key: ${secretAccessKey}, session_token: ${sessionToken}`;
    writeFileSync(
      this.configPath,
      `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
data_dir: ${join(this.folder, "data")}
shutdown: { pre_stop: 0s }
overload: { loop_delay: 10s }
storage: { url: "sqlite:${join(this.folder, "data", "sluice.db")}" }
auth: { peppers: ["${this.search.make("pepper")}"] }
admin: { bootstrap_token: ${this.bootstrapToken}, sign_ins_per_minute: 100 }
telemetry: { log_level: debug }
routing: { first_backoff: 1ms, longest_backoff: 1ms }
environments:
  - { name: test, hosts: ["*"], models: ["*"] }
upstreams:
  openai: { kind: openai, base_url: "${this.simulator.url}", api_key: ${apiKey} }
  bedrock: { kind: bedrock, endpoint: "${this.simulator.origin}", ${signed} }
  quote-openai: { kind: openai, base_url: "${this.quoting.origin}/v1", api_key: ${make("quoted API key")},
    api_key_header: api-key, headers: { x-team: ${make("header")} } }
  quote-bearer: { kind: openai, base_url: "${this.quoting.origin}/v1", api_key: ${make("Bearer key")} }
  quote-bedrock: { kind: bedrock, endpoint: "${this.quoting.origin}", ${signed} }
models:${models()}
`,
    );
  }

  get dataUrl(): string {
    return this.gateway?.dataUrl ?? "";
  }

  get adminUrl(): string {
    return this.gateway?.adminUrl ?? "";
  }

  async start(): Promise<void> {
    this.gateway = await startServing(["--config", this.configPath]);
  }

  /** Everything the process writes: log, files, metrics. */
  async searchAll(when: string): Promise<void> {
    this.search.search(`log ${when}`, this.gateway?.text() ?? "");
    // The file itself, and its last good text, hold what the operator wrote into it.
    this.search.searchFiles(this.folder, ["sluice.yaml", "config.last-good"]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.gateway?.[Symbol.asyncDispose]();
    await this.quoting[Symbol.asyncDispose]();
    await this.simulator[Symbol.asyncDispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function models(): string {
  const chat = (alias: string, upstream: string, model: string): string => {
    const family = upstream.endsWith("bedrock") ? ", bedrock: { family: claude-4 }" : "";
    return `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: ${upstream}, model: ${model}${family} }]`;
  };
  const quoting = ["openai", "bearer", "bedrock"].flatMap((kind) =>
    quotingModes.map((mode) => chat(`${kind}-${mode}`, `quote-${kind}`, `quote-${mode}`)),
  );
  const embedding = (kind: string): string => {
    const family = kind === "bedrock" ? ", bedrock: { family: titan-embed-v2 }" : "";
    return `
  ${kind}-vectors:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: ${kind}, model: simulated-embedding${family} }]`;
  };
  return [
    ...kinds.map((kind) => chat(kind, kind, "simulated-chat")),
    ...kinds.map((kind) => chat(`${kind}-cut`, kind, "fault-cut-mid-chunk")),
    ...kinds.map((kind) => chat(`${kind}-event`, kind, "fault-error-event-mid-stream")),
    ...kinds.map(embedding),
    ...quoting,
  ].join("");
}

/** A caller of the data plane. Its answers may contain only its own words. */
class Caller {
  readonly #bench: CanaryBench;
  readonly #name: string;
  readonly key: string;

  constructor(bench: CanaryBench, name: string, key: string) {
    this.#bench = bench;
    this.#name = name;
    this.key = key;
    bench.search.addApiKey(`key of ${name}`, key);
  }

  word(what: string): string {
    return this.#bench.search.make(`${this.#name}'s ${what}`);
  }

  async send(path: string, init: RequestInit = {}): Promise<number> {
    const headers = { authorization: `Bearer ${this.key}`, "content-type": "application/json" };
    const response = await fetch(`${this.#bench.dataUrl}${path}`, {
      ...init,
      headers: { ...headers, ...(init.headers as Record<string, string>) },
    });
    const told = [...response.headers].map((pair) => pair.join(": ")).join("\n");
    const answer = await response.text().catch(() => "");
    this.#bench.search.search(`answers to ${this.#name}`, told + answer, [`${this.#name}'s`]);
    return response.status;
  }

  post(path: string, body: unknown, init: RequestInit = {}): Promise<number> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return this.send(path, { ...init, method: "POST", body: text });
  }

  /** A chat with a word of this caller in every field. */
  chat(model: string, isStreamed: boolean): object {
    const word = (what: string): string => this.word(`${what} (${model})`);
    const parameters = { type: "object", properties: { [word("property")]: { type: "string" } } };
    const called = { name: "look_up", arguments: JSON.stringify({ q: word("tool argument") }) };
    return {
      model,
      stream: isStreamed,
      max_tokens: 200,
      user: word("user field"),
      stop: [word("stop")],
      messages: [
        { role: "system", content: word("system prompt") },
        { role: "user", content: word("first question") },
        { role: "assistant", tool_calls: [{ id: "c1", type: "function", function: called }] },
        { role: "tool", tool_call_id: "c1", content: word("tool result") },
        { role: "user", content: [{ type: "text", text: `echo: ${word("prompt")}` }] },
      ],
      tools: [
        { type: "function", function: { name: "look_up", description: word("tool"), parameters } },
      ],
      tool_choice: "none",
    };
  }

  imageChat(model: string): object {
    const png = Buffer.from("89504e470d0a1a0a", "hex");
    const data = Buffer.concat([png, Buffer.from(this.word("image bytes").padEnd(60, "="))]);
    const base64 = data.toString("base64");
    this.#bench.search.add(`${this.#name}'s image (${model})`, base64.slice(12, 60));
    const url = `data:image/png;base64,${base64}`;
    return {
      model,
      max_tokens: 5,
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }],
    };
  }
}

async function makeGoodAndBadCalls(caller: Caller): Promise<ReadonlyMap<number, number>> {
  const statuses = new Map<number, number>();
  const sent = async (sending: Promise<number>): Promise<void> => {
    const status = await sending;
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  };
  const path = "/v1/chat/completions";
  for (const kind of kinds) {
    for (const model of [kind, `${kind}-cut`, `${kind}-event`]) {
      for (const isStreamed of [false, true]) {
        await sent(caller.post(path, caller.chat(model, isStreamed)));
      }
    }
    await sent(caller.post(path, caller.imageChat(kind)));
    await sent(
      caller.post("/v1/embeddings", { model: `${kind}-vectors`, input: caller.word("input") }),
    );
  }
  for (const kind of ["openai", "bearer", "bedrock"]) {
    for (const mode of quotingModes) {
      await sent(caller.post(path, caller.chat(`${kind}-${mode}`, false)));
      await sent(caller.post(path, caller.chat(`${kind}-${mode}`, true)));
    }
  }
  const word = caller.word("stray word");
  await sent(caller.post(path, { ...caller.chat("openai", false), [word]: word, model: word }));
  await sent(caller.post(path, `{"model": "openai", "messages": [{"${word}`));
  await sent(caller.post(path, { ...caller.chat("openai", false), temperature: word }));
  await sent(caller.post(path, { ...caller.chat("openai", false), max_tokens: word }));
  await sent(caller.post("/v1/embeddings", { model: "openai-vectors", input: [[word]] }));
  await sent(caller.send(`/v1/models/${word}`));
  await sent(caller.send(`/${word}?api_key=${caller.key}&q=${word}`));
  await sent(
    caller.send(`/v1/models/${caller.key}`, { headers: { "x-word": word, cookie: word } }),
  );
  return statuses;
}

/** Keys and other secrets in fields for other values. */
async function misuseSecrets(caller: Caller, secrets: readonly string[]): Promise<void> {
  for (const secret of secrets) {
    const headers = { authorization: `Bearer ${secret}` };
    await caller.send("/v1/models", { headers });
    await caller.send("/v1/models", { headers: { authorization: secret } });
    await caller.send("/v1/models", { headers: { authorization: `Basic ${btoa(secret)}` } });
    await caller.send(`/v1/chat/completions?key=${secret}`, { headers: { "api-key": secret } });
    await caller.send("/healthz", { headers: { "x-request-id": secret, origin: secret } });
  }
}

/** The operator in a browser. */
class Admin {
  readonly #bench: CanaryBench;
  readonly headers: Record<string, string> = {};

  constructor(bench: CanaryBench) {
    this.#bench = bench;
  }

  /** `shows` names the canaries that this answer may contain. */
  async send(method: string, path: string, body?: unknown, shows: readonly string[] = []) {
    const response = await fetch(`${this.#bench.adminUrl}/admin/v1${path}`, {
      method,
      headers: {
        origin: this.#bench.adminUrl,
        "content-type": "application/json",
        ...this.headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const [cookie] = response.headers.getSetCookie();
    const session = cookie?.split(";")[0];
    if (session !== undefined && !session.endsWith("=")) this.headers["cookie"] = session;
    const place = "answers of the control plane";
    this.#bench.search.search(place, text, shows);
    return { status: response.status, text };
  }

  async signInAs(path: string, body: object): Promise<void> {
    const { text } = await this.send("POST", path, body, ["CSRF"]);
    const { csrf_token: csrf } = JSON.parse(text) as { csrf_token: string };
    this.headers["x-csrf-token"] = csrf;
    this.#bench.search.add(`CSRF token ${path}`, csrf);
    this.#bench.search.add(`session ${path}`, this.headers["cookie"]?.split("=")[1] ?? "");
  }

  /** A mutation under an `Idempotency-Key`, sent twice. */
  async once(method: string, path: string, body: unknown, shows: readonly string[] = []) {
    this.headers["idempotency-key"] = this.#bench.search.make(`Idempotency-Key of ${path}`);
    await this.send(method, path, body, shows);
    const replayed = await this.send(method, path, body, shows);
    delete this.headers["idempotency-key"];
    return replayed;
  }
}

const accountName = "account-of-canaries";
const operatorEmail = "ada@example.com";

/** Signs in, fails to sign in, and creates two keys; returns their texts. */
async function setUp(bench: CanaryBench, admin: Admin): Promise<readonly string[]> {
  const password = bench.search.make("first password");
  const token = bench.bootstrapToken;
  await admin.signInAs("/bootstrap", { token, email: operatorEmail, password });
  await admin.send("POST", "/bootstrap", { token, email: operatorEmail, password });
  const wrong = bench.search.make("wrong password");
  await admin.send("POST", "/session", { email: operatorEmail, password: wrong });
  await admin.send("POST", "/session", { email: bench.search.make("wrong").slice(0, 6), password });
  await admin.signInAs("/session", { email: operatorEmail, password });
  const renewed = bench.search.make("second password");
  const change = { current_password: password, new_password: renewed };
  await admin.send("POST", "/session/password", change, ["CSRF"]);
  await admin.signInAs("/session", { email: operatorEmail, password: renewed });
  await admin.send("POST", "/users", { email: "x", password: bench.search.make("bad request") });
  const account = await admin.once("POST", "/accounts", { name: accountName });
  const { id: accountId } = JSON.parse(account.text) as { id: string };
  const keys: string[] = [];
  for (const name of ["first", "second"]) {
    const wanted = { account_id: accountId, environment: "test", name };
    const { text } = await admin.once("POST", "/applications", wanted);
    const { id } = JSON.parse(text) as { id: string };
    const limits = { requests_per_minute: 100_000, tokens_per_minute: 100_000_000 };
    const key = { application_id: id, plan: "enterprise", limits };
    const made = await admin.once("POST", "/keys", key, ["key"]);
    keys.push(issuedKeySchema.parse(JSON.parse(made.text)).api_key);
  }
  return keys;
}

/** Uses everything that handles secrets: rotations, leak reports, tokens. Returns new secrets. */
async function handleSecrets(bench: CanaryBench, admin: Admin, key: string): Promise<string[]> {
  const id = key.slice(0, 15);
  const made = await admin.once("POST", `/keys/${id}/rotate`, {}, ["key"]);
  const { api_key: rotated } = rotatedKeySchema.parse(JSON.parse(made.text));
  bench.search.addApiKey("key of a rotation", rotated);
  const stranger = generateApiKey((target) => crypto.getRandomValues(target)).text;
  bench.search.addApiKey("key of a stranger", stranger);
  const half = bench.search.make("leaked text");
  await admin.once("POST", "/leaks", { api_keys: [stranger, rotated, half], disable: true });
  await admin.send("GET", `/keys/${stranger}`);
  await admin.send("GET", `/refusals/${stranger}`);
  await admin.send("POST", "/keys", { application_id: stranger, plan: half, [half]: half }, [
    "leaked text",
  ]);
  const token = await admin.once("POST", "/tokens", { name: "script" }, ["management"]);
  const { secret } = JSON.parse(token.text) as { secret: string };
  bench.search.add("management token", secret);
  const { cookie = "", "x-csrf-token": csrf = "" } = admin.headers;
  admin.headers["x-csrf-token"] = bench.search.make("wrong CSRF token");
  await admin.send("POST", "/accounts", { name: "refused" });
  Object.assign(admin.headers, { cookie: "", authorization: `Bearer ${stranger}` });
  await admin.send("GET", "/accounts");
  admin.headers["authorization"] = `Bearer ${secret}`;
  expect((await admin.send("GET", "/accounts")).status).toBe(200);
  admin.headers["authorization"] = `Bearer ${secret.slice(0, -1)}x`;
  await admin.send("GET", "/accounts");
  delete admin.headers["authorization"];
  Object.assign(admin.headers, { cookie, "x-csrf-token": csrf });
  return [rotated, stranger, secret, cookie, csrf];
}

const reports = [
  "/audit?limit=500",
  "/refusals?limit=500",
  "/keys",
  "/tokens",
  "/users",
  "/usage/calls?limit=500",
  "/usage/export?format=csv",
  "/usage/export?format=ndjson",
  "/usage/totals?by=key,model",
];

test("prompts, keys, passwords and credentials are in no log, metric, answer or file", async () => {
  await using bench = new CanaryBench();
  await bench.start();
  const { search } = bench;
  const admin = new Admin(bench);
  const [first = "", second = ""] = await setUp(bench, admin);
  const callers = [new Caller(bench, "first", first), new Caller(bench, "second", second)];
  const secrets = await handleSecrets(bench, admin, second);
  for (const caller of callers) {
    const statuses = await makeGoodAndBadCalls(caller);
    expect(new Set(statuses.keys())).toEqual(new Set([200, 400, 404, 503]));
    await misuseSecrets(caller, [...secrets, caller.key]);
  }
  expect(bench.quoting.requests).toBeGreaterThan(quotingModes.length * 3);
  await bench.searchAll("while it runs");
  // Texts that are stored on purpose are found, which shows that the search works.
  const control = new CanarySearch();
  control.add("account name", accountName);
  control.add("application", "/v1/chat/completions");
  control.searchFiles(bench.folder);
  control.search("log", bench.gateway?.text() ?? "");
  expect(control.hits.join()).toMatch(/account name in .*\.db.*application in log/);
  for (const path of reports) {
    const { status } = await admin.send("GET", path);
    expect([path, status]).toEqual([path, 200]);
  }
  search.search("metrics", await (await fetch(`${bench.adminUrl}/metrics`)).text());
  bench.gateway?.signal("SIGTERM");
  await bench.gateway?.exited;
  await bench.searchAll("at the end");
  const bytes = [...search.searchedBytes.values()].reduce((sum, size) => sum + size, 0);
  const places = search.searchedBytes.size;
  process.stdout.write(
    `${search.names.length} canaries in ${places} places of ${bytes} bytes: ` +
      `${search.hits.length} found\n`,
  );
  expect(search.hits).toEqual([]);
  const log = bench.gateway?.text() ?? "";
  expect(log).toContain("attempt failed");
  expect(log).toContain("a sign-in was refused");
  const files = [...search.searchedBytes.keys()].filter((place) => place.startsWith("data/"));
  expect(files.some((place) => place.endsWith("sluice.db-wal"))).toBe(true);
  expect(files.some((place) => place.startsWith("data/spool/"))).toBe(true);
}, 120_000);
