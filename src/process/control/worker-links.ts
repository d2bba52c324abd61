import type { ProcessStatus } from "../../domain/process-status.ts";
import type { Clock } from "../../domain/clock.ts";
import type { Ingest } from "../../ledger/ingest/ingest.ts";
import type { KeyChanges, UsageStore } from "../../store/store.ts";
import type { ControlPort } from "../control-port.ts";
import { Link, type Handlers } from "../link/link.ts";
import type { ConfigFeed, ControlMessages, WorkerMessages, WorkerState } from "../link/messages.ts";
import type { ByteChannel } from "../link/outbox.ts";
import { listenAtSocket, type SocketListener } from "../link/unix-socket.ts";
import { WorkerPages } from "./worker-pages.ts";

export interface WorkerLinksOptions {
  readonly path: string;
  readonly clock: Clock;
  /** When this process took its role, in milliseconds since the epoch. */
  readonly startedAt: number;
  readonly port: ControlPort;
  readonly usage: Pick<UsageStore, "insert">;
  readonly config: () => ConfigFeed;
  readonly ingest: Pick<Ingest, "progressOf">;
  /** Called when a worker has read the keys, or failed to. */
  readonly onKeysRead: () => void;
  /** Undefined when control can serve. */
  readonly whyNotReady: () => string | undefined;
  /** Called when a worker has reported its state, or has ended. */
  readonly onState: () => void;
}

type Connection = Link<ControlMessages, WorkerMessages>;

/** A state, and when it arrived by the monotonic clock. */
type HeardState = WorkerState & { readonly heardAt: number };

/** A worker reports its state every second. */
const silentAfterMs = 3_000;
/** Longest wait for a worker to apply changed keys; otherwise its next poll does. */
const reloadTimeoutMs = 1_000;
const metricsTimeoutMs = 2_000;

/** The links to all workers. */
export class WorkerLinks {
  readonly #options: WorkerLinksOptions;
  readonly #workers = new Map<Connection, HeardState | undefined>();
  readonly #pages: WorkerPages;
  #listener: SocketListener | undefined;
  #keysGeneration = 0;

  constructor(options: WorkerLinksOptions) {
    this.#options = options;
    this.#pages = new WorkerPages(options.startedAt);
  }

  listen(): void {
    this.#listener = listenAtSocket(this.#options.path, (channel) => this.#open(channel));
  }

  /** Workers that are connected. */
  get count(): number {
    return this.#workers.size;
  }

  /** The last report of each worker, which sends one as soon as it is connected. */
  get states(): readonly HeardState[] {
    return [...this.#workers.values()].filter((state) => state !== undefined);
  }

  /** Epoch of the newest change of keys that a worker has read. */
  get keysGeneration(): number {
    return this.#keysGeneration;
  }

  /** All workers that are connected, and those of `wanted` that are not. */
  statuses(wanted: number): readonly ProcessStatus[] {
    const now = this.#options.clock.monotonic();
    const told = this.states.map((state) => statusOf(state, now));
    const missing = Array.from({ length: wanted }, (_, index) => index + 1)
      .filter((number) => told.every((status) => status.number !== number))
      .map((number) => missingWorker(number));
    return [...told, ...missing].toSorted((one, other) => one.number - other.number);
  }

  /** Resolves to whether all connected workers have applied every change of keys in time. */
  async reloadKeys(): Promise<boolean> {
    const epochs = await this.#askAll(async (link) => {
      const epoch = await link.ask("keys.reload", undefined, reloadTimeoutMs);
      const state = this.#workers.get(link);
      if (state !== undefined) this.#workers.set(link, { ...state, keysGeneration: epoch });
      return epoch;
    });
    return epochs.every((epoch) => epoch !== undefined);
  }

  /** The newest change of keys that all workers have; undefined while one of `wanted` is missing. */
  appliedEpoch(wanted: number): number | undefined {
    const { states } = this;
    const numbers = new Set(states.map(({ number }) => number));
    if (states.length < this.count || numbers.size < wanted) return undefined;
    return Math.min(...states.map(({ keysGeneration }) => keysGeneration));
  }

  configChanged(feed: ConfigFeed): void {
    for (const link of this.#workers.keys()) link.tell("config.changed", feed);
  }

  /** Another control process takes over, so losing the links is no failure. */
  replaced(): void {
    for (const link of this.#workers.keys()) link.tell("replaced", undefined);
  }

  /** The metrics of all workers, with the last known counts of those that have ended. */
  async metrics(): Promise<string> {
    await this.#askAll((link) => this.#readPage(link));
    return this.#pages.render();
  }

  stop(): void {
    for (const link of this.#workers.keys()) link.close();
    this.#listener?.stop();
  }

  #askAll<Answer>(
    ask: (link: Connection) => Promise<Answer>,
  ): Promise<readonly (Answer | undefined)[]> {
    const links = [...this.#workers.keys()];
    return Promise.all(links.map((link) => ask(link).catch(() => undefined)));
  }

  async #readPage(link: Connection): Promise<void> {
    this.#keepPage(link, await link.ask("metrics.read", undefined, metricsTimeoutMs));
  }

  #keepPage(link: Connection, page: string): void {
    const state = this.#workers.get(link);
    if (state !== undefined) this.#pages.keep(state, page);
  }

  #open(channel: ByteChannel): Connection {
    const { clock } = this.#options;
    const link: Connection = new Link<ControlMessages, WorkerMessages>({
      channel,
      clock,
      hello: undefined,
      handlers: this.#handlers(() => link),
      onOpen: () => void this.#workers.set(link, undefined),
      onLost: () => this.#forget(link),
    });
    return link;
  }

  #handlers(link: () => Connection): Handlers<WorkerMessages> {
    const { port, usage, config } = this.#options;
    return {
      "config.read": () => config(),
      "keys.load": (ask) => this.#loadKeys(ask),
      "keys.used": (uses) => {
        for (const [publicId, at] of uses) port.noteUse(publicId, at);
      },
      "keys.outdated": (secret) => port.renewDigest(secret),
      "claims.claim": (wanted) => port.claims.claim(wanted),
      "claims.confirm": (held) => port.claims.confirm(held),
      "claims.release": (held) => port.claims.release(held),
      "claims.keep": (answered) => port.claims.keep(answered),
      "usage.insert": (records) => usage.insert(records),
      refused: (refusal) => port.recordRefusal(refusal),
      state: (state) => this.#hear(link(), state),
      leaving: (page) => this.#keepPage(link(), page),
    };
  }

  async #loadKeys({ since, limit }: WorkerMessages["keys.load"]["ask"]): Promise<KeyChanges> {
    const { port, onKeysRead } = this.#options;
    let hasMore = false;
    try {
      const page = await port.keys.loadKeys(since, limit);
      ({ hasMore } = page);
      this.#keysGeneration = page.epoch;
      return page;
    } finally {
      if (!hasMore) onKeysRead();
    }
  }

  #hear(link: Connection, state: WorkerState): void {
    this.#workers.set(link, { ...state, heardAt: this.#options.clock.monotonic() });
    if (this.#pages.isUnread(state)) this.#readPage(link).catch(() => undefined);
    const { ingest, whyNotReady, onState } = this.#options;
    link.tell("state", { notReady: whyNotReady(), stored: ingest.progressOf(state.spool) });
    onState();
  }

  #forget(link: Connection): void {
    const state = this.#workers.get(link);
    this.#workers.delete(link);
    if (state !== undefined) this.#pages.ended(state);
    this.#options.onState();
  }
}

function statusOf(state: HeardState, now: number) {
  const silentMs = now - state.heardAt;
  const seconds = Math.floor(silentMs / 1_000);
  const notReady = silentMs > silentAfterMs ? `silent for ${seconds} s` : state.notReady;
  return { role: "worker" as const, number: state.number, notReady, facts: state };
}

function missingWorker(number: number) {
  return { role: "worker" as const, number, notReady: "not connected", facts: undefined };
}
