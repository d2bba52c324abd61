import { openAi } from "../../src/dialects/openai-dialect.ts";
import { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { KeyCall } from "../../src/edge/dispatch/route.ts";
import { textReply, type Reply } from "../../src/edge/replies/reply.ts";
import { nameCall } from "../../src/idempotency/call-names.ts";
import { RepeatableCalls } from "../../src/idempotency/repeatable-calls.ts";
import { Random } from "../../simulator/answer/random.ts";
import type { Call } from "../../src/snapshot/call.ts";
import { MemoryJoins } from "../../src/store/coordinator/memory/joins.ts";
import { StorageUnavailable } from "../../src/store/errors.ts";
import { LinkedWorker, type ControlSide } from "./linked-worker.ts";
import { MemoryReplyStore } from "./memory-reply-store.ts";
import { callOf, modelOf } from "./pipeline-fixtures.ts";
import { SteppedClock } from "./stepped-clock.ts";
import { testPeppers } from "./test-peppers.ts";

const steps = 40;
const keys = ["one", "two"] as const;
const peppers = testPeppers();
const models = new Map([["m", modelOf({ alias: "m" })]]);
const left = new DOMException("left", "AbortError");
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A request that is at the upstream. */
interface Run {
  readonly id: string;
  readonly worker: Worker;
  readonly result: PromiseWithResolvers<Reply>;
}

interface Asked {
  readonly worker: Worker;
  readonly leaving: AbortController;
  hasEnded: boolean;
}

interface Worker {
  readonly link: LinkedWorker;
  readonly calls: RepeatableCalls;
  isAlive: boolean;
}

/**
 * Several workers and a control process, whose callers come and leave, whose database fails and
 * which die, as a seed wants. Throws when a call is made beside or after an equal one.
 */
export class JoinedGateway {
  readonly counts = { runs: 0, replays: 0, reused: 0, unavailable: 0, crashes: 0 };
  readonly #random: Random;
  readonly #clock = new SteppedClock();
  readonly #replies = new MemoryReplyStore();
  readonly #runs = new Set<Run>();
  readonly #asked: Asked[] = [];
  /** The worker that has got the answer under an id. */
  readonly #answeredBy = new Map<string, Worker>();
  readonly #stored = new Set<string>();
  readonly #breaches: string[] = [];
  #workers: Worker[];
  #control: ControlSide;
  #opened = Promise.withResolvers<void>();
  #isReady = true;
  #isWritable = true;
  #isReadable = true;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#control = this.#createControl();
    this.#workers = Array.from({ length: this.#random.integer(2, 4) }, () => this.#createWorker());
  }

  async run(): Promise<void> {
    for (let step = 0; step < steps; step += 1) {
      await this.#step();
      await this.#move(this.#random.integer(0, 6));
      this.#check();
    }
    await this.#end();
  }

  async #step(): Promise<void> {
    const random = this.#random;
    const chance = random.next();
    if (chance < 0.4) this.#ask();
    else if (chance < 0.6) this.#endRun(random.pickAny([...this.#runs]), random.chance(0.6));
    else if (chance < 0.75) random.pickAny(this.#asked)?.leaving.abort(left);
    else if (chance < 0.79) this.#killWorker(random.pickAny(this.#workers));
    else if (chance < 0.82) this.#killControl();
    else if (chance < 0.87) this.#isWritable = !this.#isWritable;
    else if (chance < 0.9) this.#isReadable = !this.#isReadable;
    else if (chance < 0.95) await this.#clock.runScheduled();
    else this.#reconnect();
  }

  #ask(): void {
    const worker = this.#random.pickAny(this.#workers);
    if (worker === undefined) return;
    const idempotencyKey = this.#random.pick(keys);
    const bodyDigest = this.#random.chance(0.9) ? "same" : "different";
    const leaving = new AbortController();
    const call = keyCallOf(leaving.signal);
    const endpoint = "chat";
    const mark = { idempotencyKey, bodyDigest };
    const { id } = nameCall({ ...mark, keyId: "key_a", endpoint, capacity: "auto" }, peppers);
    const asked: Asked = { worker, leaving, hasEnded: false };
    this.#asked.push(asked);
    worker.calls
      .whole({ call, endpoint, kind: "chat", alias: "m", mark }, ({ signal }) =>
        this.#callUpstream({ id, worker, result: Promise.withResolvers() }, signal),
      )
      .then(
        ({ headers }) => {
          if (headers["idempotent-replayed"] !== undefined) this.counts.replays += 1;
        },
        (error: unknown) => this.#count(error),
      )
      .finally(() => {
        asked.hasEnded = true;
      });
  }

  #count(error: unknown): void {
    if (!(error instanceof GatewayError)) return;
    if (error.code === "idempotency_key_reused") this.counts.reused += 1;
    if (error.message.includes("cannot tell")) this.counts.unavailable += 1;
  }

  #callUpstream(run: Run, _signal: AbortSignal): Promise<Reply> {
    const { id, worker, result } = run;
    if (!worker.isAlive) return result.promise;
    const beside = [...this.#runs].some((other) => other.id === id);
    if (beside) this.#breaches.push("a call is made beside an equal one");
    if (this.#stored.has(id)) this.#breaches.push("a call is made whose answer is stored");
    if (this.#answeredBy.get(id)?.isAlive === true) {
      this.#breaches.push("a call is made whose answer waits in a worker");
    }
    this.counts.runs += 1;
    this.#runs.add(run);
    return result.promise;
  }

  /** An abandoned call ends as late as any other. */
  #endRun(run: Run | undefined, isWhole: boolean): void {
    if (run === undefined) return;
    this.#runs.delete(run);
    if (isWhole) run.result.resolve(textReply(200, "answer"));
    else run.result.reject(new GatewayError("model_unavailable", { message: "it failed" }));
  }

  #killWorker(worker: Worker | undefined): void {
    if (worker === undefined) return;
    this.counts.crashes += 1;
    worker.isAlive = false;
    worker.link.disconnect();
    for (const run of this.#runs) if (run.worker === worker) this.#runs.delete(run);
    this.#workers = this.#workers.filter((other) => other !== worker);
    this.#workers.push(this.#createWorker());
  }

  #killControl(): void {
    this.counts.crashes += 1;
    for (const { link } of this.#workers) if (link.isConnected) link.disconnect();
    this.#isReady = false;
    this.#opened = Promise.withResolvers();
    this.#control = this.#createControl();
  }

  #reconnect(): void {
    const worker = this.#workers.find(({ link }) => !link.isConnected);
    worker?.link.connect(this.#control);
  }

  #createControl(): ControlSide {
    const opened = this.#opened.promise;
    return {
      joins: new MemoryJoins(this.#clock),
      ready: () => (this.#isReady ? undefined : opened),
      replies: {
        find: async (id) => {
          await turn();
          if (!this.#isReadable) throw new StorageUnavailable("away");
          return this.#replies.find(id);
        },
        put: async (reply, limitBytes) => {
          await turn();
          if (!this.#isWritable) throw new StorageUnavailable("away");
          this.#stored.add(reply.id);
          return this.#replies.put(reply, limitBytes);
        },
      },
    };
  }

  #createWorker(): Worker {
    const link = new LinkedWorker();
    link.connect(this.#control);
    const settings = {
      answerLimitBytes: 1_000,
      memoryLimitBytes: 1_000_000,
      storageLimitBytes: 1_000_000,
      keepMs: 86_400_000,
    };
    const calls: RepeatableCalls = new RepeatableCalls({
      clock: this.#clock,
      random: (target) => crypto.getRandomValues(target),
      peppers,
      settings: () => settings,
      onAnswer: () => undefined,
      joins: link.joins,
      store: {
        find: link.replies.find,
        put: (reply, limitBytes) => {
          this.#answeredBy.set(reply.id, worker);
          return link.replies.put(reply, limitBytes);
        },
      },
    });
    const worker: Worker = { link, calls, isAlive: true };
    return worker;
  }

  /** Moves bytes on some links. */
  async #move(times: number): Promise<void> {
    for (let time = 0; time < times; time += 1) {
      await turn();
      const worker = this.#random.pickAny(this.#workers);
      worker?.link.move(() => this.#random.integer(1, 400));
      this.#openWhenReported();
    }
  }

  #openWhenReported(): void {
    if (this.#isReady || !this.#workers.every(({ link }) => link.hasReported)) return;
    this.#isReady = true;
    this.#opened.resolve();
  }

  /** Everything works again, and nobody else comes: all are answered, and nothing is left. */
  async #end(): Promise<void> {
    this.#isWritable = true;
    this.#isReadable = true;
    const waits = (): boolean =>
      this.#asked.some(({ hasEnded, worker }) => !hasEnded && worker.isAlive);
    const isOver = (): boolean => !waits() && this.#control.joins.size === 0;
    for (let round = 0; round < 50 && !isOver(); round += 1) {
      for (const _ of this.#workers) this.#reconnect();
      for (const { link } of this.#workers) await link.settle();
      this.#openWhenReported();
      for (const run of this.#runs) this.#endRun(run, true);
      await turn();
      await this.#clock.runScheduled();
      this.#check();
    }
    if (waits()) throw new Error("a caller waits for ever");
    if (this.#control.joins.size > 0) throw new Error("a claim is never released");
  }

  #check(): void {
    const [breach] = this.#breaches;
    if (breach !== undefined) throw new Error(breach);
  }
}

function keyCallOf(signal: AbortSignal): KeyCall & Call {
  return {
    ...callOf({ environment: { name: "test", models } }),
    signal,
    dialect: openAi,
    request: new Request("http://a.example/v1/chat/completions"),
    parameter: "",
    readBody: () => Promise.reject(new Error("there is no body")),
    memory: { keep: () => () => undefined, takesMore: () => undefined, unread: () => undefined },
    answerMemory: {
      reserve: () => undefined,
      shrinkTo: () => undefined,
      release: () => undefined,
    },
    streamEnded: () => undefined,
  };
}
