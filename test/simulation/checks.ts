import type { Model } from "../../src/domain/model.ts";
import type { Timeouts } from "../../src/domain/upstream-settings.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { checkAnswer } from "./check-answer.ts";
import { isOneByOne } from "./check-begin.ts";
import { checkSessions } from "./check-sessions.ts";
import { finishedAt, usageTimeoutMs } from "./finished-answer.ts";
import type { Attempt, CallRecord } from "./records.ts";
import type { Stage } from "./simulate.ts";
import { violate } from "./world.ts";

/** The wait for the end of an answered connection. */
const finishTimeoutMs = 1_000;
/** The rounding error of sums of fractions of milliseconds is smaller. */
const leastMs = 1e-6;
const shortestTimerMs = 1 + leastMs;

/** The rules for the end of a run. */
export function checkEnd(stage: Stage): void {
  for (const record of stage.world.calls.values()) {
    new CallCheck(record, stage).run();
  }
  checkSessions(stage);
  checkLimiter(stage);
  checkProcesses(stage);
}

class CallCheck {
  readonly #record: CallRecord;
  readonly #stage: Stage;

  constructor(record: CallRecord, stage: Stage) {
    this.#record = record;
    this.#stage = stage;
  }

  run(): void {
    this.#checkRow();
    this.#checkOutcome();
    this.#checkClass();
    this.#checkSettlement();
    this.#checkAttempts();
    for (const attempt of this.#record.attempts) {
      this.#checkAttemptEnd(attempt);
      this.#checkSilence(attempt);
    }
    this.#checkReason();
    checkAnswer(this.#record, (rule, text) => this.#wrong(rule, text));
  }

  #wrong(rule: string, text: string): void {
    violate(this.#stage.world, rule, text, this.#record.plan.id);
  }

  get #row(): UsageRecord | undefined {
    return this.#stage.database.rows.get(this.#record.plan.id);
  }

  #checkRow(): void {
    const { opened, closed, crashedAt, process, error } = this.#record;
    const row = this.#row;
    if (opened === undefined && closed === undefined) {
      if (row !== undefined) this.#wrong("ledger", "has a row though it never was a call");
      const isExcused = process === undefined || crashedAt !== undefined || error?.status === 401;
      if (!isExcused) this.#wrong("ledger", "nobody accounted for it");
      return;
    }
    if (row === undefined) return this.#wrong("ledger", "has no row");
    if (closed === undefined) {
      if (crashedAt === undefined) return this.#wrong("ledger", "was opened and never closed");
      const { outcome } = row;
      if (outcome !== "interrupted") this.#wrong("ledger", `${outcome} by a dead process`);
      return;
    }
    const isSame =
      row.outcome === closed.outcome &&
      row.status === closed.status &&
      row.inputTokens === closed.inputTokens &&
      row.outputTokens === closed.outputTokens &&
      row.target === closed.target;
    if (!isSame) this.#wrong("ledger", "the row is not what the call was closed with");
  }

  #checkOutcome(): void {
    const { closed, isAnswered, error, leftAt, deadlineAt } = this.#record;
    if (closed === undefined) return;
    const { outcome, status } = closed;
    if (isAnswered && (outcome !== "completed" || status !== 200)) {
      this.#wrong("ledger", `was answered and is ${outcome} ${status}`);
    }
    if (error !== undefined && status !== error.status) {
      this.#wrong("ledger", `told ${error.status} and is ${outcome} ${status}`);
    }
    // A refusal may be on its way when the caller leaves.
    const isRefused = this.#record.attempts.length === 0;
    // The same for the end of a call whose deadline had passed.
    const isOverdue = deadlineAt !== undefined && leftAt !== undefined && deadlineAt <= leftAt;
    if (leftAt !== undefined && outcome === "failed" && !isRefused && !isOverdue) {
      this.#wrong("ledger", `its caller left, and it is ${outcome} ${status}`);
    }
  }

  /** P6 and P8: one class, decided before anything was sent, the same everywhere. */
  #checkClass(): void {
    const { opened, servedBy, plan, guaranteedTokens } = this.#record;
    const capacityClass = this.#row?.capacityClass;
    if (opened === undefined || capacityClass === undefined) return;
    if (opened.capacityClass !== capacityClass) {
      this.#wrong("P6", `opened as ${opened.capacityClass} and billed as ${capacityClass}`);
    }
    if (servedBy !== undefined && servedBy !== capacityClass) {
      this.#wrong("P6", `told ${servedBy} and billed as ${capacityClass}`);
    }
    if (plan.capacity === "provisioned-only" && capacityClass !== "provisioned") {
      this.#wrong("P6", `asked for provisioned only and ran as ${capacityClass}`);
    }
    if (plan.capacity === "on-demand-only" && capacityClass !== "on-demand") {
      this.#wrong("P6", `asked for on demand only and ran as ${capacityClass}`);
    }
    const isOwned = guaranteedTokens > 0 && plan.capacity !== "on-demand-only";
    if (isOwned === (capacityClass === "on-demand")) {
      this.#wrong("P6", `is ${capacityClass}, and the key has ${isOwned ? "" : "no "}units for it`);
    }
    const scopes = this.#stage.limiter.reservations.get(plan.id)?.scopes ?? [];
    const isGuarantee = scopes.some((scope) => scope.startsWith("guarantee:"));
    const isPlan = scopes.some((scope) => scope.startsWith("key:"));
    if (isGuarantee === isPlan || isGuarantee !== (capacityClass === "provisioned")) {
      this.#wrong("P6", `${capacityClass} was charged to ${scopes.join(" and ")}`);
    }
  }

  /** A reservation is settled to the tokens of the row. */
  #checkSettlement(): void {
    const { plan, closed } = this.#record;
    const reservation = this.#stage.limiter.reservations.get(plan.id);
    if (reservation === undefined || closed === undefined) return;
    const { settledTokens } = reservation;
    const used = closed.inputTokens + closed.outputTokens;
    // Missing settlements have their own check, because the process may have ended.
    if (settledTokens !== undefined && settledTokens !== used) {
      this.#wrong("settlement", `settled ${settledTokens} tokens and billed ${used}`);
    }
  }

  #checkAttempts(): void {
    const { attempts, closed, plan } = this.#record;
    const { routing, models } = this.#stage.world.scenario;
    const model = models.find(({ alias }) => alias === plan.alias);
    if (closed === undefined || model === undefined) return;
    if (isOneByOne(this.#stage.world, this.#record) && attempts.length > closed.attempts) {
      this.#wrong("attempts", `${attempts.length} were sent and ${closed.attempts} noted`);
    }
    // A hedge is an attempt too, and the last attempt may have one.
    const most = Math.max(routing.attempts, targetsOf(model, models)) + 1;
    if (closed.attempts > most) {
      this.#wrong("attempts", `${closed.attempts} of ${most} that are allowed`);
    }
  }

  /** The error must not blame a provider without a failure. */
  #checkReason(): void {
    const { attempts, error, plan, closed } = this.#record;
    const { world } = this.#stage;
    if (error?.status !== 503 || attempts.length === 0) return;
    if (error.explanation?.rule !== "upstream") return;
    // Requests that are parts of a call may also fail without a place.
    if (!isOneByOne(world, this.#record)) return;
    // A skewed signature is renewed if another attempt is allowed and gets a place.
    const mayTryAgain = (closed?.attempts ?? 0) < world.scenario.routing.attempts;
    const isExcused = (attempt: Attempt): boolean =>
      attempt.fault === undefined || (attempt.fault === "skewed" && mayTryAgain);
    const isToBlame = (attempt: Attempt): boolean =>
      !isExcused(attempt) || !this.#isInTime(attempt);
    if (!attempts.some(isToBlame)) {
      this.#wrong("reasons", `failed though nobody failed (reads for ${plan.readMs} ms)`);
    }
  }

  /** A silent upstream is waited for exactly as long as configured. */
  #checkSilence({ id, upstream, model, ...attempt }: Attempt): void {
    const { startedAt, lastByteAt, endedAt, script } = attempt;
    const times = this.#timesAt(upstream, model);
    const { readMs, kind } = this.#record.plan;
    // Choices with their own streams wait for each other.
    const isAlone = kind !== "stream" || isOneByOne(this.#stage.world, this.#record);
    const isReadAtOnce = readMs === 0 && isAlone && this.#record.crashedAt === undefined;
    if (times === undefined || endedAt === undefined || !isReadAtOnce) return;
    const silentMs = endedAt - (lastByteAt ?? startedAt);
    const isConnecting = script.connect === "hanging";
    // A whole answer may take until its end.
    const firstByteMs = kind === "stream" ? times.firstByteMs : Infinity;
    const firstMs = isConnecting ? Math.min(times.connectMs, firstByteMs) : firstByteMs;
    const mostMs = lastByteAt === undefined ? firstMs : times.idleMs;
    if (silentMs <= mostMs + shortestTimerMs) return;
    this.#wrong("silence", `${id} was silent for ${silentMs} ms, not ${mostMs} (${script.ending})`);
  }

  #timesAt(upstream: string, target: string): Timeouts | undefined {
    const { scenario } = this.#stage.world;
    const settings = scenario.upstreams.find(({ name }) => name === upstream)?.timeouts;
    const model = scenario.models.find(({ targets }) =>
      targets.some((one) => one.model === target),
    );
    const firstByteMs = model?.timeouts?.firstByteMs;
    if (settings === undefined || firstByteMs === undefined) return settings;
    return { ...settings, firstByteMs };
  }

  /** Whether an undisturbed attempt would stay within all timeouts. */
  #isInTime({ upstream, model, startedAt, script }: Attempt): boolean {
    const { arrivedAt, plan } = this.#record;
    const times = this.#timesAt(upstream, model);
    if (times === undefined) return false;
    const gaps = script.pieces.map(({ afterMs }) => afterMs);
    const tookMs = gaps.reduce((sum, gapMs) => sum + gapMs, script.headersAfterMs);
    return (
      // At the end of this time the host must be reachable, which it may not be by then.
      script.headersAfterMs + (gaps[0] ?? 0) < Math.min(times.connectMs, times.firstByteMs) &&
      Math.max(...gaps) < times.idleMs &&
      startedAt - arrivedAt + tookMs + gaps.length * plan.readMs < times.totalMs
    );
  }

  /** No request continues upstream without a caller. */
  #checkAttemptEnd(attempt: Attempt): void {
    const { id, upstream, endedAt, startedAt, mustEndAtOnce } = attempt;
    const { leftAt, deadlineAt, endedAt: overAt, crashedAt, plan } = this.#record;
    if (endedAt === undefined) return this.#wrong("attempts", `${id} never ended`);
    if (crashedAt !== undefined) return;
    if (mustEndAtOnce && endedAt > startedAt) {
      this.#wrong("attempts", `${id} was made for a call that could not be retried`);
    }
    const drainMs = this.#drainMsAt(upstream);
    const end = (at: number | undefined, mayTakeMs: number, what: string): void => {
      if (at === undefined) return;
      // The count of a finished answer, perhaps a drained one, is awaited without a caller.
      const finishMs = Math.max(0, finishedAt(attempt) - at);
      const isFinished = finishMs <= mayTakeMs + leastMs;
      const countMs = isFinished ? finishMs + usageTimeoutMs + finishTimeoutMs : 0;
      const isLate = endedAt > at + Math.max(mayTakeMs, countMs) + leastMs;
      if (!isLate || (overAt !== undefined && overAt < at)) return;
      this.#wrong("attempts", `${id} went on ${endedAt - at} ms after ${what}`);
    };
    end(leftAt, drainMs, "its caller had left");
    end(deadlineAt, leftAt === undefined ? 0 : drainMs, "the caller's deadline");
    end(overAt, Math.max(finishTimeoutMs, leftAt === undefined ? 0 : drainMs), "the call's end");
    const revokedAt = this.#stage.keys.revokedAt(plan.key);
    if (revokedAt === undefined) return;
    if (startedAt > revokedAt) this.#wrong("attempts", `${id} began though its key was revoked`);
    end(revokedAt, leftAt === undefined ? 0 : drainMs, "its key was revoked");
  }

  #drainMsAt(upstream: string): number {
    const drain = this.#stage.upstreams.get(upstream)?.plan.drain;
    return drain === undefined ? 0 : drain.timeoutMs + finishTimeoutMs;
  }
}

/** The number of targets that its calls may try, including those of fallbacks. */
function targetsOf(model: Model, models: readonly Model[]): number {
  const fallbacks = models.filter(({ alias }) => model.fallbacks?.includes(alias));
  return [model, ...fallbacks].reduce((sum, { targets }) => sum + targets.length, 0);
}

function checkLimiter({ world, limiter, gateways }: Stage): void {
  const living = new Set(gateways.map(({ process }) => process?.name));
  for (const { callId, process } of limiter.unsettled) {
    if (!living.has(process)) continue;
    violate(world, "settlement", `${callId} was never settled`, callId.split("/")[0]);
  }
  for (const audit of limiter.audits) {
    for (const [rule, text] of audit.windows()) violate(world, rule, text);
  }
}

/** A process gets back all places and its counters of running work are 0. */
function checkProcesses({ world, gateways }: Stage): void {
  for (const { process } of gateways) {
    if (process === undefined) continue;
    const { name, connections, snapshot, running, health, places, pools } = process;
    const left = (what: string, count: number): void => {
      if (count !== 0) violate(world, "places", `${name}: ${count} left of ${what}`);
    };
    left("connections", connections.size);
    left("running calls", running.size);
    left("places of pools", places.held);
    for (const { name: pool, inFlight, queued } of pools.views()) {
      left(`places of ${pool}`, sumOf(inFlight));
      left(`waiting for ${pool}`, sumOf(queued));
    }
    for (const upstream of snapshot.upstreams.values()) {
      const { places: requests, readingOn } = pools.at(upstream);
      left(`places at ${upstream.name}`, requests.count);
      left(`places for reading on at ${upstream.name}`, readingOn.count);
    }
    for (const { targets } of world.scenario.models) {
      for (const { id } of targets) {
        left(`attempts at ${id}`, health.limitOf(id).inFlight);
      }
    }
  }
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
