/**
 * Calls at times that are fixed before, whatever the answers do: a program that takes the load as
 * JSON and prints the result as JSON. The latency of a call is counted from its intended time, so
 * that what a slow answer delays is not left out.
 */
import { z } from "zod";
import { quantile } from "../statistics.ts";
import { AnswerReader } from "./answer-reader.ts";
import type { CallResult } from "./drive-calls.ts";
import { requestBytes, RequestSender } from "./http-request.ts";

const loadSchema = z.object({
  destination: z.object({ port: z.int(), headers: z.record(z.string(), z.string()) }),
  request: z.strictObject({ path: z.string(), body: z.string() }),
  /** The most of them. */
  connections: z.int().positive(),
  durationMs: z.number().positive(),
  perSecond: z.number().positive(),
});

type Load = z.infer<typeof loadSchema>;

/** Connections that are open before the first call. */
const firstConnections = 16;
/** Finer than a timer of the runtime, and still leaves the core to others. */
const napMs = 0.02;
const answerLimitMs = 10_000;
const seed = 20_260_101;

const load = loadSchema.parse(JSON.parse(process.argv[2] ?? ""));
console.log(JSON.stringify(await runLoad(load)));

async function runLoad({ perSecond, durationMs, ...rest }: Load): Promise<CallResult> {
  const pool = new Pool(rest);
  await pool.open(Math.min(firstConnections, rest.connections));
  const random = randomFrom(seed);
  // As many independent callers would: the gaps are exponential, and the same in each run.
  const gap = (): number => (-Math.log(1 - random()) * 1_000) / perSecond;
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const startedAt = performance.now();
  const endsAt = startedAt + durationMs;
  let nextAt = startedAt + gap();
  let now = startedAt;
  while (now < endsAt + answerLimitMs && (nextAt < endsAt || pool.waiting > 0)) {
    for (; nextAt <= now && nextAt < endsAt; nextAt += gap()) pool.call(nextAt);
    if (nextAt - now > napMs) Atomics.wait(cell, 0, 0, napMs);
    await nextTurn();
    now = performance.now();
  }
  pool.close();
  const sorted = Float64Array.from(pool.latencies).sort();
  return {
    calls: sorted.length,
    microseconds: (now - startedAt) * 1_000,
    failures: pool.failures + pool.waiting,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
  };
}

/** One turn of the event loop, in which answers are read. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The same numbers in [0, 1) from the same seed. */
function randomFrom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The state of a connection. */
interface Exchange {
  readonly answer: AnswerReader;
  readonly sender: RequestSender;
  /** The intended time of its call. */
  intendedAt: number;
}

type Connection = Bun.Socket<Exchange>;

/** Connections with a call each; calls for which there is none wait. */
class Pool {
  /** In microseconds. */
  readonly latencies: number[] = [];
  failures = 0;
  readonly #bytes: Buffer;
  readonly #port: number;
  readonly #most: number;
  readonly #open = new Set<Connection>();
  readonly #idle: Connection[] = [];
  readonly #queue: number[] = [];
  #connecting = 0;
  #begun = 0;

  constructor({ destination, request, connections }: Omit<Load, "perSecond" | "durationMs">) {
    this.#bytes = requestBytes(request, destination);
    this.#port = destination.port;
    this.#most = connections;
  }

  /** Calls without an answer yet. */
  get waiting(): number {
    return this.#begun - this.latencies.length;
  }

  async open(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#connect()));
  }

  close(): void {
    for (const connection of this.#open) connection.end();
  }

  call(intendedAt: number): void {
    this.#begun += 1;
    const connection = this.#idle.pop();
    if (connection !== undefined) {
      this.#send(connection, intendedAt);
      return;
    }
    this.#queue.push(intendedAt);
    if (this.#open.size + this.#connecting < this.#most) void this.#connect();
  }

  #send(connection: Connection, intendedAt: number): void {
    connection.data.intendedAt = intendedAt;
    connection.data.sender.send(this.#bytes, connection);
  }

  #free(connection: Connection): void {
    const intendedAt = this.#queue.shift();
    if (intendedAt === undefined) this.#idle.push(connection);
    else this.#send(connection, intendedAt);
  }

  #receive(connection: Connection, bytes: Buffer): void {
    const { answer, intendedAt } = connection.data;
    if (!answer.push(bytes)) return;
    this.latencies.push((performance.now() - intendedAt) * 1_000);
    if (answer.status !== 200) this.failures += 1;
    this.#free(connection);
  }

  /** A call that its connection leaves behind stays without an answer. */
  #closed(connection: Connection): void {
    this.#open.delete(connection);
    const place = this.#idle.indexOf(connection);
    if (place !== -1) this.#idle.splice(place, 1);
  }

  async #connect(): Promise<void> {
    this.#connecting += 1;
    const connection = await Bun.connect<Exchange>({
      hostname: "127.0.0.1",
      port: this.#port,
      data: { answer: new AnswerReader(), sender: new RequestSender(), intendedAt: 0 },
      socket: {
        drain: (socket) => socket.data.sender.drained(socket),
        data: (socket, bytes) => this.#receive(socket, bytes),
        close: (socket) => this.#closed(socket),
      },
    });
    this.#connecting -= 1;
    this.#open.add(connection);
    this.#free(connection);
  }
}
