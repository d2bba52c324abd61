import { readFileSync } from "node:fs";

/** Shorter than any connect timeout of the suite. */
const intervalMs = 50;
const synSent = "02";

/**
 * Reports every connection attempt to a loopback port that does not answer, once: the listener does
 * not see it, but the system lists the caller's socket (proc_pid_net(5)).
 */
export function watchConnecting(port: number, onAttempt: () => void): Disposable {
  const known = new Set<string>();
  const destination = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const look = (): void => {
    for (const line of readFileSync("/proc/net/tcp", "latin1").split("\n")) {
      if (!line.includes(destination)) continue;
      const [, local = "", remote, state] = line.trim().split(/\s+/);
      if (remote !== destination || state !== synSent || known.has(local)) continue;
      known.add(local);
      onAttempt();
    }
  };
  const timer = setInterval(look, intervalMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
