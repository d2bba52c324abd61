import type {
  Beginning,
  Child,
  ChildEnd,
  ChildMessage,
  GatewaySettings,
  PassedSignal,
} from "../../src/process/parent/child.ts";
import { Parent, type Crash } from "../../src/process/parent/parent.ts";
import { virtualClock } from "./virtual-clock.ts";

/** A process that the test controls. */
export class StagedProcess implements Child {
  readonly pid: number;
  readonly passed: PassedSignal[] = [];
  readonly #end = Promise.withResolvers<ChildEnd>();
  readonly ended = this.#end.promise;
  readonly #say: (message: ChildMessage) => void;
  readonly #settle: () => void;
  beginning: Beginning | undefined;
  isReplaced = false;
  isKilled = false;

  constructor(pid: number, say: (message: ChildMessage) => void, settle: () => void) {
    this.pid = pid;
    this.#say = say;
    this.#settle = settle;
  }

  say(message: ChildMessage): void {
    this.#say(message);
    this.#settle();
  }

  read(settings: Partial<GatewaySettings> = {}): void {
    this.say({ kind: "settings", ...settingsWith(settings) });
  }

  serve(settings: Partial<GatewaySettings> = {}): void {
    this.read(settings);
    this.say({ kind: "started", addresses: [] });
  }

  begin(beginning: Beginning): void {
    this.beginning = beginning;
  }

  replaced(): void {
    this.isReplaced = true;
  }

  pass(signal: PassedSignal): void {
    this.passed.push(signal);
  }

  kill(): void {
    this.isKilled = true;
    this.end("SIGKILL");
  }

  end(how: number | string): void {
    const exitCode = typeof how === "number" ? how : 128;
    const signal = typeof how === "number" ? undefined : how;
    this.#end.resolve({ exitCode, signal, peakResidentBytes: undefined });
    this.#settle();
  }
}

export function settingsWith(more: Partial<GatewaySettings>): GatewaySettings {
  const telemetry = { logLevel: "info", logFormat: "text" } as const;
  return { dataDir: "/data", processes: 1, ports: [], isReloadable: true, ...telemetry, ...more };
}

/** A parent on a clock that only the test moves. */
export class Stage {
  readonly #time = virtualClock();
  readonly processes: StagedProcess[] = [];
  readonly crashes: Crash[] = [];
  readonly refusals: { error: unknown; nextStartMs: number | undefined }[] = [];
  readonly served: GatewaySettings[] = [];
  refusal: Error | undefined;
  readonly parent = new Parent({
    clock: this.#time.clock,
    start: (onMessage) => {
      if (this.refusal !== undefined) throw this.refusal;
      const child = new StagedProcess(this.processes.length + 1, onMessage, () => this.advance(0));
      this.processes.push(child);
      return child;
    },
    onCrash: (crash) => void this.crashes.push(crash),
    onIgnored: () => undefined,
    onStartRefused: (error, nextStartMs) => void this.refusals.push({ error, nextStartMs }),
    onServing: (settings) => void this.served.push(settings),
  });
  readonly ended: Promise<number>;

  constructor(refusal?: Error) {
    this.refusal = refusal;
    this.ended = this.parent.run();
  }

  advance(durationMs: number): void {
    this.#time.advance(durationMs);
  }

  /** The process that was started as the `nth`. */
  nth(nth: number): StagedProcess {
    const found = this.processes[nth - 1];
    if (found === undefined) throw new Error(`only ${this.processes.length} were started`);
    return found;
  }

  /** A gateway of so many processes that serve. */
  serve(processes: number): readonly StagedProcess[] {
    this.nth(1).serve({ processes });
    for (const child of this.processes.slice(1)) child.serve({ processes });
    return [...this.processes];
  }

  restart(): Promise<string | undefined> {
    const outcome = this.parent.restart();
    this.advance(0);
    return outcome;
  }

  async end(): Promise<number> {
    this.parent.pass("SIGTERM");
    for (const child of this.processes) child.end(0);
    return this.ended;
  }
}

export const outOfProcesses = Object.assign(new Error("spawn"), { code: "EAGAIN" });
