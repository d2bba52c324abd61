import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dataLines } from "./normalise.ts";
import { chunk, rawStream, ScriptedUpstream, streamAnswer } from "./scripted-upstream.ts";
import type { ScriptedAnswer } from "./scripted-upstream.ts";

let upstream: ScriptedUpstream;
beforeAll(async () => {
  upstream = await ScriptedUpstream.start();
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
});

const envelope =
  '{"id":"ID","object":"chat.completion.chunk","created":0,"model":"chat-model",' +
  '"choices":[{"index":0,"delta":';

/** What the caller gets: deltas and finish reasons, after the envelope was checked. */
async function deltasOf(answer: ScriptedAnswer, request: object = {}): Promise<readonly string[]> {
  const response = await upstream.chat(answer, { stream: true, ...request });
  expect(response.status).toBe(200);
  const lines = dataLines(await response.text());
  expect(lines.at(-1)).toBe("[DONE]");
  return lines.slice(0, -1).map((line) => {
    expect(line).toStartWith(envelope);
    const found = /^(\{.*\}),"logprobs":null,"finish_reason":(null|"\w+")\}\]\}$/.exec(
      line.slice(envelope.length),
    );
    return found?.[2] === "null" ? (found[1] ?? "") : `${found?.[1]} ${found?.[2]}`;
  });
}

const textRole = '{"role":"assistant","content":"","refusal":null}';

/** The first delta of a choice that begins with a call: its header comes with the role. */
function withRole(header: string): string {
  return `{"role":"assistant","content":null,${header.slice(1, -1)},"refusal":null}`;
}
const hello = [textRole, '{"content":"Hel"}', '{"content":"lo"}', '{} "stop"'];

describe("text", () => {
  test.each([
    [
      "with the role in every chunk",
      streamAnswer(
        chunk({ role: "assistant", content: "Hel" }),
        chunk({ role: "assistant", content: "lo" }),
        chunk({ role: "assistant", content: "" }, "stop"),
      ),
    ],
    [
      "without any role",
      streamAnswer(chunk({ content: "Hel" }), chunk({ content: "lo" }), chunk({}, "stop")),
    ],
    [
      "with null where there is nothing",
      streamAnswer(
        chunk({ role: "assistant", content: null, tool_calls: null, refusal: null }),
        chunk({ content: "Hel", tool_calls: [], function_call: null, reasoning_content: null }),
        chunk({ content: "lo", tool_calls: [] }),
        chunk({ content: null, tool_calls: [] }, "stop"),
      ),
    ],
    [
      "with its last piece in the finish chunk",
      streamAnswer(chunk({ role: "assistant", content: "Hel" }), chunk({ content: "lo" }, "stop")),
    ],
    [
      "without id, created, model, object and index",
      streamAnswer(
        { choices: [{ delta: { role: "assistant", content: "Hel" } }] },
        { choices: [{ delta: { content: "lo" } }] },
        { choices: [{ delta: {}, finish_reason: "stop" }] },
      ),
    ],
    [
      "with a time in milliseconds and an id that changes",
      streamAnswer(
        chunk({ content: "Hel" }, null, { created: 1727346172123, id: "a" }),
        chunk({ content: "lo" }, null, { created: 1727346172456, id: "b" }),
        chunk({}, "stop", { created: "yesterday", id: 7 }),
      ),
    ],
    [
      "with an error of null in every chunk",
      streamAnswer(
        chunk({ content: "Hel" }, null, { error: null }),
        chunk({ content: "lo" }, null, { error: null }),
        chunk({}, "stop", { error: null }),
      ),
    ],
    [
      "with an empty finish reason until the end",
      streamAnswer(chunk({ content: "Hel" }, ""), chunk({ content: "lo" }, ""), chunk({}, "stop")),
    ],
    [
      "with its finish reason twice",
      streamAnswer(
        chunk({ content: "Hel" }),
        chunk({ content: "lo" }, "stop"),
        chunk({ content: "" }, "stop"),
      ),
    ],
    [
      "without a delta in the finish chunk",
      streamAnswer(chunk({ content: "Hel" }), chunk({ content: "lo" }), {
        choices: [{ index: 0, finish_reason: "stop" }],
      }),
    ],
  ])("%s", async (_name, answer) => {
    expect(await deltasOf(answer)).toEqual(hello);
  });
});

describe("framing", () => {
  const first = JSON.stringify(chunk({ content: "Hel" }));
  const second = JSON.stringify(chunk({ content: "lo" }));
  const last = JSON.stringify(chunk({}, "stop"));
  const plain = `data: ${first}\n\ndata: ${second}\n\ndata: ${last}\n\ndata: [DONE]\n\n`;

  test.each([
    ["in one piece", rawStream(plain)],
    ["byte by byte", rawStream(...bytesOf(plain))],
    ["with CRLF", rawStream(plain.replaceAll("\n", "\r\n"))],
    ["with CRLF, byte by byte", rawStream(...bytesOf(plain.replaceAll("\n", "\r\n")))],
    ["without a space after data:", rawStream(plain.replaceAll("data: ", "data:"))],
    ["with comments", rawStream(`: hello\n\n${plain.replaceAll("data:", ": ping\n\n:\ndata:")}`)],
    [
      "with event, id and retry lines",
      rawStream(plain.replaceAll("data:", "event: message\nid: 1\nretry: 10\ndata:")),
    ],
    ["with an event that has no data", rawStream(`event: ping\n\n${plain}`)],
    ["without [DONE]", rawStream(plain.replace("data: [DONE]\n\n", ""))],
    ["without an empty line at the end", rawStream(plain.slice(0, -2))],
    [
      "with an event of several data lines",
      rawStream(plain.replace('"choices"', '\ndata: "choices"')),
    ],
    ["with a byte order mark", rawStream(`\uFEFF${plain}`)],
    ["with more after [DONE]", rawStream(`${plain}data: {"error":"late"}\n\n`)],
  ])("%s", async (_name, answer) => {
    expect(await deltasOf(answer)).toEqual(hello);
  });

  test("text that is cut inside a character arrives whole", async () => {
    const answer = rawStream(...bytesOf(plain.replace("Hel", "Hé😀l")));
    const response = await upstream.chat(answer, { stream: true });
    expect(await response.text()).toContain('"content":"Hé😀l"');
  });
});

describe("finish reasons", () => {
  test.each([
    ["end_turn", "stop"],
    ["eos", "stop"],
    ["eos_token", "stop"],
    ["stop_sequence", "stop"],
    ["COMPLETE", "stop"],
    ["STOP", "stop"],
    ["max_tokens", "length"],
    ["MAX_TOKENS", "length"],
    ["model_length", "length"],
    ["length", "length"],
    ["content_filter", "content_filter"],
    ["SAFETY", "content_filter"],
  ])("%s becomes %s", async (reason, expected) => {
    const deltas = await deltasOf(streamAnswer(chunk({ content: "Hi" }), chunk({}, reason)));
    expect(deltas.at(-1)).toBe(`{} "${expected}"`);
  });

  test.each(["stop", "tool_use", "tool_calls", "end_turn", "eos"])(
    "%s of an answer with a tool call becomes tool_calls",
    async (reason) => {
      const call = { index: 0, id: "call_a", type: "function", function: { name: "f" } };
      const deltas = await deltasOf(
        streamAnswer(
          chunk({ content: "I will." }),
          chunk({ tool_calls: [call] }),
          chunk({}, reason),
        ),
      );
      expect(deltas.at(-1)).toBe('{} "tool_calls"');
    },
  );

  test("stop of an answer with a function_call becomes function_call", async () => {
    const call = { name: "f", arguments: "{}" };
    expect(await deltasOf(streamAnswer(chunk({ function_call: call }), chunk({}, "stop")))).toEqual(
      [
        withRole('{"function_call":{"name":"f","arguments":""}}'),
        '{"function_call":{"arguments":"{}"}}',
        '{} "function_call"',
      ],
    );
  });
});

function bytesOf(text: string): readonly Uint8Array[] {
  return Array.from(Buffer.from(text), (byte) => Uint8Array.of(byte));
}

function header(index: number, name: string): string {
  const body = `"type":"function","function":{"name":"${name}","arguments":""}`;
  return `{"tool_calls":[{"index":${index},"id":"CALL",${body}}]}`;
}

function piece(index: number, text: string): string {
  return `{"tool_calls":[{"index":${index},"function":{"arguments":${JSON.stringify(text)}}}]}`;
}

const oneCall = [withRole(header(0, "f")), piece(0, '{"a":'), piece(0, "1}"), '{} "tool_calls"'];
const finish = chunk({}, "tool_calls");

function calls(...fragments: readonly object[]): object {
  return chunk({ tool_calls: fragments });
}

describe("one tool call", () => {
  const id = "call_a";
  const type = "function";
  test.each([
    [
      "as OpenAI sends it",
      streamAnswer(
        calls({ index: 0, id, type, function: { name: "f", arguments: "" } }),
        calls({ index: 0, function: { arguments: '{"a":' } }),
        calls({ index: 0, function: { arguments: "1}" } }),
        finish,
      ),
    ],
    [
      "with id, type and name in every piece",
      streamAnswer(
        calls({ index: 0, id, type, function: { name: "f", arguments: '{"a":' } }),
        calls({ index: 0, id, type, function: { name: "f", arguments: "1}" } }),
        finish,
      ),
    ],
    [
      "with empty and null fields in later pieces",
      streamAnswer(
        calls({ index: 0, id, type, function: { name: "f", arguments: '{"a":' } }),
        calls({ index: 0, id: null, type: null, function: { name: null, arguments: "1}" } }),
        calls({ index: 0, id: "", type: "", function: { name: "", arguments: null } }),
        finish,
      ),
    ],
    [
      "without an index",
      streamAnswer(
        calls({ id, type, function: { name: "f", arguments: '{"a":' } }),
        calls({ function: { arguments: "1}" } }),
        finish,
      ),
    ],
    [
      "without an id",
      streamAnswer(
        calls({ index: 0, function: { name: "f", arguments: '{"a":' } }),
        calls({ index: 0, function: { arguments: "1}" } }),
        finish,
      ),
    ],
    [
      "with an empty id",
      streamAnswer(
        calls({ index: 0, id: "", type, function: { name: "f", arguments: '{"a":' } }),
        calls({ index: 0, id: "", function: { arguments: "1}" } }),
        finish,
      ),
    ],
    [
      "with an index that begins at one",
      streamAnswer(
        calls({ index: 1, id, type, function: { name: "f", arguments: '{"a":' } }),
        calls({ index: 1, function: { arguments: "1}" } }),
        finish,
      ),
    ],
    [
      "with a new id in every piece",
      streamAnswer(
        calls({ index: 0, id: "call_a", type, function: { name: "f", arguments: '{"a":' } }),
        calls({ index: 0, id: "call_b", type, function: { arguments: "1}" } }),
        finish,
      ),
    ],
  ])("%s", async (_name, answer) => {
    expect(await deltasOf(answer)).toEqual(oneCall);
  });

  test("whose arguments are an object is sent as JSON text", async () => {
    const call = { index: 0, id, type, function: { name: "f", arguments: { a: 1 } } };
    expect(await deltasOf(streamAnswer(calls(call), finish))).toEqual([
      withRole(header(0, "f")),
      piece(0, '{"a":1}'),
      '{} "tool_calls"',
    ]);
  });

  test("whose name comes after its arguments waits for the name", async () => {
    const answer = streamAnswer(
      calls({ index: 0, id, function: { arguments: '{"a":' } }),
      calls({ index: 0, function: { name: "f", arguments: "1}" } }),
      finish,
    );
    const joined = [withRole(header(0, "f")), piece(0, '{"a":1}'), '{} "tool_calls"'];
    expect(await deltasOf(answer)).toEqual(joined);
  });
});

describe("two tool calls", () => {
  const first = { id: "call_a", type: "function", function: { name: "f", arguments: "{}" } };
  const second = { id: "call_b", type: "function", function: { name: "g", arguments: "{}" } };
  const both = [
    withRole(header(0, "f")),
    piece(0, "{}"),
    header(1, "g"),
    piece(1, "{}"),
    '{} "tool_calls"',
  ];
  const unnamed = (call: typeof first): object => ({ type: call.type, function: call.function });

  test.each([
    ["in one chunk", [calls({ ...first, index: 0 }, { ...second, index: 1 })]],
    ["that share an index", [calls({ ...first, index: 0 }), calls({ ...second, index: 0 })]],
    ["that share an index in one chunk", [calls({ ...first, index: 0 }, { ...second, index: 0 })]],
    ["without indexes", [calls(first), calls(second)]],
    ["without indexes in one chunk", [calls(first, second)]],
    ["with a gap between indexes", [calls({ ...first, index: 0 }), calls({ ...second, index: 7 })]],
    [
      "without ids",
      [calls({ ...unnamed(first), index: 0 }), calls({ ...unnamed(second), index: 1 })],
    ],
    ["without ids and indexes", [calls(unnamed(first)), calls(unnamed(second))]],
    [
      "without ids that share an index",
      [calls({ ...unnamed(first), index: 0 }), calls({ ...unnamed(second), index: 0 })],
    ],
  ])("%s", async (_name, chunks) => {
    expect(await deltasOf(streamAnswer(...chunks, finish))).toEqual(both);
  });

  test("whose pieces alternate keep their arguments apart", async () => {
    const answer = streamAnswer(
      calls({ index: 0, id: "call_a", function: { name: "f", arguments: "" } }),
      calls({ index: 1, id: "call_b", function: { name: "g", arguments: "" } }),
      calls({ index: 0, function: { arguments: "{" } }),
      calls({ index: 1, function: { arguments: "[" } }),
      calls({ index: 0, function: { arguments: "}" } }),
      calls({ index: 1, function: { arguments: "]" } }),
      finish,
    );
    const deltas = await deltasOf(answer);
    const joined = (index: number): string =>
      deltas
        .map((delta) => /"index":(\d),"function":\{"arguments":"(.)"/.exec(delta))
        .filter((found) => Number(found?.[1]) === index)
        .map((found) => found?.[2])
        .join("");
    expect([joined(0), joined(1)]).toEqual(["{}", "[]"]);
  });

  test("have different ids, also when the upstream gave none", async () => {
    const answer = streamAnswer(calls(unnamed(first)), calls(unnamed(second)), finish);
    const text = await (await upstream.chat(answer, { stream: true })).text();
    const ids = text.match(/"id":"call_[^"]+"/g) ?? [];
    expect(new Set(ids).size).toBe(2);
  });
});
