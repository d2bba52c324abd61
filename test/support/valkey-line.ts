import type { ValkeyClient } from "../../src/store/limits/valkey/client.ts";
import { ValkeyUnavailable } from "../../src/store/limits/valkey/problems.ts";

export type Fault = "none" | "unreachable" | "frozen" | "late";

/** What one process sees of the server. */
export class Line implements Pick<ValkeyClient, "run" | "shards" | "onConnection"> {
  readonly shards = 1;
  readonly #over: Pick<ValkeyClient, "run">;
  readonly #changed: (() => void)[] = [];
  #fault: Fault = "none";
  /** Commands that a frozen server still runs once it goes on. */
  readonly #frozen: (() => void)[] = [];

  constructor(over: Pick<ValkeyClient, "run">) {
    this.#over = over;
  }

  onConnection(changed: () => void): void {
    this.#changed.push(changed);
  }

  async run(...command: Parameters<ValkeyClient["run"]>): Promise<unknown> {
    switch (this.#fault) {
      case "none":
        return this.#over.run(...command);
      case "unreachable":
        throw new ValkeyUnavailable("the connection was refused", "refused");
      case "late":
        // The server has run it, and nobody hears the answer in time.
        throw new ValkeyUnavailable("no answer", "silent", this.#over.run(...command));
      case "frozen": {
        const { promise, resolve } = Promise.withResolvers<unknown>();
        this.#frozen.push(() => resolve(this.#over.run(...command)));
        throw new ValkeyUnavailable("no answer", "silent", promise);
      }
      default:
        return this.#fault satisfies never;
    }
  }

  reconnected(): void {
    for (const changed of this.#changed) changed();
  }

  set fault(fault: Fault) {
    this.#fault = fault;
    if (fault === "none") for (const thaw of this.#frozen.splice(0)) thaw();
    if (fault === "unreachable") for (const changed of this.#changed) changed();
  }
}
