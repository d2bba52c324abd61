import type { PortUse } from "../../edge/listen.ts";
import type { LogLevel } from "../../telemetry/log/logger.ts";
import type { FailureFacts } from "../failure-facts.ts";

/* The parent and its gateway processes: messages, sent as JSON over the runtime's channel. */

/** With what a process begins. Until then it opens nothing. */
export interface Beginning {
  /** Among the processes of this gateway, from 1. */
  readonly number: number;
  readonly portUse: Exclude<PortUse, "alone">;
  /** Arguments added to those of the command line. */
  readonly addresses: readonly string[];
  /** Where processes of this gateway listen; at any other port nobody may. */
  readonly ownPorts: readonly number[];
  /** The data directory of a process that crashed: the last good configuration is there. */
  readonly crashedIn: string | undefined;
}

/** What the parent needs of the configuration, which it does not read itself. */
export interface GatewaySettings {
  /** Absolute. */
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly logFormat: "text" | "json";
  readonly processes: number;
  /** Of the listeners; 0: the system chooses. */
  readonly ports: readonly number[];
  /** Whether there is a configuration file to reload; without one, SIGHUP ends the gateway. */
  readonly isReloadable: boolean;
}

export type ChildMessage =
  | ({ readonly kind: "settings" } & GatewaySettings)
  /** The process serves; others get these arguments to listen on the same addresses. */
  | { readonly kind: "started"; readonly addresses: readonly string[] }
  /** The process ends before it serves, for this reason. */
  | { readonly kind: "not-started"; readonly reason: string }
  /** A signal came to the process itself, and none like it by way of the parent. */
  | { readonly kind: "ignored"; readonly signal: PassedSignal }
  /** An uncaught exception ends the process. */
  | ({ readonly kind: "failure" } & FailureFacts);

/** Signals that the parent forwards; terminals and init systems may signal its processes too. */
export type PassedSignal = "SIGTERM" | "SIGINT" | "SIGHUP";

export type ParentMessage =
  | ({ readonly kind: "begin" } & Beginning)
  | { readonly kind: "signal"; readonly name: PassedSignal }
  /** A successor serves: finish what is open, then end. */
  | { readonly kind: "replaced" };

/** A gateway process, as its parent sees it. */
export interface Child {
  readonly pid: number;
  /** Resolves when it has ended, after its last message. */
  readonly ended: Promise<ChildEnd>;
  /** These do nothing once it has ended. */
  begin(beginning: Beginning): void;
  replaced(): void;
  pass(signal: PassedSignal): void;
  kill(): void;
}

export interface ChildEnd {
  /** As in a shell: 128 plus the number of the signal that ended it. */
  readonly exitCode: number;
  readonly signal: string | undefined;
  readonly peakResidentBytes: number | undefined;
}

export interface ChildProgram {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * Settings that the runtime reads from its environment at start; the operator's own values have
 * precedence. They shorten the longest turns of the event loop, or save memory.
 */
export const runtimeSettings: Readonly<Record<string, string>> = {
  // Milliseconds between two searches for free pages in the memory of a waiting thread. The thread
  // cannot continue before another thread has ended the search, however long that one waits for a
  // core. By default there are several a second.
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "60000",
  // Milliseconds between two garbage collections that are started only by the clock. Default: 1000.
  BUN_GC_TIMER_INTERVAL: "10000",
  // Bytes that may at least be allocated before a garbage collection, whose time depends on what it
  // keeps rather than on what it frees. Default: 8 MB.
  BUN_JSC_largeHeapSize: String(32 * 1024 * 1024),
  // How much more often a function must run before it is compiled while the process starts: most of
  // what a start runs never runs again, and its code would stay.
  BUN_JSC_startupJITDeferralScale: "10",
  // A whole collection follows when what a partial one may use falls below this share of the heap.
  // Partial ones keep what is open at that moment for good: 2 MB each under load. Default: 1/3.
  BUN_JSC_minEdenToOldGenerationRatio: "0.5",
};

const lastMessageMs = 100;

/** Starts a process with this one's standard streams. It waits for `begin`. */
export function startChild(
  { command, environment }: ChildProgram,
  onMessage: (message: ChildMessage) => void,
): Child {
  const disconnected = Promise.withResolvers<void>();
  const child = Bun.spawn([...command], {
    stdio: ["inherit", "inherit", "inherit"],
    env: { ...runtimeSettings, ...environment },
    // Its own process group, so that a terminal's signals reach only the parent, which forwards
    // them.
    detached: true,
    serialization: "json",
    // Nothing else uses the channel.
    ipc: (message: ChildMessage) => onMessage(message),
    onDisconnect: () => disconnected.resolve(),
  });
  const send = (message: ParentMessage): void => {
    try {
      child.send(message);
    } catch {
      // It has ended or is about to, which `ended` reports.
    }
  };
  return {
    pid: child.pid,
    ended: child.exited.then(async (exitCode) => {
      // Its last message may still be in the channel, which its own children may keep open.
      await Promise.race([disconnected.promise, Bun.sleep(lastMessageMs)]);
      return {
        exitCode,
        signal: child.signalCode === null ? undefined : String(child.signalCode),
        peakResidentBytes: child.resourceUsage()?.maxRSS,
      };
    }),
    begin: (beginning) => send({ kind: "begin", ...beginning }),
    replaced: () => send({ kind: "replaced" }),
    pass: (name) => send({ kind: "signal", name }),
    kill: () => child.kill("SIGKILL"),
  };
}
