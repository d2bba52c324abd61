import type { Clock } from "../../domain/clock.ts";
import type { Ingest } from "../../ledger/ingest/ingest.ts";
import type { KeyChanges, UsageStore } from "../../store/store.ts";
import type { ControlPort } from "../control-port.ts";
import { Link, type ByteChannel, type Handlers } from "../link/link.ts";
import type { ConfigFeed, ControlMessages, WorkerMessages, WorkerState } from "../link/messages.ts";
import { mergeEnded, mergePages } from "../../telemetry/metrics/merge-pages.ts";
import type { Coordination, WorkerDesk } from "./coordination/coordination.ts";
import { listenAtSocket, type SocketListener } from "../link/unix-socket.ts";

export interface WorkerLinksOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly port: ControlPort;
  readonly coordination: Pick<Coordination, "open">;
  readonly usage: Pick<UsageStore, "insert">;
  readonly config: () => ConfigFeed;
  readonly ingest: Pick<Ingest, "progressOf">;
  /** Called when a worker has read the keys, or cannot. */
  readonly onKeysRead: () => void;
  /** Undefined when control can serve. */
  readonly whyNotReady: () => string | undefined;
  /** Called when a worker has told its state, or has gone. */
  readonly onState: () => void;
}

type Connection = Link<ControlMessages, WorkerMessages>;

/** Longest wait for a worker to follow a change of keys; a later poll of the worker brings it. */
const reloadTimeoutMs = 1_000;
const metricsTimeoutMs = 2_000;
const mostPages = 100;

/** The links to all workers. */
export class WorkerLinks {
  readonly #options: WorkerLinksOptions;
  readonly #workers = new Map<Connection, WorkerState | undefined>();
  /** Metrics by process id; of a process that has gone its counts alone. */
  readonly #pages = new Map<number, string>();
  #listener: SocketListener | undefined;

  constructor(options: WorkerLinksOptions) {
    this.#options = options;
  }

  listen(): void {
    this.#listener = listenAtSocket(this.#options.path, (channel) => this.#open(channel));
  }

  /** Workers that are connected. */
  get count(): number {
    return this.#workers.size;
  }

  /** What each worker said last, which it does as soon as it is connected. */
  get states(): readonly WorkerState[] {
    return [...this.#workers.values()].filter((state) => state !== undefined);
  }

  /** Resolves when all workers see every change of keys, or have not answered in time. */
  async reloadKeys(): Promise<void> {
    await this.#askAll((link) => link.ask("keys.reload", undefined, reloadTimeoutMs));
  }

  configChanged(feed: ConfigFeed): void {
    for (const link of this.#workers.keys()) link.tell("config.changed", feed);
  }

  /** The metrics of all workers, with the last known counts of those that have gone. */
  async metrics(): Promise<string> {
    await this.#askAll(async (link) => {
      const page = await link.ask("metrics.read", undefined, metricsTimeoutMs);
      const state = this.#workers.get(link);
      if (state !== undefined) this.#pages.set(state.pid, page);
    });
    return mergePages([...this.#pages.values()]);
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

  #open(channel: ByteChannel): Connection {
    const { clock, coordination } = this.#options;
    const desk = coordination.open();
    const link: Connection = new Link<ControlMessages, WorkerMessages>({
      channel,
      clock,
      hello: undefined,
      handlers: this.#handlers(() => link, desk),
      onOpen: () => void this.#workers.set(link, undefined),
      onLost: () => {
        desk.close();
        this.#forget(link);
      },
    });
    return link;
  }

  #handlers(link: () => Connection, desk: WorkerDesk): Handlers<WorkerMessages> {
    const { port, usage, config } = this.#options;
    return {
      ...desk.handlers,
      "config.read": () => config(),
      "keys.load": (ask) => this.#loadKeys(ask),
      "keys.used": (uses) => {
        for (const [publicId, at] of uses) port.noteUse(publicId, at);
      },
      "keys.outdated": (secret) => port.renewDigest(secret),
      "replies.find": (id) => port.replies.find(id),
      "replies.put": ({ reply, limitBytes }) => port.replies.put(reply, limitBytes),
      "usage.admitted": (since) => port.reports.admitted(since),
      "usage.insert": (records) => usage.insert(records),
      refused: (refusal) => port.recordRefusal(refusal),
      state: (state) => this.#hear(link(), state),
    };
  }

  async #loadKeys({ since, limit }: WorkerMessages["keys.load"]["ask"]): Promise<KeyChanges> {
    const { port, onKeysRead } = this.#options;
    let hasMore = false;
    try {
      const page = await port.keys.loadKeys(since, limit);
      ({ hasMore } = page);
      return page;
    } finally {
      if (!hasMore) onKeysRead();
    }
  }

  #hear(link: Connection, state: WorkerState): void {
    this.#workers.set(link, state);
    const { ingest, whyNotReady, onState } = this.#options;
    link.tell("state", { notReady: whyNotReady(), stored: ingest.progressOf(state.spool) });
    onState();
  }

  #forget(link: Connection): void {
    const pid = this.#workers.get(link)?.pid;
    this.#workers.delete(link);
    const page = pid === undefined ? undefined : this.#pages.get(pid);
    if (pid !== undefined && page !== undefined) this.#pages.set(pid, mergeEnded([page]));
    if (this.#pages.size > mostPages) this.#joinEnded();
    this.#options.onState();
  }

  #joinEnded(): void {
    const living = new Set(this.states.map(({ pid }) => pid));
    const ended = [...this.#pages.keys()].filter((pid) => !living.has(pid));
    const joined = mergeEnded(ended.map((pid) => this.#pages.get(pid) ?? ""));
    for (const pid of ended) this.#pages.delete(pid);
    this.#pages.set(0, joined);
  }
}
