import { RunningCalls } from "../../src/call/running-calls.ts";
import { openAiDialect } from "../../src/dialects/openai-dialect.ts";
import { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { KeyCall } from "../../src/edge/dispatch/route.ts";
import { textReply, type Reply } from "../../src/edge/replies/error-reply.ts";
import { RepeatableCalls } from "../../src/idempotency/repeatable-calls.ts";
import type { Call } from "../../src/snapshot/call.ts";
import { StorageUnavailable } from "../../src/store/errors.ts";
import type { CallClaims } from "../../src/store/store.ts";
import { Random } from "../../simulator/answer/random.ts";
import { ProcessClock, VirtualTime } from "../simulation/virtual-time.ts";
import { MemoryReplyStore } from "./memory-reply-store.ts";
import { callOf, modelOf } from "./pipeline-fixtures.ts";
import { testPeppers } from "./test-peppers.ts";

const steps = 60;
const keys = ["one", "two"] as const;
const models = new Map([["m", modelOf({ alias: "m" })]]);
const left = new DOMException("left", "AbortError");

/** A call that is at the upstream. */
interface Run {
  readonly callId: string;
  readonly key: string;
  readonly process: GatewayProcess;
  readonly result: PromiseWithResolvers<Reply>;
}

interface GatewayProcess {
  readonly clock: ProcessClock;
  readonly calls: RepeatableCalls;
  isAlive: boolean;
}

interface Answer {
  readonly callId: string;
  readonly process: GatewayProcess;
  isStored: boolean;
}

interface Asked {
  readonly process: GatewayProcess;
  readonly leaving: AbortController;
  readonly askedAt: number;
  hasEnded: boolean;
}

/**
 * Several processes on one database. Their callers come and leave, the database goes away and
 * forgets to answer, and processes die, as a seed wants. Throws when a call is made beside or after
 * an equal one.
 */
export class RepeatingGateways {
  readonly counts = { runs: 0, replays: 0, reused: 0, inUse: 0, unavailable: 0, kills: 0 };
  readonly #random: Random;
  readonly #time = new VirtualTime();
  readonly #store = new MemoryReplyStore({ clock: { now: () => this.#time.now } });
  readonly #runs = new Set<Run>();
  readonly #asked: Asked[] = [];
  /** The process that has got an answer, and whether it is stored. */
  readonly #answers = new Map<string, Answer>();
  readonly #breaches: string[] = [];
  #processes: GatewayProcess[];
  #sequence = 0;
  #isAway = false;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#processes = Array.from({ length: this.#random.integer(1, 4) }, () => this.#start());
  }

  run(): void {
    for (let step = 0; step < steps; step += 1) {
      this.#step();
      this.#pass(this.#random.chance(0.1) ? 30_000 : this.#random.integer(0, 3_000));
    }
    this.#end();
  }

  #step(): void {
    const random = this.#random;
    const chance = random.next();
    if (chance < 0.5) this.#ask();
    else if (chance < 0.7) this.#endRun(random.pickAny([...this.#runs]), random.chance(0.6));
    else if (chance < 0.83) random.pickAny(this.#asked)?.leaving.abort(left);
    else if (chance < 0.88) this.#kill(random.pickAny(this.#processes));
    else this.#isAway = !this.#isAway;
  }

  #ask(): void {
    const process = this.#random.pickAny(this.#processes);
    if (process === undefined) return;
    // New ones from time to time, because answered ones are only replayed.
    const key = `${this.#random.pick(keys)} ${Math.floor(this.#sequence / 10)}`;
    const bodyDigest = this.#random.chance(0.95) ? "same" : "different";
    const leaving = new AbortController();
    this.#sequence += 1;
    const call = keyCallOf(`req_${this.#sequence}`, leaving.signal);
    const mark = { idempotencyKey: key, bodyDigest };
    const asked: Asked = { process, leaving, askedAt: this.#time.now, hasEnded: false };
    this.#asked.push(asked);
    process.calls
      .whole({ call, endpoint: "chat", kind: "chat", alias: "m", mark }, () =>
        this.#callUpstream(
          { callId: call.id, key, process, result: Promise.withResolvers() },
          call.signal,
        ),
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
    if (error.code === "idempotency_key_in_use") this.counts.inUse += 1;
    if (error.message.includes("cannot tell")) this.counts.unavailable += 1;
  }

  #callUpstream(run: Run, signal: Call["signal"]): Promise<Reply> {
    const { key, process, result } = run;
    if (!process.isAlive) return result.promise;
    const answer = this.#answers.get(key);
    const beside = [...this.#runs].some((other) => other.key === key);
    if (beside) this.#breaches.push("a call is made beside an equal one");
    if (answer?.isStored === true) this.#breaches.push("a call is made whose answer is stored");
    else if (answer?.process.isAlive === true) {
      this.#breaches.push("a call is made whose answer waits in a process");
    }
    this.counts.runs += 1;
    this.#runs.add(run);
    signal.addEventListener("abort", () => this.#leave(run, signal.reason));
    return result.promise;
  }

  #leave(run: Run, reason: unknown): void {
    this.#runs.delete(run);
    run.result.reject(reason);
  }

  #endRun(run: Run | undefined, isWhole: boolean): void {
    if (run === undefined) return;
    this.#runs.delete(run);
    const { callId, key, process, result } = run;
    if (!isWhole) {
      result.reject(new GatewayError("model_unavailable", { message: "it failed" }));
      return;
    }
    this.#answers.set(key, { callId, process, isStored: false });
    result.resolve(textReply(200, "answer"));
  }

  #kill(process: GatewayProcess | undefined): void {
    if (process === undefined) return;
    this.counts.kills += 1;
    process.isAlive = false;
    process.clock.stop();
    for (const run of this.#runs) if (run.process === process) this.#runs.delete(run);
    this.#processes = this.#processes.filter((other) => other !== process);
    this.#processes.push(this.#start());
  }

  #start(): GatewayProcess {
    const clock = new ProcessClock(this.#time, { monotonicMs: 0, wallMs: 0 });
    const settings = {
      answerLimitBytes: 1_000,
      memoryLimitBytes: 1_000_000,
      storageLimitBytes: 1_000_000,
      keepMs: 86_400_000,
      waitingLimit: 100,
    };
    const calls = new RepeatableCalls({
      clock,
      random: (target) => crypto.getRandomValues(target),
      peppers: testPeppers(),
      settings: () => settings,
      writeTimeoutMs: () => 60_000,
      onAnswer: () => undefined,
      running: new RunningCalls(() => true, undefined, clock),
      store: this.#storeOf(() => process.isAlive),
    });
    const process: GatewayProcess = { clock, calls, isAlive: true };
    return process;
  }

  #storeOf(isAlive: () => boolean): CallClaims {
    const ask = async <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
      await this.#time.sleep(this.#random.integer(0, 20));
      // What a process asked for before its end may still happen.
      if (!isAlive() && this.#random.chance(0.5)) return new Promise(() => undefined);
      if (this.#isAway) throw new StorageUnavailable("away");
      const answer = await work();
      await this.#time.sleep(this.#random.integer(0, 20));
      if (!isAlive()) return new Promise(() => undefined);
      if (this.#random.chance(0.02)) throw new StorageUnavailable("the answer was lost");
      return answer;
    };
    return {
      claim: (wanted) => ask(() => this.#store.claim(wanted)),
      confirm: (held) => ask(() => this.#store.confirm(held)),
      release: (held) => ask(() => this.#store.release(held)),
      keep: (answered) =>
        ask(() => {
          const answers = [...this.#answers.values()];
          const answer = answers.find(({ callId }) => callId === answered.holder);
          if (answer !== undefined) answer.isStored = true;
          return this.#store.keep(answered);
        }),
    };
  }

  #pass(durationMs: number): void {
    const untilMs = this.#time.now + durationMs;
    this.#time.schedule(() => undefined, durationMs);
    this.#time.runUntil(() => false, { untilMs, steps: Infinity });
    const [breach] = this.#breaches;
    if (breach !== undefined) throw new Error(breach);
  }

  /** Everything works again, and nobody else comes: all are answered, and nothing is left. */
  #end(): void {
    this.#isAway = false;
    for (let round = 0; round < 100; round += 1) {
      for (const run of this.#runs) this.#endRun(run, true);
      this.#pass(1_000);
    }
    const waits = this.#asked.some(({ hasEnded, process }) => !hasEnded && process.isAlive);
    if (waits) throw new Error("a caller waits for ever");
  }
}

function keyCallOf(id: string, signal: AbortSignal): KeyCall {
  return {
    ...callOf({ id, environment: { name: "test", models }, receivedAt: 0, signal }),
    dialect: openAiDialect,
    request: new Request("http://a.example/v1/chat/completions"),
    parameter: "",
    readBody: () => Promise.reject(new Error("there is no body")),
    memory: { keep: () => () => undefined, takesMore: () => undefined, unread: () => undefined },
    answerMemory: {
      reserve: () => undefined,
      shrinkTo: () => undefined,
      release: () => undefined,
    },
    streamEnded: () => true,
  };
}
