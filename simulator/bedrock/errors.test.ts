import { describe, expect, test } from "bun:test";
import { bedrockModes } from "../faults/bedrock-modes.ts";
import { commonModes, parseFault } from "../faults/fault-modes.ts";
import { isFrame, type Reply } from "../reply.ts";
import { parseJson, recordOf } from "../json.ts";
import { BedrockError, bedrockRefusal, errorReply, overflowTexts } from "./errors.ts";
import { bodyReply } from "./converse-reply.ts";

function fault(name: string) {
  const found = parseFault(name);
  if (found === undefined) throw new Error(`no such fault: ${name}`);
  return found;
}

function refusal(name: string): Reply | undefined {
  const found = bedrockRefusal(fault(name), "simulated-model");
  return found instanceof BedrockError ? errorReply(found) : found;
}

function textOf({ steps }: Reply): string {
  return [...steps]
    .filter(isFrame)
    .map(({ data }) => String(data))
    .join("");
}

/** A refusal as the caller sees it. */
function seen(name: string) {
  const reply = refusal(name);
  if (reply === undefined) return undefined;
  const [type] = (reply.headers["x-amzn-errortype"] ?? "").split(":");
  return { status: reply.status, type, text: textOf(reply) };
}

const nameless = new Set(["exception-in-body", "exception-untyped", "exception-empty"]);

const named = Object.entries(bedrockModes).filter(
  ([mode]) => mode.startsWith("exception-") && !nameless.has(mode),
);
test.each(named)("%s is %s", (mode, meaning) => {
  const [, name, status] = /^(\w+) (\d+)/.exec(meaning) ?? [];
  const answer = seen(mode);
  expect(answer).toMatchObject({ type: name, status: Number(status) });
  const body = recordOf(parseJson(answer?.text ?? ""));
  expect(body["message"]).toBeString();
  expect(body["message"]).not.toBe("");
});

test("front ends may name the exception in the body only or not at all, or send no body", () => {
  expect(seen("exception-in-body")).toEqual({
    status: 429,
    type: "",
    text: expect.stringContaining('"__type":"com.amazon.bedrock#ThrottlingException"'),
  });
  expect(seen("exception-untyped")).toMatchObject({ status: 500, type: "" });
  expect(seen("exception-empty")).toEqual({ status: 503, type: "", text: "" });
});

test("errors of the model name the model and its own status", () => {
  for (const [mode, status] of [
    ["exception-model-error", 500],
    ["exception-model-error-throttled", 429],
  ] as const) {
    expect(parseJson(seen(mode)?.text ?? "")).toMatchObject({
      originalStatusCode: status,
      resourceName: "simulated-model",
    });
  }
});

test.each([
  ["throttle-429", 429, "ThrottlingException"],
  ["throttle-429-bare", 429, "ThrottlingException"],
  ["error-500", 500, "InternalServerException"],
  ["error-200", 200, "InternalServerException"],
  ["overloaded-503", 503, "ServiceUnavailableException"],
  ["context-overflow", 400, "ValidationException"],
  ["bad-credential", 403, "UnrecognizedClientException"],
  ["model-not-found-404", 404, "ResourceNotFoundException"],
  ["bad-request-400", 400, "ValidationException"],
  ["html-502", 502, ""],
  ["non-sse-200", 200, ""],
  ["redirect", 307, ""],
])("%s answers %i with %p on this wire", (mode, status, type) => {
  expect(seen(mode)).toMatchObject({ status, type });
});

test("only one fault of throttling has a Retry-After", () => {
  expect(refusal("throttle-429:4200")?.headers["retry-after"]).toBe("5");
  expect(refusal("throttle-429-bare")?.headers).not.toHaveProperty("retry-after");
});

test("an overflow has a text for each family of models", () => {
  const texts = overflowTexts.map((_, index) => seen(`context-overflow:${index}`)?.text ?? "");
  expect(texts.map((text) => recordOf(parseJson(text))["message"])).toEqual([...overflowTexts]);
  expect(seen("context-overflow:99")).toEqual(seen("context-overflow"));
});

test("a fault of OpenAI's wire is a bad request, all others begin an answer", () => {
  expect(seen("crlf-framing")).toMatchObject({ status: 400, type: "ValidationException" });
  const answered = ["ok", "stall-mid", "dribble", "mid-stream-throttling", "bad-message-crc"];
  for (const mode of answered) expect(refusal(mode)).toBeUndefined();
  for (const mode of Object.keys(commonModes)) {
    expect(seen(mode)?.text ?? "").not.toContain("wire only");
  }
});

describe("an unstreamed answer", () => {
  const body = { stopReason: "end_turn", usage: { inputTokens: 1, outputTokens: 2 } };
  const reply = (name: string, sent: object = body): Reply =>
    bodyReply({ ...sent }, { fault: fault(name), tokens: 2, headers: { "x-own": "1" } });
  const frameOf = ({ steps }: Reply) => [...steps].find(isFrame);

  test("is unchanged without a fault, with its headers and tokens", () => {
    expect(parseJson(textOf(reply("ok")))).toEqual(body);
    expect(reply("ok")).toMatchObject({ status: 200, headers: { "x-own": "1" } });
    expect(frameOf(reply("ok"))).toMatchObject({ tokens: 2, hasUsage: true });
  });

  test("may have no usage or a wrong one", () => {
    expect(parseJson(textOf(reply("ok-no-usage")))).toEqual({ stopReason: "end_turn" });
    expect(frameOf(reply("ok-no-usage"))).toMatchObject({ tokens: 2, hasUsage: false });
    expect(parseJson(textOf(reply("wrong-usage")))).toMatchObject({
      usage: { inputTokens: 20, outputTokens: 30 },
    });
  });

  test("of an embedding model may have no count or a wrong one", () => {
    const embedding = { embedding: [1], inputTextTokenCount: 3 };
    expect(parseJson(textOf(reply("ok-no-usage", embedding)))).toEqual({ embedding: [1] });
    expect(parseJson(textOf(reply("wrong-usage", embedding)))).toEqual({
      embedding: [1],
      inputTextTokenCount: 40,
    });
  });

  test("may have no stop reason, or half of its JSON", () => {
    expect(parseJson(textOf(reply("missing-finish-reason")))).not.toHaveProperty("stopReason");
    expect(() => parseJson(textOf(reply("bad-json")))).toThrow(SyntaxError);
  });

  test.each(Object.keys(bedrockModes).filter((mode) => /^(first-frame|mid-stream)-/.test(mode)))(
    "is refused by %s",
    (mode) => {
      expect(reply(mode).status).toBeGreaterThanOrEqual(400);
      expect(reply(mode).headers["x-amzn-errortype"]).toMatch(/^\w+Exception:/);
    },
  );

  test("has status 500 with error-event-mid-stream", () => {
    expect(reply("error-event-mid-stream").status).toBe(500);
  });
});
