import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chatOf, errorOf, streamOf } from "../support/bodies.ts";
import type { TestGateway } from "../support/gateway.ts";
import {
  chunk,
  completion,
  gatewayOf,
  startProvider,
  streamed,
  streamedText,
  usageChunk,
  whole,
  type Provider,
} from "./provider.ts";

/** The answer, not the request, decides how it is read: servers answer in the other form. */

const messages = [{ role: "user", content: "Hi" }];
let first: Provider;
let second: Provider;
let gateway: TestGateway;
beforeAll(async () => {
  first = startProvider();
  second = startProvider();
  gateway = await gatewayOf([first, second]);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});

const ask = (fields: object = {}): Promise<Response> =>
  gateway.post("/v1/chat/completions", { model: "chat-model", messages, ...fields });
const askStream = (): Promise<Response> =>
  ask({ stream: true, stream_options: { include_usage: true } });

const toolCall = {
  id: "call_1",
  type: "function",
  function: { name: "look", arguments: '{"city":"Kyiv"}' },
};
const logprobs = { content: [{ token: "Hel", logprob: -1, bytes: null, top_logprobs: [] }] };
const said = {
  role: "assistant",
  content: "Hello ".repeat(300),
  reasoning_content: "Let me see.",
  tool_calls: [toolCall],
};
const wholeAnswer = completion("", {
  choices: [{ index: 0, message: said, logprobs, finish_reason: "tool_calls" }],
});
const chunks = [
  chunk({ role: "assistant", content: "" }),
  chunk({ reasoning_content: "Let me see." }),
  chunk({ content: "Hello ".repeat(150) }, { logprobs }),
  chunk({ content: "Hello ".repeat(150) }),
  chunk({
    tool_calls: [{ ...toolCall, index: 0, function: { name: "look", arguments: '{"city":' } }],
  }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '"Kyiv"}' } }] }),
  chunk({}, { finish_reason: "tool_calls" }),
  usageChunk({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }),
];
const sse = chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

const text = (body: string, type: string): Response =>
  new Response(body, { headers: { "content-type": type } });

const jsonForms: readonly (readonly [string, () => Response])[] = [
  ["as JSON", () => Response.json(wholeAnswer)],
  ["named an event stream", () => text(JSON.stringify(wholeAnswer), "text/event-stream")],
  ["after a byte order mark", () => text(`\uFEFF${JSON.stringify(wholeAnswer)}`, "text/plain")],
  ["after white space", () => text(`\r\n  ${JSON.stringify(wholeAnswer)}`, "application/json")],
];

test.each(jsonForms)("a whole answer to a stream request, %s, is replayed", async (_, answer) => {
  first.answers(answer);
  const { chunks: got, isDone } = await streamOf(await askStream());
  const deltas = got.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  const join = (field: "content" | "reasoning_content"): string =>
    deltas.map((delta) => (delta as Record<string, string | null>)[field] ?? "").join("");
  const calls = deltas.flatMap(({ tool_calls: some }) => some ?? []);
  expect({
    content: join("content"),
    thoughts: join("reasoning_content"),
    id: calls[0]?.id,
    name: calls[0]?.function?.name,
    arguments: calls.map((call) => call.function?.arguments ?? "").join(""),
    logprobs: got.flatMap(({ choices }) => choices[0]?.logprobs?.content ?? []),
    finish: got.flatMap(({ choices }) => choices[0]?.finish_reason ?? []),
    usage: got.at(-1)?.usage,
    isDone,
    asked: first.requests.length + second.requests.length,
  }).toMatchObject({
    content: said.content,
    thoughts: said.reasoning_content,
    id: "call_1",
    name: "look",
    arguments: toolCall.function.arguments,
    logprobs: logprobs.content,
    finish: ["tool_calls"],
    usage,
    isDone: true,
    asked: 1,
  });
  const [row] = await gateway.usage();
  expect(row).toMatchObject({ inputTokens: 10, outputTokens: 5 });
});

const streamForms: readonly (readonly [string, () => Response])[] = [
  ["as an event stream", () => streamed(chunks)],
  ["named JSON", () => text(`${sse}data: [DONE]\n\n`, "application/json")],
  ["without [DONE]", () => text(sse, "text/event-stream")],
  ["after a byte order mark", () => text(`\uFEFF${sse}`, "text/event-stream")],
  ["with CRLF", () => text(sse.replaceAll("\n", "\r\n"), "text/event-stream")],
  ["after a comment", () => text(`: processing\n\n${sse}`, "text/event-stream")],
  [
    "with named events",
    () => text(sse.replaceAll("data: ", "event: message\ndata: "), "text/event-stream"),
  ],
];

test.each(streamForms)(
  "a stream that answers a whole request, %s, is assembled",
  async (_, answer) => {
    first.answers(answer);
    const body = await chatOf(await ask());
    expect(body.choices).toMatchObject([
      {
        index: 0,
        message: said,
        logprobs: { content: logprobs.content },
        finish_reason: "tool_calls",
      },
    ]);
    expect(body.usage).toMatchObject(usage);
    expect(first.requests.length + second.requests.length).toBe(1);
    const [row] = await gateway.usage();
    expect(row).toMatchObject({ inputTokens: 10, outputTokens: 5 });
  },
);

test("several choices are assembled, and replayed", async () => {
  const choice = (index: number, content: string) => ({
    index,
    message: { role: "assistant", content },
    finish_reason: "stop",
  });
  first.answers(() =>
    streamed([
      chunk({ content: "a" }),
      chunk({ content: "b" }, { index: 1 }),
      chunk({ content: "A" }),
      chunk({}, { finish_reason: "stop" }),
      chunk({}, { index: 1, finish_reason: "length" }),
    ]),
  );
  const { choices } = await chatOf(await ask({ n: 2 }));
  expect(choices.map(({ message, finish_reason: reason }) => [message.content, reason])).toEqual([
    ["aA", "stop"],
    ["b", "length"],
  ]);
  first.answers(() => whole("", { choices: [choice(0, "a"), choice(1, "b")] }));
  const { chunks: got } = await streamOf(await ask({ n: 2, stream: true }));
  const texts = ["", ""];
  for (const { choices: some } of got) {
    for (const { index, delta } of some) texts[index] += delta.content ?? "";
  }
  expect(texts).toEqual(["a", "b"]);
});

describe("an answer in the other form that is cut", () => {
  const half = JSON.stringify(wholeAnswer).slice(0, 900);
  test.each([
    ["stream", true, () => text(half, "application/json")],
    [
      "whole answer",
      false,
      () => text(sse.slice(0, sse.indexOf('"tool_calls"')), "text/event-stream"),
    ],
  ])("is no %s; the next target serves", async (_, stream, answer) => {
    first.answers(answer);
    second.answers(() => (stream ? streamedText("spare") : whole("spare")));
    const response = await ask({ stream });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("spare");
  });
});

test("a whole answer in place of a stream has the bounds of whole answers", async () => {
  const values = Array.from({ length: 30_000 }, () => ({ a: 1 }));
  const answers = [whole("x".repeat(1_100_000)), whole("Hello", { values })];
  await using failing = startProvider(() => answers.shift() ?? whole("Hello"));
  await using spare = startProvider(() => streamedText("spare"));
  const sections = { answers: "{ chat_limit: 1MiB, chat_values: 100000 }" };
  await using own = await gatewayOf([failing, spare], { sections });
  const asked = { model: "chat-model", messages, stream: true };
  for (const bound of ["1048576 bytes", "100000 values"]) {
    const response = await own.post("/v1/chat/completions", asked);
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({
      code: "answer_too_large",
      message: expect.stringContaining(bound),
    });
  }
  const response = await own.post("/v1/chat/completions", asked);
  expect(await response.text()).toContain('"content":"Hello"');
  expect(spare.requests).toHaveLength(0);
});

test("an error in a list is one for embeddings, too", async () => {
  await using failing = startProvider(() => Response.json([{ error: refusal }]));
  await using own = await gatewayOf([failing]);
  const response = await own.post("/v1/embeddings", { model: "embedding-model", input: "Hi" });
  expect(response.status).toBe(503);
  const [row] = await own.usage();
  expect(row?.routing?.attempts?.[0]).toMatchObject({ outcome: "throttled" });
});

const refusal = {
  message: "Resource has been exhausted.",
  code: 429,
  status: "RESOURCE_EXHAUSTED",
};
const empty = { role: "assistant", content: "" };
const errorForms: readonly (readonly [string, unknown])[] = [
  ["an object", { error: refusal }],
  ["a list", [{ error: refusal }]],
  [
    "an error in a choice",
    { choices: [{ index: 0, message: empty, error: refusal, finish_reason: "error" }] },
  ],
  [
    "an error beside a text",
    {
      choices: [
        { index: 0, message: { ...empty, content: "Hel" }, error: refusal, finish_reason: "error" },
      ],
    },
  ],
  ["an error in a message", { choices: [{ index: 0, message: { ...empty, error: refusal } }] }],
  [
    "an error in the second choice",
    {
      choices: [
        { index: 0, message: empty, finish_reason: "stop" },
        { index: 1, error: refusal },
      ],
    },
  ],
];

describe.each(errorForms)("a 2xx error as %s", (_, body) => {
  const event = `data: ${JSON.stringify(body)}\n\n`.replaceAll(
    '"message":{"role"',
    '"delta":{"role"',
  );
  const hello = `data: ${JSON.stringify(chunk({ content: "Hello" }))}\n\n`;
  const forms: readonly (readonly [string, boolean, () => Response])[] = [
    ["a whole answer", false, () => Response.json(body)],
    ["the answer to a stream request", true, () => Response.json(body)],
    ["the first event", true, () => text(event, "text/event-stream")],
  ];

  test.each(forms)("in %s moves to the next target", async (_, stream, answer) => {
    await using failing = startProvider(answer);
    await using spare = startProvider(() => (stream ? streamedText("spare") : whole("spare")));
    await using own = await gatewayOf([failing, spare]);
    const response = await own.post("/v1/chat/completions", {
      model: "chat-model",
      messages,
      stream,
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("spare");
    const [row] = await own.usage();
    expect(row?.routing?.attempts?.[0]).toMatchObject({ outcome: "throttled" });
  });

  test("after content is one error frame", async () => {
    await using failing = startProvider(() => text(hello + event, "text/event-stream"));
    await using own = await gatewayOf([failing]);
    const asked = { model: "chat-model", messages, stream: true };
    const late = await (await own.post("/v1/chat/completions", asked)).text();
    expect(late).toContain('"content":"Hello"');
    expect(late).toContain('data: {"error":');
    expect(late).not.toContain("[DONE]");
    expect(late).not.toContain('"finish_reason":"');
  });
});

test.each([false, true])("a 2xx error in a choice has its code; stream: %p", async (stream) => {
  const error = { message: "This model's maximum context length is 8 tokens.", code: 400 };
  await using failing = startProvider(() => Response.json({ choices: [{ index: 0, error }] }));
  await using own = await gatewayOf([failing]);
  const asked = { model: "chat-model", messages, stream };
  const response = await own.post("/v1/chat/completions", asked);
  expect(response.status).toBe(400);
  expect(await errorOf(response)).toMatchObject({ code: "context_length_exceeded" });
});
