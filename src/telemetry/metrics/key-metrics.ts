import { Counter } from "./counter.ts";

/** Keys with series of their own; requests of all others are counted together. */
const mostKeys = 1_000;
const others = "other";

/** Requests by key and answer. The number of series is bounded, whatever the number of keys. */
export class KeyMetrics {
  readonly #requests = new Counter({
    name: "sluice_key_requests_total",
    help:
      "Requests by key and answer. The first 1000 keys of each process have their own " +
      "series; all others are `other`.",
    labelNames: ["key", "answer"],
  });
  readonly #keys = new Set<string>();

  answered(keyId: string, status: number): void {
    if (this.#keys.size < mostKeys) this.#keys.add(keyId);
    const key = this.#keys.has(keyId) ? keyId : others;
    this.#requests.add([key, answerOf(status)], 1);
  }

  render(): string {
    return this.#requests.render();
  }
}

/** Who caused the answer; five values. */
function answerOf(status: number): string {
  if (status < 400) return "ok";
  if (status === 429) return "limited";
  if (status === 499) return "left";
  return status < 500 ? "refused" : "failed";
}
