import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { streamOf } from "../support/bodies.ts";
import type { TestGateway } from "../support/gateway.ts";
import { requests, startGoldenGateway } from "./golden-gateway.ts";
import { dataLines } from "./normalise.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGoldenGateway();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

const path = "/v1/chat/completions";

async function streamedLines(request: object): Promise<readonly string[]> {
  const response = await gateway.post(path, { ...request, stream: true });
  expect(response.status).toBe(200);
  return dataLines(await response.text());
}

const head =
  '{"id":"ID","object":"chat.completion.chunk","created":0,"model":"chat-model",' +
  '"service_tier":"default","system_fingerprint":"fp_simulator","choices":';

/** A chunk with one choice; `delta` is the inside of its delta. */
function chunk(delta: string, finishReason = "null", options: ChunkOptions = {}): string {
  const { index = 0, logprobs = "null", tail = "}" } = options;
  return (
    `${head}[{"index":${index},"delta":{${delta}},"logprobs":${logprobs},` +
    `"finish_reason":${finishReason}}]${tail}`
  );
}

interface ChunkOptions {
  readonly index?: number;
  readonly logprobs?: string;
  readonly tail?: string;
}

const textRole = '"role":"assistant","content":"","refusal":null';

/** The first delta of a choice that begins with a call: its header comes with the role. */
function withRole(call: string): string {
  return chunk(`"role":"assistant","content":null,${call},"refusal":null`);
}

test("a text stream is role, pieces, finish and [DONE], and tells no usage unasked", async () => {
  expect(await streamedLines(requests.text)).toEqual([
    chunk(textRole),
    chunk('"content":"Hello"'),
    chunk('"content":" there"'),
    chunk("", '"stop"'),
    "[DONE]",
  ]);
});

test("with include_usage every chunk has a null usage and a last one, without choices, the counts", async () => {
  const lines = await streamedLines({
    ...requests.text,
    stream_options: { include_usage: true },
  });
  const tail = ',"usage":null}';
  expect(lines).toEqual([
    chunk(textRole, "null", { tail }),
    chunk('"content":"Hello"', "null", { tail }),
    chunk('"content":" there"', "null", { tail }),
    chunk("", '"stop"', { tail }),
    `${head}[],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":9,` +
      `"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},` +
      `"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,` +
      `"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}`,
    "[DONE]",
  ]);
});

test("include_usage false is the same as not asking", async () => {
  const stream_options = { include_usage: false };
  const lines = await streamedLines({ ...requests.text, stream_options });
  expect(lines).toEqual(await streamedLines(requests.text));
});

/** The chunks of a call's arguments, whatever their pieces, as one text. */
function joinArguments(lines: readonly string[], index: number, pattern: RegExp): string {
  let joined = "";
  for (const line of lines) {
    const piece = pattern.exec(line);
    if (piece === null || Number(piece[1]) !== index) continue;
    expect(line).toBe(chunk(piece[0]));
    joined += JSON.parse(`"${piece[2]}"`) as string;
  }
  return joined;
}

const toolPiece = /"tool_calls":\[\{"index":(\d+),"function":\{"arguments":"(.*)"\}\}\]/;

function toolHeader(index: number, name: string): string {
  const body = `"type":"function","function":{"name":"${name}","arguments":""}`;
  return `"tool_calls":[{"index":${index},"id":"CALL",${body}}]`;
}

test("a tool call begins with id, type and name, and goes on with pieces of arguments only", async () => {
  const lines = await streamedLines(requests.tool);
  expect(lines[0]).toBe(withRole(toolHeader(0, "get_weather")));
  expect(lines.slice(-2)).toEqual([chunk("", '"tool_calls"'), "[DONE]"]);
  const pieces = lines.slice(1, -2);
  expect(joinArguments(pieces, 0, toolPiece)).toBe('{"city":"Rome"}');
  expect(pieces.every((line) => toolPiece.test(line))).toBe(true);
});

test("of two tool calls the second begins when the first is complete", async () => {
  const lines = await streamedLines(requests.tools);
  const second = lines.indexOf(chunk(toolHeader(1, "get_population")));
  expect(lines[0]).toBe(withRole(toolHeader(0, "get_weather")));
  expect(joinArguments(lines.slice(1, second), 0, toolPiece)).toBe('{"city":"Rome"}');
  expect(joinArguments(lines.slice(second), 1, toolPiece)).toBe('{"city":"Rome"}');
  expect(joinArguments(lines.slice(second), 0, toolPiece)).toBe("");
  expect(lines.slice(-2)).toEqual([chunk("", '"tool_calls"'), "[DONE]"]);
});

test("a refusal begins with null content and an empty refusal", async () => {
  const lines = await streamedLines(requests.refusal);
  expect(lines[0]).toBe(chunk('"role":"assistant","content":null,"refusal":""'));
  expect(lines[1]).toBe(chunk('"refusal":"I"'));
  expect(lines.slice(-2)).toEqual([chunk("", '"stop"'), "[DONE]"]);
  expect(lines.slice(1, -2).every((line) => line.includes('"delta":{"refusal":"'))).toBe(true);
});

test("a stream that reached its cap finishes with length", async () => {
  expect(await streamedLines(requests.length)).toEqual([
    chunk(textRole),
    chunk('"content":"one"'),
    chunk('"content":" two"'),
    chunk("", '"length"'),
    "[DONE]",
  ]);
});

test("two choices have a role chunk and a finish chunk each", async () => {
  const lines = await streamedLines(requests.severalChoices);
  for (const index of [0, 1]) {
    const own = lines.filter((line) => line.includes(`"choices":[{"index":${index},`));
    expect(own).toEqual([
      chunk(textRole, "null", { index }),
      chunk('"content":"Hi"', "null", { index }),
      chunk("", '"stop"', { index }),
    ]);
  }
  expect(lines).toHaveLength(7);
  expect(lines.at(-1)).toBe("[DONE]");
});

test("the deprecated functions are answered with pieces of a function_call", async () => {
  const lines = await streamedLines(requests.functionCall);
  expect(lines[0]).toBe(withRole('"function_call":{"name":"get_weather","arguments":""}'));
  const piece = /"function_call":(?=(\{))\{"arguments":"(.*)"\}(?=\})/;
  const joined = lines.slice(1, -2).map((line) => {
    const found = piece.exec(line);
    expect(line).toBe(chunk(found?.[0] ?? "no piece"));
    return JSON.parse(`"${found?.[2]}"`) as string;
  });
  expect(joined.join("")).toBe('{"city":"Rome"}');
  expect(lines.slice(-2)).toEqual([chunk("", '"function_call"'), "[DONE]"]);
});

test("a custom tool's input is streamed as text", async () => {
  expect(await streamedLines(requests.customTool)).toEqual([
    withRole(
      '"tool_calls":[{"index":0,"id":"CALL","type":"custom","custom":{"name":"shell","input":""}}]',
    ),
    chunk('"tool_calls":[{"index":0,"custom":{"input":"shell"}}]'),
    chunk("", '"tool_calls"'),
    "[DONE]",
  ]);
});

test("with logprobs the first chunk has an empty list, each piece its own, the last null", async () => {
  const lines = await streamedLines(requests.logprobs);
  expect(lines[0]).toBe(chunk(textRole, "null", { logprobs: '{"content":[],"refusal":null}' }));
  expect(lines[1]).toMatch(
    /"delta":\{"content":"Hi"\},"logprobs":\{"content":\[\{"token":"Hi","logprob":-[0-9.e-]+,"bytes":\[72,105\],"top_logprobs":\[\{.*\}\]\}\],"refusal":null\},"finish_reason":null/,
  );
  expect(lines.slice(2)).toEqual([chunk("", '"stop"'), "[DONE]"]);
});

test("the logprobs of a streamed refusal stand in their refusal field", async () => {
  const lines = await streamedLines(requests.refusalLogprobs);
  expect(lines[1]).toMatch(
    /"delta":\{"refusal":"I"\},"logprobs":\{"content":null,"refusal":\[\{"token":"I",.*\}\]\}/,
  );
});

test("thoughts come as reasoning_content before the text, after one role chunk", async () => {
  const response = await gateway.post(path, { ...requests.reasoning, stream: true });
  const { chunks } = await streamOf(response);
  const keys = chunks.map(({ choices }) => Object.keys(choices[0]?.delta ?? {}).join());
  const thoughts = keys.filter((key) => key === "reasoning_content").length;
  expect(thoughts).toBeGreaterThan(0);
  expect(keys).toEqual([
    "role,content,refusal",
    ...Array.from({ length: thoughts }, () => "reasoning_content"),
    "content",
    "",
  ]);
});

describe("every stream", () => {
  const names = Object.keys(requests) as (keyof typeof requests)[];

  test.each(names)("%s: one id, one time and one model for all chunks", async (name) => {
    const response = await gateway.post(path, { ...requests[name], stream: true });
    const { chunks, isDone, comments } = await streamOf(response);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    expect(new Set(chunks.map(({ created }) => created)).size).toBe(1);
    expect(new Set(chunks.map(({ model }) => model))).toEqual(new Set([requests[name].model]));
    expect(isDone).toBe(true);
    expect(comments).toEqual([]);
  });

  test.each(names)("%s: role, tool id and tool name exactly once", async (name) => {
    const text = await (await gateway.post(path, { ...requests[name], stream: true })).text();
    const count = (pattern: RegExp): number => text.match(pattern)?.length ?? 0;
    const { n, tools, functions } = { n: 1, tools: [], functions: [], ...requests[name] };
    expect(count(/"role":/g)).toBe(n);
    expect(count(/"finish_reason":"/g)).toBe(n);
    expect(count(/"id":"call_/g)).toBe(tools.length);
    expect(count(/"name":/g)).toBe(tools.length + functions.length);
    expect(count(/"type":/g)).toBe(tools.length);
  });
});
