import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { chatOf, errorOf, parseStream } from "../support/bodies.ts";
import { startGateway, unlimited, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/ledger-truth-process.ts";

const words = "one two three four five six seven eight nine ten";
const chat = (fields: object = {}) => ({
  model: "chat-model",
  messages: [{ role: "user", content: `echo: ${words}` }],
  ...fields,
});

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    // On disk.
    processes: 1,
    sections: {
      streams: "{ write_timeout: 1s }",
      environments: `
  - { name: test, hosts: ["*"], models: ["*"] }
  - { name: live, hosts: ["api.example.com"], models: ["chat-model"] }`,
    },
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

function play(
  key: string,
  body: unknown,
  { api = "chat/completions", signal }: { api?: string; signal?: AbortSignal } = {},
): Promise<Response> {
  const { dataDir } = gateway.config;
  return fetch(`${gateway.adminUrl}/admin/v1/playground/${api}?key_id=${key}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${readLocalAccess(dataDir)?.token}`,
      "content-type": "application/json",
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal !== undefined && { signal }),
  });
}

async function rowOf(id: string): Promise<Record<string, unknown>> {
  await gateway.usage();
  const response = await gateway.admin("GET", `/admin/v1/usage/calls/${id}`);
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, unknown>;
}

test("a call is the key's own: its usage, its limits, marked, and in the audit", async () => {
  const limits = { requestsPerMinute: 1, tokensPerMinute: 1_000_000 };
  const { id: key } = await gateway.createKey({ limits });
  const response = await play(key, chat());
  expect(response.status).toBe(200);
  const call = response.headers.get("x-request-id") ?? "";
  const { usage, choices } = await chatOf(response);
  expect(choices[0]?.message.content).toContain("one two three");
  expect(await rowOf(call)).toMatchObject({
    key_id: key,
    via: "playground",
    input_tokens: usage?.prompt_tokens,
    output_tokens: usage?.completion_tokens,
    outcome: "completed",
  });
  const audit = await gateway.admin("GET", `/admin/v1/audit?subject_id=${key}&limit=1`);
  const { data } = (await audit.json()) as { data: unknown[] };
  expect(data).toMatchObject([
    { action: "playground.call", request_id: call, after: { api: "chat/completions" } },
  ]);
  const refused = await play(key, chat());
  expect([refused.status, refused.headers.has("retry-after")]).toEqual([429, true]);
  expect((await errorOf(refused)).code).toBe("rate_limit_exceeded");
  const live = await gateway.admin("GET", `/admin/v1/keys/${key}/live`);
  // The user is not the application: no secret was used.
  expect(await live.json()).toMatchObject({
    use: { requests: { used: 1, remaining: 0 } },
    secrets: [{ last_used_at: null }],
  });
});

test("an answer is passed on as it comes", async () => {
  const { id: key } = await gateway.createKey({ limits: unlimited });
  gateway.simulator.setFaultPlan([{ mode: "stall-mid" }]);
  const leaving = new AbortController();
  const response = await play(key, chat({ stream: true }), { signal: leaving.signal });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  const reader = (response.body ?? new ReadableStream()).getReader();
  let text = "";
  // The upstream sends no more than half of it, and the connection stays open.
  while (!text.includes("one")) {
    const { value } = await reader.read();
    text += new TextDecoder().decode(value as Uint8Array);
  }
  expect(text).not.toContain("[DONE]");
  expect(gateway.simulator.openCalls).toBe(1);
  leaving.abort();
  // A closed tab ends the upstream's work at once.
  await until("the upstream call has ended", () => gateway.simulator.openCalls === 0);
  gateway.simulator.setFaultPlan([]);
  const call = response.headers.get("x-request-id") ?? "";
  await until("the row is there", async () => {
    await gateway.usage();
    return (await gateway.admin("GET", `/admin/v1/usage/calls/${call}`)).status === 200;
  });
  expect(await rowOf(call)).toMatchObject({ outcome: "abandoned", via: "playground" });
});

test("who does not read is cut off, and is told that the answer is not whole", async () => {
  const { id: key } = await gateway.createKey({ limits: unlimited });
  // More than all buffers between hold.
  const content = "bulk: 4000";
  const body = chat({ stream: true, messages: [{ role: "user", content }] });
  const response = await play(key, body);
  expect(response.status).toBe(200);
  await until("the call is over", async () => {
    const metrics = await (await gateway.admin("GET", "/metrics")).text();
    return /^sluice_open_requests(?:\{.*\})? 0$/m.test(metrics);
  });
  await until("the upstream call has ended", () => gateway.simulator.openCalls === 0);
  expect(response.text()).rejects.toThrow();
});

test("the open calls of a user are bounded, and count as those of the process", async () => {
  const { id: key } = await gateway.createKey({ limits: unlimited });
  gateway.simulator.setFaultPlan(
    Array.from({ length: 10 }, () => ({ mode: "stall-mid" as const })),
  );
  const leaving = new AbortController();
  const open = Array.from({ length: 10 }, () =>
    play(key, chat({ stream: true }), { signal: leaving.signal }),
  );
  const answers = await Promise.all(open);
  expect(answers.map(({ status }) => status)).toEqual(open.map(() => 200));
  const refused = await play(key, chat());
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
  expect((await errorOf(refused)).message).toContain("playground");
  const metrics = await (await gateway.admin("GET", "/metrics")).text();
  expect(metrics).toMatch(/^sluice_open_requests(?:\{.*\})? 10$/m);
  leaving.abort();
  gateway.simulator.setFaultPlan([]);
  await until("a call is taken again", async () => (await play(key, chat())).status === 200);
  expect(answers).toHaveLength(10);
});

test("every API answers in its own form, streams whole, and errors pass as they are", async () => {
  const { id: key } = await gateway.createKey({ limits: unlimited });
  const streamed = await play(key, chat({ stream: true }));
  const { isDone, chunks } = parseStream(await streamed.text());
  const pieces = chunks.map(({ choices }) => choices[0]?.delta.content ?? "");
  expect([isDone, pieces.join("")]).toEqual([true, words]);
  const embedded = await play(key, { model: "embedding-model", input: "x" }, { api: "embeddings" });
  expect(await embedded.json()).toMatchObject({ object: "list" });
  const said = await play(key, chat({ max_tokens: 50 }), { api: "messages" });
  expect(await said.json()).toMatchObject({ type: "message", role: "assistant" });
  const missing = await play(key, chat({ model: "nothing" }), { api: "messages" });
  expect(missing.status).toBe(400);
  expect(await missing.json()).toMatchObject({ type: "error" });
  const wrong = await play(key, { model: "chat-model" });
  expect([wrong.status, (await errorOf(wrong)).param]).toEqual([400, "messages"]);
});

test("responses are neither stored nor read", async () => {
  const { id: key, text } = await gateway.createKey({ limits: unlimited });
  const body = { model: "chat-model", input: "Hello", store: true };
  const response = await play(key, body, { api: "responses" });
  const { id, store } = (await response.json()) as { id: string; store: boolean };
  expect(store).toBe(false);
  const headers = { authorization: `Bearer ${text}` };
  expect((await gateway.get(`/v1/responses/${id}`, { headers })).status).toBe(404);
  const stored = await gateway.post("/v1/responses", body, { headers });
  const { id: other, output } = (await stored.json()) as { id: string; output: { id: string }[] };
  const next = { ...body, previous_response_id: other };
  const refused = await play(key, next, { api: "responses" });
  expect(await errorOf(refused)).toMatchObject({
    code: "previous_response_not_found",
    param: "previous_response_id",
  });
  const referring = {
    ...body,
    input: [
      { type: "item_reference", id: output[0]?.id },
      { role: "user", content: "Hello" },
    ],
  };
  const tokensOf = async (answer: Response): Promise<number | undefined> =>
    ((await answer.json()) as { usage?: { input_tokens: number } }).usage?.input_tokens;
  const alone = await tokensOf(await gateway.post("/v1/responses", body, { headers }));
  expect(await tokensOf(await gateway.post("/v1/responses", referring, { headers }))).not.toBe(
    alone,
  );
  expect(await tokensOf(await play(key, referring, { api: "responses" }))).toBe(alone);
});

test("a body is read as that of an application", async () => {
  const { id: key, text } = await gateway.createKey({ limits: unlimited });
  const headers = { authorization: `Bearer ${text}` };
  const twice = JSON.stringify(chat()).replace("{", '{"model":"other",');
  for (const body of [twice, "{", "[]"]) {
    const path = "/v1/chat/completions";
    const direct = await fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body,
    });
    const played = await play(key, body);
    expect([body, played.status]).toEqual([body, direct.status]);
    if (!direct.ok) expect((await errorOf(played)).message).toBe((await errorOf(direct)).message);
  }
});

test("a key may be named by the prefix of a secret", async () => {
  const { id: key, text } = await gateway.createKey({ limits: unlimited });
  const response = await play(text.slice(0, 15), chat());
  expect(response.status).toBe(200);
  expect(await rowOf(response.headers.get("x-request-id") ?? "")).toMatchObject({ key_id: key });
});

test("rules of the key hold: environment, networks, models, its end", async () => {
  const live = await gateway.createKey({ environment: "live", limits: unlimited });
  expect((await play(live.id, chat())).status).toBe(200);
  const local = await gateway.createKey({ allowedNetworks: ["127.0.0.0/8"], limits: unlimited });
  expect((await play(local.id, chat())).status).toBe(200);
  const remote = await gateway.createKey({ allowedNetworks: ["192.0.2.0/24"], limits: unlimited });
  expect((await play(remote.id, chat())).status).toBe(403);
  const other = await gateway.createKey({ allowedModels: ["embedding-model"], limits: unlimited });
  expect((await errorOf(await play(other.id, chat()))).code).toBe("invalid_model");
  await gateway.admin("DELETE", `/admin/v1/keys/${live.id}`);
  const ended = await play(live.id, chat());
  expect([ended.status, (await errorOf(ended)).code]).toEqual([409, "wrong_state"]);
  expect((await play("key_unknown", chat())).status).toBe(404);
});

test("the text of a call is in no file and no line of the log", async () => {
  const canary = "heliotrope-7731";
  const { id: key } = await gateway.createKey({ limits: unlimited });
  const content = `echo: ${canary}`;
  const response = await play(key, chat({ messages: [{ role: "user", content }] }));
  expect(await response.text()).toContain(canary);
  const row = await rowOf(response.headers.get("x-request-id") ?? "");
  expect(JSON.stringify(row)).not.toContain(canary);
  expect(gateway.log.filter((line) => line.includes(canary))).toEqual([]);
  const { dataDir } = gateway.config;
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true });
  const kept = files.filter(
    (file) => file.isFile() && readFileSync(join(file.parentPath, file.name)).includes(canary),
  );
  expect(kept).toEqual([]);
});

describe("the socket of the playground", () => {
  const socketPath = (): string => {
    const folder = join(gateway.config.dataDir, "processes");
    const [name = ""] = readdirSync(folder).filter((each) => each.endsWith(".calls"));
    return join(folder, name);
  };
  const knock = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`http://playground.invalid${path}`, {
      unix: socketPath(),
      method: "POST",
      body: JSON.stringify(chat()),
      ...init,
    });

  test("is for the gateway's user alone", () => {
    expect(statSync(socketPath()).mode & 0o777).toBe(0o600);
    expect(statSync(join(gateway.config.dataDir, "processes")).mode & 0o777).toBe(0o700);
  });

  test("lets in nobody without the ticket, whatever else they have", async () => {
    const { id: key, text } = await gateway.createKey({ limits: unlimited });
    const local = readLocalAccess(gateway.config.dataDir)?.token ?? "";
    const before = (await gateway.usage()).length;
    const credentials = [
      "",
      text,
      local,
      ` ${key} 127.0.0.1`,
      `${text} ${key} 127.0.0.1`,
      `${local} ${key} 127.0.0.1`,
      `${"0".repeat(43)} ${key} 127.0.0.1`,
      `undefined ${key} 127.0.0.1`,
    ];
    for (const credential of credentials) {
      for (const name of ["authorization", "x-api-key"]) {
        const value = name === "authorization" ? `Bearer ${credential}` : credential;
        const headers = { [name]: value, "content-type": "application/json" };
        for (const path of ["/v1/chat/completions", "/v1/messages"]) {
          const response = await knock(path, { headers });
          const body = await response.text();
          expect([credential, path, response.status]).toEqual([credential, path, 401]);
          if (credential !== "") expect(body).not.toContain(credential.trim());
        }
      }
    }
    expect((await gateway.usage()).length).toBe(before);
  });

  test("serves nothing else", async () => {
    for (const path of [
      "/v1/models",
      "/v1/responses/resp_1",
      "/healthz",
      "/admin/v1/keys",
      "/live",
    ]) {
      expect([path, (await knock(path)).status]).toEqual([path, 404]);
      const got = await knock(path, { method: "GET", body: null });
      expect([path, got.status]).toEqual([path, 404]);
    }
    expect((await knock("/v1/chat/completions", { method: "GET", body: null })).status).toBe(405);
  });

  test("its way in is none of the data listener", async () => {
    const { id: key } = await gateway.createKey({ limits: unlimited });
    const headers = { authorization: `Bearer ${"0".repeat(43)} ${key} 127.0.0.1` };
    expect((await gateway.post("/v1/chat/completions", chat(), { headers })).status).toBe(401);
  });
});
