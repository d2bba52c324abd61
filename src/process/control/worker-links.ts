import type { Clock } from "../../domain/clock.ts";
import type { UsageStore } from "../../store/store.ts";
import type { ControlPort } from "../control-port.ts";
import { Link, type ByteChannel, type Handlers } from "../link/link.ts";
import type { ConfigFeed, ControlMessages, WorkerMessages, WorkerState } from "../link/messages.ts";
import { listenAtSocket, type SocketListener } from "../link/unix-socket.ts";

export interface WorkerLinksOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly port: ControlPort;
  readonly usage: Pick<UsageStore, "insert">;
  readonly config: () => ConfigFeed;
  /** Called when a worker has told its state, or has gone. */
  readonly onState: () => void;
}

type Connection = Link<ControlMessages, WorkerMessages>;

/** Longest wait for a worker to follow a change of keys; a later poll of the worker brings it. */
const reloadTimeoutMs = 1_000;
const metricsTimeoutMs = 2_000;

/** The links to all workers. */
export class WorkerLinks {
  readonly #options: WorkerLinksOptions;
  readonly #workers = new Map<Connection, WorkerState | undefined>();
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

  /** What each worker said last. */
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

  /** The metrics of each worker that answers. */
  async metrics(): Promise<readonly string[]> {
    const pages = await this.#askAll((link) =>
      link.ask("metrics.read", undefined, metricsTimeoutMs),
    );
    return pages.filter((page) => page !== undefined);
  }

  stop(): void {
    for (const link of [...this.#workers.keys()]) link.close();
    this.#listener?.stop();
  }

  #askAll<Answer>(
    ask: (link: Connection) => Promise<Answer>,
  ): Promise<readonly (Answer | undefined)[]> {
    const links = [...this.#workers.keys()];
    return Promise.all(links.map((link) => ask(link).catch(() => undefined)));
  }

  #open(channel: ByteChannel): Connection {
    const { clock, onState } = this.#options;
    const link: Connection = new Link<ControlMessages, WorkerMessages>({
      channel,
      clock,
      hello: undefined,
      handlers: this.#handlers(() => link),
      onOpen: () => void this.#workers.set(link, undefined),
      onLost: () => {
        this.#workers.delete(link);
        onState();
      },
    });
    return link;
  }

  #handlers(link: () => Connection): Handlers<WorkerMessages> {
    const { port, usage, config, onState } = this.#options;
    return {
      "config.read": () => config(),
      "keys.load": ({ since, limit }) => port.keys.loadKeys(since, limit),
      "keys.used": (uses) => {
        for (const [publicId, at] of uses) port.noteUse(publicId, at);
      },
      "keys.outdated": (secret) => port.renewDigest(secret),
      "replies.find": (id) => port.replies.find(id),
      "replies.put": ({ reply, limitBytes }) => port.replies.put(reply, limitBytes),
      "usage.admitted": (since) => port.reports.admitted(since),
      "usage.insert": async (records) => void (await usage.insert(records)),
      refused: (refusal) => port.recordRefusal(refusal),
      state: (state) => {
        this.#workers.set(link(), state);
        onState();
      },
    };
  }
}
