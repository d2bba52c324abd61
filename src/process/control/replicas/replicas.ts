import type { Clock } from "../../../domain/clock.ts";
import {
  copyMark,
  countApplied,
  type KeysApplied,
  type Replica,
  type ReplicaFacts,
} from "../../../domain/replica.ts";
import { replicaDifferences } from "../../../domain/replica-differences.ts";
import { Coalesced } from "../../../domain/waiting/in-parallel.ts";
import { hasSettledWithin, wait } from "../../../domain/waiting/wait.ts";
import { StorageUnavailable } from "../../../store/errors.ts";
import type { ReplicasSeen, ReplicaStore, ReplicaWatch } from "../../../store/replicas.ts";

export interface ReplicasOptions {
  /** Undefined if only this gateway can use the database. */
  readonly store: ReplicaStore | undefined;
  readonly clock: Clock;
  readonly own: () => ReplicaFacts;
  /** How long a gateway without a sign is kept in the list. */
  readonly keptMs: number;
  /** Resolves to whether all workers of this gateway have every change committed before. */
  readonly reloadKeys: () => Promise<boolean>;
  /** Puts the changes up to an epoch on disk, before this gateway tells that it has them. */
  readonly keepKeys: (epoch: number) => Promise<void>;
  /** Called once when changes are no longer announced, and when they are again. */
  readonly onMessagesLost: (error: unknown) => void;
  readonly onMessagesBack: () => void;
  /** Called with the number of processes of all gateways, each second. */
  readonly onCounted: (processes: number) => void;
  /** Called once when gateways turn out to differ, and when none does any more. */
  readonly onDifference: (text: string) => void;
  readonly onSame: () => void;
}

const signIntervalMs = 1_000;
/** Longest wait for the other gateways after a change. */
const receiptWaitMs = 1_000;
/** Longest wait for the disk: a file with many keys is written anew now and then. */
const keepWaitMs = 500;
/** A successor writes over the signs of a process that ends, which takes less time than this. */
const copiedAfterMs = 5_000;
/** Interval between looks at the other gateways, in case that their messages are lost. */
const lookIntervalMs = 200;

/** This gateway among those on its database: signs, follows changes of keys, and counts who has. */
export class Replicas {
  readonly #options: ReplicasOptions;
  readonly #stopping = new AbortController();
  readonly #signing: Coalesced<ReplicasSeen>;
  readonly #following = new Coalesced(() => this.#follow());
  #differing: ReadonlySet<string> = new Set();
  /** Since when another process writes over its signs. */
  #overwrittenSince: number | undefined;
  /** Whether that one has a copy of its data directory. */
  #isCopied = false;
  #watch: ReplicaWatch | undefined;
  #woken = Promise.withResolvers<void>();

  constructor(options: ReplicasOptions) {
    this.#options = options;
    this.#signing = new Coalesced(() => this.#sign());
  }

  start(): void {
    const { store, onMessagesLost, onMessagesBack } = this.#options;
    this.#watch = store?.watch({
      keysChanged: (epoch) => this.#keysChanged(epoch),
      replicasChanged: () => this.#wake(),
      lost: onMessagesLost,
      back: onMessagesBack,
    });
    if (store !== undefined) void this.#keepSigning();
  }

  async stop(): Promise<void> {
    const { store } = this.#options;
    this.#stopping.abort();
    this.#watch?.stop();
    await this.#signing.idle();
    if (this.#watch !== undefined) await store?.leave(this.#own()).catch(() => undefined);
  }

  /** All gateways, as the database has them now. Throws `StorageUnavailable`. */
  async list(): Promise<readonly Replica[]> {
    const { store, own } = this.#options;
    if (store === undefined) return [{ ...own(), silentMs: 0 }];
    return (await this.#signing.run()).replicas;
  }

  /**
   * Applies all committed changes of keys here and waits, up to a second, until all other gateways
   * have. Undefined if the database cannot tell who has.
   */
  async applied(): Promise<KeysApplied | undefined> {
    const { store, clock, reloadKeys } = this.#options;
    const isHere = await reloadKeys();
    if (store === undefined) return { replicas: isHere ? 1 : 0, of: 1, silent: 0 };
    const ending = new AbortController();
    let last: KeysApplied | undefined;
    const counting = this.#countUntilAll(ending.signal, (applied) => {
      last = applied;
    });
    // The database may have frozen, and then the count does not end by itself.
    await Promise.race([
      counting.catch(() => undefined),
      wait(receiptWaitMs, ending.signal, clock),
    ]);
    ending.abort();
    // Without a row of its own, this gateway is not counted.
    return this.#overwrittenSince === undefined || this.#isCopied ? last : undefined;
  }

  async #countUntilAll(signal: AbortSignal, note: (applied: KeysApplied) => void): Promise<void> {
    let woken = this.#woken.promise;
    const { keysEpoch, replicas } = await this.#signing.run();
    let applied = countApplied(replicas, keysEpoch);
    note(applied);
    while (applied.replicas < applied.of && !signal.aborted) {
      const looking = new AbortController();
      await Promise.race([woken, wait(lookIntervalMs, looking.signal, this.#options.clock)]);
      looking.abort();
      woken = this.#woken.promise;
      applied = countApplied((await this.#signing.run()).replicas, keysEpoch);
      if (!signal.aborted) note(applied);
    }
  }

  async #keepSigning(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const seen = await this.#signing.run().catch(() => undefined);
      // A message may have been lost.
      if (seen !== undefined) {
        this.#keysChanged(seen.keysEpoch);
        this.#options.onCounted(seen.replicas.reduce((sum, { workers }) => sum + workers, 0));
        this.#compare(seen.replicas);
      }
      await wait(signIntervalMs, signal, this.#options.clock);
    }
  }

  #keysChanged(epoch: number | undefined): void {
    if (epoch !== undefined && epoch === this.#options.own().keysEpoch) return;
    this.#following.run().catch(() => undefined);
  }

  #compare(replicas: readonly Replica[]): void {
    const differences = replicaDifferences(replicas);
    for (const { kind, text } of differences) {
      if (!this.#differing.has(kind)) this.#options.onDifference(text);
    }
    if (this.#differing.size > 0 && differences.length === 0) this.#options.onSame();
    this.#differing = new Set(differences.map(({ kind }) => kind));
  }

  async #follow(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    await this.#options.reloadKeys();
    await this.#signing.run();
  }

  async #sign(): Promise<ReplicasSeen> {
    const { store, keptMs, keepKeys, clock } = this.#options;
    if (store === undefined || this.#stopping.signal.aborted) {
      throw new StorageUnavailable("this gateway does not sign");
    }
    const facts = this.#own();
    if (facts.keysEpoch !== undefined) {
      await hasSettledWithin(keepKeys(facts.keysEpoch), keepWaitMs, clock);
    }
    const seen = await store.sign(facts, keptMs);
    const row = seen.replicas.find(({ id }) => id === facts.id);
    const isOverwritten = row?.startedAt !== facts.startedAt;
    // Once it has a row of its own, it keeps that.
    if (!this.#isCopied) this.#noteOverwritten(isOverwritten);
    return seen;
  }

  #noteOverwritten(isOverwritten: boolean): void {
    const now = this.#options.clock.monotonic();
    this.#overwrittenSince = isOverwritten ? (this.#overwrittenSince ?? now) : undefined;
    this.#isCopied = now - (this.#overwrittenSince ?? now) >= copiedAfterMs;
  }

  #own(): ReplicaFacts {
    const own = this.#options.own();
    return this.#isCopied ? { ...own, id: `${own.id}${copyMark}${own.startedAt}` } : own;
  }

  #wake(): void {
    this.#woken.resolve();
    this.#woken = Promise.withResolvers<void>();
  }
}
