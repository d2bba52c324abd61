import { describe, expect, test } from "bun:test";
import { streamOf as framesOf, type FrameFixture } from "../support/bedrock-frames.ts";
import { errorOf, streamOf } from "../support/bodies.ts";
import { bedrockGatewayOf, converse } from "./bedrock-provider.ts";
import {
  chunk,
  completion,
  gatewayOf,
  startProvider,
  streamed,
  whole,
  type Provider,
} from "./provider.ts";

const chat = { model: "chat-model", messages: [{ role: "user", content: "Hi" }] };

describe("requests", () => {
  const lone = String.raw`\ud83d`;
  const body = (text: string) => `{
    "model": "chat-model",
    "messages": [
      { "role": "user", "content": "a${text}b" },
      { "role": "assistant", "tool_calls": [{ "id": "c${text}", "type": "function",
        "function": { "name": "f", "arguments": "{\\"x\\":\\"\\${text}\\"}" } }] },
      { "role": "tool", "tool_call_id": "c${text}", "content": [{ "type": "text", "text": "${text}" }] }
    ],
    "stop": ["${text}"],
    "tools": [{ "type": "function", "function": { "name": "f", "description": "${text}",
      "parameters": { "type": "object", "properties": { "p${text}": { "enum": ["${text}"] } } } } }]
  }`;
  const wellFormed = (text: string) =>
    body(text)
      .replaceAll(/\\\\ud83d/gi, String.raw`\\ufffd`)
      .replaceAll(/\\ud83d/gi, "\ufffd");

  async function sentTo(provider: Provider, gateway: { url: string; key: string }, text: string) {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
      body: text,
    });
    expect(response.status).toBe(200);
    expect(provider.requests).toHaveLength(1);
    return provider.requests[0]?.text ?? "";
  }

  test("a provider gets U+FFFD in place of half a character, in every text and name", async () => {
    await using provider = startProvider();
    await using gateway = await gatewayOf([provider]);
    for (const half of [lone, String.raw`\uD83D`]) {
      provider.answers(() => whole("Hi"));
      const sent = JSON.parse(await sentTo(provider, gateway, body(half))) as typeof chat;
      const expected = JSON.parse(wellFormed(half)) as typeof chat;
      const [asked, called, told] = expected.messages;
      expect(sent).toEqual({
        ...expected,
        model: "provider-model",
        messages: [asked, { ...called, content: null }, told],
      } as typeof chat);
    }
  });

  test("so does Bedrock", async () => {
    await using provider = startProvider(() => converse({ text: "Hi" }));
    await using gateway = await bedrockGatewayOf(provider);
    const sent = await sentTo(provider, gateway, body(lone));
    expect(sent).not.toContain("\\ud83d");
    expect(sent).toContain('"input":{"x":"\ufffd"}');
  });

  test("escapes in the arguments of calls are read, for servers that parse them", async () => {
    await using provider = startProvider();
    await using gateway = await gatewayOf([provider]);
    const call = (text: string) => ({ name: "f", arguments: text });
    for (const [text, sent] of [
      [String.raw`{"x":"\ud83d"}`, String.raw`{"x":"\ufffd"}`],
      [
        String.raw`{"x":"\uD83D\uDE00 \ud83d\\ud83d \n\uDC00"}`,
        String.raw`{"x":"\uD83D\uDE00 \ufffd\\ud83d \n\ufffd"}`,
      ],
      [String.raw`{"x":"\\ud83d"}`, String.raw`{"x":"\\ud83d"}`],
    ] as const) {
      const messages = [
        { role: "assistant", tool_calls: [{ id: "c", type: "function", function: call(text) }] },
        { role: "tool", tool_call_id: "c", content: "ok" },
        { role: "assistant", function_call: call(text) },
        { role: "function", name: "f", content: "ok" },
      ];
      await gateway.post("/v1/chat/completions", { ...chat, messages });
      expect(provider.requests.at(-1)?.body["messages"]).toMatchObject([
        { tool_calls: [{ function: call(sent) }] },
        {},
        { function_call: call(sent) },
        {},
      ]);
    }
  });

  test("whole characters arrive as they were sent, escaped or not, and so does a large body", async () => {
    await using provider = startProvider();
    await using gateway = await gatewayOf([provider]);
    const filler = "x".repeat(300_000);
    const text = `{"model":"chat-model","messages":[
      {"role":"user","content":"${filler}\\ud83d\\ude00😀\\\\ud83d"},
      {"role":"user","content":"${lone}"}]}`;
    const sent = JSON.parse(await sentTo(provider, gateway, text)) as typeof chat;
    expect(sent.messages.map(({ content }) => content)).toEqual([`${filler}😀😀\\ud83d`, "\ufffd"]);
  });

  test("an input to embed is text too", async () => {
    await using provider = startProvider(() =>
      Response.json({ data: [{ index: 0, embedding: [1] }], usage: { prompt_tokens: 1 } }),
    );
    await using gateway = await gatewayOf([provider]);
    const input = ["a\ud83d", "\udc00"];
    await gateway.post("/v1/embeddings", { model: "embedding-model", input });
    expect(provider.requests[0]?.body["input"]).toEqual(["a\ufffd", "\ufffd"]);
  });

  test("a message that quotes a caller's text never ends within a character", async () => {
    await using provider = startProvider();
    await using gateway = await gatewayOf([provider]);
    const choice = { type: "function", function: { name: `${"x".repeat(63)}😀` } };
    const tools = [{ type: "function", function: { name: "f" } }];
    const body = { ...chat, tools, tool_choice: choice };
    const { message } = await errorOf(await gateway.post("/v1/chat/completions", body));
    expect(message).toStartWith("Tool choice");
    expect(message.isWellFormed()).toBe(true);
  });
});

/** The kinds of text in a delta, and what a caller reads of each. */
const kinds = {
  content: (text: string) => ({ content: text }),
  refusal: (text: string) => ({ refusal: text }),
  reasoning_content: (text: string) => ({ reasoning_content: text }),
  arguments: (text: string) => ({
    tool_calls: [
      { index: 0, id: "c1", type: "function", function: { name: "f", arguments: text } },
    ],
  }),
  function_call: (text: string) => ({ function_call: { name: "f", arguments: text } }),
};
type Kind = keyof typeof kinds;

/** Fields of a delta that hold text. */
interface Delta {
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string;
  readonly function_call?: { readonly arguments?: string };
  readonly tool_calls?: readonly {
    readonly function?: { readonly arguments?: string };
    readonly custom?: { readonly input?: string };
  }[];
}

function textOf(kind: Kind, delta: Delta): string {
  const [call] = delta.tool_calls ?? [];
  if (kind === "arguments") return call?.function?.arguments ?? call?.custom?.input ?? "";
  if (kind === "function_call") return delta.function_call?.arguments ?? "";
  return delta[kind] ?? "";
}

async function textsOf(response: Response, kind: Kind, choice = 0): Promise<readonly string[]> {
  const { chunks, isDone } = await streamOf(response);
  expect(isDone).toBe(true);
  const choices = chunks.flatMap((each) => each.choices).filter(({ index }) => index === choice);
  return choices.map(({ delta }) => textOf(kind, delta)).filter((text) => text !== "");
}

const smile = "\ud83d\ude00";

describe("answers of kind openai", () => {
  test.each(Object.keys(kinds) as Kind[])("streamed %s has whole characters only", async (kind) => {
    await using provider = startProvider();
    await using gateway = await gatewayOf([provider]);
    const finish = chunk({}, { finish_reason: "stop" });
    const asked = { ...chat, stream: true };
    const delta = kinds[kind];
    for (const [pieces, expected] of [
      [
        ["a\ud83d", "\ude00b"],
        ["a", `${smile}b`],
      ],
      [["\ud83d", "", "\ude00"], [smile]],
      [
        ["a", "\ud83d", "b"],
        ["a", "\ufffdb"],
      ],
      [
        ["\ude00a", "b\ud83dc"],
        ["\ufffda", "b\ufffdc"],
      ],
      [
        ["a\ud83d", "\ud83d", "\ude00"],
        ["a", "\ufffd", smile],
      ],
      [["a\ud83d"], ["a", "\ufffd"]],
    ] as const) {
      provider.answers(() => streamed([...pieces.map((each) => chunk(delta(each))), finish]));
      const texts = await textsOf(await gateway.post("/v1/chat/completions", asked), kind);
      expect({ pieces, texts }).toEqual({ pieces, texts: [...expected] });
    }
  });

  test("halves are joined within one choice, one kind of text and one call", async () => {
    await using provider = startProvider();
    await using gateway = await gatewayOf([provider]);
    const at = (index: number, delta: object) => chunk(delta, { index });
    const call = (index: number, text: string) => ({
      tool_calls: [{ index, id: `c${index}`, function: { name: `f${index}`, arguments: text } }],
    });
    provider.answers(() =>
      streamed([
        at(0, { content: "a\ud83d", reasoning_content: "r\ud83d" }),
        at(1, { content: "b\ud83d" }),
        at(0, { content: "\ude00", reasoning_content: "\ude01" }),
        at(1, call(0, '{"x":"\ud83d')),
        at(1, call(1, '{"y":"\ud83d')),
        at(1, call(0, '\ude02"}')),
        at(1, call(1, '\ude03"}')),
        chunk({}, { index: 0, finish_reason: "stop" }),
        chunk({}, { index: 1, finish_reason: "tool_calls" }),
      ]),
    );
    const body = { ...chat, stream: true, n: 2 };
    const text = await (await gateway.post("/v1/chat/completions", body)).text();
    const response = () => new Response(text);
    expect((await textsOf(response(), "content", 0)).join("")).toBe("a😀");
    expect((await textsOf(response(), "reasoning_content", 0)).join("")).toBe("r😁");
    expect((await textsOf(response(), "content", 1)).join("")).toBe("b\ufffd");
    expect((await textsOf(response(), "arguments", 1)).join("")).toBe('{"x":"{"y":"😂"}😃"}');
  });

  test("halves of probable tokens are no text either, and nothing else of them changes", async () => {
    await using provider = startProvider();
    await using gateway = await gatewayOf([provider]);
    const entry = (token: string) => ({ token, logprob: -1, bytes: [240, 159], top_logprobs: [] });
    const logged = (token: string) => ({ logprobs: { content: [entry(token)], refusal: null } });
    provider.answers(() =>
      streamed([
        chunk({ content: "\ud83d" }, logged("\ud83d")),
        chunk({ content: "\ude00" }, logged("\ude00")),
        chunk({}, { finish_reason: "stop" }),
      ]),
    );
    const body = { ...chat, stream: true, logprobs: true };
    const { chunks } = await streamOf(await gateway.post("/v1/chat/completions", body));
    const choices = chunks.flatMap((each) => each.choices);
    expect(choices.map(({ delta }) => delta.content ?? "").join("")).toBe("😀");
    const found = choices.flatMap(({ logprobs }) => logprobs?.content ?? []);
    expect(found).toEqual([entry("\ufffd"), entry("\ufffd")]);
  });

  test("a whole answer has whole characters only", async () => {
    await using provider = startProvider();
    await using gateway = await gatewayOf([provider]);
    const call = (text: string) => ({
      id: `c${text}`,
      type: "function",
      function: { name: `f${text}`, arguments: text },
    });
    const message = (text: string) => ({
      role: "assistant",
      content: `a${text}😀`,
      reasoning_content: text,
      refusal: text,
      tool_calls: [call(text)],
    });
    const choices = [{ index: 0, message: message("\ud83d"), finish_reason: "stop" }];
    provider.answers(() =>
      Response.json(completion("", { choices, system_fingerprint: "\udc00" })),
    );
    const response = await gateway.post("/v1/chat/completions", chat);
    expect(await response.json()).toMatchObject({
      system_fingerprint: "\ufffd",
      choices: [{ message: message("\ufffd") }],
    });
  });

  test("arguments that a server sends as an object have whole characters only", async () => {
    await using provider = startProvider();
    await using gateway = await gatewayOf([provider]);
    const call = { id: "c", type: "function", function: { name: "f", arguments: { x: "\ud83d" } } };
    const choice = { index: 0, message: { content: null, tool_calls: [call] } };
    provider.answers(() => Response.json(completion("", { choices: [choice] })));
    const answer = await (await gateway.post("/v1/chat/completions", chat)).json();
    const calls = [{ function: { arguments: '{"x":"\ufffd"}' } }];
    expect(answer).toMatchObject({ choices: [{ message: { tool_calls: calls } }] });
  });

  test("a provider's message with half a character is text", async () => {
    await using provider = startProvider(() =>
      Response.json({ error: { message: "bad \ud83d text" } }, { status: 400 }),
    );
    await using gateway = await gatewayOf([provider]);
    const { message } = await errorOf(await gateway.post("/v1/chat/completions", chat));
    expect(message).toContain("bad");
    expect(message.isWellFormed()).toBe(true);
  });
});

describe("answers of Bedrock", () => {
  type Block = readonly [start: object | undefined, deltas: readonly object[]];

  function converseStream(...blocks: readonly Block[]): Response {
    const events = blocks.flatMap(([start, deltas], contentBlockIndex): FrameFixture[] => [
      ...(start === undefined
        ? []
        : [["contentBlockStart", { contentBlockIndex, start }] as const]),
      ...deltas.map((delta) => ["contentBlockDelta", { contentBlockIndex, delta }] as const),
      ["contentBlockStop", { contentBlockIndex }],
    ]);
    const frames = framesOf([
      ["messageStart", { role: "assistant" }],
      ...events,
      ["messageStop", { stopReason: "end_turn" }],
      ["metadata", { usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }],
    ]);
    return new Response(Buffer.from(frames), {
      headers: { "content-type": "application/vnd.amazon.eventstream" },
    });
  }

  test("streamed texts, thoughts and inputs of tools have whole characters only", async () => {
    await using provider = startProvider(() =>
      converseStream(
        [
          undefined,
          [{ reasoningContent: { text: "r\ud83d" } }, { reasoningContent: { text: "\ude00" } }],
        ],
        [undefined, [{ text: "t\ud83d" }, { text: "\ude00" }, { text: "\ud83d" }]],
        [
          { toolUse: { toolUseId: "u1", name: "f" } },
          [{ toolUse: { input: '{"x":"\ud83d' } }, { toolUse: { input: '\ude00"}' } }],
        ],
      ),
    );
    await using gateway = await bedrockGatewayOf(provider);
    const tools = [{ type: "function", function: { name: "f" } }];
    const body = { ...chat, stream: true, tools };
    const text = await (await gateway.post("/v1/chat/completions", body)).text();
    const read = async (kind: Kind) => (await textsOf(new Response(text), kind)).join("");
    expect(await read("reasoning_content")).toBe("r😀");
    expect(await read("content")).toBe("t😀\ufffd");
    expect(await read("arguments")).toBe('{"x":"😀"}');
  });

  test("a free text in a tool's input is read in whole characters", async () => {
    const pieces = String.raw`{"input":"a\ud83d\ude00\ud83d"}`.split("");
    await using provider = startProvider(() =>
      converseStream([
        { toolUse: { toolUseId: "u1", name: "f" } },
        pieces.map((input) => ({ toolUse: { input } })),
      ]),
    );
    await using gateway = await bedrockGatewayOf(provider);
    const body = { ...chat, stream: true, tools: [{ type: "custom", custom: { name: "f" } }] };
    const response = await gateway.post("/v1/chat/completions", body);
    expect(await textsOf(response, "arguments")).toEqual(["a", "😀", "\ufffd"]);
  });

  test("so has a whole answer, and one that is replayed in pieces as a stream", async () => {
    const text = `${"x".repeat(511)}😀\ud83d`;
    const input = { x: text };
    await using provider = startProvider(() =>
      converse({ text }, { toolUse: { toolUseId: "u1", name: "f", input } }),
    );
    // Llama's tools cannot be streamed.
    await using gateway = await bedrockGatewayOf(provider, {
      model: "us.meta.llama4-scout-17b-instruct-v1:0",
    });
    const body = { ...chat, tools: [{ type: "function", function: { name: "f" } }] };
    const mended = text.replace(/\ud83d$/, "\ufffd");
    const answer = await (await gateway.post("/v1/chat/completions", body)).json();
    const calls = [{ function: { arguments: JSON.stringify({ x: mended }) } }];
    expect(answer).toMatchObject({
      choices: [{ message: { content: mended, tool_calls: calls } }],
    });
    const response = await gateway.post("/v1/chat/completions", { ...body, stream: true });
    const texts = await textsOf(response, "content");
    expect(texts.join("")).toBe(mended);
    expect(texts.every((each) => each.isWellFormed())).toBe(true);
  });
});
