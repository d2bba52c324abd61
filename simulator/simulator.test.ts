import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonRecord } from "./json.ts";
import { type Simulator, startSimulator } from "./simulator.ts";

interface WireCall {
  readonly id?: string;
  readonly index: number;
  readonly type: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

interface WireMessage {
  readonly role?: string;
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly annotations?: readonly unknown[];
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly WireCall[];
}

interface WireChoice {
  readonly index: number;
  readonly message: WireMessage;
  readonly delta: WireMessage;
  readonly logprobs: {
    readonly content: readonly { readonly logprob: number; readonly top_logprobs: unknown[] }[];
  } | null;
  readonly finish_reason: string | null;
}

interface WireBody {
  readonly id: string;
  readonly choices: readonly [WireChoice, ...WireChoice[]];
  readonly usage: {
    readonly completion_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
    readonly completion_tokens_details: { readonly reasoning_tokens: number };
  } | null;
}

interface WireVectors {
  readonly data: readonly { readonly index: number; readonly embedding: string | number[] }[];
  readonly usage: { readonly prompt_tokens: number };
}

let simulator: Simulator;
beforeAll(() => {
  simulator = startSimulator();
});
afterAll(() => simulator[Symbol.asyncDispose]());

const user = (content: unknown): JsonRecord[] => [{ role: "user", content }];

function post(body: object, path = "/chat/completions"): Promise<Response> {
  return fetch(simulator.url + path, { method: "POST", body: JSON.stringify(body) });
}

async function chat(body: object): Promise<WireBody> {
  return (await (await post({ model: "m", ...body })).json()) as WireBody;
}

async function embed(body: object): Promise<WireVectors> {
  return (await (await post({ model: "e", ...body }, "/embeddings")).json()) as WireVectors;
}

/** Checks the framing of a stream and returns its parsed chunks. */
async function chunks(body: object): Promise<WireBody[]> {
  const response = await post({ model: "m", stream: true, ...body });
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const frames = (await response.text()).split("\n\n");
  expect(frames.splice(-2)).toEqual(["data: [DONE]", ""]);
  return frames.map((frame) => {
    expect(frame).toStartWith("data: ");
    return JSON.parse(frame.slice("data: ".length)) as WireBody;
  });
}

const functionTool = (name: string, parameters: object = { type: "object" }) => ({
  type: "function",
  function: { name, parameters },
});

describe("an unstreamed chat answer", () => {
  test("has every field of the wire format, in its order", async () => {
    const body = await chat({ messages: user("echo: Hello!") });
    expect(Object.keys(body)).toEqual([
      "id",
      "object",
      "created",
      "model",
      "choices",
      "usage",
      "service_tier",
      "system_fingerprint",
    ]);
    expect(body).toMatchObject({ object: "chat.completion", model: "m" });
    expect(body.id).toStartWith("chatcmpl-");
    expect<unknown>(body.choices).toEqual([
      {
        index: 0,
        message: { role: "assistant", content: "Hello!", refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: "stop",
      },
    ]);
    expect(body.usage).toMatchObject({
      completion_tokens: 2,
      prompt_tokens: 11,
      total_tokens: 13,
    });
  });

  test("has n choices, whose tokens are added up", async () => {
    const body = await chat({ messages: user("count: 3"), n: 3 });
    expect(body.choices.map((choice) => choice.index)).toEqual([0, 1, 2]);
    expect(body.usage?.completion_tokens).toBe(9);
  });

  test("has log probabilities if asked for", async () => {
    const body = await chat({ messages: user("echo: Hi"), logprobs: true, top_logprobs: 2 });
    const first = body.choices[0].logprobs?.content[0];
    expect(first).toMatchObject({ token: "Hi", bytes: [72, 105] });
    expect(first?.top_logprobs).toHaveLength(2);
    expect(first?.logprob).toBeLessThanOrEqual(0);
  });

  test("is cut by max_tokens, by its newer name, and by stop as a text or a list", async () => {
    for (const field of ["max_tokens", "max_completion_tokens"]) {
      const body = await chat({ messages: user("count: 9"), [field]: 2 });
      expect(body.choices[0]).toMatchObject({
        finish_reason: "length",
        message: { content: "1 2" },
      });
    }
    for (const stop of [" 4", ["x", " 4"]]) {
      const body = await chat({ messages: user("count: 9"), stop });
      expect(body.choices[0]).toMatchObject({
        finish_reason: "stop",
        message: { content: "1 2 3" },
      });
    }
  });

  test("has refusals and tool calls in the documented shapes", async () => {
    const refused = await chat({ messages: user("refuse: it") });
    expect(refused.choices[0].message).toMatchObject({
      content: null,
      refusal: expect.any(String),
    });
    const called = await chat({
      messages: user("go"),
      tools: [functionTool("f")],
      tool_choice: "required",
    });
    expect(called.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        content: null,
        tool_calls: [
          { id: expect.any(String), type: "function", function: { name: "f", arguments: "{}" } },
        ],
      },
    });
    const tools = [{ type: "custom", custom: { name: "note" } }];
    const custom = await chat({ messages: user("note this"), tools });
    expect(custom.choices[0].message.tool_calls?.[0]).toMatchObject({
      type: "custom",
      custom: { name: "note", input: "note this" },
    });
  });

  test("follows a named choice and a list of allowed tools", async () => {
    const tools = [functionTool("alpha"), functionTool("beta")];
    const names = async (tool_choice: unknown): Promise<string[]> => {
      const body = await chat({ messages: user("use alpha and beta"), tools, tool_choice });
      const calls = body.choices[0].message.tool_calls ?? [];
      return calls.map((call) => call.function.name);
    };
    expect(await names("auto")).toEqual(["alpha", "beta"]);
    expect(await names("none")).toEqual([]);
    expect(await names({ type: "function", function: { name: "beta" } })).toEqual(["beta"]);
    const allowed = { mode: "auto", tools: [functionTool("beta")] };
    expect(await names({ type: "allowed_tools", allowed_tools: allowed })).toEqual(["beta"]);
  });

  test("matches a JSON schema", async () => {
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const response_format = { type: "json_schema", json_schema: { name: "x", schema } };
    const body = await chat({ messages: user("a number"), response_format });
    expect(Number.isInteger(JSON.parse(body.choices[0].message.content ?? "").n)).toBe(true);
  });

  test("shows its reasoning only for models that reason, and counts it for all", async () => {
    const hidden = await chat({ messages: user("echo: a"), reasoning_effort: "low" });
    expect(hidden.choices[0].message).not.toHaveProperty("reasoning_content");
    expect(hidden.usage?.completion_tokens_details.reasoning_tokens).toBe(32);
    const shown = await chat({ model: "m-reason", messages: user("echo: a") });
    expect(shown.choices[0].message.reasoning_content).toStartWith("Step 1");
  });
});

describe("a streamed chat answer", () => {
  test("begins with the role, ends with a finish chunk, and has the text of the unstreamed one", async () => {
    const question = { messages: user("Hello! How do rivers find the sea?"), seed: 3 };
    const all = await chunks(question);
    const plain = await chat(question);
    const choices = all.map((chunk) => chunk.choices[0]);
    expect<unknown>(choices[0]).toEqual({
      index: 0,
      delta: { role: "assistant", content: "", refusal: null },
      logprobs: null,
      finish_reason: null,
    });
    expect<unknown>(choices.at(-1)).toEqual({
      index: 0,
      delta: {},
      logprobs: null,
      finish_reason: "stop",
    });
    const text = choices.map((choice) => choice.delta.content ?? "").join("");
    expect<unknown>(text).toBe(plain.choices[0].message.content);
    expect(choices.slice(1, -1).every((choice) => Object.keys(choice.delta).length === 1)).toBe(
      true,
    );
    expect(new Set(all.map((chunk) => chunk.id)).size).toBe(1);
    expect(all.some((chunk) => "usage" in chunk)).toBe(false);
  });

  test("has the usage in a last chunk without choices, only if asked for", async () => {
    const question = { messages: user("count: 4") };
    const all = await chunks({ ...question, stream_options: { include_usage: true } });
    expect(all.at(-1)).toMatchObject({ choices: [] });
    expect(all.at(-1)?.usage).toEqual((await chat(question)).usage);
    expect(all.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
  });

  test("has the header of a single tool with the role, then its arguments", async () => {
    const tools = [
      functionTool("f", { type: "object", properties: { a: { const: 1 } }, required: ["a"] }),
    ];
    const deltas = (await chunks({ messages: user("f"), tools })).map(
      (chunk) => chunk.choices[0].delta,
    );
    expect(deltas[0]).toEqual({
      role: "assistant",
      content: null,
      tool_calls: [
        {
          index: 0,
          id: expect.any(String),
          type: "function",
          function: { name: "f", arguments: "" },
        },
      ],
      refusal: null,
    });
    const rest = deltas.slice(1, -1).map((delta) => delta.tool_calls);
    expect(rest.map((calls) => calls?.[0]?.function.arguments).join("")).toBe('{"a":1}');
    expect<unknown>(rest[0]).toEqual([{ index: 0, function: { arguments: "{" } }]);
  });

  test("has only the role before several tools, and each header once", async () => {
    const tools = [functionTool("alpha"), functionTool("beta")];
    const deltas = (await chunks({ messages: user("alpha and beta"), tools })).map(
      (chunk) => chunk.choices[0].delta,
    );
    expect(deltas[0]).toEqual({ role: "assistant", content: null });
    const headers = deltas
      .flatMap((delta) => delta.tool_calls ?? [])
      .filter((call) => "id" in call);
    expect(headers.map((call) => [call.index, call.function.name])).toEqual([
      [0, "alpha"],
      [1, "beta"],
    ]);
  });

  test("has refusals and reasoning as deltas", async () => {
    const refusal = await chunks({ messages: user("refuse: it") });
    expect(refusal[0]?.choices[0].delta).toEqual({
      role: "assistant",
      content: null,
      refusal: "",
    });
    const reasoning = await chunks({
      model: "reason",
      messages: user("echo: a"),
      reasoning_effort: "minimal",
    });
    const thoughts = reasoning.filter((chunk) => "reasoning_content" in chunk.choices[0].delta);
    expect(thoughts).toHaveLength(12);
  });

  test("has a role and a finish for every choice", async () => {
    const all = await chunks({ messages: user("count: 2"), n: 2 });
    const of = (index: number): WireChoice[] =>
      all.map((chunk) => chunk.choices[0]).filter((choice) => choice.index === index);
    for (const index of [0, 1]) {
      expect(of(index).map((choice) => choice.delta.role)).toEqual([
        "assistant",
        undefined,
        undefined,
        undefined,
      ]);
      expect(of(index).at(-1)?.finish_reason).toBe("stop");
    }
  });
});

describe("embeddings", () => {
  test("come in the order of the inputs, as floats or as the same floats in base64", async () => {
    const request = { input: ["a river", "a valley"], dimensions: 32 };
    const floats = await embed(request);
    const packed = await embed({ ...request, encoding_format: "base64" });
    expect(floats.data.map((item) => item.index)).toEqual([0, 1]);
    for (const index of [0, 1]) {
      const bytes = Buffer.from(String(packed.data[index]?.embedding), "base64");
      const unpacked = Array.from({ length: 32 }, (_, place) => bytes.readFloatLE(place * 4));
      expect<unknown>(unpacked).toEqual(floats.data[index]?.embedding ?? "");
    }
    expect(floats).toMatchObject({
      object: "list",
      model: "e",
      usage: { prompt_tokens: 5, total_tokens: 5 },
    });
  });

  test("accept a text, a list of texts, token ids and lists of token ids", async () => {
    for (const [input, count, tokens] of [
      ["one text", 1, 2],
      [["a", "b", "c"], 3, 3],
      [[5, 6, 7], 1, 3],
      [[[5], [6, 7]], 2, 3],
    ] as const) {
      const body = await embed({ input });
      expect(body.data).toHaveLength(count);
      expect(body.data[0]?.embedding).toHaveLength(1024);
      expect(body.usage.prompt_tokens).toBe(tokens);
    }
  });

  test("refuse too many inputs, and empty ones", async () => {
    const many = await post({ model: "e", input: Array(2049).fill("a") }, "/embeddings");
    expect(many.status).toBe(400);
    expect(await many.json()).toMatchObject({
      error: { code: "array_above_max_length", param: "input" },
    });
    expect((await post({ model: "e", input: [] }, "/embeddings")).status).toBe(400);
  });
});

describe("a refusal", () => {
  test.each([
    ["{", null, null, "We could not parse the JSON body"],
    ['{"messages":[]}', null, null, "you must provide a model parameter"],
    [
      '{"model":"m"}',
      "messages",
      "missing_required_parameter",
      "Missing required parameter: 'messages'.",
    ],
    [
      '{"model":"m","messages":[]}',
      "messages",
      "invalid_value",
      "Invalid 'messages': empty array.",
    ],
    [
      '{"model":"m","messages":[{"role":"user","content":{}}]}',
      "messages[0].content",
      "invalid_type",
      "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got object instead.",
    ],
    [
      '{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":200}',
      "temperature",
      "number_above_max_value",
      "Invalid 'temperature': number above maximum value. Expected a value <= 2, but got 200 instead.",
    ],
    [
      '{"model":"m","messages":[{"role":"user","content":"x"}],"stream_options":{}}',
      "stream_options",
      "invalid_value",
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    ],
  ])("of %s has OpenAI's shape", async (body, ...[param, code, message]) => {
    const response = await fetch(`${simulator.url}/chat/completions`, { method: "POST", body });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: {
        message: expect.stringContaining(message),
        type: "invalid_request_error",
        param,
        code,
      },
    });
  });

  test("has the size of a prompt that leaves too little room in the context window", async () => {
    const tight = await post({ model: "m-ctx20", messages: user("echo: one two"), max_tokens: 15 });
    expect(tight.status).toBe(400);
    expect(await tight.json()).toMatchObject({
      error: {
        code: "context_length_exceeded",
        param: "messages",
        message:
          "This model's maximum context length is 20 tokens. However, you requested 26 tokens " +
          "(11 in the messages, 15 in the completion). " +
          "Please reduce the length of the messages or completion.",
      },
    });
    const fitting = await post({
      model: "m-ctx26",
      messages: user("echo: one two"),
      max_tokens: 15,
    });
    expect(fitting.status).toBe(200);
  });

  test("of an unknown path is 404", async () => {
    const response = await fetch(`${simulator.url}/nothing`);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({
      error: { message: "Invalid URL (GET /v1/nothing)" },
    });
  });

  test("is the answer to a caller without one of the configured keys", async () => {
    await using guarded = startSimulator({ apiKeys: ["sk-right"] });
    const status = async (authorization: string): Promise<number> =>
      (await fetch(`${guarded.url}/models`, { headers: { authorization } })).status;
    expect(await status("Bearer sk-right")).toBe(200);
    expect(await status("bearer sk-right")).toBe(200);
    expect(await status("Bearer sk-wrong")).toBe(401);
    expect((await fetch(`${guarded.url}/models`)).status).toBe(401);
  });
});

test("models can be listed and read by name, also without /v1", async () => {
  const list = (await (await fetch(`${simulator.url}/models`)).json()) as {
    object: string;
    data: unknown[];
  };
  expect(list.object).toBe("list");
  expect(list.data[0]).toEqual({
    id: "simulator-chat",
    object: "model",
    created: expect.any(Number),
    owned_by: "sluice",
  });
  const one = await fetch(`${simulator.url.replace("/v1", "")}/models/any%2Fname`);
  expect(await one.json()).toMatchObject({ id: "any/name" });
});

describe("prompts of 1,024 tokens and more", () => {
  const rules = { role: "system", content: "word ".repeat(1_100) };
  const asked = (content: string): JsonRecord[] => [rules, ...user(content)];

  test("are cached turn by turn, in steps of 128, streamed or whole", async () => {
    const cachedOf = async (messages: readonly JsonRecord[], more = {}): Promise<number> => {
      const { usage } = await chat({ model: "caching", messages, max_tokens: 4, ...more });
      return usage?.prompt_tokens_details.cached_tokens ?? NaN;
    };
    expect(await cachedOf(asked("one"))).toBe(0);
    expect(await cachedOf(asked("two"))).toBe(1_024);
    const later = [...asked("one"), { role: "assistant", content: "word ".repeat(300) }];
    expect(await cachedOf([...later, ...user("three")])).toBe(1_024);
    expect(await cachedOf([...later, ...user("four")])).toBe(1_408);
    expect(await cachedOf(asked("one"), { model: "caching-too" })).toBe(0);
    expect(await cachedOf([{ ...rules, content: "short" }, ...user("one")])).toBe(0);
    expect(await cachedOf([{ ...rules, content: "short" }, ...user("one")])).toBe(0);
    const options = { include_usage: true };
    const body = {
      model: "caching",
      messages: asked("one"),
      stream: true,
      stream_options: options,
    };
    expect(await (await post(body)).text()).toContain('"cached_tokens":1024');
  });

  test("are cached on the wire of Responses", async () => {
    const body = { model: "caching-responses", instructions: rules.content, input: "Hi" };
    for (const cached of [0, 1_024]) {
      const response = await post(body, "/responses");
      expect(await response.text()).toContain(`"cached_tokens":${cached},`);
    }
  });
});
