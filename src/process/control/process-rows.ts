import { hostname } from "node:os";
import packageJson from "../../../package.json" with { type: "json" };
import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import type { RandomBytes } from "../../domain/keys/base62.ts";
import { isRunning } from "../../domain/system-files.ts";
import { createKeyDigest, type Peppers } from "../../domain/keys/peppers.ts";
import type { ProcessRow, OwnProcessRow } from "../../store/process-row.ts";
import {
  isLive,
  processDifferences,
  withDistinctNames,
} from "../../control/platform/process-differences.ts";
import { Coalesced } from "../../domain/waiting/coalesced.ts";
import { hasSettledWithin, wait } from "../../domain/waiting/wait.ts";
import { identityOfValkey } from "../../domain/addresses.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import type { DataFolder } from "../../store/installation/data-folder.ts";
import type {
  KeysWatch,
  ProcessesSeen,
  ProcessStore,
  WatchKeys,
} from "../../store/repositories/process-store.ts";
import type { StorageEvents } from "../../telemetry/events/storage-events.ts";
import type { MainState } from "../messages.ts";
import type { KeysApplied } from "../../control/services.ts";

/** What changes while a process runs. */
export interface RowState {
  /** Milliseconds since the epoch. */
  readonly loadedAt: number;
  /** The text of the configuration; undefined if there is no file. */
  readonly text: string | undefined;
  readonly main: MainState | undefined;
  readonly notReady: string | undefined;
  readonly ingest: OwnProcessRow["ingest"];
  readonly adminUrl: string;
}

export interface ProcessRowsOptions {
  readonly store: ProcessStore;
  readonly watchKeys: WatchKeys;
  readonly clock: Clock;
  readonly folder: DataFolder;
  readonly peppers: Peppers;
  readonly limitStore: Config["limits"]["store"];
  readonly random: RandomBytes;
  readonly number: number;
  readonly state: () => RowState;
  /** How long the row of a process that gives no sign is kept. */
  readonly keptMs: number;
  /** Resolves to the epoch of the keys when calls see every change committed before. */
  readonly reloadKeys: () => Promise<number>;
  /** Lets the other processes of the machine apply changes at once. */
  readonly tellSiblings: () => Promise<void>;
  /** Puts the changes up to an epoch on disk, before this process tells that it has them. */
  readonly keepKeys: (epoch: number) => Promise<void>;
  /** Called every second with the number of all processes. */
  readonly onCounted: (processes: number) => void;
  readonly events: Pick<StorageEvents, "keyMessages" | "differences">;
}

const signIntervalMs = 1_000;
/** Longest wait for the other processes after a change. */
const appliedWaitMs = 1_000;
/** Longest wait for the disk: a file with many keys is written anew now and then. */
const keepWaitMs = 500;
/** Interval between looks at the other rows after a change. */
const lookIntervalMs = 50;
const digestLength = 12;

/**
 * The row of this process among those of all processes on the database. It is written every second,
 * and at once when the process has new keys; the rows tell who has a change, and who differs.
 */
export class ProcessRows {
  readonly #options: ProcessRowsOptions;
  readonly #startedAt: number;
  readonly #pepperMarks: string;
  readonly #stopping = new AbortController();
  readonly #signing = new Coalesced(() => this.#sign());
  readonly #following = new Coalesced(() => this.#follow());
  /** Empty until the start, which may be refused and then creates no file. */
  #id = "";
  #differing: ReadonlySet<string> = new Set();
  #watch: KeysWatch | undefined;
  #keysEpoch: number | undefined;
  /** Undefined when the last sign failed. */
  #seen: ProcessesSeen | undefined;
  #limitsDigest: string | undefined;

  constructor(options: ProcessRowsOptions) {
    const { clock, peppers } = options;
    this.#options = options;
    this.#startedAt = clock.now();
    this.#pepperMarks = peppers.all.map(({ mark }) => mark.slice(0, digestLength)).join(",");
  }

  start(): void {
    const { folder, random, number, watchKeys, events } = this.#options;
    // With the host's name, as data directories may be copied with an image.
    this.#id = `${folder.machineId(random)}@${hostname()}/${number}-${process.pid}`;
    this.#watch = watchKeys({
      keysChanged: (epoch) => this.#keysChanged(epoch),
      lost: (error) => events.keyMessages.failed(error),
      back: () => events.keyMessages.recovered(),
    });
    void this.#keepSigning();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#watch === undefined) return;
    this.#watch.stop();
    await this.#signing.idle();
    await this.#options.store.leave(this.#id).catch(() => undefined);
  }

  /** All rows of the last second. Undefined before the start, and while the database is unavailable. */
  get known(): { readonly own: string; readonly rows: readonly ProcessRow[] } | undefined {
    return this.#seen && { own: this.#id, rows: this.#seen.processes };
  }

  /** All processes, as the database has them now. Throws `StorageUnavailable`. */
  async list(): Promise<readonly ProcessRow[]> {
    return (await this.#signing.run()).processes;
  }

  /** All processes, as the database had them at the last sign. Throws `StorageUnavailable`. */
  async last(): Promise<readonly ProcessRow[]> {
    return this.#seen?.processes ?? this.list();
  }

  /**
   * Applies all committed changes of keys here and waits, up to a second, until all other processes
   * have. Undefined if the database cannot tell who has.
   */
  async applied(): Promise<KeysApplied | undefined> {
    const siblings = this.#options.tellSiblings();
    await this.#reload().catch(() => undefined);
    await hasSettledWithin(siblings, appliedWaitMs, this.#options.clock);
    let applied: KeysApplied | undefined;
    const seeing = this.#seeUntilAll((seen) => {
      applied = seen;
    });
    // The database may have frozen.
    await hasSettledWithin(seeing, appliedWaitMs, this.#options.clock);
    return applied;
  }

  /** Applies changes that another process has made. Rejects when that fails. */
  follow(): Promise<void> {
    return this.#following.run();
  }

  async #seeUntilAll(note: (applied: KeysApplied) => void): Promise<void> {
    const { clock } = this.#options;
    const deadline = clock.monotonic() + appliedWaitMs;
    for (;;) {
      const { keysEpoch, processes } = await this.#signing.run();
      const applied = countApplied(processes, keysEpoch);
      note(applied);
      if (applied.processes >= applied.of || clock.monotonic() >= deadline) return;
      await wait(lookIntervalMs, this.#stopping.signal, clock);
    }
  }

  async #keepSigning(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const seen = await this.#signing.run().catch(() => undefined);
      this.#seen = seen;
      // A message may have been lost.
      if (seen !== undefined) {
        this.#keysChanged(seen.keysEpoch);
        this.#options.onCounted(seen.processes.length);
        this.#compare(seen.processes);
        await this.#forgetDead(seen.processes);
      }
      await wait(signIntervalMs, signal, this.#options.clock);
    }
  }

  /** Processes of this machine that were killed have left their rows. */
  async #forgetDead(rows: readonly ProcessRow[]): Promise<void> {
    const machine = machineOf(this.#id);
    for (const { id } of rows) {
      if (machineOf(id) === machine && !isRunningHere(id)) {
        await this.#options.store.leave(id).catch(() => undefined);
      }
    }
  }

  #keysChanged(epoch: number | undefined): void {
    if (epoch !== undefined && epoch === this.#keysEpoch) return;
    this.#following.run().catch(() => undefined);
  }

  #compare(rows: readonly ProcessRow[]): void {
    const { differences: outage } = this.#options.events;
    const differences = processDifferences(withDistinctNames(rows));
    for (const { kind, text } of differences) {
      if (!this.#differing.has(kind)) outage.failedAnew({ what: text });
    }
    if (differences.length === 0) outage.recovered();
    this.#differing = new Set(differences.map(({ kind }) => kind));
  }

  async #follow(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    await this.#reload();
    await this.#signing.run();
  }

  async #reload(): Promise<void> {
    this.#keysEpoch = await this.#options.reloadKeys();
  }

  async #sign(): Promise<ProcessesSeen> {
    const { store, keptMs, keepKeys, clock, state } = this.#options;
    if (this.#stopping.signal.aborted) throw new StorageUnavailable("this process is ending");
    const facts = this.#factsOf(state());
    if (facts.keysEpoch !== undefined) {
      await hasSettledWithin(keepKeys(facts.keysEpoch), keepWaitMs, clock);
    }
    return store.sign(facts, keptMs);
  }

  #factsOf({ loadedAt, text, main, notReady, ingest, adminUrl }: RowState): OwnProcessRow {
    const { folder, limitStore, number, peppers } = this.#options;
    this.#limitsDigest ??= digestOfLimits(limitStore, folder.readId());
    const known = [this.#keysEpoch, main?.keysGeneration].filter((epoch) => epoch !== undefined);
    return {
      id: this.#id,
      name: hostname(),
      number,
      version: packageJson.version,
      startedAt: this.#startedAt,
      configuredAt: loadedAt,
      // Keyed, because a file may contain secrets.
      configDigest: text && shortDigest(peppers.first.digest(`configuration ${text}`)),
      limitsDigest: this.#limitsDigest,
      pepperMarks: this.#pepperMarks,
      keysEpoch: known.length === 0 ? undefined : Math.max(...known),
      chargesAs: main?.chargesAs,
      ingest,
      adminUrl,
      notReady,
      degraded: main?.degraded,
    };
  }
}

function shortDigest(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex").slice(0, digestLength);
}

export function machineOf(id: string): string {
  return id.slice(0, id.lastIndexOf("/"));
}

/** Of a process of this machine. */
export function isRunningHere(id: string): boolean {
  return isRunning(Number(id.slice(id.lastIndexOf("-") + 1)));
}

/** Keyed by what all processes on the database have in common, even if their peppers differ. */
export function digestOfLimits(
  store: Config["limits"]["store"],
  installation: string | undefined,
): string | undefined {
  if (store === "memory") return store;
  if (installation === undefined) return undefined;
  const digest = createKeyDigest(installation);
  return shortDigest(digest(`limits ${identityOfValkey(store.url.reveal())}`));
}

/** Counts the processes that have all changes of keys up to an epoch. */
function countApplied(processes: readonly ProcessRow[], epoch: number): KeysApplied {
  const live = processes.filter(isLive);
  const applied = live.filter(({ keysEpoch }) => keysEpoch !== undefined && keysEpoch >= epoch);
  return { processes: applied.length, of: live.length, silent: processes.length - live.length };
}
