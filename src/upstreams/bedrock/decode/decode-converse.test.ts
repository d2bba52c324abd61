import { expect, test } from "bun:test";
import fc from "fast-check";
import { contextOf, type ContextFixture } from "../../../../test/support/bedrock-frames.ts";
import type { ChatChoice, ChatEvent, ChatResult } from "../../../domain/chat/answer.ts";
import { type ChoiceParts, partsOf } from "../../../../test/bedrock/choice-parts.ts";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import goldenAnswers from "../golden-answers/answers.json";
import {
  converseDecoder,
  decodeConverse,
  decoderLimits,
} from "../../../../test/support/answer-decoding.ts";

interface GoldenAnswer {
  readonly name: string;
  readonly context?: ContextFixture;
  readonly body: unknown;
  readonly choice?: Partial<GoldenChoice>;
  readonly usage?: ChatResult["usage"];
  readonly serviceTier?: string;
  /** The kind of the failure, where the body is no answer. */
  readonly failure?: string;
}

interface GoldenChoice extends ChoiceParts, Pick<ChatChoice, "finishReason" | "stopSequence"> {
  readonly guardrail: ChatChoice["guardrail"];
}

const golden = goldenAnswers as unknown as readonly GoldenAnswer[];
const plain = contextOf();

function decode(body: string | Uint8Array, context = plain): ChatResult {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return decodeConverse({ headers: new Headers(), body: bytes }, context);
}

function failureOf(body: string | Uint8Array, context = plain): string | undefined {
  try {
    decode(body, context);
    return undefined;
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    return error.details.kind;
  }
}

interface GoldenResult extends Pick<ChatResult, "usage" | "serviceTier"> {
  readonly choice: GoldenChoice;
}

function expectedOf({ choice, usage, serviceTier }: GoldenAnswer): GoldenResult {
  const empty: GoldenChoice = {
    content: undefined,
    reasoning: undefined,
    reasoningBlocks: undefined,
    toolCalls: [],
    functionCall: undefined,
    finishReason: "stop",
    guardrail: undefined,
  };
  return { choice: { ...empty, ...choice }, usage, serviceTier };
}

function readOf({ choices, usage, serviceTier }: ChatResult): GoldenResult {
  expect(choices.length).toBe(1);
  const [choice] = choices;
  if (choice === undefined) throw new Error("There is no choice.");
  const { finishReason, stopSequence, guardrail } = choice;
  return {
    choice: { ...partsOf(choice), finishReason, stopSequence, guardrail },
    usage,
    serviceTier,
  };
}

interface Replayed {
  readonly events: readonly ChatEvent[];
  readonly failure: string | undefined;
  readonly isDone: boolean;
}

function replay(pieces: readonly Uint8Array[], context = plain): Replayed {
  const decoder = converseDecoder({ context, onUnknownFinish: () => undefined }, decoderLimits);
  const early = pieces.flatMap((piece) => decoder.push(piece));
  expect(early).toEqual([]);
  const events = decoder.end();
  return { events, failure: decoder.failure?.details.kind, isDone: decoder.isDone };
}

/** The content of the events, joined independently of the decoder. */
function contentOf(events: readonly ChatEvent[]): object {
  const join = (type: string): string =>
    events.map((event) => (event.type === type && "text" in event ? event.text : "")).join("");
  const calls = events.filter((event) => event.type === "tool-call-start");
  return {
    content: join("text-delta"),
    reasoning: join("reasoning-delta"),
    toolCalls: calls.map(({ call, id, kind, name }) => ({
      id,
      kind,
      name,
      arguments: events
        .map((event) => (event.type === "tool-call-delta" && event.call === call ? event : null))
        .map((event) => event?.arguments ?? "")
        .join(""),
    })),
    finishReason: events.find((event) => event.type === "choice-finish")?.finishReason,
    usage: events.find((event) => event.type === "usage-report")?.usage,
    serviceTier: events.find((event) => event.type === "answer-start")?.serviceTier,
  };
}

for (const answer of golden) {
  const body = JSON.stringify(answer.body);
  const context = contextOf(answer.context);
  const bytes = new TextEncoder().encode(body);

  test(`golden answer: ${answer.name}`, () => {
    if (answer.failure === undefined) {
      expect(readOf(decode(body, context))).toEqual(expectedOf(answer));
    } else expect(failureOf(body, context)).toBe(answer.failure);
  });

  test(`golden answer, replayed as a stream: ${answer.name}`, () => {
    const half = Math.floor(bytes.length / 2);
    const { events, failure, isDone } = replay([bytes.slice(0, half), bytes.slice(half)], context);
    expect({ failure, isDone }).toEqual({
      failure: answer.failure,
      isDone: answer.failure === undefined,
    });
    if (answer.failure !== undefined) return expect(events).toEqual([]);
    const { choice, usage, serviceTier } = expectedOf(answer);
    expect(contentOf(events)).toEqual({
      content: choice.content ?? "",
      reasoning: choice.reasoning ?? "",
      toolCalls: choice.toolCalls,
      finishReason: choice.finishReason,
      usage,
      serviceTier,
    });
  });
}

const answerOf = (content: readonly unknown[]): string =>
  JSON.stringify({ output: { message: { role: "assistant", content } }, stopReason: "end_turn" });

test("an incomplete answer is broken", () => {
  const whole = answerOf([{ text: "Grüße" }]);
  expect(failureOf(whole)).toBeUndefined();
  const others = ["", " ", "<html></html>", "null", "7", '"x"', '{"output":{}}'];
  others.push(whole.replace(',"stopReason":"end_turn"', ""), whole.replace("end_turn", ""));
  for (const body of [...others, whole.slice(0, -1), `${whole}}`]) {
    expect({ body, kind: failureOf(body) }).toEqual({ body, kind: "broken-answer" });
    const { events, failure, isDone } = replay([new TextEncoder().encode(body)]);
    expect({ events, failure, isDone }).toEqual({
      events: [],
      failure: "broken-answer",
      isDone: false,
    });
  }
  const deep = "[".repeat(100_000);
  expect(failureOf(deep)).toBe("broken-answer");
  expect(replay([new TextEncoder().encode(deep)]).failure).toBe("answer-too-large");
});

test("integers beyond the exact range reach a tool as the model wrote them", () => {
  const input = '{"id":123456789012345678901,"price":0.1,"list":[-9007199254740993,12]}';
  const body = answerOf([{ toolUse: { toolUseId: "t", name: "f", input: "INPUT" } }]);
  const [choice] = decode(body.replace('"INPUT"', input)).choices;
  expect(partsOf(choice ?? { blocks: [] }).toolCalls[0]?.arguments).toBe(input);
});

test("counts next to such integers are counts", () => {
  const body = answerOf([{ toolUse: { toolUseId: "t", name: "f", input: "INPUT" } }])
    .replace('"INPUT"', "12345678901234567890")
    .replace(/}$/, ',"usage":{"inputTokens":7,"outputTokens":3}}');
  expect(decode(body).usage).toMatchObject({ inputTokens: 7, outputTokens: 3 });
});

test("deeply nested input is a failure or its JSON, and nothing else is thrown", () => {
  const depth = 50_000;
  const body = answerOf([{ toolUse: { toolUseId: "t", name: "f", input: "INPUT" } }]);
  const nested = body.replace('"INPUT"', "[".repeat(depth) + "]".repeat(depth));
  expect([undefined, "broken-answer"]).toContain(failureOf(nested));
});

test("the events of a replay are the same for any split of the body", () => {
  const bytes = new TextEncoder().encode(
    answerOf([
      { reasoningContent: { reasoningText: { text: "思考 👋🏽" } } },
      { text: "Grüße, 世界" },
      { toolUse: { toolUseId: "t", name: "f", input: { x: "é" } } },
    ]),
  );
  const { events: expected } = replay([bytes]);
  expect(expected.length).toBe(5);
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length), { maxLength: 20 }), (offsets) => {
      const sorted = [0, ...offsets.toSorted((one, other) => one - other), bytes.length];
      const pieces = sorted.slice(1).map((end, at) => bytes.subarray(sorted[at], end));
      expect(replay(pieces).events).toEqual([...expected]);
    }),
    { numRuns: 100 },
  );
});

test("equal ids of tool calls are made unique", () => {
  const toolUse = { toolUseId: "t", name: "f", input: {} };
  const message = { role: "assistant", content: [{ toolUse }, { toolUse }] };
  const body = JSON.stringify({ output: { message }, stopReason: "tool_use" });
  const headers = new Headers();
  const { choices } = decodeConverse({ headers, body: new TextEncoder().encode(body) }, plain);
  const calls = partsOf(choices[0] ?? { blocks: [] }).toolCalls;
  expect(calls.map(({ id }) => id)).toEqual(["t", "t_1"]);
});
