/**
 * Callers as a separate program: takes loads as JSON, runs them concurrently and prints their
 * results as JSON.
 */
import { AnswerReader } from "../../bench/load/answer-reader.ts";
import { requestBytes } from "../../bench/load/http-request.ts";
import { chatRequest } from "../../bench/load/requests.ts";
import { quantile } from "../../bench/statistics.ts";
import { type Load, loadsSchema, type LoadResult } from "./overload-load-result.ts";

/** The wait for answers after the end of a load. */
const answersTimeoutMs = 10_000;
/** The pause of a caller after an answer. */
const thinkingMs = 1_000;
/** The pause of a caller without a connection. */
const connectionMs = 50;
/** A later answer is useless. */
const usefulWithinMs = 2_000;

interface Caller {
  /** The gateway closes connections that were idle for longer. */
  readonly isOpen: boolean;
  readonly send: (dueAt: number) => void;
  readonly leave: () => void;
}

interface Answered {
  readonly status: number;
  /** When the call was due. */
  readonly dueAt: number;
  /** The end of an answer other than 200. */
  readonly text: string;
}

/** The counts of a running load. */
class Counts {
  readonly latencies: number[] = [];
  readonly failures: string[] = [];
  useful = 0;
  refused = 0;
  failed = 0;
  unsent = 0;
  open = 0;
  lastRefusedAt = 0;

  answered({ status, dueAt, text }: Answered, now: number): void {
    this.open -= 1;
    if (status === 503) {
      this.refused += 1;
      this.lastRefusedAt = now;
      return;
    }
    if (status !== 200) {
      this.failed += 1;
      if (this.failures.length < 5) this.failures.push(text);
      return;
    }
    this.latencies.push(now - dueAt);
    if (now - dueAt <= usefulWithinMs) this.useful += 1;
  }
}

async function runLoad(load: Load): Promise<LoadResult> {
  const counts = new Counts();
  const idle: Caller[] = [];
  let isOver = false;
  const comingBack = new DueCalls();
  const onAnswered = (caller: Caller, answer: Answered): void => {
    const now = performance.now();
    counts.answered(answer, now);
    if (load.manner.kind === "busy" && !isOver) caller.send(now);
    else idle.push(caller);
    if (load.manner.kind !== "obedient") return;
    comingBack.add(now + readRetryAfter(answer.text));
  };
  const connections = Array.from({ length: load.connections }, () =>
    open(load, counts, onAnswered),
  );
  const callers = await Promise.all(connections);
  idle.push(...callers);
  const startedAt = performance.now();
  await sendAll(load, { idle, counts, comingBack, startedAt });
  isOver = true;
  const seconds = (performance.now() - startedAt) / 1_000;
  const { useful, refused } = counts;
  const endsAt = performance.now() + answersTimeoutMs;
  while (counts.open > 0 && performance.now() < endsAt) await Bun.sleep(10);
  for (const caller of callers) caller.leave();
  const sorted = Float64Array.from(counts.latencies).toSorted();
  return {
    usefulPerSecond: useful / seconds,
    refusedPerSecond: refused / seconds,
    answered: sorted.length,
    refused: counts.refused,
    failed: counts.failed + counts.open,
    failures: counts.failures,
    unsent: counts.unsent,
    p50: sorted.length === 0 ? 0 : quantile(sorted, 0.5),
    p99: sorted.length === 0 ? 0 : quantile(sorted, 0.99),
    lastRefusedMs: counts.refused === 0 ? 0 : counts.lastRefusedAt - startedAt,
  };
}

/** Calls that are due at some time, by the millisecond. */
class DueCalls {
  /** Without gaps from the first one on. */
  #counts: number[] = [];
  #first = Math.floor(performance.now());

  add(at: number): void {
    const place = Math.max(0, Math.ceil(at) - this.#first);
    while (this.#counts.length <= place) this.#counts.push(0);
    this.#counts[place] = (this.#counts[place] ?? 0) + 1;
  }

  /** The due times of calls, each once. */
  *take(now: number): Iterable<number> {
    for (; this.#first <= now; this.#first += 1) {
      const count = this.#counts.shift() ?? 0;
      for (let call = 0; call < count; call += 1) yield this.#first;
    }
  }
}

interface Calling {
  readonly idle: Caller[];
  readonly counts: Counts;
  readonly comingBack: DueCalls;
  readonly startedAt: number;
}

/** Sends the due calls each millisecond, until the end. */
async function sendAll(load: Load, calling: Calling): Promise<void> {
  const { idle, counts, comingBack, startedAt } = calling;
  const { manner } = load;
  if (manner.kind === "busy") for (const caller of idle.splice(0)) caller.send(startedAt);
  if (manner.kind === "obedient") {
    for (let caller = 0; caller < manner.callers; caller += 1) {
      comingBack.add(startedAt + (thinkingMs * caller) / manner.callers);
    }
  }
  const endsAt = startedAt + load.durationMs;
  let sent = 0;
  for (let now = performance.now(); now < endsAt; now = performance.now()) {
    if (manner.kind === "steady") {
      const due = Math.floor(((now - startedAt) * manner.perSecond) / 1_000);
      for (; sent < due; sent += 1) {
        const caller = takeOpen(idle);
        if (caller === undefined) counts.unsent += 1;
        else caller.send(startedAt + (sent * 1_000) / manner.perSecond);
      }
    } else if (manner.kind === "obedient") {
      for (const dueAt of comingBack.take(now)) {
        const caller = takeOpen(idle);
        if (caller === undefined) comingBack.add(now + connectionMs);
        else caller.send(dueAt);
      }
    }
    await Bun.sleep(1);
  }
}

function takeOpen(idle: Caller[]): Caller | undefined {
  for (let caller = idle.pop(); caller !== undefined; caller = idle.pop()) {
    if (caller.isOpen) return caller;
  }
  return undefined;
}

/** One connection, reused for calls in sequence. Rejects if it cannot be opened. */
function open(
  load: Load,
  counts: Counts,
  onAnswered: (caller: Caller, answer: Answered) => void,
): Promise<Caller> {
  const bytes = requestBytes(chatRequest(load.model), {
    port: load.port,
    headers: { authorization: load.authorization },
  });
  const answer = new AnswerReader();
  let dueAt = 0;
  let isOpen = true;
  let caller: Caller | undefined;
  return new Promise((resolve, reject) => {
    const connecting = Bun.connect({
      hostname: "127.0.0.1",
      port: load.port,
      socket: {
        open(socket) {
          caller = {
            get isOpen() {
              return isOpen;
            },
            send(at) {
              dueAt = at;
              counts.open += 1;
              socket.write(bytes);
            },
            leave: () => socket.terminate(),
          };
          resolve(caller);
        },
        data(_, received) {
          if (!answer.push(received) || caller === undefined) return;
          const { status } = answer;
          const text = status === 200 ? "" : received.toString("latin1");
          onAnswered(caller, { status, dueAt, text });
        },
        // A running call counts as not answered.
        close() {
          isOpen = false;
        },
        error: (_, error) => reject(error),
      },
    });
    connecting.catch(reject);
  });
}

/** For a short answer, which arrives in one piece. */
function readRetryAfter(answer: string): number {
  return Number(/\r\nretry-after-ms: *(\d+)/i.exec(answer)?.[1] ?? thinkingMs);
}

const loads = loadsSchema.parse(JSON.parse(process.argv[2] ?? ""));
process.stdout.write(JSON.stringify(await Promise.all(loads.map(runLoad))));
