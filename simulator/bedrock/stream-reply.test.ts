import { EventStreamCodec } from "@smithy/eventstream-codec";
import { describe, expect, test } from "bun:test";
import type { AnswerEvent } from "../answer/answer.ts";
import { countTo, writeAnswer } from "../answer/write-answer.ts";
import { type FaultMode, parseFault } from "../faults/fault-modes.ts";
import { outsizedAnswer } from "../faults/bodies.ts";
import { isFrame, type Reply } from "../reply.ts";
import { type JsonRecord, parseJson, recordOf, stringOf } from "../json.ts";
import type { ConverseRequest } from "./read-request.ts";
import { converseStreamReply } from "./stream-reply.ts";

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString("utf8"),
  (text) => Buffer.from(text, "utf8"),
);

const plainRequest: ConverseRequest = {
  model: "simulated-model",
  prompt: {
    model: "simulated-model",
    turns: [{ role: "user", text: "Hello", name: undefined, attachments: [], toolCalls: [] }],
    tools: [],
    toolUse: { mode: "auto", only: undefined, isParallel: true },
    output: { kind: "text" },
    maxTokens: undefined,
    stopSequences: [],
    seed: "",
    reasoningEffort: undefined,
  },
  promptTokens: 40,
  cache: undefined,
  isStreamed: true,
  maxOutputTokens: 4096,
  thoughts: "shown",
  guardrail: undefined,
  serviceTier: undefined,
  latency: undefined,
  responseFieldPaths: [],
};

function* words(...pieces: readonly string[]): Generator<AnswerEvent, void, void> {
  for (const piece of pieces) yield { kind: "text", piece, tokens: 1 };
  yield { kind: "finish", reason: "stop", completionTokens: pieces.length, reasoningTokens: 0 };
}

function reply(
  answer: Iterable<AnswerEvent>,
  details: { readonly fault?: string; readonly request?: Partial<ConverseRequest> } = {},
): Reply {
  const fault = parseFault(details.fault ?? "ok");
  if (fault === undefined) throw new Error(`no such fault: ${details.fault}`);
  let nowMs = 5.25;
  const clock = {
    now: () => 0,
    monotonic: () => (nowMs += 100.5),
    schedule: () => () => undefined,
  };
  return converseStreamReply({ ...plainRequest, ...details.request }, answer, { fault, clock });
}

/** The frames as an independent decoder reads them. */
function decoded({ steps }: Reply) {
  return [...steps].filter(isFrame).map(({ data, tokens, hasUsage }) => {
    const { headers, body } = codec.decode(Buffer.from(data));
    const type = String((headers[":event-type"] ?? headers[":exception-type"])?.value);
    const message = recordOf(parseJson(Buffer.from(body).toString("utf8")));
    return { type, message, tokens, hasUsage: hasUsage === true };
  });
}

/** Type and body of each known event, without the padding. */
function eventsOf(answer: Reply): readonly (readonly [string, JsonRecord])[] {
  return decoded(answer)
    .filter(({ type }) => type !== "contentBlockNote")
    .map(({ type, message: { p, ...body } }) => {
      expect(p).toBeString();
      return [type, body] as const;
    });
}

const typesOf = (answer: Reply): string[] => decoded(answer).map(({ type }) => type);

describe("without a fault", () => {
  test("text is one block without a start, and the usage comes last", () => {
    expect(eventsOf(reply(words("one", " two")))).toEqual([
      ["messageStart", { role: "assistant" }],
      ["contentBlockDelta", { contentBlockIndex: 0, delta: { text: "one" } }],
      ["contentBlockDelta", { contentBlockIndex: 0, delta: { text: " two" } }],
      ["contentBlockStop", { contentBlockIndex: 0 }],
      ["messageStop", { stopReason: "end_turn" }],
      [
        "metadata",
        {
          usage: { inputTokens: 40, outputTokens: 2, totalTokens: 42 },
          metrics: { latencyMs: 101 },
        },
      ],
    ]);
  });

  test("the reply is a stream of the provider's content type", () => {
    expect(reply(words("one"))).toMatchObject({
      status: 200,
      headers: { "content-type": "application/vnd.amazon.eventstream" },
      isStreamed: true,
    });
  });

  test("thoughts have their own block, which ends in a signature", () => {
    const answer: readonly AnswerEvent[] = [
      { kind: "reasoning", piece: "Let me", tokens: 1 },
      { kind: "reasoning", piece: " think", tokens: 1 },
      { kind: "text", piece: "Yes", tokens: 1 },
      { kind: "finish", reason: "stop", completionTokens: 3, reasoningTokens: 2 },
    ];
    const delta = (index: number, body: object) =>
      ["contentBlockDelta", { contentBlockIndex: index, delta: body }] as const;
    expect(eventsOf(reply(answer)).slice(1, 8)).toEqual([
      delta(0, { reasoningContent: { text: "Let me" } }),
      delta(0, { reasoningContent: { text: " think" } }),
      delta(0, { reasoningContent: { signature: expect.stringMatching(/^[\w+/]{80,}={0,2}$/) } }),
      ["contentBlockStop", { contentBlockIndex: 0 }],
      delta(1, { text: "Yes" }),
      ["contentBlockStop", { contentBlockIndex: 1 }],
      ["messageStop", { stopReason: "end_turn" }],
    ]);
  });

  test("each tool call is a block with a start, and its input comes in pieces of JSON", () => {
    const call = (index: number, name: string): AnswerEvent => {
      return {
        kind: "call",
        index,
        count: 2,
        id: `call_${index}x`,
        name,
        tool: "function",
        tokens: 4,
      };
    };
    const input = (index: number, piece: string): AnswerEvent => {
      return { kind: "input", index, tool: "function", piece, tokens: 1 };
    };
    const answer: readonly AnswerEvent[] = [
      call(0, "weather"),
      input(0, '{"city":'),
      input(0, '"Rome"}'),
      call(1, "clock"),
      input(1, "{}"),
      { kind: "finish", reason: "tool-calls", completionTokens: 11, reasoningTokens: 0 },
    ];
    const start = (index: number, name: string) => {
      const toolUse = { toolUseId: `tooluse_${index}x`, name };
      return ["contentBlockStart", { contentBlockIndex: index, start: { toolUse } }] as const;
    };
    const delta = (index: number, piece: string) => {
      const body = { contentBlockIndex: index, delta: { toolUse: { input: piece } } };
      return ["contentBlockDelta", body] as const;
    };
    expect(eventsOf(reply(answer)).slice(1, -1)).toEqual([
      start(0, "weather"),
      delta(0, '{"city":'),
      delta(0, '"Rome"}'),
      ["contentBlockStop", { contentBlockIndex: 0 }],
      start(1, "clock"),
      delta(1, ""),
      ["contentBlockStop", { contentBlockIndex: 1 }],
      ["messageStop", { stopReason: "tool_use" }],
    ]);
    const tokens = decoded(reply(answer)).reduce((total, event) => total + event.tokens, 0);
    expect(tokens).toBe(11);
  });

  test("a refusal is text, and an empty answer has no block", () => {
    const refusal: readonly AnswerEvent[] = [
      { kind: "refusal", piece: "No.", tokens: 1 },
      { kind: "finish", reason: "stop", completionTokens: 1, reasoningTokens: 0 },
    ];
    expect(eventsOf(reply(refusal))[1]?.[1]).toMatchObject({ delta: { text: "No." } });
    expect(typesOf(reply(words()))).toEqual(["messageStart", "messageStop", "metadata"]);
  });

  test("the last two events have the fields that the request asked for", () => {
    const request: Partial<ConverseRequest> = {
      cache: { readTokens: 10, writeTokens: 5, written: { "5m": 2, "1h": 3 } },
      serviceTier: "flex",
      latency: "optimized",
      responseFieldPaths: ["/stop_sequence"],
    };
    const answer: readonly AnswerEvent[] = [
      {
        kind: "finish",
        reason: "stop",
        stopSequence: "END",
        completionTokens: 0,
        reasoningTokens: 0,
      },
    ];
    expect(eventsOf(reply(answer, { request })).slice(1)).toEqual([
      [
        "messageStop",
        { stopReason: "stop_sequence", additionalModelResponseFields: { stop_sequence: "END" } },
      ],
      [
        "metadata",
        {
          usage: {
            inputTokens: 25,
            outputTokens: 0,
            totalTokens: 40,
            cacheReadInputTokens: 10,
            cacheWriteInputTokens: 5,
            cacheDetails: [
              { ttl: "1h", inputTokens: 3 },
              { ttl: "5m", inputTokens: 2 },
            ],
          },
          metrics: { latencyMs: 101 },
          performanceConfig: { latency: "optimized" },
          serviceTier: { type: "flex" },
        },
      ],
    ]);
  });

  test("each delta counts its tokens, and only the last event has the usage", () => {
    const events = decoded(reply(words("a", "b", "c")));
    expect(events.reduce((total, { tokens }) => total + tokens, 0)).toBe(3);
    expect(events.map(({ hasUsage }) => hasUsage).lastIndexOf(true)).toBe(events.length - 1);
    expect(events.filter(({ hasUsage }) => hasUsage)).toHaveLength(1);
  });

  test("paddings hide the length of words and are the same in every run", () => {
    const paddings = (): unknown[] =>
      decoded(reply(words(...Array.from({ length: 200 }, () => "x"))))
        .filter(({ type }) => type === "contentBlockDelta")
        .map(({ message }) => message["p"]);
    expect(new Set(paddings()).size).toBeGreaterThan(30);
    expect(paddings()).toEqual(paddings());
  });

  test("unknown events come now and then, but not at the beginning", () => {
    const types = typesOf(reply(words(...countTo(500))));
    const unknown = types.filter((type) => type === "contentBlockNote").length;
    expect(unknown).toBeGreaterThan(2);
    expect(unknown).toBeLessThan(50);
    for (let seed = 0; seed < 100; seed++) {
      const request = { model: `simulated-${seed}` };
      const first = typesOf(reply(words("a", "b", "c"), { request })).slice(0, 3);
      expect(first).toEqual(["messageStart", "contentBlockDelta", "contentBlockDelta"]);
    }
  });

  test("frames are generated lazily", () => {
    let made = 0;
    function* answer(): Generator<AnswerEvent, void, void> {
      for (;;) {
        made += 1;
        yield { kind: "text", piece: "x", tokens: 1 };
      }
    }
    const steps = reply(answer()).steps[Symbol.iterator]();
    expect(made).toBe(0);
    steps.next();
    expect(made).toBe(0);
    steps.next();
    steps.next();
    expect(made).toBe(2);
  });
});

describe("faults of events", () => {
  const fault = (mode: string): Reply => reply(words("one", " two"), { fault: mode });

  test.each([
    ["no-message-stop", ["contentBlockStop"]],
    ["no-metadata", ["contentBlockStop", "messageStop"]],
    ["no-done", ["contentBlockStop", "messageStop"]],
    ["missing-finish-reason", ["contentBlockStop", "metadata"]],
    ["usage-twice", ["contentBlockStop", "messageStop", "metadata", "metadata"]],
  ])("%s changes how the stream ends", (mode, types) => {
    expect(
      eventsOf(fault(mode))
        .map(([type]) => type)
        .slice(3),
    ).toEqual(types);
  });

  test("ok-no-usage omits only the usage", () => {
    expect(eventsOf(fault("ok-no-usage")).at(-1)).toEqual([
      "metadata",
      { metrics: { latencyMs: 101 } },
    ]);
    expect(decoded(fault("ok-no-usage")).some(({ hasUsage }) => hasUsage)).toBe(false);
  });

  test("wrong-usage falsifies every count", () => {
    expect(eventsOf(fault("wrong-usage")).at(-1)?.[1]).toMatchObject({
      usage: { inputTokens: 410, outputTokens: 30, totalTokens: 430 },
    });
  });

  test("role-every-chunk repeats messageStart before each delta", () => {
    const starts = typesOf(fault("role-every-chunk")).filter((type) => type === "messageStart");
    expect(starts).toHaveLength(3);
  });

  test("comments puts an unknown event before every event", () => {
    const types = typesOf(fault("comments"));
    expect(types.filter((_, index) => index % 2 === 0)).toEqual(
      Array.from({ length: 6 }, () => "contentBlockNote"),
    );
  });

  test("bad-json cuts the JSON of one event inside a valid frame", () => {
    const frames = [...fault("bad-json").steps].filter(isFrame);
    const { body } = codec.decode(Buffer.from(frames[2]?.data ?? ""));
    expect(() => parseJson(Buffer.from(body).toString())).toThrow(SyntaxError);
    expect(frames).toHaveLength(6);
  });

  test("an answer may have a giant delta, or very many", () => {
    const outsized = (mode: FaultMode, argument: number) =>
      reply(outsizedAnswer({ mode, argument }) ?? []);
    const giant = eventsOf(outsized("giant-chunk", 1));
    const texts = giant.map(([, body]) => String(recordOf(body["delta"])["text"]));
    expect(texts.filter((text) => text.length === 1024 * 1024)).toHaveLength(1);
    const many = decoded(outsized("million-chunks", 5000));
    expect(many.reduce((total, { tokens }) => total + tokens, 0)).toBe(5000);
  });
});

describe("exceptions within a stream", () => {
  const names = [
    ["internal-server", "internalServerException"],
    ["model-stream-error", "modelStreamErrorException"],
    ["validation", "validationException"],
    ["throttling", "throttlingException"],
    ["service-unavailable", "serviceUnavailableException"],
    ["model-timeout", "modelTimeoutException"],
  ] as const;

  test.each(names)("first-frame-%s is only %s", (name, type) => {
    const frames = decoded(reply(words("one"), { fault: `first-frame-${name}` }));
    expect(frames).toEqual([
      {
        type,
        message: expect.objectContaining({ message: expect.any(String) }),
        tokens: 0,
        hasUsage: false,
      },
    ]);
  });

  test.each(names)("mid-stream-%s ends the stream in %s", (name, type) => {
    const types = typesOf(reply(words("a", "b", "c"), { fault: `mid-stream-${name}` }));
    expect(types).toEqual(["messageStart", "contentBlockDelta", "contentBlockDelta", type]);
  });

  test("the argument is the number of frames before, up to all of them", () => {
    const types = (place: number): string[] =>
      typesOf(reply(words("a"), { fault: `mid-stream-throttling:${place}` }));
    expect(types(1)).toEqual(["messageStart", "throttlingException"]);
    expect(types(5).slice(3)).toEqual(["messageStop", "metadata", "throttlingException"]);
    expect(types(99)).toEqual(types(5));
  });

  test("an error of the model has the model's own status", () => {
    const [frame] = decoded(reply(words("a"), { fault: "first-frame-model-stream-error" }));
    expect(frame?.message).toMatchObject({ originalStatusCode: 500 });
  });
});

describe("broken frames", () => {
  const bytes = (mode: string): Buffer => {
    const { steps } = reply(words("one", " two", " three"), { fault: mode });
    return Buffer.concat([...steps].filter(isFrame).map(({ data }) => Buffer.from(data)));
  };
  const good = bytes("ok");
  /** Cuts a whole stream by the lengths of its frames. */
  const frames = (stream: Buffer): Buffer[] => {
    if (stream.length === 0) return [];
    const length = stream.readUInt32BE(0);
    return [stream.subarray(0, length), ...frames(stream.subarray(length))];
  };

  test.each(["bad-prelude-crc", "bad-message-crc"])("%s is refused for its checksum", (mode) => {
    const broken = frames(bytes(mode));
    expect(broken).toHaveLength(frames(good).length);
    for (const [index, frame] of broken.entries()) {
      if (index === 3) expect(() => codec.decode(frame)).toThrow(/checksum/);
      else expect(frame).toEqual(frames(good)[index] ?? Buffer.alloc(0));
    }
  });

  test("bad-headers-length has headers longer than the frame and a correct checksum", () => {
    const broken = frames(bytes("bad-headers-length"))[3] ?? Buffer.alloc(0);
    expect(broken.readUInt32BE(4)).toBe(broken.length);
    expect(Bun.hash.crc32(broken.subarray(0, 8))).toBe(broken.readUInt32BE(8));
    expect(Bun.hash.crc32(broken.subarray(0, -4))).toBe(broken.readUInt32BE(broken.length - 4));
  });

  test("undersized-length announces less than a frame needs", () => {
    const at = frames(good)
      .slice(0, 3)
      .reduce((total, frame) => total + frame.length, 0);
    expect(bytes("undersized-length").readUInt32BE(at)).toBe(8);
  });

  test.each([
    ["truncated-frame", (frame: Buffer) => frame.subarray(0, Math.ceil(frame.length / 2))],
    ["cut-in-length-prefix", (frame: Buffer) => frame.subarray(0, 2)],
  ])("%s ends inside the fourth frame", (mode, cut) => {
    const [first, second, third, fourth = Buffer.alloc(0)] = frames(good);
    const expected = [first, second, third, cut(fourth)].filter((part) => part !== undefined);
    expect(bytes(mode)).toEqual(Buffer.concat(expected));
  });

  test("oversized-length announces gigabytes with a correct checksum, then silence", () => {
    const steps = [...reply(words("one", " two"), { fault: "oversized-length" }).steps];
    expect(steps.at(-1)).toEqual({ pauseMs: Number.POSITIVE_INFINITY });
    const prelude = Buffer.from(steps.filter(isFrame).at(-1)?.data ?? "");
    expect(prelude).toHaveLength(12);
    expect(prelude.readUInt32BE(0)).toBe(0xffff_ffff);
    expect(Bun.hash.crc32(prelude.subarray(0, 8))).toBe(prelude.readUInt32BE(8));
    const chosen = [...reply(words("one"), { fault: "oversized-length:70000" }).steps];
    expect(Buffer.from(chosen.filter(isFrame).at(-1)?.data ?? "").readUInt32BE(0)).toBe(70_000);
  });

  test("transport-error-frame ends in a frame that is neither event nor exception", () => {
    const last = frames(bytes("transport-error-frame")).at(-1) ?? Buffer.alloc(0);
    const { headers } = codec.decode(last);
    expect(headers[":message-type"]?.value).toBe("error");
    expect(headers[":error-code"]?.value).toBe("InternalError");
  });
});

test("the answer to a prompt has the same text as a stream", () => {
  const text = eventsOf(reply(writeAnswer(plainRequest.prompt, 0)))
    .map(([, body]) => stringOf(recordOf(body["delta"])["text"]))
    .join("");
  const whole = [...writeAnswer(plainRequest.prompt, 0)]
    .map((part) => (part.kind === "text" ? part.piece : ""))
    .join("");
  expect(text).toBe(whole);
  expect(text).not.toBe("");
});
