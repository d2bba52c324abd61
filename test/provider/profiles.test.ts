import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { profileNames } from "../../src/upstreams/openai/profiles.ts";
import { chatOf, embeddingsOf, errorOf, streamOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { serverAnswers, serverErrors } from "./profile-answers.ts";
import {
  completion,
  floatsInBase64,
  type Provider,
  startProvider,
  vectorsAnswer,
  whole,
} from "./provider.ts";

/** Servers that Sluice knows by name, as they answer and as they want to be asked. */

let provider: Provider;
let gateway: TestGateway;
beforeAll(async () => {
  provider = startProvider();
  const models = ["plain", ...profileNames].flatMap((name) => [
    `\n  ${name}: { kind: chat, context_window: 200000, max_output_tokens: 64000, targets: [{ upstream: ${name}, model: m }] }`,
    `\n  ${name}-vectors: { kind: embedding, context_window: 8192, targets: [{ upstream: ${name}, model: m }] }`,
  ]);
  gateway = await startGateway({
    sections: {
      upstreams: ["plain", ...profileNames]
        .map((name) => {
          const profile = name === "plain" ? "" : `profile: ${name}, `;
          const own = `${profile}base_url: "${provider.url}", api_key: key-of-${name}`;
          return `\n  ${name}: { kind: openai, ${own} }`;
        })
        .join(""),
      models: models.join(""),
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

const question = { role: "user", content: "Hi" };

function ask(model: string, fields: object = {}): Promise<Response> {
  return gateway.post("/v1/chat/completions", { model, messages: [question], ...fields });
}

/** What the server got for a call with these fields. */
async function sent(model: string, fields: object = {}) {
  provider.answers(() => whole("Hi"));
  const response = await ask(model, fields);
  expect(response.status).toBe(200);
  await response.text();
  const [request] = provider.requests;
  return {
    headers: request?.headers,
    body: request?.body ?? {},
    messages: (request?.body["messages"] ?? []) as Record<string, unknown>[],
  };
}

interface Said {
  readonly text: string;
  readonly thoughts: string;
  readonly calls: readonly string[];
  readonly ids: ReadonlySet<string>;
  readonly finish: unknown;
  readonly usage: readonly unknown[];
}

interface Delta {
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly extra_content?: unknown;
  readonly tool_calls?: readonly {
    readonly index?: number;
    readonly id?: string;
    readonly function: { readonly name?: string; readonly arguments?: string };
  }[];
}

async function said(response: Response, isStreamed: boolean): Promise<Said> {
  expect(response.status).toBe(200);
  const calls: string[] = [];
  const ids = new Set<string>();
  let text = "";
  let thoughts = "";
  const add = (delta: Delta): void => {
    expect(delta.extra_content).toBeUndefined();
    text += delta.content ?? "";
    thoughts += delta.reasoning_content ?? "";
    for (const [position, each] of (delta.tool_calls ?? []).entries()) {
      const at = each.index ?? position;
      if (each.id !== undefined) ids.add(each.id);
      const { name, arguments: args = "" } = each.function;
      calls[at] = (calls[at] ?? `${name} `) + args;
    }
  };
  const usageOf = (usage: Awaited<ReturnType<typeof chatOf>>["usage"]): readonly unknown[] => [
    usage?.prompt_tokens,
    usage?.completion_tokens,
    usage?.completion_tokens_details?.reasoning_tokens,
  ];
  if (!isStreamed) {
    const { choices, usage } = await chatOf(response);
    add(choices[0]?.message as unknown as Delta);
    return { text, thoughts, calls, ids, finish: choices[0]?.finish_reason, usage: usageOf(usage) };
  }
  const { chunks, isDone } = await streamOf(response);
  expect(isDone).toBe(true);
  let finish: unknown;
  for (const { choices } of chunks) {
    if (choices[0] === undefined) continue;
    add(choices[0].delta as Delta);
    finish = choices[0].finish_reason ?? finish;
  }
  return { text, thoughts, calls, ids, finish, usage: usageOf(chunks.at(-1)?.usage ?? undefined) };
}

describe.each(serverAnswers)("$profile: $name ($source)", (answer) => {
  const { profile, body, text = "", thoughts = "", calls = [], finish = "stop", usage } = answer;

  // Each server's stream also comes for a whole answer, and the other way round; none needs a profile.
  const ways = [profile, "plain"].flatMap((by) => [[by, true] as const, [by, false] as const]);
  test.each(ways)("by %s, streamed: %p", async (by, stream) => {
    provider.answers(() => {
      if (typeof body !== "string") return Response.json(body);
      const isStream = body.includes("data:");
      const type = isStream ? "text/event-stream" : "application/json";
      return new Response(body, { headers: { "content-type": type } });
    });
    const options = stream ? { stream, stream_options: { include_usage: true } } : {};
    const tools = [{ type: "function", function: { name: "look" } }];
    const found = await said(await ask(by, { tools, ...options }), stream);
    expect(found).toMatchObject({ text, thoughts, calls, finish });
    expect(found.ids.size).toBe(calls.length);
    expect(found.ids.has("")).toBe(false);
    if (usage !== undefined) expect(found.usage).toEqual([...usage]);
  });
});

describe.each(serverErrors)("$profile: an error with status $status ($source)", (error) => {
  test.each([true, false])("streamed: %p", async (stream) => {
    const { profile, body, status, seen } = error;
    provider.answers(() =>
      typeof body === "string"
        ? new Response(body, { status, headers: { "content-type": "text/event-stream" } })
        : Response.json(body, { status }),
    );
    const response = await ask(profile, { stream });
    expect([response.status, (await errorOf(response)).code]).toEqual([...seen]);
  });
});

test.each([
  // ollama/ollama#7125: 422 tokens instead of 10 with the newer name.
  ["ollama", "max_tokens"],
  ["deepseek", "max_tokens"],
  ["vllm", "max_tokens"],
  ["dashscope", "max_tokens"],
  ["llama-cpp", "max_tokens"],
  ["openrouter", "max_tokens"],
  ["azure", "max_completion_tokens"],
  ["xai", "max_completion_tokens"],
  ["gemini", "max_completion_tokens"],
])("%s gets the cap of a call as %s", async (profile, field) => {
  const { body } = await sent(profile, { max_completion_tokens: 10 });
  const names = Object.keys(body).filter((name) => /^max_.*tokens$/.test(name));
  expect(names).toEqual([field]);
  expect(body[field]).toBe(10);
});

test.each([
  // earendil-works/pi#1048, ogx-ai/ogx#6069, 0xku/kon#5; the others from their documentation.
  ["deepseek", "system"],
  ["vllm", "system"],
  ["llama-cpp", "system"],
  ["dashscope", "system"],
  ["ollama", "system"],
  ["azure", "developer"],
  ["xai", "developer"],
])("%s gets instructions of a developer as those of %s", async (profile, role) => {
  const instruction = { role: "developer", content: "Be brief." };
  const { messages } = await sent(profile, { messages: [instruction, question] });
  expect(messages[0]).toEqual({ role, content: "Be brief." });
});

test("azure gets the key in its own header, the others as Bearer", async () => {
  const azure = await sent("azure");
  expect(azure.headers?.get("api-key")).toBe("key-of-azure");
  expect(azure.headers?.get("authorization")).toBeNull();
  const { headers } = await sent("xai");
  expect(headers?.get("authorization")).toBe("Bearer key-of-xai");
});

const called = { id: "call_1", type: "function", function: { name: "look", arguments: "{}" } };
const second = { ...called, id: "call_2" };
const results = ["call_1", "call_2"].map((id) => ({
  role: "tool",
  tool_call_id: id,
  content: "done",
}));
const history = (fields: object) => [
  question,
  { role: "assistant", content: null, tool_calls: [called, second], ...fields },
  ...results,
];

// vllm-project/vllm#38488: it drops `reasoning_content`.
test.each([
  ["vllm", "reasoning"],
  ["ollama", "reasoning"],
  ["openrouter", "reasoning"],
  ["deepseek", "reasoning_content"],
])("%s gets thoughts back as %s", async (profile, field) => {
  const { messages } = await sent(profile, { messages: history({ reasoning_content: "Hm." }) });
  const { reasoning, reasoning_content } = messages[1] ?? {};
  expect({ reasoning, reasoning_content }).toEqual({
    reasoning: undefined,
    reasoning_content: undefined,
    [field]: "Hm.",
  });
});

// continuedev/continue#11285: "Missing `reasoning_content` field in the assistant message".
test("deepseek gets empty thoughts beside calls without any, and none beside a text", async () => {
  const text = { role: "assistant", content: "Hello" };
  const { messages } = await sent("deepseek", { messages: [...history({}), text, question] });
  expect(messages[1]).toMatchObject({ reasoning_content: "" });
  expect(messages[4]).toEqual(text);
  const { messages: others } = await sent("xai", { messages: history({}) });
  expect(others[1]).not.toHaveProperty("reasoning_content");
});

// vercel/ai#15550: a call that the client kept without its signature is a 400.
test("gemini gets its mark on the first call without a signature, and a signature as it was", async () => {
  const unsigned = await sent("gemini", { messages: history({}) });
  const mark = { google: { thought_signature: "skip_thought_signature_validator" } };
  expect(unsigned.messages[1]?.["tool_calls"]).toEqual([
    { ...called, extra_content: mark },
    second,
  ]);
  const signed = { ...called, extra_content: { google: { thought_signature: "Z29vZ2xl" } } };
  const { messages } = await sent("gemini", {
    messages: history({ tool_calls: [signed, second] }),
  });
  expect(messages[1]?.["tool_calls"]).toEqual([signed, second]);
});

// liliMozi/openhanako#394, ed-donner/agents#45, MinLL/SkyrimNet-GamePlugin#77, leookun/cursor-byok#112.
test("gemini gets no fields that it refuses", async () => {
  const fields = {
    store: false,
    metadata: { a: "b" },
    frequency_penalty: 0,
    prompt_cache_key: "k",
  };
  const { body } = await sent("gemini", { ...fields, temperature: 1 });
  expect(Object.keys(body).toSorted()).toEqual(["messages", "model", "temperature"]);
});

// massgen/MassGen#624, earendil-works/pi#260.
test("openrouter gets details of thoughts back, from the account that got them", async () => {
  const details = [{ type: "reasoning.encrypted", data: "ZGF0YQ==", id: "call_1", index: 0 }];
  const message = {
    role: "assistant",
    content: null,
    tool_calls: [called],
    reasoning_details: details,
  };
  provider.answers(() =>
    Response.json(
      completion("", { choices: [{ index: 0, message, finish_reason: "tool_calls" }] }),
    ),
  );
  const { choices } = await chatOf(await ask("openrouter"));
  const messages = [question, choices[0]?.message, results[0]];
  const back = await sent("openrouter", { messages });
  expect(back.messages[1]?.["reasoning_details"]).toEqual(details);
});

// new-api#1109: "parameter.enable_thinking must be set to false for non-streaming calls".
test("dashscope is asked for streams only, and a whole answer is joined", async () => {
  const answer = serverAnswers.find(({ profile }) => profile === "deepseek")?.body;
  if (typeof answer !== "string") throw new Error("there is no stream of deepseek");
  provider.answers(
    () => new Response(answer, { headers: { "content-type": "text/event-stream" } }),
  );
  const { choices, usage } = await chatOf(await ask("dashscope"));
  expect(provider.requests[0]?.body).toMatchObject({
    stream: true,
    stream_options: { include_usage: true },
  });
  expect([choices[0]?.message.content, usage?.total_tokens]).toEqual(["Hi", 15]);
});

// Written from the documentation of each: no `n`.
test.each(["ollama", "deepseek", "dashscope", "llama-cpp"])(
  "%s is asked once for each choice",
  async (profile) => {
    provider.answers(() => whole("Hi"));
    const { choices } = await chatOf(await ask(profile, { n: 2 }));
    expect(choices.map(({ index }) => index)).toEqual([0, 1]);
    expect(provider.requests.map(({ body }) => body["n"] ?? 1)).toEqual([1, 1]);
  },
);

describe("reports of other gateways, by the profile of the server", () => {
  test("nulls and fields that nobody sent reach no strict server", async () => {
    const { body, messages } = await sent("vllm", {
      messages: [{ role: "user", name: null, content: "Hi" }],
      tools: [{ type: "function", function: { name: "look", strict: null, description: null } }],
      temperature: null,
    });
    expect(JSON.stringify(body)).not.toContain("null");
    expect(Object.keys(body).toSorted()).toEqual(["messages", "model", "tools"]);
    expect(messages).toEqual([{ role: "user", content: "Hi" }]);
  });

  test("half a character is sent as U+FFFD", async () => {
    provider.answers(() => whole("Hi"));
    const text = String.raw`{"model":"llama-cpp","messages":[{"role":"user","content":"a\ud83d"}]}`;
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
      body: text,
    });
    expect(response.status).toBe(200);
    await response.text();
    expect(provider.requests[0]?.body["messages"]).toEqual([{ role: "user", content: "a\ufffd" }]);
  });

  test("a count beyond what is possible locks no key", async () => {
    const usage = { prompt_tokens: 1e9, completion_tokens: 1e9, total_tokens: 2e9 };
    provider.answers(() => whole("Hi", { usage }));
    const response = await ask("ollama", { max_tokens: 10 });
    await response.text();
    const [row] = await gateway.usage();
    expect(row?.outputTokens).toBeLessThanOrEqual(10);
    expect(row?.inputTokens).toBeLessThanOrEqual(200_000);
  });

  test.each(["gemini", "xai", "openrouter"])(
    "unknown fields of an answer of %s reach the caller",
    async (profile) => {
      const annotations = [{ type: "url_citation", url_citation: { url: "https://a.example" } }];
      const message = { role: "assistant", content: "Hi", annotations };
      provider.answers(() =>
        whole("", { choices: [{ index: 0, message, finish_reason: "stop" }] }),
      );
      const { choices } = await chatOf(await ask(profile));
      expect(choices[0]?.message).toMatchObject({ annotations });
    },
  );

  test.each(["azure", "deepseek"])(
    "a refusal of one caller by %s moves nobody else from it",
    async (profile) => {
      provider.answers(() =>
        Response.json(
          { error: { message: "bad", type: "invalid_request_error", code: null } },
          { status: 400, headers: { "retry-after": "300" } },
        ),
      );
      const refused = await ask(profile);
      expect(refused.status).toBe(400);
      await refused.text();
      const { body } = await sent(profile);
      expect(body).toHaveProperty("model");
    },
  );

  test("a vector that is too short is no answer", async () => {
    provider.answers(() => vectorsAnswer([[1, 2], [3]]));
    const response = await gateway.post("/v1/embeddings", {
      model: "ollama-vectors",
      input: ["a", "b"],
    });
    expect(response.status).toBe(503);
    await response.text();
  });

  test("vectors are asked for in base64 and come as the caller asked for them", async () => {
    provider.answers(({ body }) =>
      vectorsAnswer([body["encoding_format"] === "base64" ? floatsInBase64([0.5, 1]) : [0.5, 1]]),
    );
    const response = await gateway.post("/v1/embeddings", { model: "vllm-vectors", input: "a" });
    expect((await embeddingsOf(response)).data[0]?.embedding).toEqual([0.5, 1]);
  });

  test("the result of a tool that has an image goes to Gemini as a text and the image", async () => {
    const image = {
      type: "image",
      source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" },
    };
    provider.answers(() => whole("Hi"));
    const response = await gateway.post("/v1/messages", {
      model: "gemini",
      max_tokens: 100,
      messages: [
        { role: "user", content: "Look." },
        {
          role: "assistant",
          content: [{ type: "tool_use", id: "toolu_1", name: "look", input: {} }],
        },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [image] }],
        },
      ],
    });
    expect(response.status).toBe(200);
    await response.text();
    const messages = provider.requests[0]?.body["messages"] as { readonly role: string }[];
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
    expect(JSON.stringify(messages.at(-1))).toContain("data:image/png;base64,iVBORw0KGgo=");
  });
});

// garrytan/gbrain#1199: batches of more than 10 are refused.
test("dashscope gets ten inputs at once", async () => {
  provider.answers(({ body }) => vectorsAnswer((body["input"] as string[]).map(() => [1])));
  const input = Array.from({ length: 25 }, (_, index) => `text ${index}`);
  const response = await gateway.post("/v1/embeddings", { model: "dashscope-vectors", input });
  expect(response.status).toBe(200);
  expect(provider.requests.map(({ body }) => (body["input"] as string[]).length)).toEqual([
    10, 10, 5,
  ]);
});

describe("quirks without a profile", () => {
  const upstream = (name: string, quirks: string, more = ""): string =>
    `\n  ${name}: { kind: openai, base_url: "${provider.url}", quirks: [${quirks}]${more} }`;
  const model = (name: string): string =>
    `\n  ${name}: { kind: chat, context_window: 200000, max_output_tokens: 64000, targets: [{ upstream: ${name}, model: m }] }`;
  let other: TestGateway;
  beforeAll(async () => {
    const short = ", timeouts: { first_byte: 50ms }";
    other = await startGateway({
      sections: {
        upstreams:
          upstream("both", "thoughts_as_reasoning, needs_thoughts") +
          upstream("no-images", "no_image_urls") +
          upstream("slow", "ignores_stream", short) +
          upstream("prompt", "", short),
        models: ["both", "no-images", "slow", "prompt"].map(model).join(""),
      },
    });
  });
  afterAll(() => other[Symbol.asyncDispose]());
  const askOther = (name: string, fields: object): Promise<Response> =>
    other.post("/v1/chat/completions", { model: name, messages: [question], ...fields });

  test("are combined", async () => {
    provider.answers(() => whole("Hi"));
    const response = await askOther("both", { messages: history({}) });
    expect(response.status).toBe(200);
    expect(provider.requests[0]?.body["messages"]).toContainEqual(
      expect.objectContaining({ role: "assistant", reasoning: "" }),
    );
  });

  // ollama/ollama#9092: with tools the stream came when all of it was written.
  test("ignores_stream lets a stream come whole, after the limit of its first byte", async () => {
    provider.answers(async () => {
      await Bun.sleep(400);
      return whole("Hi");
    });
    const response = await askOther("slow", { stream: true });
    const { chunks, isDone } = await streamOf(response);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe("Hi");
    expect(isDone).toBe(true);
    expect((await askOther("prompt", { stream: true })).status).toBe(503);
  });

  // ollama/ollama#6753: "invalid image input".
  test("no_image_urls sends no address of an image", async () => {
    provider.answers(() => whole("Hi"));
    const image = (url: string) => ({ type: "image_url", image_url: { url } });
    const content = [image("https://images.example.com/a.png")];
    const refused = await askOther("no-images", { messages: [{ role: "user", content }] });
    expect(refused.status).toBe(400);
    expect(provider.requests).toHaveLength(0);
    const data = [image("data:image/png;base64,iVBORw0KGgo=")];
    const taken = await askOther("no-images", { messages: [{ role: "user", content: data }] });
    expect(taken.status).toBe(200);
  });
});
