import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { TestGateway } from "../support/gateway.ts";
import { requests, startGoldenGateway } from "./golden-gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGoldenGateway();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

const chat = "/v1/chat/completions";

interface Refusal {
  readonly name: string;
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;
  readonly type?: string;
  readonly message: string | RegExp;
  send(gateway: TestGateway): Promise<Response>;
}

const badBody =
  (body: object): Refusal["send"] =>
  (target) =>
    target.post(chat, { ...requests.text, ...body });

const refusals: readonly Refusal[] = [
  {
    name: "a key that nobody has",
    status: 401,
    code: "invalid_api_key",
    param: null,
    message: /^Incorrect API key provided: [*a-z0-9-]+\. Send the key of your application/,
    send: ({ url }) =>
      fetch(`${url}/v1/models`, { headers: { authorization: "Bearer sk-wrong-1234567890" } }),
  },
  {
    name: "no key",
    status: 401,
    code: "invalid_api_key",
    param: null,
    message: /^You didn't provide an API key\. Send .*\(Authorization: Bearer YOUR_KEY\)\.$/,
    send: ({ url }) => fetch(`${url}/v1/models`),
  },
  {
    name: "a body that is not JSON",
    status: 400,
    code: null,
    param: null,
    message:
      /^We could not parse the JSON body of your request\. Send one JSON object in UTF-8, (?!.*openai)/i,
    send: (target) => target.post(chat, '{"model":'),
  },
  {
    name: "no model",
    status: 400,
    code: null,
    param: null,
    message: "you must provide a model parameter",
    send: (target) => target.post(chat, { messages: requests.text.messages }),
  },
  {
    name: "a model that the environment does not have",
    status: 400,
    code: "invalid_model",
    param: "model",
    message: /no-such-model/,
    send: badBody({ model: "no-such-model" }),
  },
  {
    name: "an embedding model for chat",
    status: 400,
    code: "invalid_model",
    param: "model",
    message: /embedding-model/,
    send: badBody({ model: "embedding-model" }),
  },
  {
    name: "no messages",
    status: 400,
    code: "missing_required_parameter",
    param: "messages",
    message: "Missing required parameter: 'messages'.",
    send: (target) => target.post(chat, { model: "chat-model" }),
  },
  {
    name: "empty messages",
    status: 400,
    code: "empty_array",
    param: "messages",
    message:
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an " +
      "empty array instead.",
    send: badBody({ messages: [] }),
  },
  {
    name: "content of the wrong type",
    status: 400,
    code: "invalid_type",
    param: "messages[0].content",
    message:
      "Invalid type for 'messages[0].content': expected one of a string or array of objects, " +
      "but got an object instead.",
    send: badBody({ messages: [{ role: "user", content: {} }] }),
  },
  {
    name: "a number over its maximum",
    status: 400,
    code: "decimal_above_max_value",
    param: "temperature",
    message:
      "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 200 " +
      "instead.",
    send: badBody({ temperature: 200 }),
  },
  {
    name: "stream_options without a stream",
    status: 400,
    code: null,
    param: "stream_options",
    message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    send: badBody({ stream_options: { include_usage: true } }),
  },
  {
    name: "a larger answer than the model can give",
    status: 400,
    code: "invalid_value",
    param: "max_tokens",
    message:
      "max_tokens is too large: 64001. This model supports at most 64000 completion tokens, " +
      "whereas you provided 64001.",
    send: badBody({ max_tokens: 64_001 }),
  },
  {
    name: "invalid embedding input",
    status: 400,
    code: null,
    param: "input",
    message: /^'\$\.input' is invalid\. Please check the API reference/,
    send: (target) => target.post("/v1/embeddings", { model: "embedding-model", input: [] }),
  },
  {
    name: "a URL that is not there",
    status: 404,
    code: "unknown_url",
    param: null,
    message: /^Unknown request URL: POST \/v1\/complete\. Please check the URL for typos/,
    send: (target) => target.post("/v1/complete", {}),
  },
  {
    name: "an API that is not served",
    status: 404,
    code: "unknown_url",
    param: null,
    message:
      "Unknown request URL: POST /v1/conversations. Conversations are not stored here; send the " +
      "whole conversation to POST /v1/responses as 'input'. Sluice's docs/clients.md has set-ups for clients.",
    send: (target) => target.post("/v1/conversations", {}),
  },
  {
    name: "a method that the URL does not take",
    status: 405,
    code: null,
    param: null,
    message:
      "Not allowed to POST on /v1/models. (HINT: Perhaps you meant to use a different HTTP " +
      "method?)",
    send: (target) => target.post("/v1/models", {}),
  },
  {
    name: "another content type",
    status: 415,
    code: "unsupported_content_type",
    param: null,
    message:
      "Unsupported content type: 'text/plain'. This API method only accepts 'application/json' " +
      "requests, but you specified the header 'Content-Type: text/plain'. Please try again with " +
      "a supported content type.",
    send: (target) => target.post(chat, "{}", { headers: { "content-type": "text/plain" } }),
  },
  {
    name: "an upstream that is overloaded",
    status: 503,
    code: "model_unavailable",
    param: null,
    type: "server_error",
    message: /^The model is temporarily unavailable: the provider is overloaded\. /,
    send: badBody({ model: "failing-model" }),
  },
  {
    name: "an upstream that is overloaded before a stream began",
    status: 503,
    code: "model_unavailable",
    param: null,
    type: "server_error",
    message: /^The model is temporarily unavailable: the provider is overloaded\. /,
    send: badBody({ model: "failing-model", stream: true }),
  },
];

describe("an error", () => {
  test.each(refusals)("$name", async (expected) => {
    const response = await expected.send(gateway);
    expect(response.status).toBe(expected.status);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
    const retried = expected.status >= 500 ? "true" : "false";
    expect(response.headers.get("x-should-retry")).toBe(retried);
    const body = (await response.json()) as { error: Record<string, unknown> };
    expect(Object.keys(body)).toEqual(["error"]);
    expect(Object.keys(body.error)).toEqual(["message", "type", "param", "code"]);
    const { type = "invalid_request_error", param, code, message } = expected;
    expect(body.error).toMatchObject({ type, param, code });
    if (typeof message === "string") expect(body.error["message"]).toBe(message);
    else expect(body.error["message"]).toMatch(message);
  });
});

test("a key that is refused is never repeated in full", async () => {
  const secret = "sk-live-0123456789abcdefghij";
  const response = await fetch(`${gateway.url}/v1/models`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  expect(await response.text()).not.toContain(secret.slice(8, -4));
});
