import type { Clock } from "../../domain/clock.ts";
import { wait } from "../../domain/waiting/wait.ts";
import { LastUse } from "../../keys/last-use.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { ControlPort } from "../control-port.ts";
import { LinkLost } from "../link/link-errors.ts";
import { Link } from "../link/link.ts";
import type {
  ConfigFeed,
  ControlMessages,
  ControlState,
  WorkerMessages,
  WorkerState,
} from "../link/messages.ts";
import { connectToSocket } from "../link/unix-socket.ts";

export interface ControlLinkOptions {
  /** Number of the worker, from 1. */
  readonly number: number;
  /** The socket on which control listens. */
  readonly path: string;
  readonly clock: Clock;
  readonly state: () => WorkerState;
  /** The same as in the state, but cheaper. */
  readonly whyNotReady: () => string | undefined;
  readonly renderMetrics: () => string;
  readonly reloadKeys: () => Promise<number>;
  readonly onConfig: (feed: ConfigFeed) => void;
  readonly onState: (state: ControlState) => void;
  /** Called when control is lost, and when it is back. `isReplaced`: another process takes over. */
  readonly onLost: (reason: LinkLost, isReplaced: boolean) => void;
  readonly onBack: () => void;
}

type Connection = Link<WorkerMessages, ControlMessages>;

const retryMs = 50;
const stateIntervalMs = 1_000;
/** How soon control learns that the worker can serve, or no longer can. */
const readinessIntervalMs = 50;
const usesIntervalMs = 500;
/**
 * Secrets whose first use was reported. Beyond this number, all are forgotten and reported again.
 */
const toldLimit = 100_000;

/**
 * A worker's connection to control. While control is unavailable, requests fail as they do with an
 * unavailable database, and the worker tries to connect again; calls continue with what the worker
 * has.
 */
export class ControlLink {
  readonly port: ControlPort;
  readonly #options: ControlLinkOptions;
  readonly #uses: LastUse;
  readonly #toldUses = new Set<string>();
  readonly #stopping = new AbortController();
  #connection: Connection | undefined;
  #hasBeenOpen = false;
  /** Another control process replaces the one that is connected. */
  #isReplaced = false;
  /** The state that was last reported, and when. */
  #toldNotReady: string | undefined;
  #toldAt = -Infinity;
  #stopTimer = (): void => undefined;

  constructor(options: ControlLinkOptions) {
    this.#options = options;
    this.#uses = new LastUse({
      store: { recordLastUse: async (uses) => this.#linked().tell("keys.used", uses) },
      intervalMs: usesIntervalMs,
      // The loss of the link is reported once.
      onFailed: () => undefined,
    });
    this.port = this.#createPort();
  }

  /**
   * Resolves once control has answered for the first time; from then on the link reconnects by
   * itself.
   */
  async start(): Promise<void> {
    this.#uses.start();
    this.#watchReadiness();
    await this.#connect();
  }

  /** Resolves to the configuration in force. */
  readConfig(): Promise<ConfigFeed> {
    return this.#ask((link) => link.ask("config.read", undefined));
  }

  /** Stores rows that do not fit into the spool. Rejects while control is unavailable. */
  insert(records: readonly UsageRecord[]): Promise<void> {
    return this.#ask((link) => link.ask("usage.insert", records));
  }

  tellState(): void {
    const state = this.#options.state();
    this.#toldNotReady = state.notReady;
    this.#toldAt = this.#options.clock.monotonic();
    this.#connection?.tell("state", state);
  }

  /** Sends what is still to be sent. */
  async stop(): Promise<void> {
    this.#stopTimer();
    await this.#uses.stop();
    this.#stopping.abort();
    this.#connection?.tell("leaving", this.#options.renderMetrics());
    this.#connection?.close();
  }

  #createPort(): ControlPort {
    return {
      keys: {
        loadKeys: (since, limit) => this.#ask((link) => link.ask("keys.load", { since, limit })),
      },
      claims: {
        claim: (wanted) => this.#ask((link) => link.ask("claims.claim", wanted)),
        confirm: (held) => this.#ask((link) => link.ask("claims.confirm", held)),
        release: (held) => this.#ask((link) => link.ask("claims.release", held)),
        keep: (answered) => this.#ask((link) => link.ask("claims.keep", answered)),
      },
      noteUse: (publicId, at) => this.#noteUse(publicId, at),
      renewDigest: (secret) => this.#connection?.tell("keys.outdated", secret),
      recordRefusal: (refusal) => this.#connection?.tell("refused", refusal),
    };
  }

  /** A first use is reported at once, because a rotation ends a secret that was never used. */
  #noteUse(publicId: string, at: number): void {
    this.#uses.note(publicId, at);
    if (this.#connection === undefined || this.#toldUses.has(publicId)) return;
    if (this.#toldUses.size >= toldLimit) this.#toldUses.clear();
    this.#toldUses.add(publicId);
    this.#connection.tell("keys.used", new Map([[publicId, at]]));
  }

  async #ask<Answer>(ask: (link: Connection) => Promise<Answer>): Promise<Answer> {
    return ask(this.#linked());
  }

  #linked(): Connection {
    if (this.#connection === undefined) throw new LinkLost("the control process is not running");
    return this.#connection;
  }

  async #connect(): Promise<void> {
    const { path, clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      const opened = Promise.withResolvers<boolean>();
      try {
        await connectToSocket(path, (channel) => this.#open(channel, opened.resolve));
        if (await opened.promise) return;
      } catch {
        // Nobody listens.
      }
      await wait(retryMs, this.#stopping.signal, clock);
    }
  }

  #open(
    channel: ConstructorParameters<typeof Link>[0]["channel"],
    done: (isOpen: boolean) => void,
  ) {
    const { clock, reloadKeys, renderMetrics, onConfig, onState } = this.#options;
    const link: Connection = new Link<WorkerMessages, ControlMessages>({
      channel,
      clock,
      hello: { number: this.#options.number },
      handlers: {
        "keys.reload": () => reloadKeys(),
        "config.changed": (feed) => onConfig(feed),
        state: (told) => onState(told),
        replaced: () => {
          this.#isReplaced = true;
        },
        "metrics.read": () => renderMetrics(),
      },
      onOpen: () => {
        if (this.#stopping.signal.aborted) return link.close();
        this.#opened(link);
        done(true);
      },
      onLost: (reason) => {
        if (this.#connection === link) this.#lost(reason);
        done(false);
      },
    });
    return link;
  }

  #opened(link: Connection): void {
    this.#connection = link;
    this.#isReplaced = false;
    this.tellState();
    if (!this.#hasBeenOpen) {
      this.#hasBeenOpen = true;
      return;
    }
    const { onBack, onConfig, reloadKeys } = this.#options;
    onBack();
    // Changes during the outage were not announced.
    void this.readConfig().then(onConfig, () => undefined);
    void reloadKeys().catch(() => undefined);
  }

  #lost(reason: LinkLost): void {
    this.#connection = undefined;
    if (this.#stopping.signal.aborted) return;
    this.#options.onLost(reason, this.#isReplaced);
    void this.#connect();
  }

  /** Reports the state when it is due, and at once when the worker begins or ceases to be ready. */
  #watchReadiness(): void {
    const { clock, whyNotReady } = this.#options;
    this.#stopTimer = clock.schedule(() => {
      const isDue = clock.monotonic() - this.#toldAt >= stateIntervalMs;
      const hasChanged = whyNotReady() !== this.#toldNotReady;
      if (isDue || hasChanged) this.tellState();
      this.#watchReadiness();
    }, readinessIntervalMs);
  }
}
