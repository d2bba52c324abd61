import { createHash } from "node:crypto";
import Redis, { Cluster, type RedisOptions } from "iovalkey";
import type { ValkeyAddress } from "../../../domain/addresses.ts";
import { isObject } from "../../../domain/json-object.ts";
import { problemOf, ValkeyUnavailable } from "./problems.ts";

/** A script in Lua. The client sends its digest, and its text to a server that does not know it. */
export interface ValkeyScript {
  readonly name: string;
  readonly text: string;
}

export interface ValkeyClientOptions {
  readonly address: ValkeyAddress;
  /** Authorities for the server's certificate, in PEM format, instead of the default ones. */
  readonly authorities?: string | undefined;
  /** How long a command waits for its answer. */
  readonly timeoutMs: number;
}

export type Parameter = string | number;

/** Enough to spread over the servers of a cluster, few enough to be looked at each second. */
const clusterShards = 32;
const connectTimeoutMs = 2_000;
const retryMs = 100;
/** After so many late answers in a row, the connection may lead to a server that was replaced. */
const mostLate = 5;

type Sender = (...parameters: Parameter[]) => Promise<unknown>;

/** A connection to a server, to the primary that Sentinels name, or to the servers of a cluster. */
export class ValkeyClient {
  /** How many hash tags divide the keys; 1 unless there are several servers to use. */
  readonly shards: number;
  readonly #options: ValkeyClientOptions;
  readonly #redis: Redis | Cluster;
  readonly #senders = new Map<ValkeyScript, Sender>();
  /** Why the server cannot be reached; undefined: it can, or nothing is known. */
  #problem: unknown;
  /** Set while the server refuses the database of this connection: it would use another one. */
  #wrongDatabase: ValkeyUnavailable | undefined;
  #late = 0;
  #wasUsed = false;

  constructor(options: ValkeyClientOptions) {
    this.#options = options;
    const isCluster = options.address.topology === "cluster";
    this.shards = isCluster ? clusterShards : 1;
    this.#redis = isCluster ? newCluster(options) : newSingle(options);
    this.#redis.on("connect", () => (this.#wrongDatabase = undefined));
    this.#redis.on("error", (error: unknown) => {
      this.#problem = error;
      if (isRefusedSelect(error)) {
        const { database } = options.address;
        this.#wrongDatabase = new ValkeyUnavailable(
          `database ${database} cannot be used: ${error.message}`,
          "database",
        );
      }
    });
    this.#redis.on("node error", (error: unknown) => (this.#problem = error));
  }

  /** Resolves when connected, or when the first try has failed; it goes on trying. */
  async open(): Promise<void> {
    const connected = this.#redis.connect().catch((error: unknown) => (this.#problem ??= error));
    await Promise.race([connected, Bun.sleep(connectTimeoutMs)]);
  }

  /** `changed`: called when a connection is lost and when one is made, before anything is sent on it. */
  onConnection(changed: () => void): void {
    for (const event of ["close", "-node", "ready", "+node"]) this.#redis.on(event, changed);
  }

  /**
   * Runs a script, whose keys are in one slot of a cluster. Rejects with `ValkeyUnavailable`, or
   * with the error of a script that is wrong. An answer that came too late is in `late`.
   */
  run(script: ValkeyScript, keys: readonly string[], parameters: readonly Parameter[]) {
    return this.#answer(() => this.#senderOf(script)(keys.length, ...keys, ...parameters));
  }

  /** Runs one command, on any server of a cluster. */
  send(command: string, parameters: readonly string[]): Promise<unknown> {
    return this.#answer(() => this.#redis.call(command, [...parameters]));
  }

  close(): void {
    this.#redis.disconnect();
  }

  #answer(ask: () => Promise<unknown>): Promise<unknown> {
    const { timeoutMs } = this.#options;
    if (this.#wrongDatabase !== undefined) return Promise.reject(this.#wrongDatabase);
    return new Promise((resolve, reject) => {
      const asked = ask();
      const timer = setTimeout(() => {
        this.#isLate();
        reject(new ValkeyUnavailable(`no answer within ${timeoutMs} ms`, "silent", asked));
      }, timeoutMs);
      asked.then(
        (answer) => {
          clearTimeout(timer);
          if (this.#wrongDatabase !== undefined) return reject(this.#wrongDatabase);
          this.#late = 0;
          this.#wasUsed = true;
          this.#problem = undefined;
          resolve(answer);
        },
        (error: unknown) => {
          clearTimeout(timer);
          reject(this.#errorOf(error));
        },
      );
    });
  }

  /** The client's own words for a lost connection say less than the reason for which it was lost. */
  #errorOf(error: unknown): unknown {
    const { kind, text } = problemOf(error);
    if (kind === "script") return error;
    // After a refused password, the server only says that one is missing.
    if (kind !== "other" && kind !== "password") return new ValkeyUnavailable(text, kind);
    const { isTls } = this.#options.address;
    const shown = this.#problem === undefined ? { kind, text } : problemOf(this.#problem);
    if (kind === "password" && shown.kind !== "password") return new ValkeyUnavailable(text, kind);
    if (isTls && (shown.kind === "silent" || (shown.kind === "other" && !this.#wasUsed))) {
      return new ValkeyUnavailable("it does not answer; perhaps only without TLS", "encryption");
    }
    if (!isTls && shown.kind === "other" && !this.#wasUsed) {
      return new ValkeyUnavailable(`${shown.text}; perhaps it answers only with TLS`, "encryption");
    }
    return new ValkeyUnavailable(shown.text, shown.kind === "script" ? "other" : shown.kind);
  }

  /** Connects anew, because Sentinels, a cluster or the name server may know another server now. */
  #isLate(): void {
    this.#late += 1;
    if (this.#late % mostLate !== 0) return;
    if (this.#redis instanceof Cluster) {
      for (const node of this.#redis.nodes("master")) node.disconnect(true);
    } else this.#redis.disconnect(true);
  }

  #senderOf(script: ValkeyScript): Sender {
    let sender = this.#senders.get(script);
    if (sender === undefined) {
      const digest = createHash("sha1").update(script.text).digest("hex").slice(0, 8);
      const name = `${script.name}${digest}`;
      this.#redis.defineCommand(name, { lua: script.text });
      const command: unknown = Reflect.get(this.#redis, name);
      if (typeof command !== "function") throw new TypeError(`${name} is not a command`);
      sender = async (...parameters) => {
        const answer: unknown = await Reflect.apply(command, this.#redis, parameters);
        return answer;
      };
      this.#senders.set(script, sender);
    }
    return sender;
  }
}

/** The client only tells that its first command was refused, and would go on in database 0. */
function isRefusedSelect(error: unknown): error is Error {
  if (!(error instanceof Error && "command" in error)) return false;
  const { command, message } = error;
  const isSelect = isObject(command) && command["name"] === "select";
  return isSelect && /^(?:ERR|NOPERM)\b/.test(message);
}

/** Nothing waits for a connection, and nothing is sent twice: the callers decide what to do. */
function commonOf({ address, authorities }: ValkeyClientOptions): RedisOptions {
  const { username, password, isTls } = address;
  return {
    ...(username !== "" && { username }),
    ...(password !== "" && { password }),
    ...(isTls && { tls: authorities === undefined ? {} : { ca: authorities } }),
    lazyConnect: true,
    // A look comes before anything that counts, and a frozen server must not hold a start.
    enableReadyCheck: false,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: connectTimeoutMs,
    retryStrategy: () => retryMs,
    // A primary that has become a replica, or loads its data, is asked for again.
    reconnectOnError: (error) => /^(READONLY|LOADING|MASTERDOWN)/.test(error.message),
  };
}

function newSingle(options: ValkeyClientOptions): Redis {
  const { hosts, service, topology, database, isTls } = options.address;
  const common = { ...commonOf(options), db: database };
  const [first] = hosts;
  if (first === undefined) throw new TypeError("an address names at least one server");
  if (topology !== "sentinel") return new Redis({ ...common, ...hostOf(first) });
  const { tls } = common;
  return new Redis({
    ...common,
    sentinels: hosts.map(hostOf),
    name: service,
    ...(isTls && tls !== undefined && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
    sentinelRetryStrategy: () => retryMs,
    sentinelCommandTimeout: connectTimeoutMs / 2,
  });
}

function newCluster(options: ValkeyClientOptions): Cluster {
  return new Cluster(options.address.hosts.map(hostOf), {
    redisOptions: commonOf(options),
    lazyConnect: true,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    clusterRetryStrategy: () => retryMs,
    slotsRefreshTimeout: connectTimeoutMs,
    slotsRefreshInterval: 5_000,
    // By address, as certificates may name it.
    dnsLookup: (host, done) => done(null, host),
  });
}

function hostOf({ host, port }: ValkeyAddress["hosts"][number]) {
  return { host: host.replace(/^\[(.*)\]$/, "$1"), port };
}
