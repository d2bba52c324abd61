import type { Clock } from "../domain/clock.ts";
import { LastUse } from "../keys/last-use.ts";
import type {
  CallClaims,
  KeyStore,
  RenewedSecret,
  ResponseStore,
  UsageStore,
} from "../store/store.ts";
import type { TelemetryEvents } from "../telemetry/events/events.ts";
import type { DemoAccess, MainState, StorageState, ToControl, ToMain } from "./messages.ts";
import { ThreadLink, ThreadLost, type Handlers, type Port } from "./thread-link.ts";

/** A control plane that runs: a thread, or in tests the same code in this one. */
export interface RunningControl {
  readonly port: Port;
  /** Resolves to the reason when it has ended by itself. */
  readonly ended: Promise<string>;
  terminate(): void;
}

/** What serving calls needs from the control plane, which alone has the database. */
export type ControlPort = ControlClient["port"];

export interface ControlClientOptions {
  readonly start: () => RunningControl;
  readonly clock: Clock;
  /** Undefined while the process starts. */
  readonly state: () => MainState | undefined;
  /** The same as in the state, but cheaper. */
  readonly whyNotReady: () => string | undefined;
  readonly handlers: Omit<Handlers<ToMain>, "storage">;
  readonly events: Pick<TelemetryEvents, "controlLost" | "controlBack" | "controlGivenUp">;
  /** It ended too often: the process should end. */
  readonly onGivenUp: () => void;
}

type Link = ThreadLink<ToControl, ToMain>;

const stateIntervalMs = 1_000;
/** How soon the control thread learns that the process can serve, or no longer can. */
const readinessIntervalMs = 50;
const usesIntervalMs = 500;
/** Secrets whose first use was reported. Beyond this number, all are forgotten and told again. */
const toldLimit = 100_000;
const restartPauseMs = 100;
const mostDeaths = 5;
/** After this long without a death, earlier ones no longer count. */
const healthyMs = 60_000;
/** Longest time to open the database, read the spools and listen. */
const beginTimeoutMs = 60_000;
/** Longest time to store what is in the spools and close the database. */
const stopTimeoutMs = 30_000;
/** A key that asks for its usage gets its limits without totals then. */
const longestTotalsMs = 1_000;

/**
 * The main thread's side of the control thread. While there is none, what needs it fails as with an
 * unavailable database; calls continue with what the process has.
 */
export class ControlClient {
  readonly port = this.#createPort();
  readonly #options: ControlClientOptions;
  readonly #uses: LastUse;
  readonly #told = new Set<string>();
  #link: Link | undefined;
  #running: RunningControl | undefined;
  #storage: StorageState = { notReady: undefined, stored: undefined };
  #spool: string | undefined;
  #deaths = 0;
  #diedAt = -Infinity;
  #isStopping = false;
  #toldNotReady: string | undefined;
  #toldAt = -Infinity;
  #stopTimer = (): void => undefined;

  constructor(options: ControlClientOptions) {
    this.#options = options;
    this.#uses = new LastUse({
      store: { recordLastUse: async (uses) => this.#linked().tell("keys.used", uses) },
      intervalMs: usesIntervalMs,
    });
    this.#begin();
  }

  get storage(): StorageState {
    return this.#storage;
  }

  /** Opens the database. Resolves to the peppers; rejects with `StartProblem`. */
  async open(): Promise<readonly string[]> {
    this.#uses.start();
    // Ticks show the control thread from now on that this one lives.
    this.#watchReadiness();
    return this.#linked().ask("open", undefined, beginTimeoutMs);
  }

  /** The process serves. Rejects with `StartProblem`. */
  async serve(spool: string | undefined): Promise<void> {
    this.#spool = spool;
    await this.#serve(this.#linked());
  }

  tellState(): void {
    const { state, whyNotReady, clock } = this.#options;
    this.#toldNotReady = whyNotReady();
    this.#toldAt = clock.monotonic();
    this.#link?.tell("state", state());
  }

  reload(): void {
    this.#link?.tell("reload", undefined);
  }

  flushUsage(): Promise<void> {
    return this.#linked().ask("usage.flush", undefined, beginTimeoutMs);
  }

  issueDemoAccess(): Promise<DemoAccess> {
    return this.#linked().ask("demo.issue-access", undefined);
  }

  /** Lets another process lead. */
  async leave(): Promise<void> {
    await this.#link?.ask("leave", undefined, stopTimeoutMs).catch(() => undefined);
  }

  /** Stores what can be stored, and ends the control plane. */
  async stop(): Promise<void> {
    this.#stopTimer();
    await this.#uses.stop();
    this.#isStopping = true;
    await this.#link?.ask("stop", undefined, stopTimeoutMs).catch(() => undefined);
    this.#link?.lose("the process ends");
    this.#running?.terminate();
  }

  #begin(): Link {
    const { start, clock, handlers } = this.#options;
    const running = start();
    const link: Link = new ThreadLink<ToControl, ToMain>(running.port, clock);
    link.handle({
      ...handlers,
      storage: (state) => {
        this.#storage = state;
      },
    });
    this.#running = running;
    this.#link = link;
    void running.ended.then((reason) => this.#lost(link, reason));
    return link;
  }

  #lost(link: Link, reason: string): void {
    link.lose("the control thread has ended");
    if (this.#isStopping || this.#link !== link) return;
    this.#link = undefined;
    const { clock, events, onGivenUp } = this.#options;
    const now = clock.monotonic();
    this.#deaths = now - this.#diedAt < healthyMs ? this.#deaths + 1 : 1;
    this.#diedAt = now;
    this.#storage = { notReady: undefined, stored: undefined };
    events.controlLost(reason);
    if (this.#deaths >= mostDeaths) {
      events.controlGivenUp(this.#deaths);
      return onGivenUp();
    }
    clock.schedule(() => void this.#restart(), restartPauseMs * 2 ** this.#deaths);
  }

  async #restart(): Promise<void> {
    if (this.#isStopping) return;
    const link = this.#begin();
    try {
      await link.ask("open", undefined, beginTimeoutMs);
      await this.#serve(link);
      this.#options.events.controlBack();
    } catch (error) {
      // It may have died again, which counts by itself.
      if (this.#link !== link) return;
      this.#running?.terminate();
      this.#lost(link, error instanceof Error ? error.message : String(error));
    }
  }

  #serve(link: Link): Promise<void> {
    this.tellState();
    return link.ask("serve", this.#spool, beginTimeoutMs);
  }

  #createPort() {
    const ask: Link["ask"] = (kind, body, timeoutMs) =>
      this.#link?.ask(kind, body, timeoutMs) ?? Promise.reject(noThread());
    return {
      keys: {
        loadKeys: (since, limit) => ask("keys.load", { since, limit }),
      } satisfies Pick<KeyStore, "loadKeys">,
      /** Who makes a call with an `Idempotency-Key`, and its kept answer. */
      claims: {
        claim: (wanted) => ask("claims.claim", wanted),
        confirm: (held) => ask("claims.confirm", held),
        release: (held) => ask("claims.release", held),
        keep: (answered) => ask("claims.keep", answered),
      } satisfies CallClaims,
      responses: {
        put: (added) => ask("responses.put", added),
        find: (wanted) => ask("responses.find", wanted),
        remove: (wanted) => ask("responses.remove", wanted),
      } satisfies ResponseStore,
      totalsOf: (keyId: string) => ask("usage.of-key", keyId, longestTotalsMs),
      /** Takes rows that do not fit into the spool. */
      usage: { insert: (records) => ask("usage.insert", records) } satisfies Pick<
        UsageStore,
        "insert"
      >,
      noteUse: (publicId: string, at: number) => this.#noteUse(publicId, at),
      renewDigest: (secret: RenewedSecret) => this.#link?.tell("keys.outdated", secret),
    };
  }

  /** A first use is told at once, because a rotation ends a secret that was never used. */
  #noteUse(publicId: string, at: number): void {
    this.#uses.note(publicId, at);
    if (this.#link === undefined || this.#told.has(publicId)) return;
    if (this.#told.size >= toldLimit) this.#told.clear();
    this.#told.add(publicId);
    this.#link.tell("keys.used", new Map([[publicId, at]]));
  }

  #linked(): Link {
    if (this.#link === undefined) throw noThread();
    return this.#link;
  }

  /** Reports the state when it is due, and at once when the process begins or ceases to be ready. */
  #watchReadiness(): void {
    const { clock, whyNotReady } = this.#options;
    this.#stopTimer = clock.schedule(() => {
      const isDue = clock.monotonic() - this.#toldAt >= stateIntervalMs;
      if (isDue || whyNotReady() !== this.#toldNotReady) this.tellState();
      this.#watchReadiness();
    }, readinessIntervalMs);
  }
}

function noThread(): ThreadLost {
  return new ThreadLost("the control thread is not running");
}
