import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dataLines } from "./normalise.ts";
import {
  chunk,
  jsonAnswer,
  rawStream,
  ScriptedUpstream,
  streamAnswer,
  type ScriptedAnswer,
} from "./scripted-upstream.ts";

let upstream: ScriptedUpstream;
beforeAll(async () => {
  upstream = await ScriptedUpstream.start();
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
});

interface Outcome {
  readonly status: number;
  readonly code: string | null;
  readonly param?: string | null;
  readonly message: string;
}

const unavailable = (reason: string): Outcome => ({
  status: 503,
  code: "model_unavailable",
  message: `The model is temporarily unavailable: ${reason}. Please retry with exponential backoff.`,
});
const misconfigured = (reason: string): Outcome => ({
  status: 503,
  code: "model_unavailable",
  message: `The model is unavailable: ${reason}. Please contact the operator.`,
});
const rejected = (message: string, param: string | null = null): Outcome => ({
  status: 400,
  code: null,
  param,
  message,
});
const answeredWithError = unavailable("the provider answered with an error");
const brokenOff = unavailable("the provider's answer was incomplete or invalid");
const limiting = unavailable("the provider is limiting requests");
const overloaded = unavailable("the provider is overloaded");
const badCredential = misconfigured("the provider refused the gateway's credential");
const unknownModel = misconfigured("the provider does not know the model");
const overflow = (message: string): Outcome => ({
  status: 400,
  code: "context_length_exceeded",
  param: "messages",
  message,
});
const html = "<html><head><title>502 Bad Gateway</title></head><body></body></html>";
const tooLong = "This model's maximum context length is 8192 tokens. However, you asked for more.";

const flat = (status: number, message: string, type: string): ScriptedAnswer =>
  jsonAnswer({ object: "error", message, type, param: null, code: status }, status);
const nested = (status: number, error: unknown): ScriptedAnswer => jsonAnswer({ error }, status);

/** What servers answer when something is wrong, and what the caller gets for it. */
const errors: readonly (readonly [string, ScriptedAnswer, Outcome])[] = [
  [
    "OpenAI: a bad field",
    nested(400, {
      message: "Unknown parameter: 'foo'.",
      type: "invalid_request_error",
      param: "foo",
      code: "unknown_parameter",
    }),
    rejected("Unknown parameter: 'foo'.", "foo"),
  ],
  ["OpenAI: 500", nested(500, { message: "Sorry!", type: "server_error" }), answeredWithError],
  [
    "vLLM: an int code",
    nested(400, { message: "max_tokens must be positive", type: "BadRequestError", code: 400 }),
    rejected("max_tokens must be positive"),
  ],
  [
    "vLLM: an older, flat error",
    flat(400, "best_of must be 1", "BadRequestError"),
    rejected("best_of must be 1"),
  ],
  ["vLLM: too long", flat(400, tooLong, "BadRequestError"), overflow(tooLong)],
  [
    "vLLM: no such model",
    flat(404, "The model `m` does not exist.", "NotFoundError"),
    unknownModel,
  ],
  ["vLLM: an error that is a text", nested(401, "Unauthorized"), badCredential],
  ["a bad request that is a text", nested(400, "no such field"), rejected("no such field")],
  ["FastAPI: detail", jsonAnswer({ detail: "Not good" }, 400), rejected("Not good")],
  [
    "llama.cpp: too long",
    nested(400, {
      code: 400,
      message: "the request exceeds the available context size, try increasing it",
      type: "exceed_context_size_error",
      n_prompt_tokens: 9000,
      n_ctx: 4096,
    }),
    overflow(
      "This model's maximum context length is 8192 tokens. " +
        "the request exceeds the available context size, try increasing it",
    ),
  ],
  [
    "llama.cpp: still loading",
    nested(503, { code: 503, message: "Loading model", type: "unavailable_error" }),
    overloaded,
  ],
  [
    "llama.cpp: not supported",
    nested(501, { code: 501, message: "logprobs is not supported", type: "not_supported_error" }),
    rejected("logprobs is not supported"),
  ],
  [
    "llama.cpp: wrong key",
    nested(401, { code: 401, message: "Invalid API Key", type: "authentication_error" }),
    badCredential,
  ],
  [
    "llama.cpp: no permission",
    nested(403, { code: 403, message: "no", type: "permission_error" }),
    badCredential,
  ],
  [
    "llama.cpp: not found",
    nested(404, { code: 404, message: "File Not Found", type: "not_found_error" }),
    unknownModel,
  ],
  [
    "llama.cpp: server error",
    nested(500, { code: 500, message: "boom", type: "server_error" }),
    answeredWithError,
  ],
  [
    "Ollama: no such model",
    nested(404, { message: 'model "m" not found', type: "api_error", param: null, code: null }),
    unknownModel,
  ],
  [
    "LocalAI: an empty type",
    nested(500, { message: "boom", code: 500, type: "" }),
    answeredWithError,
  ],
  ["429", nested(429, { message: "slow down", type: "tokens" }), limiting],
  ["429 that is HTML", jsonAnswer(html, 429), limiting],
  ["503 that is HTML", jsonAnswer(html, 503), overloaded],
  ["502 that is HTML", jsonAnswer(html, 502), answeredWithError],
  [
    "400 that is HTML",
    jsonAnswer(html, 400),
    rejected("the model's upstream answered status 400 and gave no reason"),
  ],
  ["500 without a body", jsonAnswer("", 500), answeredWithError],
  ["a list of errors", jsonAnswer([{ message: "one" }], 400), rejected("one")],
  [
    "a redirect",
    { status: 307, headers: { location: "/elsewhere" }, pieces: [] },
    answeredWithError,
  ],
];

async function expectOutcome(response: Response, expected: Outcome): Promise<void> {
  expect(response.status).toBe(expected.status);
  expect(response.headers.get("content-type")).toBe("application/json");
  expect(await response.text()).toBe(
    JSON.stringify({
      error: {
        message: expected.message,
        type: expected.status === 503 ? "server_error" : "invalid_request_error",
        param: expected.param ?? null,
        code: expected.code,
      },
    }),
  );
}

describe("an error of the upstream", () => {
  test.each(errors)("%s", async (_name, answer, expected) => {
    await expectOutcome(await upstream.chat(answer), expected);
  });

  test.each(errors)("%s, before a stream", async (_name, answer, expected) => {
    await expectOutcome(await upstream.chat(answer, { stream: true }), expected);
  });

  test("its retry-after is passed on with 429 and 503", async () => {
    for (const status of [429, 503]) {
      const headers = { "retry-after": "7" };
      const response = await upstream.chat({ ...nested(status, "busy"), headers });
      expect(response.status).toBe(503);
      expect(response.headers.get("retry-after")).toBe("7");
      expect(response.headers.get("retry-after-ms")).toBe("7000");
    }
  });

  test("a longer retry-after than any client should sleep is cut", async () => {
    const headers = { "retry-after": "3600" };
    const response = await upstream.chat({ ...nested(429, "busy"), headers });
    expect(response.headers.get("retry-after")).toBe("60");
  });

  test("keys, links and account names in its message do not reach the caller", async () => {
    const message =
      "Key sk-proj-abcdefgh12345678 of org-abcdefgh12345678 may not; see https://example.com/x";
    const response = await upstream.chat(nested(400, { message }));
    const text = await response.text();
    for (const secret of ["sk-proj", "org-abcdefgh", "example.com"]) {
      expect(text).not.toContain(secret);
    }
  });
});

const wordy = {
  message: "The engine is overloaded",
  type: "server_error",
  param: null,
  code: null,
};

/** Status 200, and yet no answer. */
const broken: readonly (readonly [string, ScriptedAnswer, Outcome])[] = [
  ["an error body", nested(200, wordy), answeredWithError],
  ["an error that is a text", nested(200, "boom"), answeredWithError],
  ["an error of status 429 inside", nested(200, { message: "slow", code: 429 }), limiting],
  [
    "an error of status 400 inside",
    nested(200, { message: "bad field", code: 400 }),
    rejected("bad field"),
  ],
  ["a flat error", jsonAnswer({ object: "error", message: "boom", code: 500 }), answeredWithError],
  ["an HTML page", jsonAnswer(html), brokenOff],
  ["nothing", jsonAnswer(""), brokenOff],
  ["null", jsonAnswer("null"), brokenOff],
  ["a list", jsonAnswer([]), brokenOff],
  ["empty choices", jsonAnswer({ choices: [] }), brokenOff],
  ["half of an answer", jsonAnswer('{"choices":[{"message":{"con'), brokenOff],
];

describe("status 200 with", () => {
  test.each(broken)("%s", async (_name, answer, expected) => {
    await expectOutcome(await upstream.chat(answer), expected);
  });
});

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

/** Streams that break before they say anything. */
const stillborn: readonly (readonly [string, ScriptedAnswer, Outcome])[] = [
  ["an error event", rawStream(data({ error: wordy })), answeredWithError],
  ["an error event that is a text", rawStream(data({ error: "boom" })), answeredWithError],
  [
    "an error event with an int code",
    rawStream(data({ error: { message: "bad", code: 400 } })),
    rejected("bad"),
  ],
  [
    "an error event and [DONE], as vLLM",
    rawStream(
      data({ error: { message: "boom", type: "InternalServerError", code: 500 } }),
      "data: [DONE]\n\n",
    ),
    answeredWithError,
  ],
  [
    "an overflow in an error event",
    rawStream(data({ error: { message: tooLong } })),
    overflow(tooLong),
  ],
  ["a named error event", rawStream(`event: error\n${data({ error: wordy })}`), answeredWithError],
  [
    "a named error event of another form",
    rawStream(`event: error\n${data({ reason: "unknown" })}`),
    answeredWithError,
  ],
  [
    "a named error event that is a text",
    rawStream("event: error\ndata: too many requests\n\n"),
    limiting,
  ],
  ["a text that tells an error", rawStream("data: upstream connect error\n\n"), answeredWithError],
  ["an event of a bare message", rawStream(data({ message: "Rate limit exceeded" })), limiting],
  ["an event of FastAPI's detail", rawStream(data({ detail: "boom" })), answeredWithError],
  ["an error in a list", rawStream(data([{ error: wordy }])), answeredWithError],
  ["a JSON body in its place", jsonAnswer({ error: wordy }), answeredWithError],
  [
    "a JSON body in its place, in lines and behind an empty one",
    jsonAnswer(`\n${JSON.stringify({ error: wordy }, undefined, 2)}`),
    answeredWithError,
  ],
  [
    "an error after a role",
    rawStream(data(chunk({ role: "assistant", content: "" })), data({ error: wordy })),
    answeredWithError,
  ],
  ["no event at all", rawStream(), brokenOff],
  ["only [DONE]", rawStream("data: [DONE]\n\n"), brokenOff],
  ["only a role", streamAnswer(chunk({ role: "assistant", content: "" })), brokenOff],
  ["an HTML page", rawStream(html), brokenOff],
  ["an event that is not JSON", rawStream('data: {"choices":[{\n\n'), brokenOff],
];

describe("a stream that begins with", () => {
  test.each(stillborn)("%s is an HTTP error", async (_name, answer, expected) => {
    await expectOutcome(await upstream.chat(answer, { stream: true }), expected);
  });
});

/** How a stream ends badly once it has begun, and the error that the caller reads. */
const endings: readonly (readonly [string, string, Outcome])[] = [
  ["an error event", data({ error: wordy }), answeredWithError],
  ["an error event that is a text", data({ error: "boom" }), answeredWithError],
  [
    "an error event with an int code",
    data({ error: { message: "boom", code: 500 } }),
    answeredWithError,
  ],
  ["an error event and [DONE]", `${data({ error: wordy })}data: [DONE]\n\n`, answeredWithError],
  ["an event of a bare message", data({ message: "Rate limit exceeded" }), limiting],
  ["a named error event that is a text", "event: error\ndata: too many requests\n\n", limiting],
  ["a text that tells an error", "data: upstream connect error\n\n", answeredWithError],
  ["half of an error", 'data: {"error": {"message": "overloa\n\n', answeredWithError],
  [
    "a chunk with an error beside its choices",
    data(chunk({}, null, { error: wordy })),
    answeredWithError,
  ],
  ["the finish reason error", data(chunk({}, "error")), brokenOff],
  ["no finish reason", "", brokenOff],
  ["[DONE] without a finish reason", "data: [DONE]\n\n", brokenOff],
  ["half an event", 'data: {"choices":[{"index":0,"del', brokenOff],
  ["an event that is not JSON", "data: oops\n\n", brokenOff],
];

/** The text that came before the failure, then one frame that tells it. */
async function expectBrokenStream(response: Response, expected: Outcome): Promise<void> {
  const lines = dataLines(await response.text());
  expect(lines).toHaveLength(3);
  expect(lines[1]).toContain('"delta":{"content":"Hi"}');
  const { message, code } = expected;
  const error = { message, type: "server_error", param: null, code };
  expect(lines[2]).toBe(JSON.stringify({ error }));
}

describe("a stream that breaks with", () => {
  test.each(endings)("%s is one error frame without [DONE]", async (_name, ending, expected) => {
    const hasBegun = Promise.withResolvers<undefined>();
    const answer = rawStream(data(chunk({ content: "Hi" })), hasBegun.promise, ending);
    const response = await upstream.chat(answer, { stream: true });
    expect(response.status).toBe(200);
    hasBegun.resolve(undefined);
    await expectBrokenStream(response, expected);
  });

  test.each(endings)("%s in one piece with text loses no text", async (_name, ending, expected) => {
    const answer = rawStream(data(chunk({ content: "Hi" })) + ending);
    const response = await upstream.chat(answer, { stream: true });
    expect(response.status).toBe(200);
    await expectBrokenStream(response, expected);
  });

  test("a failed stream stands in the ledger as failed, with what was delivered", async () => {
    const hasBegun = Promise.withResolvers<undefined>();
    const answer = rawStream(data(chunk({ content: "Hi" })), hasBegun.promise, "");
    const response = await upstream.chat(answer, { stream: true });
    hasBegun.resolve(undefined);
    await response.text();
    const id = response.headers.get("x-request-id");
    const row = (await upstream.gateway.usage()).find((each) => each.id === id);
    expect(row).toMatchObject({ outcome: "failed", code: "model_unavailable", outputTokens: 1 });
  });
});
