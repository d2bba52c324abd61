import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chatOf, streamOf } from "../support/bodies.ts";
import {
  chunk,
  completion,
  jsonAnswer,
  ScriptedUpstream,
  streamAnswer,
  type ScriptedAnswer,
} from "./scripted-upstream.ts";

let upstream: ScriptedUpstream;
beforeAll(async () => {
  upstream = await ScriptedUpstream.start();
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
});

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const whole = {
  ...usage,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
};
const text = [chunk({ content: "Hel" }), chunk({ content: "lo" })];
const usageChunk = { ...chunk({}), choices: [], usage };

/** How servers tell the same counts at the end of a stream. */
const tellings: readonly (readonly [string, ScriptedAnswer])[] = [
  ["in a chunk without choices", streamAnswer(...text, chunk({}, "stop"), usageChunk)],
  ["in the finish chunk", streamAnswer(...text, chunk({}, "stop", { usage }))],
  ["in a chunk without a choices field", streamAnswer(...text, chunk({}, "stop"), { usage })],
  [
    "in every chunk, growing",
    streamAnswer(
      chunk({ content: "Hel" }, null, { usage: { prompt_tokens: 10, completion_tokens: 1 } }),
      chunk({ content: "lo" }, null, { usage: { prompt_tokens: 10, completion_tokens: 2 } }),
      chunk({}, "stop", { usage }),
    ),
  ],
  [
    "twice, at the finish and after it",
    streamAnswer(...text, chunk({}, "stop", { usage }), usageChunk),
  ],
  [
    "as null until the end",
    streamAnswer(
      chunk({ content: "Hello" }, null, { usage: null }),
      chunk({}, "stop", { usage: null }),
      usageChunk,
    ),
  ],
  [
    "as texts",
    streamAnswer(
      ...text,
      chunk({}, "stop", { usage: { prompt_tokens: "10", completion_tokens: "5" } }),
    ),
  ],
  [
    "with null details",
    streamAnswer(...text, chunk({}, "stop"), {
      ...usageChunk,
      usage: { ...usage, prompt_tokens_details: null, completion_tokens_details: null },
    }),
  ],
];

describe("usage of a stream", () => {
  test.each(tellings)("%s is one chunk for a caller that asks", async (_name, answer) => {
    const response = await upstream.chat(answer, {
      stream: true,
      stream_options: { include_usage: true },
    });
    const { chunks, isDone } = await streamOf(response);
    expect(isDone).toBe(true);
    const last = chunks.at(-1);
    expect(last?.choices).toEqual([]);
    expect(JSON.stringify(last?.usage)).toBe(JSON.stringify(whole));
    expect(chunks.slice(0, -1).every((each) => each.usage === null)).toBe(true);
    expect(chunks.slice(0, -1).every((each) => each.choices.length === 1)).toBe(true);
  });

  test.each(tellings)("%s is nothing for a caller that does not ask", async (_name, answer) => {
    const response = await upstream.chat(answer, { stream: true });
    const { chunks } = await streamOf(response);
    expect(chunks.every((each) => !("usage" in each) && each.choices.length === 1)).toBe(true);
  });

  test.each(tellings)("%s stands in the ledger", async (_name, answer) => {
    const response = await upstream.chat(answer, { stream: true });
    await response.text();
    const id = response.headers.get("x-request-id");
    const row = (await upstream.gateway.usage()).find((each) => each.id === id);
    expect(row).toMatchObject({ inputTokens: 10, outputTokens: 5, usageSource: "upstream" });
  });

  test("is asked for, whether or not the caller does", async () => {
    await (await upstream.chat(streamAnswer(...text, chunk({}, "stop")), { stream: true })).text();
    expect(upstream.requests.at(-1)).toMatchObject({ stream_options: { include_usage: true } });
  });

  test("that never comes is an estimate in the usage chunk", async () => {
    const response = await upstream.chat(streamAnswer(...text, chunk({}, "stop")), {
      stream: true,
      stream_options: { include_usage: true },
    });
    const { chunks } = await streamOf(response);
    const told = chunks.at(-1)?.usage;
    expect(told?.completion_tokens).toBe(2);
    expect(told?.prompt_tokens).toBeGreaterThan(0);
    expect(told?.total_tokens).toBe((told?.prompt_tokens ?? 0) + 2);
  });
});

describe("usage of a whole answer", () => {
  test.each([
    ["as numbers", usage],
    ["as texts", { prompt_tokens: "10", completion_tokens: "5", total_tokens: "15" }],
    ["with a wrong total", { prompt_tokens: 10, completion_tokens: 5, total_tokens: 3 }],
    ["without a total", { prompt_tokens: 10, completion_tokens: 5 }],
    ["with null details", { ...usage, prompt_tokens_details: null }],
    ["with details of its own", { ...usage, queue_time: 0.1, cost: { total: 1 } }],
  ])("%s is told in OpenAI's form", async (_name, told) => {
    const answer = jsonAnswer(completion({ content: "Hi" }, "stop", { usage: told }));
    const body = await chatOf(await upstream.chat(answer));
    expect(JSON.stringify(body.usage)).toBe(JSON.stringify(whole));
  });

  test("keeps cached and reasoning tokens", async () => {
    const details = {
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 3 },
    };
    const answer = jsonAnswer(
      completion({ content: "Hi" }, "stop", { usage: { ...usage, ...details } }),
    );
    const body = await chatOf(await upstream.chat(answer));
    expect(body.usage).toMatchObject(details);
  });

  test.each([null, undefined, {}, "none"])("that is %p is an estimate", async (told) => {
    const answer = jsonAnswer(completion({ content: "Hi" }, "stop", { usage: told }));
    const { usage: estimate } = await chatOf(await upstream.chat(answer));
    expect(estimate?.prompt_tokens).toBeGreaterThan(0);
    expect(estimate?.completion_tokens).toBe(1);
  });
});
