import { expect, test } from "bun:test";
import { refusalSchema } from "../../src/control/contract/refusals.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { bearer } from "../support/operator.ts";
import { runSluice } from "../support/sluice-process.ts";
import { eventually } from "../failures/outage-gateway.ts";
import { gatewayOf, startProvider, whole } from "./provider.ts";

const word = "xylophone-canary-4417";
const models = `
  rejecting:
    kind: chat
    context_window: 200000
    targets: [{ upstream: simulator, model: fault-bad-request-400 }]
  capped:
    kind: chat
    context_window: 200000
    max_output_tokens: 10
    targets: [{ upstream: simulator, model: sim }]
  small:
    kind: chat
    context_window: 10
    targets: [{ upstream: simulator, model: sim }]`;

const chat = (rest: object = {}) => ({
  model: "rejecting",
  max_tokens: 5,
  messages: [{ role: "user", content: word }],
  ...rest,
});

async function explained(gateway: TestGateway, response: Response) {
  await response.text();
  const id = response.headers.get("x-request-id") ?? "";
  const path = `/admin/v1/refusals/${id}`;
  await eventually("the error is known", async () => (await gateway.admin("GET", path)).ok);
  const answer = await gateway.admin("GET", path);
  const text = await answer.text();
  expect(text).not.toContain(word);
  const refusal = refusalSchema.parse(JSON.parse(text));
  expect([refusal.id, refusal.caller_status]).toEqual([id, response.status]);
  expect(refusal.key_id).toStartWith("key_");
  return refusal;
}

const tool = (parameters: object) => ({ type: "function", function: { name: word, parameters } });

test("every error that a key gets is explained, without what the request said", async () => {
  await using gateway = await startGateway({ sections: { models } });
  const limited = await gateway.createKey({ allowedModels: ["rejecting"] });
  const url = "/v1/chat/completions";
  const post = (rest: object, init = {}) => gateway.post(url, chat(rest), init);
  const send = (body: string, headers: Record<string, string> = {}) =>
    fetch(`${gateway.url}${url}`, {
      method: "POST",
      headers: { ...bearer(gateway.key).headers, "content-type": "application/json", ...headers },
      body,
    });
  const cases: readonly (readonly [Response, object])[] = [
    [
      await post({ messages: [{ role: word, content: word }] }),
      {
        status: 400,
        rule: "invalid_request",
        code: "invalid_value",
        param: "messages[0].role",
        summary:
          "Invalid value: '...'. Supported values are: 'system', 'assistant', 'user', 'function', " +
          "'tool', and 'developer'.",
      },
    ],
    [
      await post({ metadata: { [word]: 7 } }),
      {
        rule: "invalid_request",
        param: "metadata",
        summary: "Invalid type for 'metadata': expected a string, but got an integer instead.",
      },
    ],
    [
      await post({ metadata: { [word.repeat(9)]: "" } }),
      { summary: expect.stringMatching(/^Invalid property name in 'metadata': '...' is too long/) },
    ],
    [
      await post({ tools: [tool({ type: word })] }),
      { summary: expect.stringMatching(/^Invalid schema for function '...': .*'type: ...'.$/) },
    ],
    [
      await post({ temperature: 3 }),
      {
        param: "temperature",
        summary:
          "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
      },
    ],
    [
      await post({ model: "capped", max_tokens: 11 }),
      {
        param: "max_tokens",
        summary: expect.stringMatching(
          /^max_tokens is too large: 11. This model supports at most 10 /,
        ),
      },
    ],
    [await send(`{"${word}`), { status: 400, rule: "invalid_request", code: null, param: null }],
    [await send(word, { "content-type": "text/plain" }), { status: 415, rule: "invalid_request" }],
    [await post({ model: word }), { rule: "model_unknown", param: "model", model: null }],
    [await post({ model: "small" }, bearer(limited.text)), { rule: "model_not_allowed" }],
    [
      await gateway.post("/v1/embeddings", { model: "small", input: word }),
      { rule: "model_kind", model: "small" },
    ],
    [await gateway.get(`/v1/models/${word}`), { status: 404, rule: "model_unknown" }],
    [
      await post({ model: "small", messages: [{ role: "user", content: `${word} `.repeat(99) }] }),
      { status: 400, rule: "context_window", param: "messages" },
    ],
    [await post({ model: "rejecting" }), { status: 400, rule: "upstream_rejected" }],
    [
      await send(JSON.stringify(chat()), { "x-sluice-timeout-ms": word }),
      { status: 400, rule: "invalid_request", param: "x-sluice-timeout-ms" },
    ],
  ];
  for (const [response, expected] of cases) {
    expect(await explained(gateway, response)).toMatchObject(expected);
  }
  const tooLarge = await send(" ".repeat(21 * 1_048_576));
  expect(await explained(gateway, tooLarge)).toMatchObject({
    status: 413,
    rule: "invalid_request",
  });
});

test("explain shows the field of a bad body, and model and target of a call that was refused", async () => {
  await using gateway = await startGateway({ sections: { models } });
  const explain = async (response: Response): Promise<string> => {
    const { id } = await explained(gateway, response);
    await eventually("the row is stored", async () => {
      const row = await gateway.admin("GET", `/admin/v1/usage/calls/${id}`);
      return row.ok || response.status === 400;
    });
    const told = await runSluice(["explain", id, "--data-dir", gateway.config.dataDir]);
    expect([told.exitCode, told.errors]).toEqual([0, ""]);
    return told.output;
  };
  const url = "/v1/chat/completions";
  const bad = await explain(await gateway.post(url, chat({ max_tokens: "many" })));
  expect(bad).toMatch(
    /^Refused with 400 invalid_type at .*: Invalid type for 'max_tokens': expected an integer, but got a string instead\.$/m,
  );
  expect(bad).toMatch(/^ {2}Field +max_tokens$/m);
  const rejected = await explain(await gateway.post(url, chat({ model: "rejecting" })));
  expect(rejected).toContain("The upstream refused the request.");
  expect(rejected).not.toContain("no longer");
});

test("explain tells both the error and the status that a caller of Messages saw", async () => {
  await using gateway = await startGateway({ sections: { models } });
  const ask = async (model: string, headers: Record<string, string> = {}) => {
    const init = { headers: { "x-api-key": gateway.key, ...headers } };
    const response = await gateway.post("/v1/messages", chat({ model }), init);
    const { id, status, caller_status: seen } = await explained(gateway, response);
    const shown = ["explain", id, "--data-dir", gateway.config.dataDir];
    const { output } = await runSluice(shown);
    const json: unknown = JSON.parse((await runSluice([...shown, "--json"])).output);
    expect(json).toMatchObject({ status, caller_status: seen });
    return [status, seen, output.split(" at ")[0]];
  };
  expect(await ask("unknown")).toEqual([
    400,
    404,
    "Refused with 400 invalid_model (the caller saw 404)",
  ]);
  expect(await ask("rejecting", { "x-sluice-timeout-ms": "never" })).toEqual([
    400,
    400,
    "Refused with 400 invalid_value",
  ]);
});

test("explain names the dialect of what was refused before it became a call, and of calls alike", async () => {
  await using gateway = await startGateway({
    sections: { models, plans: "{ pilot: { requests_per_minute: 1 } }" },
  });
  const limited = await gateway.createKey({ plan: "pilot" });
  const dialectOf = async (response: Response): Promise<unknown> => {
    await response.text();
    const id = response.headers.get("x-request-id") ?? "";
    const shown = ["explain", id, "--data-dir", gateway.config.dataDir];
    await eventually("it is known", async () => (await runSluice(shown)).exitCode === 0);
    const { output } = await runSluice(shown);
    const json: unknown = JSON.parse((await runSluice([...shown, "--json"])).output);
    const line = /^ {2}Dialect +(\w+)$/m.exec(output)?.[1];
    expect(json).toMatchObject({ dialect: line ?? null });
    return line;
  };
  const bodies = {
    "/v1/messages": chat({ model: "small", messages: [{ role: "user", content: "hi" }] }),
    "/v1/responses": { model: "small", input: "hi", store: false },
    "/v1/embeddings": { model: "small", input: "hi" },
  };
  for (const [path, body] of Object.entries(bodies)) {
    const dialect = path.slice("/v1/".length);
    expect(await dialectOf(await gateway.post(path, body, bearer("sk-wrong")))).toBe(dialect);
    const unknown = await gateway.post(path, { ...body, model: word });
    expect(await dialectOf(unknown)).toBe(dialect);
  }
  const answered = await gateway.post("/v1/messages", bodies["/v1/messages"]);
  expect([answered.status, await dialectOf(answered)]).toEqual([200, "messages"]);
  const last = () =>
    gateway.post("/v1/chat/completions", bodies["/v1/messages"], bearer(limited.text));
  await (await last()).text();
  const beyond = await last();
  expect([beyond.status, await dialectOf(beyond)]).toEqual([429, "chat"]);
  const list = await gateway.get("/v1/models", bearer("sk-wrong"));
  expect([list.status, await dialectOf(list)]).toEqual([401, undefined]);
});

test("what a provider quotes of a request is in no explanation", async () => {
  const error = { message: `${word} is bad`, param: `messages[0]: ${word}`, code: word };
  await using provider = startProvider(() => Response.json({ error }, { status: 400 }));
  await using gateway = await gatewayOf([provider]);
  const response = await gateway.post("/v1/chat/completions", chat({ model: "chat-model" }));
  expect(await explained(gateway, response)).toMatchObject({
    status: 400,
    rule: "upstream_rejected",
    param: null,
  });
});

test("a stream that is refused after its headers were sent is explained", async () => {
  const held = Promise.withResolvers<Response>();
  await using provider = startProvider(() => held.promise);
  await using gateway = await gatewayOf([provider], {
    upstream: "max_in_flight: 1",
    sections: {
      streams: "{ hold_headers: 10ms }",
      plans:
        "{ own: { requests_per_minute: 100, tokens_per_minute: 100000, queue_timeout: 200ms } }",
    },
  });
  const key = await gateway.createKey({ plan: "own" });
  const body = chat({ model: "chat-model" });
  const url = "/v1/chat/completions";
  const first = gateway.post(url, body, bearer(key.text));
  await eventually("the first is asked", () => Promise.resolve(provider.requests.length === 1));
  const second = await gateway.post(url, { ...body, stream: true }, bearer(key.text));
  expect(second.status).toBe(200);
  const frames = await second.text();
  expect(frames).toContain('"error"');
  const id = second.headers.get("x-request-id") ?? "";
  const path = `/admin/v1/refusals/${id}`;
  await eventually("it is known", async () => (await gateway.admin("GET", path)).ok);
  expect(await (await gateway.admin("GET", path)).json()).toMatchObject({ rule: "queue_deadline" });
  held.resolve(whole("late"));
  await (await first).text();
});
