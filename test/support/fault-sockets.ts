import { existsSync, readFileSync } from "node:fs";

/** The kernel's list of TCP connections; only Linux has it. */
const socketTable = "/proc/net/tcp";
const established = "01";

export const hasSocketTable = existsSync(socketTable);

/**
 * Open connections of a server on this machine, by the port of their caller, with the written bytes
 * that the caller has not taken yet.
 */
function sendQueues(serverPort: number): ReadonlyMap<number, number> {
  const queues = new Map<number, number>();
  const [, ...lines] = readFileSync(socketTable, "utf8").trim().split("\n");
  for (const line of lines) {
    const [, local = "", remote = "", state, sizes = ""] = line.trim().split(/\s+/);
    if (state !== established || portOf(local) !== serverPort) continue;
    queues.set(portOf(remote), Number.parseInt(sizes.split(":")[0] ?? "0", 16));
  }
  return queues;
}

/** `0100007F:1F90` is port 8080 of this machine. */
function portOf(address: string): number {
  return Number.parseInt(address.split(":")[1] ?? "0", 16);
}

export interface Stall {
  /** When the last bytes were written to the caller. */
  stalledAtMs: number;
  /** When the connection was found closed; undefined while it is open. */
  closedAtMs: number | undefined;
}

/** Watches the connections of a server: when each was last written to, and when it was closed. */
export class StallWatch {
  readonly stalls = new Map<number, Stall>();
  readonly #port: number;
  #queues: ReadonlyMap<number, number> = new Map();

  constructor(port: number) {
    this.#port = port;
  }

  /** Whether one of the connections that stalled is still open. */
  get hasOpen(): boolean {
    return [...this.stalls.values()].some(({ closedAtMs }) => closedAtMs === undefined);
  }

  /** Call regularly: times are as exact as calls are frequent. */
  sample(): void {
    const nowMs = performance.now();
    const queues = sendQueues(this.#port);
    for (const [caller, bytes] of queues) {
      if (bytes === 0 || this.#queues.get(caller) === bytes) continue;
      this.stalls.set(caller, { stalledAtMs: nowMs, closedAtMs: undefined });
    }
    for (const caller of this.#queues.keys()) {
      const stall = this.stalls.get(caller);
      if (!queues.has(caller) && stall !== undefined) stall.closedAtMs = nowMs;
    }
    this.#queues = queues;
  }
}
