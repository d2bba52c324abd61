import type { Clock } from "../../../domain/clock.ts";
import type { BudgetScope, SpendNote } from "../../../domain/money/budget.ts";
import { type BudgetTally, keyOf, type Tally } from "../budget-tally.ts";
import type { FullBudget } from "../limit-store.ts";
import type { Parameter, ValkeyClient } from "./client.ts";
import { shardOf, sinceKeyOf } from "./scopes.ts";
import { markScript } from "./budget-scripts.ts";

export interface ServerBudgetsOptions {
  readonly client: Pick<ValkeyClient, "run" | "shards">;
  readonly clock: Clock;
  readonly tally: BudgetTally;
}

/** What a call asks of its budgets in the server; here it is reserved until the server refuses. */
export interface BudgetRequest {
  readonly callId: string;
  readonly budgets: readonly BudgetScope[];
  readonly entries: readonly Entry[];
  readonly requestNano: number;
  /** Of the command. */
  readonly number: number;
  /** Of what the table has. */
  readonly epoch: number;
  /** After those of windows. */
  readonly keys: readonly string[];
  readonly parameters: readonly Parameter[];
}

/** A tally and what the server has of it. */
interface Entry {
  readonly tally: Tally;
  readonly shard: number;
  readonly hash: string;
  /** The last command that was sent before it changed here. */
  changedAfter: number;
  /** Of the table that the server has at least. */
  tableEpoch: number;
  tableSentAtMs: number;
}

const lookMs = 1_000;
/** So soon it is sent again, because a process may have ended since. */
const tableMs = 60_000;
const hashesAtOnce = 200;
const totalLifeMs = 400 * 24 * 3_600_000;
const shortestLifeMs = 24 * 3_600_000;

/** The budgets in the server, which this process tells what its calls have spent and reserved. */
export class ServerBudgets {
  readonly #options: ServerBudgetsOptions;
  readonly #entries = new WeakMap<Tally, Entry>();
  readonly #changed = new Set<Entry>();
  #number = 0;
  #updatedAtMs = -Infinity;
  #lookedAtMs = -Infinity;
  #writing: Promise<void> | undefined;

  constructor(options: ServerBudgetsOptions) {
    this.#options = options;
  }

  /** What is stored now. */
  update(note: SpendNote): void {
    this.#updatedAtMs = this.#options.clock.monotonic();
    this.#options.tally.update(note, this.#updatedAtMs);
  }

  /** Reserves for a call, and returns what the server is to decide. */
  request(callId: string, budgets: readonly BudgetScope[], requestNano: number): BudgetRequest {
    const { tally, clock } = this.#options;
    tally.reserve(callId, budgets, requestNano);
    const number = (this.#number += 1);
    const entries = budgets.map((scope) => this.#entryOf(tally.tallyOf(scope)));
    const keys = [marksKeyOf(entries[0]?.shard ?? 0), ...entries.map(({ hash }) => hash)];
    const { epoch, isComplete, processes, silent } = tally.note;
    const age = Math.ceil(clock.monotonic() - this.#updatedAtMs);
    const parameters: Parameter[] = [Math.min(Number.MAX_SAFE_INTEGER, age), epoch];
    parameters.push(isComplete ? 1 : 0, processes.length, ...processes, silent.length, ...silent);
    for (const [index, entry] of entries.entries()) {
      const { budget } = budgets[index] ?? entry.tally.scope;
      parameters.push(this.#lifeMs(entry), budget.limitNano, requestNano, textOf(entry, number));
      parameters.push(...this.#tableOf(entry));
    }
    return { callId, budgets, entries, requestNano, number, epoch, keys, parameters };
  }

  /** What the table has of other processes; -1: nothing that the server does not have. */
  #tableOf(entry: Entry): readonly Parameter[] {
    const { tally, clock } = this.#options;
    const { epoch, byProcess } = tally.storedOf(entry.tally.scope);
    const now = clock.monotonic();
    if (epoch <= entry.tableEpoch && now - entry.tableSentAtMs < tableMs) return [-1];
    entry.tableSentAtMs = now;
    const others = Object.entries(byProcess).filter(([process]) => process !== tally.process);
    return [others.length, ...others.flat()];
  }

  admitted({ entries, number, epoch }: BudgetRequest): void {
    for (const entry of entries) {
      entry.tableEpoch = epoch;
      this.#written(entry, number);
    }
  }

  /** Not admitted, or nobody knows. Later commands may have told the server of the reservation. */
  refused({ callId, entries }: BudgetRequest): void {
    this.#options.tally.settle(callId, 0);
    for (const entry of entries) this.#change(entry);
  }

  /**
   * As `refused`, with what each budget without room had. `full`: its place, spend and reservations;
   * none when nobody knows.
   */
  full(request: BudgetRequest, full: readonly number[]): readonly FullBudget[] {
    this.refused(request);
    const { budgets, requestNano, entries, epoch } = request;
    const isKnown = full.length > 0;
    if (!isKnown) this.#lookedAtMs = -Infinity;
    for (const entry of entries) entry.tableEpoch = isKnown ? epoch : -Infinity;
    return budgets.flatMap((scope, index) => {
      const at = full.findIndex((which, place) => place % 3 === 0 && which === index);
      if (at < 0) return [];
      const [spentNano = 0, reservedNano = 0] = full.slice(at + 1);
      return [{ scope, spentNano, reservedNano, requestNano }];
    });
  }

  /** Replaces the reservation of a call by its cost. */
  settle(
    callId: string,
    costNano: number | undefined,
    isWrittenNow: boolean,
  ): Promise<void> | undefined {
    const tallies = this.#options.tally.settle(callId, costNano);
    for (const tally of tallies) this.#change(this.#entryOf(tally));
    if (tallies.length === 0 || !isWrittenNow) return undefined;
    // One command is under way at a time; what changes meanwhile goes with the next one.
    return this.#writing === undefined ? this.#write() : this.#writing.then(() => this.#write());
  }

  #write(): Promise<void> {
    this.#writing ??= this.#writeAll([...this.#changed]).finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  /** Writes what has changed, and renews the marks of this process. In a new generation, writes all. */
  async tick(): Promise<void> {
    const { client, clock, tally } = this.#options;
    await this.#write();
    if (clock.monotonic() - this.#lookedAtMs < lookMs) return;
    this.#lookedAtMs = clock.monotonic();
    const all = Array.from(tally.all(), (of) => this.#entryOf(of));
    for (let shard = 0; shard < client.shards; shard += 1) {
      const { generation, isMarked } = await this.#run(shard, [], 0);
      if (isMarked) continue;
      const ofShard = all.filter((entry) => entry.shard === shard);
      for (const entry of ofShard) entry.tableEpoch = -Infinity;
      await this.#writeAll(ofShard);
      await this.#run(shard, [], generation);
    }
  }

  async #writeAll(all: readonly Entry[]): Promise<void> {
    for (const [shard, entries] of Map.groupBy(all, (entry) => entry.shard)) {
      for (let first = 0; first < entries.length; first += hashesAtOnce) {
        const part = entries.slice(first, first + hashesAtOnce);
        const { isMarked } = await this.#run(shard, part, 0);
        if (!isMarked) this.#lookedAtMs = -Infinity;
      }
    }
  }

  async #run(shard: number, entries: readonly Entry[], complete: number) {
    const { client, tally } = this.#options;
    const number = (this.#number += 1);
    const parameters: Parameter[] = [tally.process, complete];
    for (const entry of entries) parameters.push(this.#lifeMs(entry), textOf(entry, number));
    const keys = [sinceKeyOf(shard), marksKeyOf(shard), ...entries.map(({ hash }) => hash)];
    const reply = await client.run(markScript, keys, parameters);
    for (const entry of entries) this.#written(entry, number);
    const [, , generation = 0, isMarked] = Array.isArray(reply) ? reply.map(Number) : [];
    return { generation, isMarked: isMarked === 1 };
  }

  #written(entry: Entry, number: number): void {
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
      const hash = `sluice:{${shard}}:budget:${accountId}:${keyOf(tally.scope)}`;
      const never = { changedAfter: -1, tableEpoch: -Infinity, tableSentAtMs: -Infinity };
      entry = { tally, shard, hash, ...never };
      this.#entries.set(tally, entry);
    }
    return entry;
  }

  /** Two periods beyond the end. */
  #lifeMs({ tally: { scope } }: Entry): number {
    const { startsAt, endsAt } = scope.period;
    if (!Number.isFinite(endsAt)) return totalLifeMs;
    const life = 3 * endsAt - 2 * startsAt - this.#options.clock.now();
    return Math.max(shortestLifeMs, Math.ceil(life));
  }
}

function marksKeyOf(shard: number): string {
  return `sluice:{${shard}}:budget-marks`;
}

/** The number of the command, what is spent and reserved, and what of it is reserved. */
function textOf({ tally: { spentNano, reservedNano } }: Entry, number: number): string {
  return `${number} ${spentNano + reservedNano} ${reservedNano}`;
}
