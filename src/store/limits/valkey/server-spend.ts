import type { GatewayError } from "../../../domain/errors/gateway-error.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { BudgetScope, SpendNote } from "../../../domain/money/budget.ts";
import {
  type BudgetTally,
  budgetsUnavailable,
  keyOf,
  type Sums,
  type Tally,
} from "../budget-tally.ts";
import type { FullBudget } from "../limit-store.ts";
import type { Parameter, ValkeyClient } from "./client.ts";
import { shardOf, sinceKeyOf } from "./scopes.ts";
import { readSpend, type DecidedSpend } from "./read-reply.ts";
import { decideSpendScript, tellSpendScript } from "./spend-scripts.ts";

export interface ServerSpendOptions {
  readonly client: Pick<ValkeyClient, "run" | "shards">;
  readonly clock: Clock;
  readonly tally: BudgetTally;
}

/** A reservation that the server is asked for; here it counts until the server refuses. */
export interface SpendAsk {
  readonly callId: string;
  readonly budgets: readonly BudgetScope[];
  readonly entries: readonly Entry[];
  /** What the server is told of processes that ended, for each budget. */
  readonly ended: readonly Sums[];
  readonly requestNano: number;
  readonly number: number;
  /** After those of windows. */
  readonly keys: readonly string[];
  readonly parameters: readonly Parameter[];
}

/** What the server has of a tally. */
interface Entry {
  readonly tally: Tally;
  readonly shard: number;
  readonly hash: string;
  /** Number of the last command that wrote it. */
  known: number;
  /** The last command that was sent before it changed here. */
  changedAfter: number;
  /** What the server has of processes that ended, as the table has it. */
  readonly ended: Map<string, number>;
  /** The last command that was sent before the server may have lost that. */
  endedAfter: number;
}

const lookMs = 1_000;
/** By then all processes have read what one had not stored when it ended. */
const endedForMs = 60_000;
const hashesAtOnce = 200;
const totalLifeMs = 400 * 24 * 3_600_000;
const shortestLifeMs = 24 * 3_600_000;

/** Tells the server what the calls of this process have spent and reserved, whole, and numbered. */
export class ServerSpend {
  readonly #options: ServerSpendOptions;
  readonly #entries = new WeakMap<Tally, Entry>();
  readonly #changed = new Set<Entry>();
  /** All processes that were heard of, and since when no row is left of them, by the monotonic clock. */
  readonly #endedSince = new Map<string, number>();
  #number = 0;
  #heardAtMs = -Infinity;
  #lookedAtMs = -Infinity;
  #telling: Promise<void> | undefined;

  constructor(options: ServerSpendOptions) {
    this.#options = options;
  }

  update(note: SpendNote): void {
    const { clock, tally } = this.#options;
    tally.update(note, clock.monotonic());
    this.#heardAtMs = clock.monotonic();
    const rows = new Set(["", ...note.processes, ...note.silent]);
    const stored = note.spend.flatMap(({ byProcess }) => Object.keys(byProcess));
    for (const of of new Set([...rows, ...stored, ...this.#endedSince.keys()])) {
      const since = this.#endedSince.get(of) ?? Infinity;
      const hasEnded = note.isComplete && !rows.has(of);
      this.#endedSince.set(of, hasEnded ? Math.min(since, this.#heardAtMs) : Infinity);
    }
  }

  /** Reserves for a call, and returns what the server is to be asked for with. */
  ask(callId: string, budgets: readonly BudgetScope[], requestNano: number): SpendAsk {
    const { tally, clock } = this.#options;
    tally.reserve(callId, budgets, requestNano);
    const number = (this.#number += 1);
    const entries = budgets.map((scope) => this.#entryOf(tally.tallyOf(scope)));
    const keys = [toldKeyOf(entries[0]?.shard ?? 0)];
    const age = Math.min(Number.MAX_SAFE_INTEGER, Math.ceil(clock.monotonic() - this.#heardAtMs));
    const ended: Sums[] = [];
    const { processes } = tally;
    const parameters: Parameter[] = [age, tally.isComplete ? 1 : 0, processes.length, ...processes];
    for (const [index, entry] of entries.entries()) {
      const scope = budgets[index] ?? entry.tally.scope;
      keys.push(entry.hash, `${entry.hash}:was`);
      parameters.push(this.#lifeMs(scope), entry.known, scope.budget.limitNano, requestNano);
      parameters.push(textOf(entry, number));
      ended.push(this.#addStored(parameters, entry));
    }
    return { callId, budgets, entries, ended, requestNano, number, keys, parameters };
  }

  /** Adds what other processes have stored, and returns that of those which ended. */
  #addStored(parameters: Parameter[], { tally: { scope }, ended }: Entry): Sums {
    const { tally } = this.#options;
    const stored = tally.storedOf(scope);
    const open: Parameter[] = [];
    const newlyEnded: Record<string, number> = {};
    for (const [process, since] of this.#endedSince) {
      const nano = stored[process];
      if (process === tally.process || ended.get(process) === (nano ?? 0)) continue;
      if (this.#heardAtMs - since > endedForMs) newlyEnded[process] = nano ?? 0;
      else if (nano !== undefined) open.push(process, nano);
    }
    parameters.push(open.length / 2, ...open);
    const all = Object.entries(newlyEnded);
    parameters.push(all.length, ...all.flat());
    return newlyEnded;
  }

  admitted({ entries, ended, number }: SpendAsk): void {
    for (const [index, entry] of entries.entries()) {
      this.#written(entry, number);
      if (number <= entry.endedAfter) continue;
      const sums = ended[index];
      for (const process in sums) entry.ended.set(process, sums[process] ?? 0);
    }
  }

  /** Not admitted, or nobody knows. Later commands may have told the server of the reservation. */
  refused({ callId, entries }: SpendAsk): void {
    this.#options.tally.settle(callId, 0);
    for (const entry of entries) this.#change(entry);
  }

  /** As `refused`, when nobody decides. */
  unavailable(ask: SpendAsk, cause?: unknown): GatewayError {
    this.refused(ask);
    return budgetsUnavailable({}, cause);
  }

  /** Decides about money alone. */
  async decide(ask: SpendAsk): Promise<DecidedSpend> {
    const { client, tally } = this.#options;
    const keys = [sinceKeyOf(ask.entries[0]?.shard ?? 0), ...ask.keys];
    const decided = readSpend(
      await client.run(decideSpendScript, keys, [tally.process, ...ask.parameters]),
    );
    if (decided.is === "admitted") this.admitted(ask);
    return decided;
  }

  /** Takes the reservation back, and returns how much was left. Throws 503 when nobody knows. */
  refusal(ask: SpendAsk, decided: DecidedSpend): FullBudget {
    if (decided.is !== "full") throw this.unavailable(ask);
    this.refused(ask);
    const { which, spentNano, reservedNano } = decided;
    const scope = ask.budgets[which];
    if (scope === undefined) throw new RangeError(`${which} is none of the budgets`);
    return { scope, spentNano, reservedNano, requestNano: ask.requestNano };
  }

  /** A call that reserves nothing: no budget refuses it. */
  free(callId: string, budgets: readonly BudgetScope[]): void {
    this.#options.tally.reserve(callId, budgets, 0);
  }

  /** Replaces the reservation of a call by its cost. */
  settle(
    callId: string,
    costNano: number | undefined,
    isToldNow: boolean,
  ): Promise<void> | undefined {
    const tallies = this.#options.tally.settle(callId, costNano);
    for (const tally of tallies) this.#change(this.#entryOf(tally));
    if (tallies.length === 0 || !isToldNow) return undefined;
    // One command is under way at a time; what changes meanwhile goes with the next one.
    return this.#telling === undefined ? this.tell() : this.#telling.then(() => this.tell());
  }

  /** Tells what has changed. */
  tell(): Promise<void> {
    this.#telling ??= this.#tellChanged().finally(() => (this.#telling = undefined));
    return this.#telling;
  }

  /** Tells all when the server has begun a new generation. */
  async look(isHasty: boolean): Promise<void> {
    const { client, clock, tally } = this.#options;
    if (!isHasty && clock.monotonic() - this.#lookedAtMs < lookMs) return;
    this.#lookedAtMs = clock.monotonic();
    const all = Array.from(tally.all(), (of) => this.#entryOf(of));
    for (let shard = 0; shard < client.shards; shard += 1) {
      const { generation, hasAll } = await this.#run(shard, [], 0);
      if (hasAll) continue;
      const ofShard = all.filter((entry) => entry.shard === shard);
      // What is missing in the server is no further loss.
      for (const entry of ofShard) {
        entry.known = 0;
        entry.ended.clear();
        entry.endedAfter = this.#number;
      }
      await this.#tellEntries(shard, ofShard);
      await this.#run(shard, [], generation);
    }
  }

  async #tellChanged(): Promise<void> {
    const changed = [...this.#changed];
    for (const [shard, entries] of Map.groupBy(changed, (entry) => entry.shard)) {
      await this.#tellEntries(shard, entries);
    }
  }

  async #tellEntries(shard: number, entries: readonly Entry[]): Promise<void> {
    for (let first = 0; first < entries.length; first += hashesAtOnce) {
      const part = entries.slice(first, first + hashesAtOnce);
      const { hasAll } = await this.#run(shard, part, 0);
      if (!hasAll) this.#lookedAtMs = -Infinity;
    }
  }

  async #run(shard: number, entries: readonly Entry[], generation: number) {
    const { client, tally } = this.#options;
    const number = (this.#number += 1);
    const parameters: Parameter[] = [tally.process, generation];
    for (const entry of entries) {
      parameters.push(this.#lifeMs(entry.tally.scope), entry.known, textOf(entry, number));
    }
    const hashes = entries.flatMap(({ hash }) => [hash, `${hash}:was`]);
    const keys = [sinceKeyOf(shard), toldKeyOf(shard), ...hashes];
    const reply = await client.run(tellSpendScript, keys, parameters);
    for (const entry of entries) this.#written(entry, number);
    const [, , current = 0, hasAll] = Array.isArray(reply) ? reply.map(Number) : [];
    return { generation: current, hasAll: hasAll === 1 };
  }

  #written(entry: Entry, number: number): void {
    entry.known = Math.max(entry.known, number);
    if (entry.changedAfter < number) this.#changed.delete(entry);
  }

  #change(entry: Entry): void {
    entry.changedAfter = this.#number;
    this.#changed.add(entry);
  }

  #entryOf(tally: Tally): Entry {
    let entry = this.#entries.get(tally);
    if (entry === undefined) {
      const { accountId } = tally.scope.budget;
      const shard = shardOf(accountId, this.#options.client.shards);
      const hash = `sluice:{${shard}}:spend:${accountId}:${keyOf(tally.scope)}`;
      entry = { tally, shard, hash, known: 0, changedAfter: -1, ended: new Map(), endedAfter: -1 };
      this.#entries.set(tally, entry);
    }
    return entry;
  }

  /** Two periods beyond the end. */
  #lifeMs({ period: { startsAt, endsAt } }: BudgetScope): number {
    if (!Number.isFinite(endsAt)) return totalLifeMs;
    const life = 3 * endsAt - 2 * startsAt - this.#options.clock.now();
    return Math.max(shortestLifeMs, Math.ceil(life));
  }
}

function toldKeyOf(shard: number): string {
  return `sluice:{${shard}}:told`;
}

/** The number of the command, what is spent and reserved, and what of it is reserved. */
function textOf({ tally: { spentNano, reservedNano } }: Entry, number: number): string {
  return `${number} ${spentNano + reservedNano} ${reservedNano}`;
}
