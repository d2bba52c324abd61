import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chatOf, parseStream } from "../support/bodies.ts";
import type { TestGateway } from "../support/gateway.ts";
import {
  chunk,
  completion,
  gatewayOf,
  startProvider,
  streamed,
  usageChunk,
  whole,
  type Provider,
} from "./provider.ts";

/** Fields of an answer that Sluice has no name for stay where they stood, and go back to their author. */

const question = { role: "user", content: "Hi" };
let provider: Provider;
let other: Provider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = startProvider();
  other = startProvider();
  gateway = await gatewayOf([provider, other]);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});

const ask = (fields: object = {}): Promise<Response> =>
  gateway.post("/v1/chat/completions", { model: "chat-model", messages: [question], ...fields });

type Fields = Readonly<Record<string, unknown>>;

const signature = { google: { thought_signature: "c2lnbmF0dXJl" } };
const audio = { id: "audio_1", data: "AAAA", transcript: "Hello", expires_at: 17 };
const annotations = [
  { type: "url_citation", url_citation: { url: "https://a.example", title: "A" } },
];
const toolCall = {
  id: "call_1",
  type: "function",
  function: { name: "look", arguments: '{"city":"Kyiv"}', strictness: 2 },
  extra_content: signature,
};
const usage = {
  prompt_tokens: 10,
  completion_tokens: 5,
  total_tokens: 15,
  prompt_tokens_details: { cached_tokens: 4, audio_tokens: 3, text_tokens: 7 },
  completion_tokens_details: { audio_tokens: 2, accepted_prediction_tokens: 1, image_tokens: 900 },
};
const wantedUsage = {
  prompt_tokens: 10,
  prompt_tokens_details: { cached_tokens: 4, audio_tokens: 3, text_tokens: 7 },
  completion_tokens_details: {
    audio_tokens: 2,
    accepted_prediction_tokens: 1,
    rejected_prediction_tokens: 0,
    // More than there are tokens is nonsense.
    image_tokens: 5,
  },
};
const message = {
  role: "assistant",
  content: "Hello",
  audio,
  annotations,
  reasoning_details: [{ a: 1 }],
};
const beside = { stop_reason: "END", content_filter_results: { hate: { filtered: false } } };
const answer = completion("", {
  citations: ["https://a.example"],
  choices: [
    { index: 0, message: { ...message, tool_calls: [toolCall] }, finish_reason: "stop", ...beside },
  ],
  usage,
});
const chunks = [
  { ...chunk({ role: "assistant", content: "" }), citations: ["https://a.example"] },
  chunk({ content: "Hel", annotations }),
  chunk({ content: "lo", reasoning_details: [{ a: 1 }] }),
  chunk({ audio: { id: "audio_1", data: "AA", transcript: "Hel" } }),
  chunk({ audio: { data: "AA", transcript: "lo", expires_at: 17 } }),
  chunk({ tool_calls: [{ ...toolCall, index: 0 }] }),
  chunk({}, { finish_reason: "stop", ...beside }),
  usageChunk(usage),
];
const forms = [
  ["a whole answer", () => Response.json(answer)],
  ["a stream", () => streamed(chunks)],
] as const;

describe.each(forms)("the fields of %s", (_, answerAs) => {
  test("are in the whole answer of the caller", async () => {
    provider.answers(answerAs);
    const body = await chatOf(await ask());
    expect(body).toMatchObject({ citations: ["https://a.example"], usage: wantedUsage });
    // The id is the account's own.
    const tagged = { ...audio, id: expect.stringMatching(/^s1\.[\w-]{22}\.audio_1$/) };
    expect(body.choices[0]).toMatchObject({ message: { ...message, audio: tagged }, ...beside });
    const { id: _id, ...call } = toolCall;
    expect(body.choices[0]?.message.tool_calls).toMatchObject([call]);
  });

  test("are in the stream of the caller", async () => {
    provider.answers(answerAs);
    const response = await ask({ stream: true, stream_options: { include_usage: true } });
    const { chunks: got, isDone } = parseStream(await response.text());
    const choices = got.flatMap(({ choices: some }) => some as unknown as Fields[]);
    const deltas = choices.map(({ delta }) => delta as Fields);
    const sent = (field: string): unknown[] =>
      deltas.map((delta) => delta[field]).filter((value) => value !== undefined);
    expect(isDone).toBe(true);
    expect(sent("annotations")).toEqual([annotations]);
    expect(sent("reasoning_details")).toEqual([[{ a: 1 }]]);
    const sounds = sent("audio") as { readonly data: string; readonly transcript: string }[];
    expect(sounds.map(({ data }) => data).join("")).toBe("AAAA");
    expect(sounds.map(({ transcript }) => transcript).join("")).toBe("Hello");
    const [start] = (sent("tool_calls") as Fields[][]).flat();
    expect(start).toMatchObject({
      extra_content: signature,
      function: { name: "look", strictness: 2 },
    });
    expect(choices.find((choice) => choice["finish_reason"] !== null)).toMatchObject(beside);
    expect(got.filter((each) => "citations" in each)).toHaveLength(1);
    expect(got.at(-1)?.usage).toMatchObject(wantedUsage);
    const roles = sent("role");
    expect(roles).toEqual(["assistant"]);
  });
});

test("a field of an answer changes no object of the gateway, and no answer of another caller", async () => {
  const named = (text: string): string => text.replaceAll("hidden", "__proto__");
  const hidden = { hidden: { leaked: "of another caller" } };
  const call = { ...toolCall, index: 0, extra_content: hidden, function: { name: "look", hidden } };
  const fields = { hidden, audio: hidden, tool_calls: [call] };
  for (const answer of [
    Response.json(
      completion("", { choices: [{ index: 0, message: fields, finish_reason: "stop" }] }),
    ),
    streamed([chunk(fields), chunk({}, { finish_reason: "tool_calls" })]),
  ]) {
    const text = named(await answer.text());
    provider.answers(() => new Response(text, answer));
    await (await ask()).text();
    await (await ask({ stream: true })).text();
    expect("leaked" in {}).toBe(false);
  }
});

test("fields that vary from chunk to chunk are in each, and constant ones too", async () => {
  provider.answers(() =>
    streamed([
      ...[1, 2, 3, 4].map((token) => chunk({ content: `${token} ` }, { token_ids: [token] })),
      ...[5, 6, 7, 8].map((token) => chunk({ content: `${token} ` }, { safe: { hate: false } })),
      chunk({}, { finish_reason: "stop" }),
    ]),
  );
  const { chunks: got } = parseStream(await (await ask({ stream: true })).text());
  const said = got.flatMap(({ choices }) => choices as unknown as Fields[]);
  const fields = said
    .filter(({ delta }) => ((delta as Fields)["content"] ?? "") !== "")
    .map(({ delta, token_ids: tokens, safe }) => [(delta as Fields)["content"], tokens ?? safe]);
  expect(fields).toEqual([
    ...[1, 2, 3, 4].map((token) => [`${token} `, [token]]),
    ...[5, 6, 7, 8].map((token) => [`${token} `, { hate: false }]),
  ]);
});

test("fields of a call that come in several pieces before its name are in the stream", async () => {
  const piece = (call: object) => chunk({ tool_calls: [{ index: 0, id: "call_1", ...call }] });
  provider.answers(() =>
    streamed([
      piece({ extra_content: signature }),
      piece({ note: "a" }),
      piece({ function: { name: "look", arguments: "{}" } }),
      chunk({}, { finish_reason: "tool_calls" }),
    ]),
  );
  const { chunks } = parseStream(await (await ask({ stream: true })).text());
  const calls = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
  expect(calls[0]).toMatchObject({ extra_content: signature, note: "a" });
});

test("fields beside the usage, after the end of the choice, reach the caller beside the usage", async () => {
  const citations = ["https://a.example"];
  const last = { ...usageChunk(usage), citations };
  for (const word of ["stop", "banana"]) {
    const end = chunk({}, { finish_reason: word });
    provider.answers(() => streamed([chunk({ content: "Hello" }), end, last]));
    expect(await chatOf(await ask())).toMatchObject({ citations, usage: wantedUsage });
    const streaming = { stream: true, stream_options: { include_usage: true } };
    const text = await (await ask(streaming)).text();
    const { chunks: got, isDone } = parseStream(text);
    expect(got.findIndex((each) => "citations" in each)).toBe(got.length - 1);
    expect(isDone).toBe(true);
  }
});

test("fields of choices are held until there is content: another target can still answer", async () => {
  await using failing = startProvider(() =>
    streamed([
      { ...chunk({}), choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
      chunk({ role: "assistant", content: "" }, { content_filter_results: {} }),
      { error: { message: "busy", code: 503 } },
    ]),
  );
  await using spare = startProvider(() =>
    streamed([chunk({ content: "spare" }, { finish_reason: "stop" })]),
  );
  await using own = await gatewayOf([failing, spare]);
  const asked = { model: "chat-model", messages: [question], stream: true };
  const text = await (await own.post("/v1/chat/completions", asked)).text();
  expect(text).toContain("spare");
  expect(text).not.toContain("filter");
});

test("names of the provider, its costs and its own notes stay here, and empty fields", async () => {
  const secret = {
    provider: "DeepSomething",
    native_finish_reason: "STOP",
    kv_transfer_params: { remote_host: "10.0.0.1" },
    x_groq: { id: "req" },
    _hidden_params: { api_base: "http://10.0.0.1" },
    obfuscation: "xxxxxxxx",
    seed: null,
    annotations: [],
  };
  const choice = {
    index: 0,
    message: { role: "assistant", content: "Hi", reasoning: "Hm", ...secret },
  };
  provider.answers(() =>
    whole("", {
      choices: [{ ...choice, finish_reason: "stop", ...secret }],
      ...secret,
      usage: { ...usage, cost: 1, completion_tokens_details: { cost: 3 } },
    }),
  );
  const text = await (await ask()).text();
  for (const word of [
    "DeepSomething",
    "STOP",
    "10.0.0.1",
    "req",
    "xxxx",
    "seed",
    "cost",
    '"reasoning"',
  ]) {
    expect(text).not.toContain(word);
  }
  expect(text.split("Hm")).toHaveLength(2);
});

test("of the sound of an answer only the id goes back, and to no other account", async () => {
  provider.answers(() => whole("", { choices: [{ index: 0, message: { audio } }] }));
  const { choices } = await chatOf(await ask());
  const spoken = (choices[0]?.message as unknown as Fields | undefined)?.["audio"];
  expect(spoken).toEqual({ ...audio, id: expect.any(String) });
  provider.answers(() => whole("Yes"));
  const assistant = { role: "assistant", content: null, audio: spoken, annotations };
  const again = { model: "chat-model", messages: [question, assistant, question] };
  const { text: otherKey } = await gateway.createKey({ account: "another-account" });
  const headers = { authorization: `Bearer ${otherKey}` };
  const stolen = await gateway.post("/v1/chat/completions", again, { headers });
  expect([stolen.status, provider.requests]).toEqual([400, []]);
  await ask(again);
  const [, sent] = (provider.requests[0]?.body["messages"] ?? []) as Fields[];
  expect(sent).toEqual({ role: "assistant", content: null, audio: { id: "audio_1" } });
});

describe("what a tool call brought", () => {
  const assistantOf = async (stream: boolean): Promise<Fields> => {
    const body = await chatOf(await ask({ stream: false }));
    if (!stream) return body.choices[0]?.message as unknown as Fields;
    const { chunks: got } = parseStream(await (await ask({ stream: true })).text());
    const calls = got.flatMap(
      ({ choices }) => choices[0]?.delta.tool_calls ?? [],
    ) as unknown as Fields[];
    const [start] = calls;
    const parts = calls.map((call) => (call["function"] as { arguments?: string }).arguments ?? "");
    const body2 = { ...(start?.["function"] as Fields), arguments: parts.join("") };
    // As clients do that rebuild a call: the stream's index stays on it.
    return { role: "assistant", content: null, tool_calls: [{ ...start, function: body2 }] };
  };
  const second = (assistant: Fields): object => {
    const [call] = assistant["tool_calls"] as { readonly id: string }[];
    return {
      messages: [question, assistant, { role: "tool", tool_call_id: call?.id, content: "18" }],
    };
  };

  test.each([false, true])("goes back to its upstream as it was; stream: %p", async (stream) => {
    for (const [, answerAs] of forms) {
      provider.answers(answerAs);
      const assistant = await assistantOf(stream);
      provider.answers(() => whole("18 degrees"));
      expect((await ask(second(assistant))).status).toBe(200);
      const [, sent, result] = (provider.requests[0]?.body["messages"] ?? []) as Fields[];
      expect(sent?.["tool_calls"]).toEqual([toolCall]);
      expect(result).toMatchObject({ role: "tool", tool_call_id: "call_1" });
    }
  });

  test("goes to no other upstream, and the call keeps one id there", async () => {
    provider.answers(() => Response.json(answer));
    // Only the provider of a spoken answer knows its id.
    const { audio: _, ...assistant } = await assistantOf(false);
    provider.answers(() => Response.json({ error: { message: "gone" } }, { status: 404 }));
    other.answers(() => whole("18 degrees"));
    expect((await ask(second(assistant))).status).toBe(200);
    const [, sent, result] = (other.requests[0]?.body["messages"] ?? []) as Fields[];
    const [call] = (sent?.["tool_calls"] ?? []) as Fields[];
    expect(Object.keys(call ?? {}).toSorted()).toEqual(["function", "id", "type"]);
    expect(call?.["function"]).toEqual({ name: "look", arguments: '{"city":"Kyiv"}' });
    expect(result?.["tool_call_id"]).toBe(call?.["id"]);
  });

  test("is sent as it is where the caller wrote it itself, and other fields are not", async () => {
    provider.answers(() => whole("18 degrees"));
    const call = { ...toolCall, parsed: { city: "Kyiv" } };
    await ask(second({ role: "assistant", content: null, tool_calls: [call] }));
    const [, sent] = (provider.requests[0]?.body["messages"] ?? []) as Fields[];
    const { name, arguments: text } = toolCall.function;
    expect(sent?.["tool_calls"]).toEqual([{ ...toolCall, function: { name, arguments: text } }]);
  });
});
