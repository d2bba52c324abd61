import { metricsOf } from "../support/metrics-of.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chunk, rawStream, ScriptedUpstream, type Piece } from "../golden/scripted-upstream.ts";
import { encodeFrame, frameOf, textHeaders } from "../support/bedrock-frames.ts";
import { errorOf, parseStream, type StreamText } from "../support/bodies.ts";
import { upstreamKinds, type UpstreamKind } from "../support/gateway.ts";

/** Unreadable events of a stream are skipped, counted and logged. */

/** The text that must not reach a log. */
const payload = "the words of a caller";

interface Wire {
  readonly text: (value: string) => Piece;
  /** The last events of a complete answer. */
  readonly end: readonly Piece[];
  /** The first events of a tool call, arguments among them. */
  readonly call: readonly Piece[];
  readonly malformed: readonly (readonly [what: string, event: Piece])[];
}

const data = (value: unknown): string =>
  `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
const choices = (value: unknown): string => data({ choices: value });
const delta = (value: unknown): string => choices([{ index: 0, delta: value }]);

const openai: Wire = {
  text: (content) => data(chunk({ content })),
  end: [data(chunk({}, "stop")), data("[DONE]")],
  call: [
    data(
      chunk({
        tool_calls: [
          { index: 0, id: "call_a", type: "function", function: { name: "f", arguments: '{"a":' } },
        ],
      }),
    ),
  ],
  malformed: [
    ["half of a chunk", data(`{"choices":[{"index":0,"delta":{"content":"${payload}`)],
    ["a text", data(payload)],
    ["a number", data("42")],
    ["null", data("null")],
    ["a list", data([{ content: payload }])],
    ["choices that are a text", choices(payload)],
    ["choices that are an object", choices({ delta: { content: payload } })],
    ["a choice of null", choices([null])],
    ["a delta that is a text", delta(payload)],
    ["content that is a number", delta({ content: 42 })],
    ["content that is an object", delta({ content: { text: payload } })],
    ["content of parts that are none", delta({ content: [{ text: 42 }] })],
    ["tool calls that are no list", delta({ tool_calls: { id: payload } })],
    ["a tool call of null", delta({ tool_calls: [null] })],
  ],
};

const frame = (event: string, body: string): Uint8Array =>
  encodeFrame(textHeaders({ ":message-type": "event", ":event-type": event }), body);
const deltaFrame = (body: unknown): Uint8Array => frame("contentBlockDelta", JSON.stringify(body));

const bedrock: Wire = {
  text: (text) => frameOf(["contentBlockDelta", { contentBlockIndex: 0, delta: { text } }]),
  end: [
    frameOf(["messageStop", { stopReason: "end_turn" }]),
    frameOf(["metadata", { usage: { inputTokens: 3, outputTokens: 5, totalTokens: 8 } }]),
  ],
  call: [
    frameOf([
      "contentBlockStart",
      { contentBlockIndex: 1, start: { toolUse: { toolUseId: "t", name: "f" } } },
    ]),
    frameOf([
      "contentBlockDelta",
      { contentBlockIndex: 1, delta: { toolUse: { input: '{"a":' } } },
    ]),
  ],
  malformed: [
    ["half of a payload", frame("contentBlockDelta", `{"delta":{"text":"${payload}`)],
    ["a text", frame("contentBlockDelta", JSON.stringify(payload))],
    ["nothing", frame("contentBlockDelta", "")],
    ["a list", deltaFrame([payload])],
    ["null", deltaFrame(null)],
    ["a delta that is a text", deltaFrame({ delta: payload })],
    ["text that is a number", deltaFrame({ delta: { text: 42 } })],
    ["tool use that is a text", deltaFrame({ delta: { toolUse: payload } })],
    ["tool input that is an object", deltaFrame({ delta: { toolUse: { input: {} } } })],
    ["reasoning that is a text", deltaFrame({ delta: { reasoningContent: payload } })],
    ["a start that is a text", frame("contentBlockStart", `{"start":"${payload}"}`)],
    ["a stop that is no JSON", frame("contentBlockStop", payload)],
  ],
};

const wires: Readonly<Record<UpstreamKind, Wire>> = { openai, bedrock };
const contentTypes: Readonly<Record<UpstreamKind, string>> = {
  openai: "text/event-stream",
  bedrock: "application/vnd.amazon.eventstream",
};

describe.each(upstreamKinds)("over the wire of %s", (kind) => {
  const { text, end, call, malformed } = wires[kind];
  const [, garbage = ""] = malformed[0] ?? [];
  let skipping: ScriptedUpstream;
  let ending: ScriptedUpstream;
  beforeAll(async () => {
    skipping = await ScriptedUpstream.start(kind);
    ending = await ScriptedUpstream.start(kind, { streams: "{ malformed_event: end }" });
  });
  afterAll(async () => {
    await skipping[Symbol.asyncDispose]();
    await ending[Symbol.asyncDispose]();
  });

  function ask(upstream: ScriptedUpstream, ...pieces: readonly Piece[]): Promise<Response> {
    const answer = { ...rawStream(...pieces), headers: { "content-type": contentTypes[kind] } };
    return upstream.chat(answer, { stream: true });
  }

  async function streamOf(...pieces: readonly Piece[]): Promise<StreamText> {
    const response = await ask(skipping, ...pieces);
    expect(response.status).toBe(200);
    return parseStream(await response.text());
  }

  /** The upstream's counter and the lines of the log about it. */
  async function logged(upstream: ScriptedUpstream, act: () => Promise<unknown>) {
    const { gateway } = upstream;
    const count = async (): Promise<number> => {
      const page = await metricsOf(gateway.adminUrl);
      const pattern = /^sluice_malformed_events_total\{upstream="scripted"\} (\d+)$/m;
      return Number(pattern.exec(page)?.[1] ?? 0);
    };
    const before = await count();
    const lines = gateway.log.length;
    await act();
    const log = gateway.log.slice(lines);
    expect(log.join("\n")).not.toContain(payload);
    const warnings = log
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
      .filter(({ message }) => String(message).includes("malformed"));
    return { counted: (await count()) - before, warnings };
  }

  test.each(malformed)("%s is skipped within a stream", async (_, event) => {
    const notes = await logged(skipping, async () => {
      const { chunks, isDone } = await streamOf(text("Hel"), event, text("lo"), ...end);
      expect(isDone).toBe(true);
      expect(textOf(chunks)).toBe("Hello");
      expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("stop");
    });
    expect(notes.counted).toBe(1);
    expect(notes.warnings).toHaveLength(1);
    expect(notes.warnings[0]).toMatchObject({ level: "warn", upstream: "scripted", count: 1 });
  });

  test("a malformed event is skipped in one chunk with its neighbours", async () => {
    const bytes = [text("Hel"), garbage, text("lo"), ...end].map((piece) =>
      Buffer.from(piece as string | Uint8Array),
    );
    const { chunks, isDone } = await streamOf(Buffer.concat(bytes));
    expect([isDone, textOf(chunks)]).toEqual([true, "Hello"]);
  });

  test("ten malformed events are skipped with one line of log; one more ends the stream", async () => {
    const ten = Array.from({ length: 10 }, () => [garbage, text(".")]).flat();
    const notes = await logged(skipping, async () => {
      const { chunks, isDone } = await streamOf(text("a"), ...ten, ...end);
      expect([isDone, textOf(chunks)]).toEqual([true, `a${".".repeat(10)}`]);
    });
    expect(notes.counted).toBe(10);
    expect(notes.warnings.map(({ count }) => count)).toEqual([10]);
    const more = await logged(skipping, async () => {
      const { chunks, isDone } = await streamOf(text("a"), ...ten, garbage, text("b"), ...end);
      expect(isDone).toBe(false);
      expect(chunks.at(-1)?.error).toMatchObject({ code: "model_unavailable" });
      expect(textOf(chunks)).toBe(`a${".".repeat(10)}`);
    });
    expect(more.warnings.map(({ count }) => count)).toEqual([11]);
  });

  test("a malformed first event is an HTTP error, so that other targets are tried", async () => {
    const response = await ask(skipping, garbage, text("Hello"), ...end);
    expect(response.status).toBe(503);
    expect((await errorOf(response)).code).toBe("model_unavailable");
    const together = Buffer.concat(
      [garbage, text("Hello"), ...end].map((piece) => Buffer.from(piece as string | Uint8Array)),
    );
    expect((await ask(skipping, together)).status).toBe(503);
  });

  test("a stream without a proper end after a malformed event is broken", async () => {
    const { chunks, isDone } = await streamOf(text("Hel"), garbage, text("lo"));
    expect(isDone).toBe(false);
    expect(chunks.at(-1)?.error).toMatchObject({ code: "model_unavailable" });
  });

  test("a tool call with a missing piece is not passed on as complete", async () => {
    const { chunks, isDone } = await streamOf(text("I will."), ...call, garbage, ...end);
    expect(isDone).toBe(false);
    expect(chunks.at(-1)?.error).toMatchObject({ code: "model_unavailable" });
  });

  test("the first malformed event ends the stream if the operator configures it", async () => {
    const notes = await logged(ending, async () => {
      const response = await ask(ending, text("Hel"), garbage, text("lo"), ...end);
      const { chunks, isDone } = parseStream(await response.text());
      expect([isDone, textOf(chunks)]).toEqual([false, "Hel"]);
      expect(chunks.at(-1)?.error).toMatchObject({ code: "model_unavailable" });
    });
    expect(notes.counted).toBe(1);
  });

  test("a stream without malformed events is not logged", async () => {
    const notes = await logged(skipping, () => streamOf(text("Hello"), ...end));
    expect(notes).toEqual({ counted: 0, warnings: [] });
  });
});

test("a frame with a wrong checksum ends the stream, because the next frame's place is unknown", async () => {
  await using upstream = await ScriptedUpstream.start("bedrock");
  const damaged = Buffer.from(bedrock.text("lost") as Uint8Array);
  damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 1;
  const headers = { "content-type": contentTypes.bedrock };
  const answer = { ...rawStream(bedrock.text("Hel"), damaged, ...bedrock.end), headers };
  const response = await upstream.chat(answer, { stream: true });
  const { chunks, isDone } = parseStream(await response.text());
  expect([isDone, textOf(chunks)]).toEqual([false, "Hel"]);
});

function textOf(chunks: StreamText["chunks"]): string {
  return chunks.map((each) => each.choices?.[0]?.delta.content ?? "").join("");
}
