import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/domain/json-fields.ts";
import { startGateway, targetAt, type TestGateway, chatKinds } from "../support/gateway.ts";
import { eventsIn, responseOf, typesOf } from "./response-events.ts";

const path = "/v1/responses";
const weather = {
  type: "function",
  name: "get_weather",
  description: "The weather in a city.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
  strict: true,
};

for (const kind of chatKinds) {
  describe(`responses over ${kind}`, () => {
    let gateway: TestGateway;
    beforeAll(async () => {
      const chat = (model: string) =>
        `{ kind: chat, context_window: 200000, max_output_tokens: 64000,
           targets: [${targetAt(kind, { model, family: "claude-4" })}] }`;
      const models = `
  chat-model: ${chat("simulated-chat")}
  broken-model: ${chat("fault-error-event-mid-stream")}
  failing-model: ${chat("fault-overloaded-503")}`;
      gateway = await startGateway({ kind, sections: { models } });
    });
    afterAll(() => gateway[Symbol.asyncDispose]());

    const send = (body: object) => gateway.post(path, { model: "chat-model", ...body });
    const whole = async (body: object) => {
      const response = await send(body);
      const answer = (await response.json()) as JsonObject;
      return { response, answer };
    };
    const streamed = async (body: object) => {
      const response = await send({ ...body, stream: true });
      const text = await response.text();
      return eventsIn(text);
    };

    test("a text is answered whole", async () => {
      const { response, answer } = await whole({
        input: "Say hello.",
        instructions: "Be brief.",
        metadata: { a: "b" },
      });
      expect(response.status).toBe(200);
      expect(answer).toMatchObject({
        id: expect.stringMatching(/^resp_[0-9a-f]{32}$/),
        object: "response",
        status: "completed",
        model: "chat-model",
        instructions: "Be brief.",
        metadata: { a: "b" },
        store: true,
        output: [
          {
            type: "message",
            role: "assistant",
            status: "completed",
            content: [{ type: "output_text", text: expect.stringMatching(/./), annotations: [] }],
          },
        ],
        usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
      });
    });

    test("a text is answered as events", async () => {
      const events = await streamed({ input: [{ role: "user", content: "Say hello." }] });
      expect(typesOf(events)).toEqual([
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
      ]);
      const [created] = events;
      expect(created).toMatchObject({ response: { id: responseOf(events)["id"] } });
      expect(responseOf(events)).toMatchObject({
        status: "completed",
        usage: { total_tokens: expect.any(Number) },
      });
    });

    test("a tool of a group is called under its own name, and its result is answered", async () => {
      const tools = [
        { type: "namespace", name: "city", description: "Cities.", tools: [weather] },
        { type: "web_search" },
      ];
      const input = [{ role: "user", content: "What is the weather in Paris?" }];
      const { response, answer } = await whole({ input, tools, tool_choice: "required" });
      expect(answer["output"]).toMatchObject([
        { type: "function_call", name: "get_weather", namespace: "city", status: "completed" },
      ]);
      expect(response.headers.get("x-sluice-adjusted-parameters")).toContain(
        "tools.web_search=dropped",
      );
      const [call] = answer["output"] as readonly JsonObject[];
      const result = { type: "function_call_output", call_id: call?.["call_id"], output: "Sunny" };
      const unknown = { type: "an_item_of_next_month" };
      const next = await whole({ input: [...input, call, unknown, result], tools });
      expect(next.answer).toMatchObject({ status: "completed", output: [{ type: "message" }] });
    });

    test("a result is taken after words that were said meanwhile", async () => {
      const tools = [weather];
      const input = [{ role: "user", content: "What is the weather in Paris?" }];
      const { answer } = await whole({ input, tools, tool_choice: "required" });
      const [call] = answer["output"] as readonly JsonObject[];
      const output = { type: "function_call_output", call_id: call?.["call_id"], output: "Sunny" };
      for (const role of ["user", "developer"]) {
        const meanwhile = { role, content: "echo: Be brief." };
        const next = { previous_response_id: answer["id"], input: [meanwhile, output] };
        const { response } = await whole({ ...next, tools });
        expect(response.status).toBe(200);
      }
    });

    test("a custom tool is called with text, also as events", async () => {
      const tools = [{ type: "custom", name: "shout", description: "Shouts a text." }];
      const input = "Shout hello.";
      const { answer } = await whole({ input, tools, tool_choice: "required" });
      expect(structuredClone(answer["output"])).toMatchObject([
        { type: "custom_tool_call", name: "shout", input: expect.any(String) },
      ]);
      const events = await streamed({ input, tools, tool_choice: "required" });
      expect(typesOf(events)).toContain("response.custom_tool_call_input.delta");
      const [call] = answer["output"] as readonly JsonObject[];
      const result = {
        type: "custom_tool_call_output",
        call_id: call?.["call_id"],
        output: [{ type: "input_text", text: "HELLO" }],
      };
      const items = [{ role: "user", content: input }, call, result];
      const next = await whole({ input: items, tools });
      expect(next.answer).toMatchObject({ status: "completed" });
    });

    test("a cap ends the answer as incomplete", async () => {
      const body = { input: "Write a long poem about the sea.", max_output_tokens: 16 };
      const events = await streamed(body);
      expect(events.at(-1)).toMatchObject({
        type: "response.incomplete",
        response: {
          status: "incomplete",
          incomplete_details: { reason: "max_output_tokens" },
          max_output_tokens: 16,
        },
      });
      const { answer } = await whole(body);
      expect(answer).toMatchObject({ status: "incomplete", output: [{ status: "incomplete" }] });
    });

    test("a format makes an answer of its schema", async () => {
      const schema = weather.parameters;
      const format = { type: "json_schema", name: "place", schema, strict: true };
      const { answer } = await whole({ input: "Name a city as JSON.", text: { format } });
      const [message] = answer["output"] as readonly { content: readonly { text: string }[] }[];
      expect(JSON.parse(message?.content[0]?.text ?? "")).toEqual({ city: expect.any(String) });
    });

    test("a stream that fails in the middle ends with both events of a failure", async () => {
      const events = await streamed({ model: "broken-model", input: "Say hello." });
      expect(events.at(-2)).toMatchObject({ type: "error", error: { code: expect.any(String) } });
      expect(events.at(-1)).toMatchObject({
        type: "response.failed",
        response: { status: "failed", error: { code: "server_error" } },
      });
    });

    test("a failure before the first event is a status", async () => {
      const response = await send({ model: "failing-model", input: "hi", stream: true });
      expect(response.status).toBe(503);
      expect(await response.json()).toMatchObject({ error: { code: "model_unavailable" } });
    });

    test("names of fields in refusals are those of this wire", async () => {
      const { response, answer } = await whole({ input: "hi", max_output_tokens: 64_001 });
      expect(response.status).toBe(400);
      expect(answer).toMatchObject({ error: { param: "max_output_tokens" } });
      const image = { type: "input_image", image_url: "https://127.0.0.1/a.png" };
      const other = await whole({ input: [{ role: "user", content: [image] }] });
      if (other.response.status !== 200) {
        const { param } = (other.answer as { error: { param: string } }).error;
        expect(param).toStartWith("input[0].content[0]");
      }
    });

    test("the tokens of an input are counted, and an estimate says so", async () => {
      const count = (body: object) =>
        gateway.post(`${path}/input_tokens`, { model: "chat-model", ...body });
      const response = await count({ input: "Say hello.", tools: [weather] });
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({
        object: "response.input_tokens",
        input_tokens: expect.any(Number),
      });
      if (kind === "openai") expect(response.headers.get("x-sluice-estimate")).toBe("true");
      expect((await count({ input: [] })).status).toBe(400);
    });

    test("a call has its row in the ledger", async () => {
      const before = (await gateway.usage()).length;
      await whole({ input: "hi" });
      const rows = await gateway.usage();
      expect(rows.length).toBe(before + 1);
      expect(rows[0]).toMatchObject({ outcome: "completed" });
    });
  });
}

describe("paths beside it", () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test("a WebSocket gets 426, by which clients fall back to HTTP", async () => {
    const headers = {
      upgrade: "websocket",
      connection: "Upgrade",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      "sec-websocket-version": "13",
      "openai-beta": "responses_websockets=2026-02-06",
    };
    const response = await gateway.get(path, { headers });
    expect(response.status).toBe(426);
    expect(await response.json()).toMatchObject({ error: { code: "upgrade_required" } });
    const plain = await gateway.get(path);
    expect([plain.status, plain.headers.get("allow")]).toEqual([405, "POST"]);
  });

  test("a response is not found, and what is not served says what to do", async () => {
    for (const method of ["GET", "DELETE"]) {
      const response = await gateway.get(`${path}/resp_1`, { method });
      expect(response.status).toBe(404);
      expect(await response.json()).toEqual({
        error: {
          message: "Response with id 'resp_1' not found.",
          type: "invalid_request_error",
          param: null,
          code: null,
        },
      });
    }
    const cancel = await gateway.post(`${path}/resp_1/cancel`, {});
    expect(await cancel.json()).toMatchObject({
      error: { code: "unknown_url", message: expect.stringContaining("close the connection") },
    });
  });

  test("a body of chat completions is told where it belongs, and the other way round", async () => {
    const chat = await gateway.post("/v1/chat/completions", { model: "chat-model", input: "hi" });
    expect(await chat.text()).toContain("POST /v1/responses");
    const messages = [{ role: "user", content: "hi" }];
    const response = await gateway.post(path, { model: "chat-model", messages });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("POST /v1/chat/completions");
  });
});
