import type { HealthHint } from "../../../../routing/health/target-health.ts";
import type { ValkeyConnection } from "../../../../store/coordinator/valkey/connection/valkey-connection.ts";

export interface HealthChannelOptions {
  readonly connection: Pick<ValkeyConnection, "publish" | "subscribe">;
  /** The name of this process, which ignores its own hints. */
  readonly process: string;
}

const channel = "sluice:health";
/** Longer ejections are not believed. */
const longestMs = 3_600_000;
const longestText = 1_000;

/**
 * What processes tell each other about targets. A hint is advice: one that is lost, is not well
 * formed or names an unknown target changes nothing.
 */
export class HealthChannel {
  readonly #options: HealthChannelOptions;
  #stop: () => void = () => undefined;

  constructor(options: HealthChannelOptions) {
    this.#options = options;
  }

  tell(hint: HealthHint): void {
    const { connection, process } = this.#options;
    connection.publish(channel, JSON.stringify({ ...hint, process })).catch(() => undefined);
  }

  hear(hear: (hint: HealthHint) => void): void {
    const { connection, process } = this.#options;
    this.#stop = connection.subscribe(channel, (message) => {
      const hint = parseHint(message, process);
      if (hint !== undefined) hear(hint);
    });
  }

  close(): void {
    this.#stop();
  }
}

/** Undefined: not well formed, or of the process itself. */
export function parseHint(message: string, ownProcess: string): HealthHint | undefined {
  const { target, key, ejected, process } = objectOf(message);
  if (process === ownProcess || !isText(target)) return undefined;
  if (key !== undefined && !isText(key)) return undefined;
  if (ejected === undefined) return { target, key, ejected };
  if (typeof ejected !== "object" || ejected === null) return undefined;
  const { forMs, times, because }: Record<string, unknown> = { ...ejected };
  if (!isNumber(forMs) || forMs > longestMs || !isNumber(times) || !isText(because)) {
    return undefined;
  }
  return { target, key, ejected: { forMs, times, because } };
}

function objectOf(message: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(message);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.length <= longestText;
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
