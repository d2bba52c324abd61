import type { HostAndPort } from "../../../../domain/addresses/valkey-address.ts";
import { clusterSlots, keySlot } from "./key-slot.ts";
import type { ServerLine } from "./server-line.ts";
import { listOf } from "./list-of.ts";
import type { ConnectionProblem } from "./connection-problem.ts";
import { errorCode, isMoving, notSent, problemOf, ValkeyUnavailable } from "./valkey-errors.ts";

/** A command, as for one server. */
type Sent = Parameters<ServerLine["send"]>;

/** Commands by the slot of a key. */
export interface CommandLines {
  open(): Promise<void>;
  send(key: string, ...sent: Sent): Promise<unknown>;
  close(): void;
}

export interface ClusterObserver {
  /** Called with the name of a server that has no slots any more. */
  readonly onDropped: (name: string) => void;
  /** Called with the reason when no server tells which one has which keys; undefined: one did. */
  readonly onSlots: (reason: string | undefined) => void;
}

/** The servers of a cluster. A key's server is asked; when it says that another has the key, that. */
export class ClusterLines implements CommandLines {
  readonly #seeds: readonly HostAndPort[];
  readonly #newLine: (server: HostAndPort) => ServerLine;
  readonly #observer: ClusterObserver;
  readonly #lines = new Map<string, ServerLine>();
  readonly #bySlot = Array.from<ServerLine | undefined>({ length: clusterSlots });
  #loading: Promise<void> | undefined;
  /** Why the last server that was asked for the slots did not tell. */
  #refusal: ConnectionProblem | undefined;

  constructor(
    seeds: readonly HostAndPort[],
    newLine: (server: HostAndPort) => ServerLine,
    observer: ClusterObserver,
  ) {
    this.#seeds = seeds;
    this.#newLine = newLine;
    this.#observer = observer;
  }

  async open(): Promise<void> {
    await Promise.all(this.#seeds.map((seed) => this.#lineTo(seed)));
    await this.#load();
  }

  async send(key: string, ...sent: Sent): Promise<unknown> {
    const slot = keySlot(key);
    const line = this.#bySlot[slot];
    if (line === undefined) {
      void this.#load();
      throw this.#unknownSlot();
    }
    try {
      return await line.send(...sent);
    } catch (error) {
      if (!line.isUp) void this.#load();
      if (!isMoved(error)) throw notNow(error);
      await this.#load();
      const [, , place = ""] = error.message.split(" ");
      const next = errorCode(error) === "ASK" ? this.#lines.get(place) : this.#bySlot[slot];
      if (next === undefined) throw new ValkeyUnavailable(error.message);
      // Both go out in one turn on one connection, so nothing comes between them.
      if (errorCode(error) === "ASK") next.send("ASKING", []).catch(() => undefined);
      return next.send(...sent).catch((again: unknown) => {
        throw notNow(again);
      });
    }
  }

  /** Says why: no server can be asked, or one refuses to tell. */
  #unknownSlot(): ValkeyUnavailable {
    const lines = [...this.#lines.values()];
    const problem = lines.some(({ isUp }) => isUp) ? this.#refusal : lines[0]?.problem;
    return notSent(problem?.text ?? "the servers of the cluster are not known yet", problem?.kind);
  }

  close(): void {
    for (const line of this.#lines.values()) line.close();
  }

  /** Asks one server for the slots of all. */
  #load(): Promise<void> {
    this.#loading ??= this.#readSlots().finally(() => (this.#loading = undefined));
    return this.#loading;
  }

  async #readSlots(): Promise<void> {
    for (const line of [...this.#lines.values()].filter(({ isUp }) => isUp)) {
      const reply = await line.send("CLUSTER", ["SLOTS"]).catch((error: unknown) => {
        this.#refusal = problemOf(error);
        return null;
      });
      const ranges = readRanges(reply);
      if (ranges.length === 0) continue;
      for (const { first, last, server } of ranges) {
        this.#bySlot.fill(await this.#lineTo(server), first, last + 1);
      }
      this.#dropUnused();
      this.#refusal = undefined;
      this.#observer.onSlots(undefined);
      return;
    }
    // What was known before still leads somewhere.
    const isUnknown = this.#bySlot.every((line) => line === undefined);
    if (isUnknown && this.#refusal !== undefined) this.#observer.onSlots(this.#refusal.text);
  }

  /** A server that failed over is a replica now, or gone: it decides nothing. */
  #dropUnused(): void {
    const used = new Set(this.#bySlot);
    for (const [name, line] of this.#lines) {
      if (used.has(line)) continue;
      line.close();
      this.#lines.delete(name);
      this.#observer.onDropped(name);
    }
  }

  async #lineTo(server: HostAndPort): Promise<ServerLine> {
    const name = nameOfServer(server);
    const known = this.#lines.get(name);
    if (known !== undefined) return known;
    const line = this.#newLine(server);
    this.#lines.set(name, line);
    await line.open();
    return line;
  }
}

export function nameOfServer({ host, port }: HostAndPort): string {
  return `${host}:${port}`;
}

interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly server: HostAndPort;
}

/** Ranges of `CLUSTER SLOTS`: first, last, then the primary and its replicas. */
function readRanges(reply: unknown): SlotRange[] {
  const ranges: SlotRange[] = [];
  for (const range of listOf(reply)) {
    const [first, last, primary] = listOf(range);
    const [host, port] = listOf(primary);
    if (typeof first !== "number" || typeof last !== "number") continue;
    if (typeof host !== "string" || typeof port !== "number") continue;
    ranges.push({ first, last, server: { host, port } });
  }
  return ranges;
}

/** What a slot that moves has refused may be sent again. */
function notNow(error: unknown): unknown {
  return isMoving(error) ? new ValkeyUnavailable(error.message) : error;
}

function isMoved(error: unknown): error is Error {
  return isMoving(error) && errorCode(error) !== "TRYAGAIN";
}
