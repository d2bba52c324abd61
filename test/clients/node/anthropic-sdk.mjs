import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { z } from "zod";
import { runChecks } from "./checks.mjs";

const { SLUICE_BASE_URL, SLUICE_KEY, SLUICE_REVOKED_KEY, SLUICE_FEW_REQUESTS_KEY } = process.env;

/** The SDK adds `/v1` itself. */
const baseURL = SLUICE_BASE_URL.replace(/\/v1$/, "");
const clientWith = (apiKey) => new Anthropic({ baseURL, apiKey, maxRetries: 0 });
const client = clientWith(SLUICE_KEY);

const say = (text) => ({
  model: "chat-model",
  max_tokens: 200,
  messages: [{ role: "user", content: `echo: ${text}` }],
});

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [
  { name: "get_weather", description: "Tells the weather", input_schema: schema },
  { name: "ring", input_schema: { type: "object" } },
];

const cities = [];
const weather = betaZodTool({
  name: "get_weather",
  description: "Tells the weather",
  inputSchema: z.object({ city: z.string() }),
  run: ({ city }) => {
    cities.push(city);
    return `sunny in ${city}`;
  },
});
const question = {
  model: "chat-model",
  max_tokens: 400,
  messages: [{ role: "user", content: "How is the weather in Oslo?" }],
  tools: [weather],
  max_iterations: 4,
};

async function failure(call, name, status) {
  await assert.rejects(call, (error) => {
    assert.equal(error.constructor.name, name);
    assert.equal(error.status, status);
    assert.match(error.requestID, /^req_/);
    return true;
  });
}

await runChecks({
  "a message": async () => {
    const message = await client.messages.create(say("Hello there"));
    assert.deepEqual(message.content, [{ type: "text", text: "Hello there" }]);
    assert.equal(message.model, "chat-model");
    assert.equal(message.stop_reason, "end_turn");
    assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens > 0);
    assert.match(message._request_id, /^req_/);
  },
  "a stream by its helper": async () => {
    const texts = [];
    const stream = client.messages
      .stream(say("Hello there"))
      .on("text", (text) => texts.push(text));
    const message = await stream.finalMessage();
    assert.equal(texts.join(""), "Hello there");
    assert.equal(message.stop_reason, "end_turn");
    assert.ok(message.usage.output_tokens > 0);
  },
  "raw events": async () => {
    const types = [];
    for await (const event of await client.messages.create({ ...say("Hi"), stream: true })) {
      types.push(event.type);
    }
    assert.equal(types[0], "message_start");
    assert.equal(types.at(-1), "message_stop");
  },
  "calls of tools in a stream": async () => {
    for (const { name } of tools) {
      const tool_choice = { type: "tool", name };
      const message = await client.messages
        .stream({ ...say("x"), tools, tool_choice })
        .finalMessage();
      const [call] = message.content;
      assert.equal(call.name, name);
      assert.deepEqual(Object.keys(call.input), name === "ring" ? [] : ["city"]);
      assert.equal(message.stop_reason, "tool_use");
    }
  },
  "the tool runner, whole": async () => {
    const message = await client.beta.messages.toolRunner(question);
    assert.equal(cities.length, 1);
    assert.match(message.content[0].text, /sunny in/);
  },
  "the tool runner, streamed": async () => {
    let count = 0;
    for await (const stream of client.beta.messages.toolRunner({ ...question, stream: true })) {
      for await (const event of stream) count += event.type === "message_stop" ? 1 : 0;
    }
    assert.equal(count, 2);
    assert.equal(cities.length, 2);
  },
  "a count of tokens": async () => {
    const { model, messages } = say("Hello");
    const { input_tokens } = await client.messages.countTokens({ model, messages, tools });
    assert.ok(input_tokens > 10);
  },
  "the list of models, page by page": async () => {
    const ids = [];
    for await (const { id } of client.models.list({ limit: 1 })) ids.push(id);
    assert.ok(ids.includes("chat-model"));
    assert.equal((await client.models.retrieve("chat-model")).type, "model");
  },
  "thoughts and options of Claude's": async () => {
    const message = await client.messages.create({
      ...say("Hi"),
      max_tokens: 4000,
      thinking: { type: "adaptive" },
      output_config: { effort: "high" },
      cache_control: { type: "ephemeral" },
      metadata: { user_id: "someone" },
    });
    assert.equal(message.content.at(-1).text, "Hi");
  },
  "errors by their classes": async () => {
    const create = (more, own = client) => own.messages.create({ ...say("x"), ...more });
    await failure(create({ max_tokens: 0 }), "BadRequestError", 400);
    await failure(create({ model: "none" }), "NotFoundError", 404);
    await failure(create({}, clientWith(SLUICE_REVOKED_KEY)), "AuthenticationError", 401);
    await failure(create({}, clientWith("sk-wrong")), "AuthenticationError", 401);
    const long = { messages: [{ role: "user", content: "x".repeat(30_000_000) }] };
    await failure(create(long), "ContentTooLargeError", 413);
    await failure(client.messages.batches.list().asResponse(), "NotImplementedError", 501);
    const few = clientWith(SLUICE_FEW_REQUESTS_KEY);
    const many = async () => {
      for (let call = 0; call < 10; call += 1) await create({}, few);
    };
    await failure(many(), "RateLimitError", 429);
  },
});
