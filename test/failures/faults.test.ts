import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/domain/clock.ts";
import type { UsageRecord } from "../../src/domain/usage.ts";
import { createMemoryLimitStore } from "../../src/storage/memory/limit-store.ts";
import { errorBodyProblem, errorShapeProblem } from "../http/error-shape.ts";
import { chatOf, embeddingsOf, errorOf, parseStream } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** What a caller sees of a call, and whose counts its row of the ledger holds. */
type Outcome =
  /** A whole answer with the upstream's counts. */
  | "whole"
  /** A whole answer whose tokens had to be estimated. */
  | "whole, estimated"
  /** 200, then an error frame and no `[DONE]`. */
  | "broken"
  | "503"
  | "broken or 503"
  | "400 context_length_exceeded"
  | "400 without code";

type Row = readonly [fault: string, plain: Outcome, streamed: Outcome, embeddings: Outcome];

const everyCall = (outcome: Outcome) => [outcome, outcome, outcome] as const;

const table: readonly Row[] = [
  ["ok-no-usage", ...everyCall("whole, estimated")],
  ["wrong-usage", ...everyCall("whole")],
  ["usage-twice", ...everyCall("whole")],
  ["slow-first-byte-100", ...everyCall("whole")],
  ["slow-first-byte-60000", ...everyCall("503")],
  ["stall-mid-100", ...everyCall("whole")],
  ["stall-mid", "503", "broken", "503"],
  ["dribble", ...everyCall("whole")],
  ["cut-before-headers", ...everyCall("503")],
  ["cut-after-headers", ...everyCall("503")],
  // The runtime forgets what it has read when the end of the connection comes along with it.
  ["cut-mid-chunk", "503", "broken or 503", "503"],
  ["reset", "503", "broken", "503"],
  ["reset-before-headers", ...everyCall("503")],
  ["bad-json", "503", "broken", "503"],
  ["non-sse-200", ...everyCall("503")],
  ["html-502", ...everyCall("503")],
  ["throttle-429", ...everyCall("503")],
  ["throttle-429-bare", ...everyCall("503")],
  ["error-500", ...everyCall("503")],
  ["overloaded-503", ...everyCall("503")],
  ["giant-chunk-2", "whole", "whole", "whole"],
  ["million-chunks-20000", "whole", "whole", "whole"],
  ["gzip-bomb-64", ...everyCall("503")],
  ["chained-encodings", ...everyCall("503")],
  // Only a stream says by itself that it is over.
  ["never-closes", "503", "whole", "503"],
  ["error-event-mid-stream", "503", "broken", "503"],
  ["redirect", ...everyCall("503")],
  ["tls-fail", ...everyCall("503")],
  ["missing-finish-reason", "whole", "broken", "whole"],
  ["no-done", ...everyCall("whole")],
  ["role-every-chunk", ...everyCall("whole")],
  ["context-overflow", ...everyCall("400 context_length_exceeded")],
  ["bad-credential", ...everyCall("503")],
  ["error-200", ...everyCall("503")],
  ["model-not-found-404", ...everyCall("503")],
  ["bad-request-400", ...everyCall("400 without code")],
  ["crlf-framing", ...everyCall("whole")],
  ["comments", ...everyCall("whole")],
];

const limits = { requestsPerMinute: 1_000, tokensPerMinute: 10_000_000 };
const limitStore = createMemoryLimitStore({
  clock: systemClock,
  random: Math.random,
  reservationTtlMs: 60_000,
  scopeLimit: 1_000,
});

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ overrides: { limits: limitStore } });
  gateway.reconfigure(sections(gateway.simulator.url));
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

function sections(simulatorUrl: string): Record<string, string> {
  const faults = [...table.map(([fault]) => fault), "flap", "throttle-429-7000"];
  const models = faults.map(
    (fault) => `
  chat-${fault}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: simulator, model: fault-${fault} }]
  embed-${fault}:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: simulator, model: fault-${fault} }]`,
  );
  return {
    models: models.join(""),
    upstreams: `
  simulator:
    kind: openai
    base_url: ${JSON.stringify(simulatorUrl)}
    timeouts: { connect: 200ms, first_byte: 500ms, idle: 400ms, total: 10s }`,
  };
}

const words = "one two three four five six seven eight";

const requests = {
  "a whole answer": (fault: string) => ({
    path: "/v1/chat/completions",
    body: { model: `chat-${fault}`, messages: [{ role: "user", content: `echo: ${words}` }] },
  }),
  "a stream": (fault: string) => ({
    path: "/v1/chat/completions",
    body: {
      model: `chat-${fault}`,
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: "user", content: `echo: ${words}` }],
    },
  }),
  embeddings: (fault: string) => ({
    path: "/v1/embeddings",
    body: { model: `embed-${fault}`, input: [words, "nine"], encoding_format: "float" },
  }),
};

type CallName = keyof typeof requests;

async function untilUpstreamIsFree(): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (gateway.simulator.openCalls > 0) {
    if (Date.now() > deadline) throw new Error("an upstream call goes on");
    await Bun.sleep(2);
  }
}

/** Calls with a key of its own; what is left of the key's limits must agree with the ledger. */
async function callOnce(name: CallName, fault: string) {
  const { id: keyId, text: key } = await gateway.createKey({ limits });
  const { path, body } = requests[name](fault);
  const headers = { authorization: `Bearer ${key}` };
  const response = await gateway.post(path, body, { headers });
  const text = await response.clone().text();
  await untilUpstreamIsFree();
  const rows = (await gateway.usage()).filter((row) => row.keyId === keyId);
  expect(rows.map(({ id }) => id)).toEqual([response.headers.get("x-request-id") ?? ""]);
  const [row] = rows;
  if (row === undefined) throw new Error("no row");
  const left = limitStore.peek({ id: `key:${keyId}`, limits });
  expect(left.remainingTokens).toBe(limits.tokensPerMinute - row.inputTokens - row.outputTokens);
  expect(left.remainingRequests).toBe(limits.requestsPerMinute - 1);
  expect(limitStore.reservationCount).toBe(0);
  return { response, text, row };
}

function expectWhole(name: CallName, fault: string, text: string): void {
  if (name === "embeddings") return;
  const isOutsized = fault.startsWith("giant") || fault.startsWith("million");
  const contentOf = name === "a stream" ? streamedContent : wholeContent;
  const content = contentOf(text);
  if (isOutsized) expect(content.length).toBeGreaterThan(100_000);
  else expect(content).toBe(words);
}

function wholeContent(text: string): string {
  const body = JSON.parse(text) as Awaited<ReturnType<typeof chatOf>>;
  expect(body.choices[0]?.finish_reason).toBe("stop");
  return body.choices[0]?.message.content ?? "";
}

function streamedContent(text: string): string {
  const { chunks, isDone } = parseStream(text);
  expect(isDone).toBe(true);
  expect(chunks.filter((chunk) => chunk.usage).length).toBe(1);
  return chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
}

function expectBroken(text: string): void {
  const { chunks, isDone } = parseStream(text);
  expect(isDone).toBe(false);
  const last = chunks.at(-1);
  expect(errorBodyProblem(JSON.stringify(last))).toBeUndefined();
  expect(last?.error).toMatchObject({ type: "server_error", code: "model_unavailable" });
  const content = chunks.map((chunk) => chunk.choices?.[0]?.delta.content ?? "").join("");
  expect(words.startsWith(content)).toBe(true);
}

function expectRow(row: UsageRecord, outcome: Outcome, fault: string): void {
  const attempts = fault.includes("before-headers") || fault === "tls-fail" ? 2 : 1;
  expect(row.attempts).toBe(attempts);
  const truth = gateway.simulator.truth.entries.at(-1);
  const { inputTokens, outputTokens, usageSource } = row;
  switch (outcome) {
    case "whole": {
      expect(row).toMatchObject({ outcome: "completed", status: 200, usageSource: "upstream" });
      const told = (count = 0) => (fault === "wrong-usage" ? count * 10 + 10 : count);
      expect(inputTokens).toBe(told(truth?.promptTokens));
      if (row.model.startsWith("chat")) expect(outputTokens).toBe(told(truth?.completionTokens));
      else expect(outputTokens).toBe(0);
      return;
    }
    case "whole, estimated":
      expect(row).toMatchObject({ outcome: "completed", status: 200, usageSource: "estimated" });
      expect(inputTokens).toBeGreaterThan(0);
      return;
    case "broken":
      expect(row).toMatchObject({ outcome: "failed", status: 503, code: "model_unavailable" });
      // An answer without an end may still have told its counts.
      expect(usageSource).toBe(fault === "missing-finish-reason" ? "upstream" : "estimated");
      expect(inputTokens).toBeGreaterThan(0);
      expect(outputTokens).toBeGreaterThan(0);
      return;
    case "broken or 503":
    case "503":
    case "400 context_length_exceeded":
    case "400 without code":
      expect(row).toMatchObject({ outcome: "failed", status: Number(outcome.slice(0, 3)) });
      expect([inputTokens, outputTokens]).toEqual([0, 0]);
  }
}

function brokenOrNot(response: Response): Outcome {
  return response.status === 503 ? "503" : "broken";
}

const errorCodes: Readonly<Partial<Record<Outcome, string | null>>> = {
  "503": "model_unavailable",
  "400 context_length_exceeded": "context_length_exceeded",
  "400 without code": null,
};

const callNames = ["a whole answer", "a stream", "embeddings"] as const;

for (const [fault, ...outcomes] of table) {
  describe(`an upstream that shows ${fault}`, () => {
    callNames.forEach((name, index) => {
      const listed = outcomes[index] ?? "503";
      test(`makes of ${name}: ${listed}`, async () => {
        const { response, text, row } = await callOnce(name, fault);
        const outcome = listed === "broken or 503" ? brokenOrNot(response) : listed;
        expectRow(row, outcome, fault);
        const code = errorCodes[outcome];
        if (code === undefined) {
          expect(response.status).toBe(200);
          if (outcome === "broken") expectBroken(text);
          else expectWhole(name, fault, text);
          return;
        }
        expect(errorShapeProblem(response.headers, text)).toBeUndefined();
        expect(response.status).toBe(Number(outcome.slice(0, 3)));
        expect((await errorOf(response)).code).toBe(code);
        if (code === "model_unavailable") {
          expect(response.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
        }
      });
    });
  });
}

test("an upstream that is well by turns is well every other time", async () => {
  const statuses: number[] = [];
  for (let index = 0; index < 4; index += 1) {
    const { response } = await callOnce("a whole answer", "flap");
    statuses.push(response.status);
  }
  expect(statuses).toEqual([200, 503, 200, 503]);
});

test("the wait that a throttling upstream asks for is passed on", async () => {
  for (const name of callNames) {
    const { response } = await callOnce(name, "throttle-429-7000");
    expect(response.headers.get("retry-after")).toBe("7");
    expect(response.headers.get("retry-after-ms")).toBe("7000");
    expect((await errorOf(response)).message).not.toContain("org-simulator");
  }
});

test("a redirect is not followed: neither the prompt nor the credential goes elsewhere", async () => {
  let strangers = 0;
  await using elsewhere = serve(() => {
    strangers += 1;
    return new Response("thanks");
  });
  const seen: (string | null)[] = [];
  await using redirecting = serve((request) => {
    seen.push(request.headers.get("authorization"));
    return Response.redirect(`http://127.0.0.1:${elsewhere.port}/v1/chat/completions`, 307);
  });
  await using own = await startGateway({
    sections: {
      upstreams: `
  simulator:
    kind: openai
    base_url: "http://127.0.0.1:${redirecting.port}/v1"
    api_key: an-upstream-credential`,
    },
  });
  for (const stream of [false, true]) {
    const response = await own.post("/v1/chat/completions", {
      model: "chat-model",
      stream,
      messages: [{ role: "user", content: "hi" }],
    });
    expect(response.status).toBe(503);
    expect((await response.text()).includes("an-upstream-credential")).toBe(false);
  }
  expect(seen).toEqual(["Bearer an-upstream-credential", "Bearer an-upstream-credential"]);
  expect(strangers).toBe(0);
});

test("after all that the gateway serves, and logged errors only of the operator's own making", async () => {
  const chat = await gateway.post(
    "/v1/chat/completions",
    requests["a whole answer"]("comments").body,
  );
  expect((await chatOf(chat)).choices[0]?.message.content).toBe(words);
  const embeddings = await gateway.post("/v1/embeddings", requests.embeddings("comments").body);
  expect((await embeddingsOf(embeddings)).data).toHaveLength(2);
  const errors = gateway.log.filter((line) => line.includes(`"level":"error"`));
  const others = errors.filter((line) => !/"kind":"(bad-credential|unknown-model)"/.test(line));
  expect(others).toEqual([]);
  expect(errors.length).toBeGreaterThan(0);
  expect(gateway.simulator.openCalls).toBe(0);
});

function serve(fetch: (request: Request) => Response) {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  return {
    port: server.port ?? 0,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
