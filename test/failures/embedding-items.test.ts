import { afterEach, expect, test } from "bun:test";
import type { Call } from "../../src/snapshot/call.ts";
import type { EmbeddingResult } from "../../src/domain/chat/embedding.ts";
import { runEmbeddings, type EmbeddingCall } from "../../src/call/embeddings/embedding-call.ts";
import type { Upstream } from "../../src/snapshot/snapshot.ts";
import {
  adapterOf,
  callOf,
  type CallValues,
  modelOf,
  pipelineOf,
  plainRouting,
  snapshotOf,
  targetOf,
  upstreamOf,
  gatewayErrorOf,
} from "../support/pipeline-fixtures.ts";

/** Longer than any test, so that a wait in a test only ends by an abort. */
const timeouts = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 };

/** The reaction to a request, by its inputs and the number of earlier requests with them. */
type Refusal = Response | "hang" | undefined;
type Refuse = (inputs: readonly string[], before: number) => Refusal | Promise<Refusal>;

/** A real server whose vectors identify their inputs. */
class VectorServer implements AsyncDisposable {
  /** The inputs of every request, including refused ones. */
  readonly seen: string[][] = [];
  readonly answered: string[] = [];
  mostOpen = 0;
  closed = 0;
  #open = 0;
  readonly #server;

  constructor(refuse: Refuse) {
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      fetch: async (request) => {
        this.#open += 1;
        this.mostOpen = Math.max(this.mostOpen, this.#open);
        request.signal.addEventListener("abort", () => {
          this.closed += 1;
        });
        const input = inputsOf(await request.text());
        const before = this.seen.filter((inputs) => inputs.join() === input.join()).length;
        this.seen.push(input);
        const refusal = await refuse(input, before);
        if (refusal === "hang") await new Promise(() => undefined);
        this.#open -= 1;
        if (refusal instanceof Response) return refusal;
        this.answered.push(...input);
        return answer(input);
      },
    });
  }

  upstream(name: string, batchLimit: number, values: Partial<Upstream> = {}): Upstream {
    const embeddings = { batchLimit: () => batchLimit };
    const adapter = adapterOf(`http://127.0.0.1:${this.#server.port}/v1`, { embeddings });
    return upstreamOf(name, { adapter, maxInFlight: 100, timeouts, ...values });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

/** The vector of the text `text 7` is `[7]`, with 2 tokens. */
function answer(inputs: readonly string[]): Response {
  const data = inputs.map((input, index) => ({ index, embedding: [Number(input.slice(5))] }));
  return Response.json({ data, usage: { prompt_tokens: 2 * inputs.length } });
}

/** The inputs of a body; a single one is a text, not a list. */
function inputsOf(body: string): string[] {
  const { input } = JSON.parse(body) as { input: string | string[] };
  return [input].flat();
}

function refusal(status: number, headers: Record<string, string> = {}): Response {
  return Response.json({ error: { message: "no", type: "x" } }, { status, headers });
}

const servers: VectorServer[] = [];
function serve(refuse: Refuse = () => undefined): VectorServer {
  const server = new VectorServer(refuse);
  servers.push(server);
  return server;
}
afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]();
});

function embedding(count: number): EmbeddingCall {
  const inputs = Array.from({ length: count }, (_, index) => `text ${index}`);
  return {
    request: {
      model: "embed-text-v2",
      inputs,
      dimensions: undefined,
      user: undefined,
      encodingFormat: "float",
    },
    bodyBytes: 300,
    decodeTokens: () => Promise.reject(new Error("there are no token ids")),
  };
}

function callAt(upstreams: readonly Upstream[], values: CallValues = {}): Call {
  const targets = upstreams.map(({ name }, index) => targetOf(name, { priority: index + 1 }));
  const kind = "embedding" as const;
  const limits = { contextWindow: 8_000, maxOutputTokens: undefined, fanOut: 5 };
  const model = modelOf({ alias: "embed-text-v2", kind, targets, ...limits });
  return callOf({
    environment: { name: "test", models: new Map([[model.alias, model]]) },
    snapshot: snapshotOf(upstreams),
    ...values,
  });
}

function triesOf({ seen }: VectorServer, text: string): number {
  return seen.filter(([input]) => input === text).length;
}

const numbersOf = ({ vectors }: EmbeddingResult): readonly (readonly number[])[] =>
  vectors.map((vector) => Array.from(vector.numbers));
const inOrder = (count: number) => Array.from({ length: count }, (_, index) => [index]);
const throttledTexts: ReadonlySet<string> = new Set(["text 7", "text 42", "text 99"]);

test("only the three throttled of a hundred inputs are sent again, and the order stays", async () => {
  const server = serve(([input = ""], before) =>
    throttledTexts.has(input) && before < 2 ? refusal(429) : undefined,
  );
  const { services, records, failures } = pipelineOf();
  const { answer } = await runEmbeddings(
    callAt([server.upstream("up", 1)]),
    embedding(100),
    services,
  );
  expect(numbersOf(answer)).toEqual(inOrder(100));
  expect(new Set(server.answered).size).toBe(100);
  expect(server.answered).toHaveLength(100);
  expect(server.seen).toHaveLength(100 + 3 * 2);
  expect(server.mostOpen).toBeLessThanOrEqual(5);
  expect(failures).toHaveLength(6);
  expect(failures.every(({ details }) => details.kind === "throttled")).toBe(true);
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ inputTokens: 200, usageSource: "upstream", attempts: 1 });
});

test("the next target gets only what the first has not done, in its own batches", async () => {
  const limited = serve(async ([input = ""]) => {
    if (!throttledTexts.has(input)) return undefined;
    // If another target is left, the first refusal ends the attempt with all its requests.
    do await Bun.sleep(50);
    while (limited.answered.length < 97);
    return refusal(429);
  });
  const sound = serve();
  const { services, records } = pipelineOf();
  const call = callAt([limited.upstream("first", 1), sound.upstream("second", 2)]);
  const { answer } = await runEmbeddings(call, embedding(100), services);
  expect(numbersOf(answer)).toEqual(inOrder(100));
  expect(limited.answered).toHaveLength(97);
  expect(sound.seen).toEqual([["text 7", "text 42"], ["text 99"]]);
  expect([...throttledTexts].map((text) => triesOf(limited, text))).toEqual([1, 1, 1]);
  expect(records[0]).toMatchObject({ inputTokens: 200, attempts: 2, target: "second/m" });
});

test("a lost connection of one batch does not affect the others", async () => {
  const lost = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, bytes) {
        const [, body = ""] = bytes.toString().split("\r\n\r\n");
        const input = inputsOf(body);
        requests.push(...input);
        if (input[0] === "text 1" && requests.filter((text) => text === "text 1").length < 3) {
          socket.terminate();
          return;
        }
        void answer(input)
          .text()
          .then((text) => {
            socket.end(
              `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`,
            );
          });
      },
    },
  });
  const requests: string[] = [];
  const embeddings = { batchLimit: () => 1 };
  const adapter = adapterOf(`http://127.0.0.1:${lost.port}/v1`, { embeddings });
  const { services, failures } = pipelineOf();
  const { answer: result } = await runEmbeddings(
    callAt([upstreamOf("up", { adapter })]),
    embedding(3),
    services,
  );
  lost.stop(true);
  expect(numbersOf(result)).toEqual(inOrder(3));
  expect(requests.toSorted()).toEqual(["text 0", "text 1", "text 1", "text 1", "text 2"]);
  expect(failures).toHaveLength(2);
  expect(failures.every(({ details }) => details.kind === "connection-lost")).toBe(true);
});

test("a call with one input has only the usual retries", async () => {
  const limited = serve(() => refusal(429));
  const { services } = pipelineOf();
  const call = callAt([limited.upstream("up", 1)]);
  expect((await gatewayErrorOf(runEmbeddings(call, embedding(1), services))).status).toBe(503);
  expect(limited.seen).toHaveLength(call.snapshot.routing.attempts);
});

test("a refusal of one input's content ends the others at once", async () => {
  const server = serve(([input = ""]) => {
    if (input === "text 0") return undefined;
    return input === "text 3" ? refusal(400) : "hang";
  });
  const upstream = server.upstream("up", 1);
  const { services, records, placesAt } = pipelineOf();
  const error = await gatewayErrorOf(runEmbeddings(callAt([upstream]), embedding(50), services));
  expect([error.status, server.seen.length <= 6]).toEqual([400, true]);
  while (server.closed < server.seen.length - 2) await Bun.sleep(1);
  expect(placesAt(upstream).count).toBe(0);
  expect(records[0]).toMatchObject({ outcome: "failed", inputTokens: 2 });
});

test("a failed call is billed for what all of its targets have done", async () => {
  const first = serve(([input = ""]) => (input === "text 1" ? refusal(500) : undefined));
  const second = serve(([input = ""]) => (input === "text 1" ? refusal(500) : undefined));
  const { services, records } = pipelineOf();
  const call = callAt([first.upstream("first", 1), second.upstream("second", 1)]);
  expect((await gatewayErrorOf(runEmbeddings(call, embedding(8), services))).status).toBe(503);
  const done = first.answered.length + second.answered.length;
  expect(done).toBeGreaterThan(0);
  expect(records[0]?.inputTokens).toBeLessThanOrEqual(2 * done);
  expect(records[0]).toMatchObject({ outcome: "failed", usageSource: "upstream", attempts: 4 });
});

test("parts are retried only within the retry budget of their target", async () => {
  const limited = serve(([input = ""]) => (input === "text 0" ? undefined : refusal(429)));
  const empty = { began: () => undefined, tryTake: () => false };
  const budget = { retries: empty, hedges: empty };
  const { services, records } = pipelineOf({ budget });
  const call = callAt([limited.upstream("up", 1)]);
  expect((await gatewayErrorOf(runEmbeddings(call, embedding(4), services))).status).toBe(503);
  expect(limited.seen.length).toBeLessThanOrEqual(4);
  expect(records[0]).toMatchObject({ attempts: 1, inputTokens: 2 });
});

test("a backoff ends when the caller leaves", async () => {
  const limited = serve(([input = ""]) => (input === "text 0" ? undefined : refusal(429)));
  const upstream = limited.upstream("up", 1);
  const leaving = new AbortController();
  const { services, records, failures, placesAt } = pipelineOf();
  const routing = { ...plainRouting, firstBackoffMs: 2_000, longestBackoffMs: 3_000 };
  const snapshot = { ...snapshotOf([upstream]), routing };
  const call = callAt([upstream], { signal: leaving.signal, snapshot });
  const failed = gatewayErrorOf(runEmbeddings(call, embedding(6), services));
  while (failures.length < 5) await Bun.sleep(1);
  leaving.abort();
  expect((await failed).status).toBe(499);
  expect(limited.seen).toHaveLength(6);
  expect(placesAt(upstream).count).toBe(0);
  expect(records[0]).toMatchObject({ outcome: "abandoned", status: 499 });
});
