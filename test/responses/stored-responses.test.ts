import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { isObject, type JsonObject, objectOf, textOf } from "../../src/domain/json-fields.ts";
import { startGateway, type TestGateway, unlimited } from "../support/gateway.ts";
import { eventsIn, responseOf } from "./response-events.ts";

const path = "/v1/responses";
const model = "chat-model";
const plans = `
  enterprise: { custom: true }
  forgetful: { custom: true, responses: { keep: 0s } }`;

/** A provider that remembers what it was asked, and thinks and calls a tool where it has one. */
class RecordingProvider implements AsyncDisposable {
  readonly asked: JsonObject[] = [];
  readonly #server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const body = objectOf(await request.json()) ?? {};
      this.asked.push(body);
      const said = `answer ${this.asked.length}`;
      const call = {
        id: `call_${this.asked.length}`,
        type: "function",
        function: { name: "look", arguments: "{}" },
      };
      const message = {
        role: "assistant",
        content: said,
        ...(body["tools"] ? { tool_calls: [call] } : {}),
      };
      const usage = { prompt_tokens: 5, completion_tokens: 2 };
      const finish = body["tools"] ? "tool_calls" : "stop";
      if (body["stream"] !== true) {
        return Response.json({ choices: [{ index: 0, message, finish_reason: finish }], usage });
      }
      const chunks = [
        { choices: [{ index: 0, delta: { role: "assistant", content: said } }] },
        ...(body["tools"]
          ? [{ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...call }] } }] }]
          : []),
        { choices: [{ index: 0, delta: {}, finish_reason: finish }] },
        { choices: [], usage },
      ];
      const frames = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
      const headers = { "content-type": "text/event-stream" };
      return new Response(`${frames.join("")}data: [DONE]\n\n`, { headers });
    },
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/v1`;
  }

  /** The messages of the last request. */
  get messages(): unknown {
    return this.asked.at(-1)?.["messages"];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

let provider: RecordingProvider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = new RecordingProvider();
  const upstreams = `
  simulator: { kind: openai, base_url: "${provider.url}" }`;
  gateway = await startGateway({ sections: { upstreams, plans } });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

async function ask(body: object, key?: string): Promise<JsonObject> {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const response = await gateway.post(path, { model, ...body }, { headers });
  const text = await response.text();
  if (!text.startsWith("event:")) return objectOf(JSON.parse(text)) ?? {};
  return responseOf(eventsIn(text));
}

async function get(id: unknown, init: { method?: string; key?: string } = {}) {
  const { method = "GET", key } = init;
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const response = await gateway.get(`${path}/${String(id)}`, { method, headers });
  return { status: response.status, body: objectOf(await response.json()) };
}

function outputOf(response: JsonObject): readonly JsonObject[] {
  const { output } = response;
  return Array.isArray(output) ? output.filter(isObject) : [];
}

const look = { type: "function", name: "look", parameters: { type: "object" } };

describe.each([false, true])("with stream: %p,", (stream) => {
  test("a stored response is continued as if all had been sent again, three steps on", async () => {
    const tools = [look];
    const first = await ask({ input: "one", instructions: "Be brief.", tools, stream });
    expect(first["store"]).toBeTrue();
    const call = outputOf(first).find(({ type }) => type === "function_call");
    const result = { type: "function_call_output", call_id: call?.["call_id"], output: "seen" };
    const second = await ask({
      input: [result],
      instructions: "Be brief.",
      previous_response_id: first["id"],
      stream,
    });
    expect(second).toMatchObject({ previous_response_id: first["id"], store: true });
    const continued = await ask({ input: "three", previous_response_id: second["id"], stream });
    const shortened = provider.messages;
    const input = [
      { role: "user", content: "one" },
      ...outputOf(first),
      result,
      ...outputOf(second),
      { role: "user", content: "three" },
    ];
    const whole = await ask({ input, stream });
    expect(shortened).toEqual(provider.messages);
    expect(continued["status"]).toBe("completed");
    expect(whole["status"]).toBe("completed");
  });

  test("references stand for the items, as the AI SDK sends them", async () => {
    const first = await ask({ input: "one", tools: [look], stream });
    const [said, call] = outputOf(first);
    const result = { type: "function_call_output", call_id: call?.["call_id"], output: "seen" };
    const one = { role: "user", content: "one" };
    const references = [said, call].map((item) => ({ type: "item_reference", id: item?.["id"] }));
    await ask({ input: [one, ...references, result], stream });
    const shortened = provider.messages;
    await ask({ input: [one, said, call, result], stream });
    expect(shortened).toEqual(provider.messages);
  });

  test("a response is there as soon as its last event is, and gone once it is deleted", async () => {
    const answer = await ask({ input: "one", stream });
    const found = await get(answer["id"]);
    expect(found).toEqual({ status: 200, body: answer });
    expect(await get(answer["id"], { method: "DELETE" })).toEqual({
      status: 200,
      body: { id: answer["id"], object: "response.deleted", deleted: true },
    });
    expect((await get(answer["id"])).status).toBe(404);
    expect((await get(answer["id"], { method: "DELETE" })).status).toBe(404);
    const next = await ask({ input: "two", previous_response_id: answer["id"], stream });
    expect(next).toMatchObject({ error: { code: "previous_response_not_found" } });
  });

  test("one that must not be stored is not, nor is one of a plan that stores none", async () => {
    const { text: forgetful } = await gateway.createKey({ plan: "forgetful", limits: unlimited });
    for (const [body, key] of [
      [{ store: false }, undefined],
      [{}, forgetful],
      // With its input, it is larger than a mebibyte.
      [{ metadata: {}, instructions: "x".repeat(1024 * 1024) }, undefined],
    ] as const) {
      const answer = await ask({ input: "one", stream, ...body }, key);
      expect(answer).toMatchObject({ status: "completed", store: false });
      expect((await get(answer["id"], key === undefined ? {} : { key })).status).toBe(404);
    }
  });
});

test("another account gets nothing of a response, by no id of it", async () => {
  const answer = await ask({ input: "the secret of one account", tools: [look] });
  const { text: key } = await gateway.createKey({ account: "other-account" });
  const { id } = answer;
  expect((await get(id, { key })).status).toBe(404);
  expect((await get(id, { key, method: "DELETE" })).status).toBe(404);
  const continued = await ask({ input: "two", previous_response_id: id }, key);
  expect(continued).toMatchObject({
    error: { code: "previous_response_not_found", param: "previous_response_id" },
  });
  const [said, call] = outputOf(answer);
  const two = { role: "user", content: "two" };
  const byMessage = await ask({ input: [{ type: "item_reference", id: said?.["id"] }, two] }, key);
  expect(byMessage["status"]).toBe("completed");
  expect(JSON.stringify(provider.messages)).not.toContain("answer");
  const byCall = await ask({ input: [{ type: "item_reference", id: call?.["id"] }, two] }, key);
  expect(byCall).toMatchObject({ error: { param: "input[0].id" } });
  const count = await gateway.post(
    `${path}/input_tokens`,
    { model, input: "two", previous_response_id: id },
    { headers: { authorization: `Bearer ${key}` } },
  );
  expect(count.status).toBe(400);
  expect((await get(id)).status).toBe(200);
});

test("another key of the account continues it", async () => {
  const answer = await ask({ input: "one" });
  const { text: key } = await gateway.createKey();
  const next = await ask({ input: "two", previous_response_id: answer["id"] }, key);
  expect(next["status"]).toBe("completed");
});

test("the tokens of a continued input are counted with what it continues", async () => {
  const count = async (body: object): Promise<number> => {
    const response = await gateway.post(`${path}/input_tokens`, { model, ...body });
    return Number(objectOf(await response.json())?.["input_tokens"]);
  };
  const { id } = await ask({ input: "one ".repeat(500) });
  const alone = await count({ input: "two" });
  expect(await count({ input: "two", previous_response_id: id })).toBeGreaterThan(2 * alone);
});

test("the id of a stored response is in no log and no ledger", async () => {
  const answer = await ask({ input: "one" });
  const digits = textOf(answer["id"])?.slice(5) ?? "";
  expect(digits).toMatch(/^[0-9a-f]{32}$/);
  const rows = await gateway.usage();
  expect(JSON.stringify([rows, gateway.log])).not.toContain(digits);
});

test("what clients send for ids breaks nothing", async () => {
  const strange = ["", "resp_", "../../etc", "x".repeat(5_000), "rs_\u0000", "resp_é", "fc_1"];
  for (const id of strange) {
    const previous = await ask({ input: "one", previous_response_id: id });
    expect(previous).toMatchObject({ error: { code: "previous_response_not_found" } });
    const reference = { type: "item_reference", id };
    const referred = await ask({ input: [{ role: "user", content: "one" }, reference] });
    expect(referred["error"] !== undefined || referred["status"] === "completed").toBeTrue();
  }
});
