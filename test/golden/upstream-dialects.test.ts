import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chatOf, streamOf } from "../support/bodies.ts";
import {
  chunk,
  completion,
  jsonAnswer,
  rawStream,
  ScriptedUpstream,
  streamAnswer,
} from "./scripted-upstream.ts";

let upstream: ScriptedUpstream;
beforeAll(async () => {
  upstream = await ScriptedUpstream.start();
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
});

interface Streamed {
  readonly text: string;
  readonly reasoning: string;
  readonly finishReason: string | undefined;
  readonly fingerprints: readonly (string | undefined | null)[];
  readonly isDone: boolean;
}

async function readStream(response: Response): Promise<Streamed> {
  expect(response.status).toBe(200);
  const { chunks, isDone } = await streamOf(response);
  const deltas = chunks.map(
    ({ choices }) => (choices[0]?.delta ?? {}) as { content?: string; reasoning_content?: string },
  );
  return {
    text: deltas.map(({ content }) => content ?? "").join(""),
    reasoning: deltas.map(({ reasoning_content: thought }) => thought ?? "").join(""),
    finishReason: chunks.at(-1)?.choices[0]?.finish_reason ?? undefined,
    fingerprints: [...new Set(chunks.map((each) => each.system_fingerprint))],
    isDone,
  };
}

describe("Azure", () => {
  const filterResults = { hate: { filtered: false, severity: "safe" } };
  const first = {
    id: "",
    object: "",
    created: 0,
    model: "",
    choices: [],
    prompt_filter_results: [{ prompt_index: 0, content_filter_results: filterResults }],
  };

  test("a first chunk without choices is not sent on, and its empty fields are not taken", async () => {
    const rest = { system_fingerprint: "fp_azure" };
    const answer = streamAnswer(
      first,
      chunk({ role: "assistant", content: "", refusal: null }, null, rest),
      chunk({ content: "Hello" }, null, rest),
      chunk({}, "stop", rest),
    );
    expect(await readStream(await upstream.chat(answer, { stream: true }))).toEqual({
      text: "Hello",
      reasoning: "",
      finishReason: "stop",
      fingerprints: ["fp_azure"],
      isDone: true,
    });
  });

  test("filter results after the finish change nothing", async () => {
    const late = { index: 0, finish_reason: null, content_filter_results: filterResults };
    const answer = streamAnswer(first, chunk({ content: "Hello" }), chunk({}, "stop"), {
      ...first,
      choices: [{ ...late, content_filter_offsets: { start_offset: 0, end_offset: 5 } }],
    });
    const streamed = await readStream(await upstream.chat(answer, { stream: true }));
    expect(streamed).toMatchObject({ text: "Hello", finishReason: "stop", isDone: true });
  });

  test("filter results of a whole answer stay where they stood", async () => {
    const { choices, ...rest } = completion({ content: "Hi" });
    const filtered = { ...choices[0], content_filter_results: filterResults };
    const response = await upstream.chat(jsonAnswer({ ...first, ...rest, choices: [filtered] }));
    expect(await response.json()).toMatchObject({
      choices: [{ message: { content: "Hi" }, content_filter_results: filterResults }],
      prompt_filter_results: first.prompt_filter_results,
    });
  });

  test("a prompt that its filter refuses is the caller's error", async () => {
    const error = {
      message: "The response was filtered due to the prompt triggering the content filter.",
      type: null,
      param: "prompt",
      code: "content_filter",
      status: 400,
      innererror: { code: "ResponsibleAIPolicyViolation" },
    };
    const response = await upstream.chat(jsonAnswer({ error }, 400));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { type: "invalid_request_error", code: "content_policy_violation" },
    });
  });
});

describe("Ollama", () => {
  test("reasoning of a stream comes as reasoning_content", async () => {
    const answer = streamAnswer(
      chunk({ role: "assistant", content: "", reasoning: "Let me " }),
      chunk({ role: "assistant", content: "", reasoning: "think." }),
      chunk({ role: "assistant", content: "Hi" }),
      chunk({ role: "assistant", content: "" }, "stop", { system_fingerprint: "fp_ollama" }),
    );
    const response = await upstream.chat(answer, { stream: true });
    const streamed = await readStream(response);
    expect(streamed).toMatchObject({
      text: "Hi",
      reasoning: "Let me think.",
      finishReason: "stop",
    });
  });

  test("reasoning of a whole answer comes as reasoning_content", async () => {
    const answer = jsonAnswer(completion({ content: "Hi", reasoning: "Let me think." }));
    const body = await chatOf(await upstream.chat(answer));
    expect(body.choices[0]?.message).toEqual({
      role: "assistant",
      content: "Hi",
      refusal: null,
      annotations: [],
      reasoning_content: "Let me think.",
    } as unknown as NonNullable<(typeof body)["choices"][0]>["message"]);
  });
});

describe("vLLM", () => {
  test("a stream with both its names for thoughts tells them once", async () => {
    const thought = { reasoning: "Hm.", reasoning_content: "Hm." };
    const answer = streamAnswer(chunk(thought), chunk({ content: "Hi" }), chunk({}, "stop"));
    const streamed = await readStream(await upstream.chat(answer, { stream: true }));
    expect(streamed.reasoning).toBe("Hm.");
  });

  test("fields of its own are not sent on", async () => {
    const { choices, ...rest } = completion({ content: "Hi", audio: null, tool_calls: [] });
    const answer = {
      ...rest,
      choices: [{ ...choices[0], stop_reason: null, token_ids: null }],
      prompt_logprobs: null,
      kv_transfer_params: null,
    };
    const body = await (await upstream.chat(jsonAnswer(answer))).text();
    for (const field of ["tool_calls", 'audio":null', "stop_reason", "prompt_logprobs"]) {
      expect(body).not.toContain(field);
    }
  });
});

describe("llama.cpp", () => {
  test("a first delta with null content begins an ordinary stream", async () => {
    const answer = streamAnswer(
      chunk({ role: "assistant", content: null }),
      chunk({ content: "Hi" }),
      chunk({}, "stop", { timings: { prompt_n: 1 } }),
    );
    const streamed = await readStream(await upstream.chat(answer, { stream: true }));
    expect(streamed).toMatchObject({ text: "Hi", finishReason: "stop", isDone: true });
  });
});

describe("a whole answer", () => {
  const call = { id: "call_a", type: "function", function: { name: "f", arguments: "{}" } };

  test.each([
    ["finish_reason stop", completion({ content: "", tool_calls: [call] }, "stop")],
    ["finish_reason null", completion({ content: null, tool_calls: [call] }, null)],
    ["no content", completion({ tool_calls: [call] }, "tool_calls")],
    ["vendor finish reason", completion({ content: null, tool_calls: [call] }, "tool_use")],
    [
      "arguments as an object",
      completion({ tool_calls: [{ ...call, function: { name: "f", arguments: {} } }] }, "stop"),
    ],
    [
      "an index in the call",
      completion({ content: null, tool_calls: [{ index: 0, ...call }] }, "tool_calls"),
    ],
    [
      "no type of the call",
      completion({ tool_calls: [{ id: "call_a", function: call.function }] }, "tool_calls"),
    ],
  ])("with a tool call and %s has OpenAI's form", async (_name, answer) => {
    const body = await chatOf(await upstream.chat(jsonAnswer(answer)));
    expect(JSON.stringify(body.choices)).toBe(
      '[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"annotations":[],' +
        '"tool_calls":[{"id":"call_a","type":"function","function":{"name":"f","arguments":"{}"}}]' +
        '},"logprobs":null,"finish_reason":"tool_calls"}]',
    );
  });

  test.each([
    ["tool_calls []", completion({ content: "Hi", tool_calls: [] })],
    ["tool_calls null", completion({ content: "Hi", tool_calls: null, function_call: null })],
    ["an empty refusal", completion({ content: "Hi", refusal: "" })],
    ["finish_reason null", completion({ content: "Hi" }, null)],
    ["finish_reason eos", completion({ content: "Hi" }, "eos")],
    ["error null", completion({ content: "Hi" }, "stop", { error: null })],
    ["no id, created and object", { choices: completion({ content: "Hi" }).choices }],
    ["no role and index", { choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] }],
  ])("with text and %s has OpenAI's form", async (_name, answer) => {
    const body = await chatOf(await upstream.chat(jsonAnswer(answer)));
    expect(JSON.stringify(body.choices)).toBe(
      '[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null,"annotations":[]},' +
        '"logprobs":null,"finish_reason":"stop"}]',
    );
    expect(body.object).toBe("chat.completion");
    expect(Number.isInteger(body.created)).toBe(true);
  });

  test.each([
    ["null", completion({ content: null })],
    ["no content", completion({})],
    ["an empty text and no finish reason", completion({ content: "" }, null)],
    ["an empty text cut at its cap", completion({ content: "" }, "length")],
    ["thoughts alone and no finish reason", completion({ reasoning: "Hm." }, null)],
    ["an empty list of parts", completion({ content: [] })],
  ])("of nothing, said as %s, has an empty text", async (_name, answer) => {
    const body = await chatOf(await upstream.chat(jsonAnswer(answer)));
    expect(body.choices[0]?.message.content).toBe("");
  });

  test("with a refusal and null content is a refusal", async () => {
    const answer = completion({ content: null, refusal: "I will not." }, null);
    const body = await chatOf(await upstream.chat(jsonAnswer(answer)));
    expect(body.choices[0]?.message).toMatchObject({ content: null, refusal: "I will not." });
  });

  test("in parts, thoughts among them, has the text of its parts", async () => {
    const thoughts = { type: "thinking", thinking: [{ type: "text", text: "Hm." }] };
    const content = [thoughts, { type: "text", text: "Hel" }, { type: "text", text: "lo" }];
    const body = await chatOf(await upstream.chat(jsonAnswer(completion({ content }))));
    expect(body.choices[0]?.message.content).toBe("Hello");
    const deltas = [chunk({ content: [thoughts] }), chunk({ content: content.slice(1) })];
    const answer = streamAnswer(...deltas, chunk({ content: " there" }), chunk({}, "stop"));
    const streamed = await readStream(await upstream.chat(answer, { stream: true }));
    expect(streamed).toMatchObject({ text: "Hello there", finishReason: "stop" });
  });

  test("with stop and a function_call says function_call", async () => {
    const message = { content: null, function_call: { name: "f", arguments: "{}" } };
    const body = await chatOf(await upstream.chat(jsonAnswer(completion(message, "stop"))));
    expect(body.choices[0]?.finish_reason).toBe("function_call");
  });

  test("as a stream nobody asked for is not taken for one", async () => {
    const response = await upstream.chat(rawStream("data: {}\n\n"));
    expect(response.status).toBe(503);
  });
});

describe("embeddings", () => {
  const item = (index: number, embedding: unknown) => ({ object: "embedding", index, embedding });
  const list = (...data: readonly unknown[]) =>
    jsonAnswer({ object: "list", data, model: "m", usage: { prompt_tokens: 2, total_tokens: 2 } });
  /** 1 and -0.5 as little-endian 32-bit floats. */
  const packed = "AACAPwAAAL8=";

  test.each([
    { sent: [1, -0.5], encoding_format: "float", expected: [1, -0.5] },
    { sent: packed, encoding_format: "float", expected: [1, -0.5] },
    { sent: [1, -0.5], encoding_format: "base64", expected: packed },
    { sent: packed, encoding_format: "base64", expected: packed },
  ])("sent as $sent are $expected for who asks for $encoding_format", async (each) => {
    const { sent, encoding_format, expected } = each;
    const response = await upstream.embed(list(item(0, sent)), { input: "a", encoding_format });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: expected }],
      model: "embedding-model",
      usage: { prompt_tokens: 2, total_tokens: 2 },
    });
  });

  test("in another order are put into the order of the inputs", async () => {
    const answer = list(item(1, [2]), item(0, [1]));
    const response = await upstream.embed(answer, { input: ["a", "b"] });
    const { data } = (await response.json()) as { data: { embedding: number[] }[] };
    expect(data.map(({ embedding }) => embedding)).toEqual([[1], [2]]);
  });

  test.each([
    ["too few vectors", list(item(0, [1]))],
    ["the same index twice", list(item(0, [1]), item(0, [2]))],
  ])("with %s are an upstream's failure", async (_name, answer) => {
    const response = await upstream.embed(answer, { input: ["a", "b"] });
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: "model_unavailable" } });
  });
});
