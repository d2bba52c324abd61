import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chatOf, errorOf, streamOf } from "../support/bodies.ts";
import type { TestGateway, TestRequestInit } from "../support/gateway.ts";
import { rawServer } from "../support/raw-server.ts";
import { bedrockGatewayOf } from "./bedrock-provider.ts";
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

/** What an upstream has generated is used, whoever rejects or cuts its answer. */

let provider: Provider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = startProvider();
  gateway = await gatewayOf([provider], {
    sections: { answers: "{ chat_limit: 1MiB, chat_values: 100000 }" },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

const chat = {
  model: "chat-model",
  messages: [{ role: "user", content: "Hi" }],
  max_tokens: 1_000,
};
const stop = (fields: object = {}): object => chunk({}, { finish_reason: "stop" }, fields);
const never = (): Promise<Response> => new Promise(() => undefined);

/** The answer to a call and its row in the ledger. */
async function call(fields: object = {}, init: TestRequestInit = {}) {
  const response = await gateway.post("/v1/chat/completions", { ...chat, ...fields }, init);
  await response.clone().text();
  const id = response.headers.get("x-request-id");
  const row = (await gateway.usage()).find((each) => each.id === id);
  if (row === undefined) throw new Error("the call has a row");
  return { response, row };
}

/** Log probabilities with many values. */
const logprobs = {
  content: Array.from({ length: 2_000 }, () => ({ token: "a", logprob: -1, bytes: [97] })),
};
const tooManyValues = completion("a", {
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: 'a {"usage":{"prompt_tokens":1}}' },
      logprobs,
      finish_reason: "stop",
    },
  ],
  usage: {
    prompt_tokens: 12,
    completion_tokens: 900,
    total_tokens: 912,
    completion_tokens_details: { reasoning_tokens: 3 },
  },
});

describe("an answer that is too large for the gateway", () => {
  test("of too many values is asked for once, used as reported, and its 400 names the bound", async () => {
    provider.answers(() => Response.json(tooManyValues));
    const { response, row } = await call();
    expect(response.status).toBe(400);
    const error = await errorOf(response);
    expect(error.code).toBe("answer_too_large");
    expect(error.message).toContain("100000 values");
    expect(provider.requests).toHaveLength(1);
    expect(row).toMatchObject({
      inputTokens: 12,
      outputTokens: 900,
      usageSource: "upstream",
      outcome: "failed",
      status: 400,
    });
  });

  test("of too many bytes costs the reservation", async () => {
    provider.answers(() => whole("a".repeat(2_000_000)));
    const { response, row } = await call();
    expect(response.status).toBe(400);
    expect((await errorOf(response)).message).toContain("1048576 bytes");
    expect(provider.requests).toHaveLength(1);
    expect(row.outputTokens).toBe(1_000);
    expect(row.inputTokens).toBeGreaterThan(0);
    expect(row.usageSource).toBe("estimated");
  });

  test("is refused before it is generated where the request tells its size", async () => {
    provider.answers(({ body }) => (body["stream"] === true ? streamedText("a") : whole("a")));
    const large = { logprobs: true, top_logprobs: 20, max_tokens: 60_000 };
    const { response, row } = await call(large);
    expect(response.status).toBe(400);
    const error = await errorOf(response);
    expect(error.param).toBe("top_logprobs");
    expect(error.message).toContain("stream");
    expect(provider.requests).toHaveLength(0);
    expect(row).toMatchObject({ inputTokens: 0, outputTokens: 0 });
    const most = Number(/room for 1 x (\d+)/.exec(error.message)?.[1]);
    expect((await call({ ...large, max_tokens: most })).response.status).toBe(200);
    const { response: stream } = await call({ ...large, stream: true });
    expect(stream.status).toBe(200);
  });
});

describe("an answer that nobody gets costs what each attempt may have generated", () => {
  const usage = { prompt_tokens: 10, completion_tokens: 700, total_tokens: 710 };
  test("if the first byte does not come in time", async () => {
    await using silent = startProvider(never);
    await using hasty = await gatewayOf([silent], { upstream: "timeouts: { first_byte: 300ms }" });
    const response = await hasty.post("/v1/chat/completions", { ...chat, stream: true });
    expect(response.status).toBe(503);
    const [row] = await hasty.usage();
    const timedOut = row?.routing?.attempts.filter(({ outcome }) => outcome === "timed-out") ?? [];
    expect(timedOut.length).toBeGreaterThan(1);
    expect(row?.outputTokens).toBe(1_000 * timedOut.length);
    expect(row?.usageSource).toBe("estimated");
  });

  test("if it has usage, but no content", async () => {
    provider.answers(() => whole("", { choices: [{ index: 0, finish_reason: "stop" }] }));
    const { response, row } = await call();
    expect(response.status).toBe(503);
    expect(row.attempts).toBeGreaterThan(1);
    expect(row).toMatchObject({
      inputTokens: 10 * row.attempts,
      outputTokens: 5 * row.attempts,
      usageSource: "upstream",
    });
  });

  test("if it is a stream that ends before its first event", async () => {
    provider.answers(() => streamed([usageChunk(usage)], ""));
    const { response, row } = await call({ stream: true });
    expect(response.status).toBe(503);
    expect(row.attempts).toBeGreaterThan(1);
    expect(row.outputTokens).toBe(700 * row.attempts);
  });

  const finished = {
    index: 0,
    message: { role: "assistant", content: "a" },
    finish_reason: "stop",
  };
  test.each([
    [
      "its stream gives up before content",
      () => streamed([chunk({}, { finish_reason: "abort" }, { usage })]),
    ],
    [
      "a whole answer in place of its stream is no answer",
      () =>
        whole("", {
          choices: finished,
          usage,
        }),
    ],
    [
      "a whole answer in place of its stream is broken JSON",
      () => {
        const text = `${JSON.stringify(completion("a", { usage }))}\n\ndata: [DONE]\n\n`;
        return new Response(text, { headers: { "content-type": "application/json" } });
      },
    ],
  ])("if %s", async (_, answer) => {
    provider.answers(answer);
    const { response, row } = await call({ stream: true });
    expect(response.status).toBe(503);
    expect(row.attempts).toBeGreaterThan(1);
    expect(row).toMatchObject({ outputTokens: 700 * row.attempts, usageSource: "upstream" });
  });

  test("if it breaks off after content, in the chunk that tells it", async () => {
    const error = { message: "The server had an error", code: 500 };
    for (const end of [chunk({}, { finish_reason: "abort" }, { usage }), { error, usage }]) {
      provider.answers(() => streamed([chunk({ content: "Hello" }), end]));
      const { row } = await call({ stream: true });
      expect(row).toMatchObject({ inputTokens: 10, outputTokens: 700, usageSource: "upstream" });
    }
  });

  test("if its tool calls exceed a limit of the gateway", async () => {
    const part = { index: 0, function: { arguments: "a".repeat(3_000_000) } };
    const nameless = chunk({ tool_calls: [part] });
    provider.answers(() => streamed([nameless, nameless]));
    const { response, row } = await call({ stream: true });
    expect((await errorOf(response)).code).toBe("answer_too_large");
    expect(provider.requests).toHaveLength(1);
    expect(row.outputTokens).toBe(1_000);
  });

  test.each([
    ["a vector of null", "null"],
    ["a number that is none", "[NaN]"],
    ["one index for two inputs", "[1]"],
  ])("if it has %s", async (_, embedding) => {
    const item = `{"index":0,"embedding":${embedding}}`;
    const told = '"usage":{"prompt_tokens":9,"total_tokens":9}';
    provider.answers(() => new Response(`{"data":[${item},${item}],${told}}`));
    const body = { model: "embedding-model", input: ["a", "b"] };
    const response = await gateway.post("/v1/embeddings", body);
    expect(response.status).toBe(503);
    const [row] = await gateway.usage();
    expect(row).toMatchObject({ inputTokens: 9 * provider.requests.length, outputTokens: 0 });
  });

  test("for a choice that is aborted because another one failed", async () => {
    const both = Promise.withResolvers<void>();
    let asked = 0;
    await using aws = startProvider(async () => {
      asked += 1;
      if (asked > 1) {
        both.resolve();
        return never();
      }
      await both.promise;
      await Bun.sleep(1_100);
      return Response.json({ usage: { inputTokens: 10, outputTokens: 7, totalTokens: 17 } });
    });
    await using bedrock = await bedrockGatewayOf(aws, { sections: { routing: "{ attempts: 1 }" } });
    const body = { ...chat, n: 2 };
    expect((await bedrock.post("/v1/chat/completions", body)).status).toBe(503);
    const [row] = await bedrock.usage();
    expect(row?.outputTokens).toBeGreaterThanOrEqual(207);
    expect(row?.outputTokens).toBeLessThanOrEqual(1_007);
    expect(row?.usageSource).toBe("estimated");
  });

  test("also if a later attempt answers; the caller sees the usage of the answer", async () => {
    let asked = 0;
    provider.answers(() => {
      asked += 1;
      return asked === 1 ? whole("", { choices: [{ index: 0 }] }) : whole("Hello");
    });
    const { response, row } = await call();
    expect((await chatOf(response)).usage).toMatchObject({
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
    });
    expect(row).toMatchObject({ inputTokens: 20, outputTokens: 10, usageSource: "upstream" });
  });

  test("but nothing if connections break at once, as in an outage", async () => {
    using broken = rawServer({ onRequest: (peer) => peer.reset() });
    await using outage = await gatewayOf([{ url: `${broken.url}/v1` }]);
    const response = await outage.post("/v1/chat/completions", chat);
    expect(response.status).toBe(503);
    const [row] = await outage.usage();
    expect(row).toMatchObject({ inputTokens: 0, outputTokens: 0 });
  });

  test.each([408, 504])("and nothing if a proxy answers %d at once", async (status) => {
    provider.answers(() => new Response("", { status }));
    const { response, row } = await call();
    expect(response.status).toBe(503);
    expect(row).toMatchObject({ inputTokens: 0, outputTokens: 0 });
  });

  test("if the caller's own deadline cuts it, what a model generates in that time", async () => {
    await using slow = startProvider(never);
    await using patient = await gatewayOf([slow]);
    const init = { headers: { "x-sluice-timeout-ms": "1100" } };
    const response = await patient.post("/v1/chat/completions", chat, init);
    expect(response.status).toBe(408);
    const [row] = await patient.usage();
    expect(row?.inputTokens).toBeGreaterThan(0);
    expect(row?.outputTokens).toBeGreaterThanOrEqual(200);
    expect(row?.outputTokens).toBeLessThanOrEqual(1_000);
  });
});

test("a key cannot have more generated than its plan and its last call's attempts", async () => {
  await using hostile = startProvider(() => Response.json({ ...tooManyValues, usage: undefined }));
  await using limited = await gatewayOf([hostile], {
    sections: { answers: "{ chat_limit: 1MiB, chat_values: 100000 }" },
    key: { plan: "pilot" },
  });
  const body = { ...chat, max_tokens: 60_000 };
  const statuses: number[] = [];
  for (let count = 0; count < 20; count += 1) {
    const response = await limited.post("/v1/chat/completions", body);
    await response.text();
    statuses.push(response.status);
  }
  expect(statuses.slice(0, 3)).toEqual([400, 429, 429]);
  expect(new Set(statuses.slice(1))).toEqual(new Set([429]));
  expect(hostile.requests).toHaveLength(1);
});

describe("usage is what a call can have used", () => {
  const counts = (prompt: number, output: number, total?: number, more: object = {}): object => ({
    prompt_tokens: prompt,
    completion_tokens: output,
    ...(total !== undefined && { total_tokens: total }),
    ...more,
  });
  const thoughts = (count: number): object => ({
    completion_tokens_details: { reasoning_tokens: count },
  });
  const cached = (count: number): object => ({ prompt_tokens_details: { cached_tokens: count } });

  test.each([
    ["xAI's thoughts beside the output", counts(32, 9, 135, thoughts(94)), [32, 103], "upstream"],
    ["Gemini's thoughts only in the total", counts(21, 0, 81), [21, 60], "upstream"],
    ["thoughts within the output", counts(10, 50, 60, thoughts(40)), [10, 50], "upstream"],
    ["cached input beside the input", counts(10, 5, 1_015, cached(1_000)), [1_010, 5], "upstream"],
    ["a billion tokens of output", counts(10, 1e9, 1e9 + 10), [10, 1_000], "bounded"],
    ["a billion tokens of input", counts(1e9, 5, 1e9 + 5), [200_000, 5], "bounded"],
    ["a billion tokens in the total", counts(10, 5, 1e9), [10, 200_000], "bounded"],
    ["a cache larger than the input", counts(10, 5, 15, cached(1e9)), [10, 5], "bounded"],
  ] as const)("%s", async (_, usage, [inputTokens, outputTokens], usageSource) => {
    provider.answers(() => whole("Hello", { usage }));
    const answered = await call();
    const body = await chatOf(answered.response);
    expect(body.usage).toMatchObject({
      prompt_tokens: inputTokens,
      completion_tokens: outputTokens,
      total_tokens: inputTokens + outputTokens,
    });
    expect(answered.row).toMatchObject({ inputTokens, outputTokens, usageSource });

    const end = chunk({}, { finish_reason: "stop" });
    provider.answers(() => streamed([chunk({ content: "Hello" }), end, usageChunk(usage)]));
    const fields = { stream: true, stream_options: { include_usage: true } };
    const { response, row } = await call(fields);
    const { chunks } = await streamOf(response);
    expect(chunks.at(-1)?.usage).toMatchObject({
      prompt_tokens: inputTokens,
      completion_tokens: outputTokens,
    });
    expect(row).toMatchObject({ inputTokens, outputTokens, usageSource });
  });

  test.each([
    ["in the last choice", (usage: object) => chunk({}, { finish_reason: "stop", usage })],
    ["in a field of the server", (usage: object) => stop({ x_groq: { id: "1", usage } })],
  ])("%s of a stream, it counts too", async (_, last) => {
    provider.answers(() => streamed([chunk({ content: "Hello" }), last(counts(30, 7, 37))]));
    const { response, row } = await call({ stream: true, stream_options: { include_usage: true } });
    const { chunks } = await streamOf(response);
    expect(chunks.at(-1)?.usage).toMatchObject({ prompt_tokens: 30, completion_tokens: 7 });
    expect(row).toMatchObject({ inputTokens: 30, outputTokens: 7, usageSource: "upstream" });
  });

  test("a server that ignores the cap is believed as far as it has delivered", async () => {
    const usage = counts(10, 1_500, 1_510);
    provider.answers(() => whole("word ".repeat(1_500), { usage }));
    expect((await call({ max_tokens: 10 })).row).toMatchObject({
      outputTokens: 1_500,
      usageSource: "upstream",
    });
  });

  test("n choices have n caps", async () => {
    const message = { role: "assistant", content: "Hello" };
    const choices = [0, 1].map((index) => ({ index, message, finish_reason: "stop" }));
    provider.answers(() => whole("", { choices, usage: counts(10, 1e6, 1e6 + 10) }));
    expect((await call({ n: 2 })).row).toMatchObject({
      outputTokens: 2_000,
      usageSource: "bounded",
    });
  });

  test("an input of vectors that only the total tells", async () => {
    const data = [{ object: "embedding", index: 0, embedding: [0.5, 0.25] }];
    provider.answers(() => Response.json({ data, usage: { prompt_tokens: 0, total_tokens: 8 } }));
    const body = { model: "embedding-model", input: "Hi" };
    const response = await gateway.post("/v1/embeddings", body);
    expect(response.status).toBe(200);
    const [row] = await gateway.usage();
    expect(row).toMatchObject({ inputTokens: 8, outputTokens: 0, usageSource: "upstream" });
  });
});
