import { afterAll, beforeAll, expect, test } from "bun:test";
import { chatOf, errorOf } from "../support/bodies.ts";
import type { TestGateway } from "../support/gateway.ts";
import { chunk, gatewayOf, startProvider, streamed, whole, type Provider } from "./provider.ts";

/** Errors of providers in the shapes that they have. */

let provider: Provider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = startProvider();
  gateway = await gatewayOf([provider]);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

const chat = { model: "chat-model", messages: [{ role: "user", content: "Hi" }] };
const post = (stream: boolean) => gateway.post("/v1/chat/completions", { ...chat, stream });

const words = "temperature must be between 0 and 2";
const shapes: readonly (readonly [string, unknown])[] = [
  ["an object", { error: { message: words } }],
  ["a list", [{ error: { message: words, code: 400, status: "INVALID_ARGUMENT" } }]],
  ["a list of errors", { errors: [{ message: words, code: 1000 }] }],
  ["an error in an error", { error: { error: { message: words } } }],
  ["a text", { error: words }],
  ["a title and a message", { statusCode: 400, error: "Bad Request", message: words }],
  ["a list of messages", { statusCode: 400, error: "Bad Request", message: [words] }],
  ["FastAPI's detail", { detail: words }],
  ["FastAPI's details", { detail: [{ loc: ["body"], msg: words, input: "secret" }] }],
  ["a detail with an error", { detail: { error: words } }],
  ["Anthropic's", { type: "error", error: { type: "invalid_request_error", message: words } }],
  ["a JSON text", words],
  [
    "a proxy's, with the provider's body as its message",
    { error: { message: JSON.stringify({ error: { code: 400, message: words } }) } },
  ],
  [
    "a proxy's, with the provider's list as its message",
    { error: { message: `\n${JSON.stringify([{ error: { message: words } }])}\n` } },
  ],
  [
    "OpenRouter's, with the provider's body beside its own words",
    {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: { raw: JSON.stringify({ error: { message: words } }), provider_name: "X" },
      },
    },
  ],
];

test.each(shapes)("%s reaches the caller with its message", async (_, body) => {
  for (const stream of [false, true]) {
    provider.answers(() => Response.json(body, { status: 400 }));
    const response = await post(stream);
    expect([response.status, await errorOf(response)]).toEqual([
      400,
      { message: words, type: "invalid_request_error", param: null, code: null },
    ]);
    expect(provider.requests).toHaveLength(1);
  }
});

test.each([
  ["text/plain", words, words],
  ["text/html", `<html><body>${words}</body></html>`, "gave no reason"],
  ["application/json", "", "gave no reason"],
])("a body of %s is read if it is for programs", async (type, body, told) => {
  provider.answers(() => new Response(body, { status: 400, headers: { "content-type": type } }));
  expect((await errorOf(await post(false))).message).toContain(told);
});

test.each([
  ["an event", `data: ${JSON.stringify({ error: { message: words } })}\n\n`],
  ["a named event", `event: error\ndata: ${JSON.stringify({ error: { message: words } })}\n\n`],
  ["an event with its end", `data:{"detail":"${words}"}\r\n\r\ndata: [DONE]\r\n\r\n`],
])("a refusal that is %s has its message", async (_, body) => {
  const headers = { "content-type": "text/event-stream" };
  provider.answers(() => new Response(body, { status: 400, headers }));
  expect((await errorOf(await post(true))).message).toBe(words);
});

test.each([
  ["an empty one", {}],
  ["one-api's empty one", { message: "", type: "", param: "", code: null }],
  ["a code for success", { message: "", code: 0 }],
])("an error that is %s, beside an answer, is none", async (_, error) => {
  provider.answers(() => whole("Hello", { error }));
  expect((await chatOf(await post(false))).choices[0]?.message.content).toBe("Hello");
  provider.answers(() =>
    streamed([chunk({ content: "Hello" }, {}, { error }), chunk({}, { finish_reason: "stop" })]),
  );
  const text = await (await post(true)).text();
  expect(text).toContain("Hello");
  expect(text).not.toContain('"error"');
});

const overflows: readonly (readonly [string, number, unknown])[] = [
  [
    "Google's list",
    400,
    [
      {
        error: {
          code: 400,
          message:
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
          status: "INVALID_ARGUMENT",
        },
      },
    ],
  ],
  [
    "Google's older words",
    400,
    {
      error: {
        message:
          "Unable to submit request because the input token count is 40000 but model only " +
          "supports up to 32768. Reduce the input token count and try again.",
      },
    },
  ],
  [
    "xAI's",
    400,
    {
      code: "Client specified an invalid argument",
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
  ],
  ["Ollama's 500", 500, { error: { message: "the input length exceeds the context length" } }],
  [
    "Ollama's newer 500",
    500,
    { error: { message: "input length exceeds maximum context length" } },
  ],
  [
    "llama.cpp's 500 for an input to embed",
    500,
    {
      error: {
        code: 500,
        message:
          "input (1000 tokens) is too large to process. increase the physical batch size " +
          "(current batch size: 512)",
        type: "server_error",
      },
    },
  ],
  [
    "Cohere's",
    400,
    {
      message:
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
    },
  ],
  [
    "Anthropic's, with the output",
    400,
    {
      type: "error",
      error: {
        type: "invalid_request_error",
        message:
          "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease " +
          "input length or `max_tokens` and try again",
      },
    },
  ],
  [
    "a text embedding server's 413",
    413,
    { error: "Input validation error: `inputs` must have less than 512 tokens. Given: 1000" },
  ],
  [
    "text generation servers'",
    422,
    { error: "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097" },
  ],
  ["SGLang's", 400, { message: "Input length (9000 tokens) exceeds the maximum allowed length" }],
  ["Moonshot's", 400, { error: { message: "Your request exceeded model token limit: 8192" } }],
  ["Copilot's code", 400, { error: { code: "model_max_prompt_tokens_exceeded", message: "no" } }],
  [
    "vLLM's newer words",
    400,
    {
      error: {
        message:
          "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
      },
    },
  ],
  [
    "a provider's behind OpenRouter",
    400,
    {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: { raw: '{"error":{"message":"prompt is too long: 2 tokens > 1 maximum"}}' },
      },
    },
  ],
];

test.each(overflows)("%s is context_length_exceeded", async (_, status, body) => {
  for (const stream of [false, true]) {
    provider.answers(() => Response.json(body, { status }));
    const response = await post(stream);
    const { code, param, message } = await errorOf(response);
    expect([response.status, code, param]).toEqual([400, "context_length_exceeded", "messages"]);
    expect(message).toStartWith("This model's maximum ");
    expect(provider.requests).toHaveLength(1);
  }
});

test("an overflow of a small model goes to a fallback with a larger window", async () => {
  const [, , body] = overflows[0] ?? [];
  await using small = startProvider(() => Response.json(body, { status: 400 }));
  await using large = startProvider(() => whole("from the large one"));
  await using local = await gatewayOf([small], {
    sections: {
      upstreams: `
  small: { kind: openai, base_url: "${small.url}" }
  large: { kind: openai, base_url: "${large.url}" }`,
      models: `
  chat-model:
    kind: chat
    context_window: 100000
    fallbacks: [large-model]
    targets: [{ upstream: small, model: m }]
  large-model:
    kind: chat
    context_window: 200000
    targets: [{ upstream: large, model: m }]`,
    },
  });
  const answer = await chatOf(await local.post("/v1/chat/completions", chat));
  expect(answer.choices[0]?.message.content).toBe("from the large one");
});

const kinds: readonly (readonly [string, number, unknown, number, string | null])[] = [
  [
    "Google's 400 for a wrong key",
    400,
    [
      {
        error: {
          code: 400,
          message: "API key not valid. Please pass a valid API key.",
          status: "INVALID_ARGUMENT",
          details: [
            { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" },
          ],
        },
      },
    ],
    503,
    "model_unavailable",
  ],
  [
    "a 404 about something else that the request names",
    404,
    { error: { message: "No such file", param: "messages[0].content[0].file_id" } },
    400,
    null,
  ],
  [
    "OpenRouter's 404 for images",
    404,
    { error: { message: "No endpoints found that support image input", code: 404 } },
    400,
    "unsupported_parameter",
  ],
  [
    "OpenRouter's 403 for flagged content",
    403,
    {
      error: {
        message: "Your input was flagged",
        code: 403,
        metadata: { reasons: ["violence"], flagged_input: "..." },
      },
    },
    400,
    "content_policy_violation",
  ],
  [
    "Alibaba's refusal of content",
    400,
    { error: { message: "Input data may contain ...", code: "data_inspection_failed" } },
    400,
    "content_policy_violation",
  ],
];

test.each(kinds)("%s has its meaning", async (_, status, body, told, code) => {
  provider.answers(() => Response.json(body, { status }));
  const response = await post(false);
  expect([response.status, (await errorOf(response)).code]).toEqual([told, code]);
  expect(provider.requests).toHaveLength(1);
});

test("Google's retryDelay is the wait of a 429", async () => {
  const details = [
    { "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [] },
    { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.5s" },
  ];
  const error = { code: 429, message: "quota", status: "RESOURCE_EXHAUSTED", details };
  provider.answers(() => Response.json([{ error }], { status: 429 }));
  const response = await post(false);
  expect([response.status, response.headers.get("retry-after-ms")]).toEqual([503, "34500"]);
});
