import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { faultInModelName, isOnWire } from "../../simulator/faults/fault-modes.ts";
import { type FaultMode, faultModes } from "../../simulator/simulator.ts";
import { errorBodyProblem, errorShapeProblem } from "../http/error-shape.ts";
import { chatOf, embeddingsOf, errorOf, parseStream } from "../support/bodies.ts";
import { hasHole } from "../support/has-hole.ts";
import {
  anthropicUpstream,
  bedrockUpstream,
  type ChatKind,
  chatKinds,
  startGateway,
} from "../support/gateway.ts";
import {
  callNamesOf,
  FaultBench,
  furtherFaults,
  requestOf,
  words,
  type CallName,
  type CallSeen,
} from "./fault-bench.ts";
import { report } from "../support/scorecard.ts";
import { faultTables, noHandshake, type Outcome } from "./fault-table.ts";

/** A stream of a million deltas takes long. */
const cellTimeoutMs = 300_000;

const tally = { cells: 0, correct: 0, heldPlaces: 0 };

/** Without or with a second target that has no fault. */
const benches = chatKinds.flatMap((kind) => [
  { kind, hasSecond: false, behind: "without another target" },
  { kind, hasSecond: true, behind: "with a second target" },
]);

describe.each(benches)("over the wire of $kind, $behind", ({ kind, hasSecond }) => {
  let bench: FaultBench;
  beforeAll(async () => {
    bench = await FaultBench.start(kind, hasSecond);
  });
  afterAll(async () => {
    await bench[Symbol.asyncDispose]();
  });

  for (const [fault, ...outcomes] of faultTables[kind]) {
    callNamesOf[kind].forEach((name, index) => {
      const listed = outcomes[Math.min(index, 2)] ?? "503";
      // A complete answer of the first target is never requested from the second.
      if (hasSecond && listed.startsWith("whole") && fault !== "ok") return;
      test(
        `${fault} makes ${name} ${listed}`,
        async () => {
          tally.cells += 1;
          const seen = await bench.call(name, fault);
          const isFree = await bench.isPlaceFree();
          if (!isFree) tally.heldPlaces += 1;
          expect(isFree).toBe(true);
          const alone = listed === "broken or 503" ? brokenOrNot(seen.text) : listed;
          const isServed = hasSecond && alone === "503";
          const outcome = isServed ? "whole" : alone;
          expectAttempts(seen, isServed, { fault, kind });
          expectRow(seen, outcome, { fault, kind });
          await expectAnswer(seen, outcome, { name, fault });
          tally.correct += 1;
        },
        cellTimeoutMs,
      );
    });
  }
  if (hasSecond) return;

  test("every fault of the wire is tested", () => {
    const listed = faultTables[kind].map(([fault]) => fault).filter((one) => one !== noHandshake);
    const shown = [...listed, ...furtherFaults];
    const modes = shown.map((fault) => faultInModelName(`fault-${fault}`)?.mode);
    // Messages has the frames of OpenAI.
    const wire = kind === "bedrock" ? kind : "openai";
    const all = Object.keys(faultModes).filter((mode) => isOnWire(mode as FaultMode, wire));
    expect(new Set<string | undefined>(modes)).toEqual(new Set(all));
  });

  test("an upstream that fails every other time answers every other time", async () => {
    expect(await statusesOf("flap")).toEqual([200, 503, 200, 503]);
  });

  test("an upstream that refused a burst of calls gets the next call", async () => {
    expect(await statusesOf("throttled-burst")).toEqual([503, 503, 503, 200]);
  });

  async function statusesOf(fault: string): Promise<readonly number[]> {
    const statuses: number[] = [];
    for (let index = 0; index < 4; index += 1) {
      const { response } = await bench.call("a whole answer", fault);
      statuses.push(response.status);
    }
    return statuses;
  }

  test("the Retry-After of a throttling upstream is passed on", async () => {
    for (const name of callNamesOf[kind]) {
      const { response } = await bench.call(name, "throttle-429-7000");
      expect(response.headers.get("retry-after")).toBe("7");
      expect(response.headers.get("retry-after-ms")).toBe("7000");
      expect((await errorOf(response)).message).not.toContain("org-simulator");
    }
  });

  test("the gateway still serves afterwards, and has logged only errors of the operator", async () => {
    const { gateway } = bench;
    const post = (name: CallName) => {
      const { path, body } = requestOf(name, "comments", { kind, mark: "after" });
      return gateway.post(path, body);
    };
    const chat = await chatOf(await post("a whole answer"));
    expect(chat.choices[0]?.message.content).toBe(words);
    if (callNamesOf[kind].includes("embeddings")) {
      const { data } = await embeddingsOf(await post("embeddings"));
      expect(data.length).toBeGreaterThan(0);
    }
    const errors = gateway.log.filter((line) => line.includes(`"level":"error"`));
    const others = errors.filter((line) => !/"kind":"(bad-credential|unknown-model)"/.test(line));
    expect(others).toEqual([]);
    expect(errors.length).toBeGreaterThan(0);
    expect(gateway.simulator.openCalls).toBe(0);
  });
});

test("every call ended as listed, every place was released, and no answer began twice", () => {
  const { cells, correct, heldPlaces } = tally;
  const isMet = correct === cells;
  const name = "outcomes under faults as listed";
  report({
    check: 20,
    name,
    value: `${correct} of ${cells}`,
    limit: `${cells} of ${cells}`,
    isMet,
  });
  const held = "places held after a fault";
  report({ check: 20, name: held, value: heldPlaces, limit: 0, isMet: heldPlaces === 0 });
  expect({ correct, heldPlaces }).toEqual({ correct: cells, heldPlaces: 0 });
});

function brokenOrNot(text: string): Outcome {
  return text.includes("data: ") && !text.includes("[DONE]") ? "broken" : "503";
}

const refusedCredential =
  /^bad-credential$|^exception-(unrecognized-client|(invalid|incomplete)-signature|expired-token|request-expired)$/;

/** No retry follows once the caller has a part of the answer, and no target is tried twice. */
function expectAttempts(seen: CallSeen, isServed: boolean, { fault, kind }: Shown): void {
  // If an attempt is left, a refused credential is renewed before another target is tried.
  const isRenewed = isServed && kind === "bedrock" && refusedCredential.test(fault);
  const ofFirst = isRenewed ? 2 : 1;
  expect(seen.row.attempts).toBe(isServed ? ofFirst + 1 : 1);
  expect(seen.atSecond).toHaveLength(isServed ? 1 : 0);
  // A failed handshake is not a call. A request that a kept connection loses is sent once more.
  const least = fault === noHandshake ? 0 : ofFirst;
  const most = fault.endsWith("before-headers") ? 2 * ofFirst : least;
  expect(seen.atFirst.length).toBeWithin(least, most + 1);
}

interface Shown {
  readonly fault: string;
  readonly kind: ChatKind;
}

function expectRow(seen: CallSeen, outcome: Outcome, { fault, kind }: Shown): void {
  const { row } = seen;
  const truth = seen.atSecond.at(-1) ?? seen.atFirst.at(-1);
  const { inputTokens, outputTokens, usageSource } = row;
  const isToldInVain = kind !== "openai" && fault === "missing-finish-reason";
  // What the gateway cuts for its time costs what was reserved, and what breaks after a second, as on a busy machine,
  // costs that second; what a server says costs that.
  const attempts = row.routing?.attempts ?? [];
  const isCut =
    !fault.endsWith("model-timeout") &&
    !isToldInVain &&
    attempts.some(
      ({ outcome: ended, mayBeBilled, durationMs }) =>
        ended === "timed-out" || (ended !== "answered" && mayBeBilled && durationMs >= 1_000),
    );
  switch (outcome) {
    case "whole":
    case "whole but for an event": {
      const source = isCut ? "estimated" : "upstream";
      expect(row).toMatchObject({ outcome: "completed", status: 200, usageSource: source });
      // Messages splits the input into three counts.
      const told = (count = 0, parts = 1) =>
        fault === "wrong-usage" ? count * 10 + 10 * parts : count;
      const inVain = isToldInVain && seen.atSecond.length > 0 ? seen.atFirst.at(-1) : undefined;
      const parts = kind === "anthropic" ? 3 : 1;
      const input = told(truth?.promptTokens, parts) + (inVain?.promptTokens ?? 0);
      const output = told(truth?.completionTokens) + (inVain?.completionTokens ?? 0);
      if (isCut) return expect(inputTokens).toBeGreaterThan(input);
      expect(inputTokens).toBe(input);
      expect(outputTokens).toBe(row.model.startsWith("chat") ? output : 0);
      return;
    }
    case "whole, uncounted":
      expect(row).toMatchObject({ outcome: "completed", status: 200 });
      // Vectors have no delivered tokens to count.
      expect(usageSource).toBe(row.model.startsWith("chat") ? "counted" : "estimated");
      expect(inputTokens).toBeGreaterThan(0);
      return;
    case "broken":
    case "broken, refused":
      expect(row).toMatchObject(
        outcome === "broken"
          ? { outcome: "failed", status: 503, code: "model_unavailable" }
          : { outcome: "failed", status: 400, code: undefined },
      );
      // An answer without an end may still contain its counts.
      expect(usageSource).toBe(tellsUsage(fault, kind) ? "upstream" : "counted");
      expect(inputTokens).toBeGreaterThan(0);
      expect(outputTokens).toBeGreaterThan(0);
      return;
    case "broken or 503":
    case "503":
    case "400 context_length_exceeded":
    case "400 without code":
      expect(row).toMatchObject({ outcome: "failed", status: Number(outcome.slice(0, 3)) });
      // A whole answer that lacks its end was generated, and says what it cost.
      if (isCut) {
        expect(usageSource).toBe("estimated");
        expect(inputTokens).toBeGreaterThan(0);
      } else if (isToldInVain) {
        const told = [truth?.promptTokens ?? 0, truth?.completionTokens ?? 0];
        expect([inputTokens, outputTokens]).toEqual(told);
      } else expect([inputTokens, outputTokens]).toEqual([0, 0]);
  }
}

function tellsUsage(fault: string, kind: ChatKind): boolean {
  return kind === "openai" && fault === "missing-finish-reason";
}

const errorCodes: Readonly<Partial<Record<Outcome, string | null>>> = {
  "503": "model_unavailable",
  "400 context_length_exceeded": "context_length_exceeded",
  "400 without code": null,
};

async function expectAnswer(
  { response, text }: CallSeen,
  outcome: Outcome,
  { name, fault }: { readonly name: CallName; readonly fault: string },
): Promise<void> {
  const code = errorCodes[outcome];
  if (code === undefined) {
    expect(response.status).toBe(200);
    if (outcome.startsWith("broken")) expectBroken(text, outcome);
    else if (outcome === "whole but for an event") {
      expect(hasHole(streamedContent(text), words)).toBe(true);
    } else expectWhole(name, fault, text);
    return;
  }
  expect(errorShapeProblem(response.headers, text)).toBeUndefined();
  expect(response.status).toBe(Number(outcome.slice(0, 3)));
  const error = await errorOf(response);
  expect(error.code).toBe(code);
  if (code !== "model_unavailable") return;
  // Only the operator can correct it, so waiting does not help.
  const isLasting = error.message.includes("contact the operator");
  expect(response.headers.get("retry-after") ?? "").toMatch(isLasting ? /^$/ : /^[1-9]\d*$/);
  expect(response.headers.get("x-should-retry")).toBe(isLasting ? "false" : "true");
}

function expectWhole(name: CallName, fault: string, text: string): void {
  if (name.startsWith("embeddings")) return expectVectors(text);
  const isOutsized = fault.startsWith("giant") || fault.startsWith("million");
  const contentOf = name === "a stream" ? streamedContent : wholeContent;
  const content = contentOf(text);
  if (isOutsized) expect(content.length).toBeGreaterThan(100_000);
  else expect(content).toBe(words);
}

function expectVectors(text: string): void {
  const { data } = JSON.parse(text) as Awaited<ReturnType<typeof embeddingsOf>>;
  expect(data.map(({ index }) => index)).toEqual([...data.keys()]);
  expect(data.length).toBeGreaterThan(0);
  for (const { embedding } of data) expect(embedding.length).toBeGreaterThan(100);
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

function expectBroken(text: string, outcome: Outcome): void {
  const { chunks, isDone } = parseStream(text);
  expect(isDone).toBe(false);
  const last = chunks.at(-1);
  expect(errorBodyProblem(JSON.stringify(last))).toBeUndefined();
  expect(last?.error).toMatchObject(
    outcome === "broken"
      ? { type: "server_error", code: "model_unavailable" }
      : { type: "invalid_request_error", code: null },
  );
  const content = chunks.map((chunk) => chunk.choices?.[0]?.delta.content ?? "").join("");
  expect(words.startsWith(content)).toBe(true);
}

test.each([
  ["openai", "authorization", /^Bearer an-upstream-credential$/],
  ["bedrock", "authorization", /^AWS4-HMAC-SHA256 /],
  ["anthropic", "x-api-key", /^simulated$/],
] as const)(
  "a redirect by %s is not followed, so neither the prompt nor the credential leaves the upstream",
  async (kind, header, credential) => {
    let strangers = 0;
    await using elsewhere = serve(() => {
      strangers += 1;
      return new Response("thanks");
    });
    const seen: string[] = [];
    await using redirecting = serve((request) => {
      seen.push(request.headers.get(header) ?? "");
      return Response.redirect(`http://127.0.0.1:${elsewhere.port}${pathOf(request)}`, 307);
    });
    const address = `http://127.0.0.1:${redirecting.port}`;
    const upstreams = {
      openai: `{ kind: openai, base_url: "${address}/v1", api_key: an-upstream-credential }`,
      bedrock: bedrockUpstream(address),
      anthropic: anthropicUpstream(address),
    };
    await using own = await startGateway({
      kind,
      sections: {
        routing: "{ attempts: 1 }",
        upstreams: `\n  simulator: ${upstreams[kind]}\n  embeddings: ${upstreams.openai}`,
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
    expect(seen.map((sent) => credential.test(sent))).toEqual([true, true]);
    expect(strangers).toBe(0);
  },
);

function pathOf(request: Request): string {
  return new URL(request.url).pathname;
}

function serve(fetch: (request: Request) => Response) {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  return {
    port: server.port ?? 0,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
