import type { Clock } from "../../../../domain/clock.ts";
import type { HostAndPort } from "../../../../domain/addresses/valkey-address.ts";
import { Deadlines } from "./deadlines.ts";
import type { ConnectionProblem } from "./connection-problem.ts";
import { listOf } from "./list-of.ts";
import { explain } from "./look-at-server.ts";
import type { ServerSettings } from "./server-settings.ts";
import {
  isMoving,
  isReplaced,
  isVague,
  isWrongRequest,
  notSent,
  problemOf,
  unavailable,
  ValkeyUnavailable,
} from "./valkey-errors.ts";

export interface ServerLineOptions extends ServerSettings {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Finds the server before each connection: Sentinels may name another one. */
  readonly locate: () => Promise<HostAndPort>;
  /** Runs on each new connection, before it is used. */
  readonly prepare: (client: Bun.RedisClient) => Promise<void>;
  /**
   * Called when the server becomes available or, with a reason, unavailable; again when the reason
   * changes while it stays away.
   */
  readonly onChange: (reason: string | undefined) => void;
}

export interface Urgency {
  /** Whether to fail at once while another answer is late, because the caller can go on alone. */
  readonly isDecision: boolean;
}

/** Errors in a row after which commands are no longer sent. */
const mostFailures = 5;
const firstProbeMs = 100;
const longestProbeMs = 250;
/** A server that stays away is looked at no more often. */
const lookIntervalMs = 1_000;
/** After so many time-outs without a late answer, the connection is given up. */
const mostTimeouts = 4;
/** Nobody waits for a new connection, so it may take longer than a command. */
export const connectTimeoutMs = 2_000;

/**
 * The connection to one server with its breaker. While the server is unavailable, commands fail at
 * once, and one probe at a time tries to connect again. While an answer is late, decisions fail at
 * once as well, so that no call waits for two of them. The client sends all commands of a turn
 * together.
 */
export class ServerLine {
  readonly #options: ServerLineOptions;
  readonly #deadlines: Deadlines;
  #client: Bun.RedisClient | undefined;
  #failures = 0;
  /** Commands whose answers are late. */
  readonly #late = new Set<Promise<unknown>>();
  #probeMs = firstProbeMs;
  #problem: ConnectionProblem = { kind: "other", text: "not connected yet" };
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #cancelProbe: () => void = () => undefined;
  #isClosed = false;

  constructor(options: ServerLineOptions) {
    this.#options = options;
    this.#deadlines = new Deadlines(options.clock, options.timeoutMs);
  }

  get isUp(): boolean {
    return this.#client !== undefined;
  }

  /** The last one: it may be over. */
  get problem(): ConnectionProblem {
    return this.#problem;
  }

  /** Tries once to connect; probes go on in the background after a failure. */
  async open(): Promise<void> {
    await this.#probe();
  }

  send(
    command: string,
    parameters: string[],
    { isDecision }: Urgency = { isDecision: false },
  ): Promise<unknown> {
    const client = this.#client;
    if (client === undefined) return Promise.reject(this.#unsent());
    if (isDecision && this.#late.size > 0) return Promise.reject(notSent("an answer is late"));
    const answer: Promise<unknown> = client.send(command, parameters);
    return this.#deadlines
      .within(answer, (error) => this.#awaitLate(client, answer, error))
      .then(
        (reply) => {
          this.#failures = 0;
          return reply;
        },
        (error: unknown) => this.#raise(client, error),
      );
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelProbe();
    this.#drop();
  }

  /** The answer may still come, or never. */
  #awaitLate(client: Bun.RedisClient, answer: Promise<unknown>, error: ValkeyUnavailable): void {
    if (client !== this.#client) return;
    this.#late.add(answer);
    answer.catch(() => undefined).finally(() => this.#late.delete(answer));
    if (this.#late.size === 1) this.#watchLate(client, answer, error);
  }

  #watchLate(client: Bun.RedisClient, answer: Promise<unknown>, error: ValkeyUnavailable): void {
    const { clock, timeoutMs } = this.#options;
    clock.schedule(
      () => {
        if (client !== this.#client) return;
        if (this.#late.has(answer)) return this.#goDown(error);
        const [next] = this.#late;
        if (next !== undefined) this.#watchLate(client, next, error);
      },
      (mostTimeouts - 1) * timeoutMs,
    );
  }

  #raise(client: Bun.RedisClient, error: unknown): never {
    if (error instanceof ValkeyUnavailable || isWrongRequest(error)) throw error;
    // The server works; the cluster's lines find the other one.
    if (isMoving(error)) throw error;
    const failure = unavailable(problemOf(error));
    if (isReplaced(error)) this.#failures = mostFailures;
    this.#failed(client, failure);
    throw failure;
  }

  #unsent(): ValkeyUnavailable {
    const { text, kind } = this.#problem;
    return notSent(text, kind);
  }

  #failed(client: Bun.RedisClient, failure: ValkeyUnavailable): void {
    if (client !== this.#client) return;
    this.#failures += 1;
    if (this.#failures >= mostFailures) this.#goDown(failure);
  }

  #goDown(error: unknown): void {
    this.#drop();
    this.#tell(problemOf(error));
    this.#probeLater();
  }

  #tell(problem: ConnectionProblem): void {
    this.#problem = problem;
    this.#options.onChange(problem.text);
  }

  /** What a frozen server has not read by now is lost with the connection. */
  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    this.#late.clear();
    client?.close();
  }

  #probeLater(): void {
    if (this.#isClosed) return;
    this.#cancelProbe();
    this.#cancelProbe = this.#options.clock.schedule(() => void this.#probe(), this.#probeMs);
    this.#probeMs = Math.min(this.#probeMs * 2, longestProbeMs);
  }

  async #probe(): Promise<void> {
    let server: HostAndPort | undefined;
    try {
      server = await this.#options.locate();
      const client = await this.#connect(server);
      if (this.#isClosed) return client.close();
      this.#client = client;
      this.#failures = 0;
      this.#probeMs = firstProbeMs;
      this.#options.onChange(undefined);
    } catch (error) {
      this.#probeLater();
      await this.#explain(error, server);
    }
  }

  /** Probes go on meanwhile, so the server may be back by then. */
  async #explain(error: unknown, server: HostAndPort | undefined): Promise<void> {
    const { clock } = this.#options;
    if (server === undefined || !isVague(error)) return this.#tellIfDown(problemOf(error));
    const now = clock.monotonic();
    if (now - this.#lookedAtMs < lookIntervalMs) return;
    this.#lookedAtMs = now;
    this.#tellIfDown(await explain(error, { server, settings: this.#options, clock }));
  }

  #tellIfDown(problem: ConnectionProblem): void {
    if (!this.isUp && !this.#isClosed) this.#tell(problem);
  }

  async #connect(server: HostAndPort): Promise<Bun.RedisClient> {
    const { prepare, clock } = this.#options;
    const client = newClient(server, this.#options);
    const connected = client
      .connect()
      .then(() => client.send("PING", []))
      .then(() => refuseReplica(client))
      .then(() => prepare(client));
    try {
      await new Deadlines(clock, connectTimeoutMs).within(connected, () => undefined);
    } catch (error) {
      client.close();
      throw error;
    }
    client.onclose = (error) => {
      if (client === this.#client) this.#goDown(error);
    };
    return client;
  }
}

/** A primary that became a replica answers, but refuses all decisions. Not all users may ask it. */
async function refuseReplica(client: Bun.RedisClient): Promise<void> {
  const role: unknown = await client.send("ROLE", []).catch(() => undefined);
  if (listOf(role)[0] === "slave") {
    throw unavailable({ kind: "replica", text: "it is a replica" });
  }
}

/** A client that neither reconnects nor keeps commands by itself. */
export function newClient(server: HostAndPort, settings: ServerSettings): Bun.RedisClient {
  const { username, password, database, tls } = settings;
  const signIn =
    password === "" ? "" : `${encodeURIComponent(username)}:${encodeURIComponent(password)}@`;
  const scheme = tls === undefined ? "redis" : "rediss";
  return new Bun.RedisClient(`${scheme}://${signIn}${server.host}:${server.port}/${database}`, {
    autoReconnect: false,
    enableOfflineQueue: false,
    connectionTimeout: connectTimeoutMs,
    ...(tls !== undefined && { tls }),
  });
}
