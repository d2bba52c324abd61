import type { VirtualTime } from "../virtual-time.ts";

/** What happens to the server, in milliseconds of the run. */
export type ServerFault =
  /** It executes nothing, but keeps what arrives (SIGSTOP, a long fork). */
  | { readonly kind: "frozen"; readonly fromMs: number; readonly untilMs: number }
  /** What is queued and what arrives is lost, and so is its state. */
  | { readonly kind: "killed"; readonly fromMs: number; readonly untilMs: number }
  /** It loses its state, and continues at once. */
  | { readonly kind: "flushed"; readonly fromMs: number };

export interface SharedServerOptions {
  readonly time: VirtualTime;
  readonly fault: ServerFault | undefined;
  readonly onStateLost: () => void;
}

interface Command {
  /** How long it takes; a function executes it as it begins. */
  readonly serviceMs: number | (() => number);
  readonly run: () => void;
  readonly fail: () => void;
}

/** A server that executes one command at a time, in order of arrival, as Valkey does. */
export class SharedServer {
  readonly #options: SharedServerOptions;
  readonly #queue: Command[] = [];
  #isBusy = false;
  /** Time spent executing. */
  busyMs = 0;
  /** Executed. */
  commands = 0;
  longestQueue = 0;

  constructor(options: SharedServerOptions) {
    this.#options = options;
    const { time, fault } = options;
    if (fault === undefined) return;
    time.schedule(() => this.#begin(fault), fault.fromMs);
    if (fault.kind !== "flushed") time.schedule(() => this.#next(), fault.untilMs);
  }

  /**
   * `run`: the effect of the command, or its answer, at the end of its execution. `fail`: the
   * connection is gone.
   */
  arrive(command: Command): void {
    if (this.#isDown("killed")) {
      command.fail();
      return;
    }
    this.#queue.push(command);
    this.longestQueue = Math.max(this.longestQueue, this.#queue.length);
    if (!this.#isBusy) this.#next();
  }

  #begin({ kind }: ServerFault): void {
    if (kind === "frozen") return;
    this.#options.onStateLost();
    if (kind === "killed") for (const { fail } of this.#queue.splice(0)) fail();
  }

  #next(): void {
    if (this.#isBusy || this.#isDown("frozen")) return;
    const command = this.#queue.shift();
    if (command === undefined) return;
    this.#isBusy = true;
    const { serviceMs } = command;
    const takesMs = typeof serviceMs === "number" ? serviceMs : serviceMs();
    this.busyMs += takesMs;
    this.commands += 1;
    this.#options.time.schedule(() => {
      this.#isBusy = false;
      if (this.#isDown("killed")) command.fail();
      else command.run();
      this.#next();
    }, takesMs);
  }

  #isDown(kind: "frozen" | "killed"): boolean {
    const { time, fault } = this.#options;
    if (fault?.kind !== kind) return false;
    return time.now >= fault.fromMs && time.now < fault.untilMs;
  }
}
