import { readFileSync, writeFileSync } from "node:fs";
import type { Clock } from "../domain/clock.ts";

/* What the program is to the system that runs it. */

/** Exit codes of all commands. */
export const exitCodes = { ok: 0, failed: 1, usage: 2 } as const;

/**
 * `req_` and the 32 digits of a UUID of version 7: time and a count first, so that the rows of the
 * ledger are in the order of arrival, which changes few pages of the database.
 */
export function newRequestId(clock: Pick<Clock, "now">): string {
  return `req_${Bun.randomUUIDv7("buffer", Math.floor(clock.now())).toString("hex")}`;
}

/** Longest name that Linux keeps. */
const nameBytes = 15;

/** Sets the name that `ps -o comm` and `top` show, where the system has one to set. */
export function nameProcess(name: string): void {
  try {
    writeFileSync("/proc/self/comm", name.slice(0, nameBytes));
  } catch {
    // Only Linux has it, and it is a convenience.
  }
}

/** The build of an executable replaces it with a string. */
declare const SLUICE_COMMIT: string | undefined;

/** The commit that an executable was built from, or an npm package, or that of a checkout. */
export function readCommit(): string | undefined {
  if (typeof SLUICE_COMMIT === "string") return SLUICE_COMMIT;
  try {
    return readFileSync(new URL("../../commit", import.meta.url), "utf8").trim();
  } catch {
    return commitOfCheckout();
  }
}

/** Short enough to read, and long enough to be unique. Undefined without git. */
export function commitOfCheckout(): string | undefined {
  if (Bun.which("git") === null) return undefined;
  const { stdout } = Bun.spawnSync(["git", "rev-parse", "--short=12", "HEAD"], {
    cwd: import.meta.dir,
    stderr: "ignore",
  });
  return stdout.toString().trim() || undefined;
}

/**
 * Signals this close together count as one: terminals and some init systems signal every process,
 * and npm then forwards its own copy within 5 ms. A person takes longer to ask twice.
 */
export const sameSignalMs = 25;

/** Returns whether a signal that just arrived is a new request to stop, and no copy of the last. */
export function stopRequests(clock: Pick<Clock, "monotonic">): () => boolean {
  let countedAt = -Infinity;
  return () => {
    const now = clock.monotonic();
    if (now - countedAt < sameSignalMs) return false;
    countedAt = now;
    return true;
  };
}
