import { rmSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../domain/system-files.ts";
import type { Logger } from "../../telemetry/log/logger.ts";
import { serveUnix } from "../unix-server.ts";

/** Path of the parent's socket, on which commands of this user ask for a restart. */
function socketPath(dataDir: string): string {
  return join(dataDir, "parent.sock");
}

const done = "ok";

export interface RestartOptions {
  /** Resolves to the reason if the restart failed. */
  readonly restart: () => Promise<string | undefined>;
  readonly logger: () => Pick<Logger, "log">;
}

/** Accepts requests to restart. Never throws: a gateway without them serves too. */
export function acceptRestarts(
  dataDir: string,
  { restart, logger }: RestartOptions,
): Disposable | undefined {
  const path = socketPath(dataDir);
  try {
    const server = listen(path, async () => {
      logger().log("info", "restarting");
      const reason = await restart();
      if (reason === undefined) logger().log("info", "restarted");
      else logger().log("error", "the restart failed", { reason });
      return reason;
    });
    return {
      [Symbol.dispose]() {
        void server.stop(true);
        rmSync(path, { force: true });
      },
    };
  } catch (error) {
    const reason = errorCode(error) ?? "unknown";
    logger().log("warn", "`sluice restart` will not reach this gateway", { reason });
    return undefined;
  }
}

function listen(path: string, restart: () => Promise<string | undefined>) {
  return serveUnix({
    path,
    // A restart takes as long as its processes do.
    isUntimed: true,
    async fetch(request) {
      if (request.method !== "POST") return new Response();
      return new Response((await restart()) ?? done);
    },
  });
}

/** Whether the parent of a gateway runs on this data directory. */
export async function hasParent(dataDir: string): Promise<boolean> {
  try {
    await fetch("http://parent/", { unix: socketPath(dataDir) });
    return true;
  } catch {
    return false;
  }
}

/**
 * Resolves when the gateway has restarted, or to the reason why not. Rejects when no parent listens.
 */
export async function askForRestart(dataDir: string): Promise<string | undefined> {
  let text: string;
  try {
    // Without a timeout: a restart takes as long as its processes do.
    const response = await fetch("http://parent/restart", {
      method: "POST",
      unix: socketPath(dataDir),
      timeout: false,
    } as RequestInit);
    text = await response.text();
  } catch (error) {
    if (errorCode(error) === "ECONNRESET") return "the gateway ended meanwhile";
    throw error;
  }
  return text === done ? undefined : text;
}
