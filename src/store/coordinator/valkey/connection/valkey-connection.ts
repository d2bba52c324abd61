import { createHash } from "node:crypto";
import type { Clock } from "../../../../domain/clock.ts";
import type { HostAndPort, ValkeyAddress } from "../../../../domain/addresses/valkey-address.ts";
import { ClusterLines, nameOfServer, type CommandLines } from "./cluster-lines.ts";
import { locatePrimary } from "./locate-primary.ts";
import { ServerLine, type Urgency } from "./server-line.ts";
import type { ServerSettings } from "./server-settings.ts";
import { Subscriptions } from "./subscriptions.ts";
import { errorCode, ValkeyUnavailable } from "./valkey-errors.ts";

/** A script that the server runs as one step. */
export interface ValkeyScript extends Urgency {
  readonly name: string;
  readonly text: string;
  readonly digest: string;
}

export function scriptOf(
  name: string,
  text: string,
  { isDecision = false }: Partial<Urgency> = {},
): ValkeyScript {
  return { name, text, digest: createHash("sha1").update(text).digest("hex"), isDecision };
}

/** The connection of a process to Valkey or Redis. */
export interface ValkeyConnection {
  /** Connects, or fails once and goes on trying in the background. */
  open(): Promise<void>;
  /**
   * Runs a script in one round trip; those of one turn go out together. All keys have one hash tag.
   * Throws `ValkeyUnavailable` at once while the connection is down, else after the time-out.
   */
  run(
    script: ValkeyScript,
    keys: readonly [string, ...string[]],
    parameters: readonly string[],
  ): Promise<unknown>;
  /** A command without a script, for checks and reports. */
  send(key: string, command: string, parameters: readonly string[]): Promise<unknown>;
  /** Throws `ValkeyUnavailable`; subscribers that are not connected miss the message. */
  publish(channel: string, message: string): Promise<void>;
  /** Calls the listener for each message, also after reconnections. Returns how to end it. */
  subscribe(channel: string, listener: (message: string) => void): () => void;
  /** Whether all servers that are known answer. */
  readonly isUp: boolean;
  /**
   * Called with a reason at the end of `open` or later, when the connection does not work, and again
   * when the reason changes; with undefined when it works again: messages may have been missed.
   */
  onChange(listener: (reason: string | undefined) => void): void;
  close(): void;
}

export interface ValkeyConnectionOptions {
  readonly address: ValkeyAddress;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Loaded on each new connection, so that no step comes late because it has to be sent whole. */
  readonly scripts: readonly ValkeyScript[];
  /** Certificates in PEM; undefined: those of the system. */
  readonly authorities?: string | undefined;
}

export function connectValkey(options: ValkeyConnectionOptions): ValkeyConnection {
  return new RunningConnection(options);
}

class RunningConnection implements ValkeyConnection {
  readonly #lines: CommandLines;
  readonly #subscriptions: Subscriptions;
  readonly #listeners: ((reason: string | undefined) => void)[] = [];
  /** Servers that do not answer, with the reason; also the slots of a cluster. */
  readonly #down = new Map<string, string>();
  /** Before that, and after the end, listeners hear nothing. */
  #isOpen = false;
  #isClosed = false;
  /** What listeners know: null for nothing yet. */
  #told: string | undefined | null = null;

  constructor(options: ValkeyConnectionOptions) {
    const { address, timeoutMs, clock, scripts } = options;
    const settings = settingsOf(options);
    const newLine = (name: string, locate: () => Promise<HostAndPort>): ServerLine =>
      new ServerLine({
        ...settings,
        clock,
        timeoutMs,
        locate,
        prepare: (client) => load(client, scripts),
        onChange: (reason) => this.#changed(name, reason),
      });
    const locate = locatePrimary(address, settings, clock);
    this.#lines =
      address.topology === "cluster"
        ? new ClusterLines(
            address.hosts,
            (server) => newLine(nameOfServer(server), () => Promise.resolve(server)),
            {
              onDropped: (name) => this.#changed(name, undefined),
              onSlots: (reason) => this.#changed("slots", reason),
            },
          )
        : oneLine(newLine("", locate));
    this.#subscriptions = new Subscriptions({ ...settings, clock, timeoutMs, locate });
  }

  get isUp(): boolean {
    return this.#told === undefined;
  }

  async open(): Promise<void> {
    await this.#lines.open();
    this.#isOpen = !this.#isClosed;
    this.#tell();
  }

  run(
    { text, digest, isDecision }: ValkeyScript,
    keys: readonly [string, ...string[]],
    parameters: readonly string[],
  ): Promise<unknown> {
    const [key] = keys;
    const rest = [String(keys.length), ...keys, ...parameters];
    const urgency = { isDecision };
    return this.#lines.send(key, "EVALSHA", [digest, ...rest], urgency).catch((error: unknown) => {
      if (errorCode(error) !== "NOSCRIPT") throw error;
      return this.#lines.send(key, "EVAL", [text, ...rest], urgency);
    });
  }

  send(key: string, command: string, parameters: readonly string[]): Promise<unknown> {
    return this.#lines.send(key, command, [...parameters]);
  }

  async publish(channel: string, message: string): Promise<void> {
    await this.#lines.send(channel, "PUBLISH", [channel, message]);
  }

  subscribe(channel: string, listener: (message: string) => void): () => void {
    return this.#subscriptions.add(channel, listener);
  }

  onChange(listener: (reason: string | undefined) => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.#isClosed = true;
    this.#isOpen = false;
    this.#lines.close();
    this.#subscriptions.close();
  }

  #changed(server: string, reason: string | undefined): void {
    if (reason === undefined) this.#down.delete(server);
    else this.#down.set(server, reason);
    this.#tell();
  }

  /** Not before all servers have been tried: of those of a cluster, some may count for nothing. */
  #tell(): void {
    const [first] = this.#down.values();
    if (!this.#isOpen || first === this.#told) return;
    this.#told = first;
    if (first === undefined) this.#subscriptions.renew();
    for (const listener of this.#listeners) listener(first);
  }
}

async function load(client: Bun.RedisClient, scripts: readonly ValkeyScript[]): Promise<void> {
  await Promise.all(scripts.map(({ text }) => client.send("SCRIPT", ["LOAD", text])));
}

function settingsOf({ address, authorities }: ValkeyConnectionOptions): ServerSettings {
  const { username, password, database, isTls } = address;
  const tls = authorities === undefined || { ca: authorities };
  return { username, password, database, tls: isTls ? tls : undefined };
}

function oneLine(line: ServerLine): CommandLines {
  return {
    open: () => line.open(),
    send: (_key, ...sent) => line.send(...sent),
    close: () => line.close(),
  };
}

export { ValkeyUnavailable };
