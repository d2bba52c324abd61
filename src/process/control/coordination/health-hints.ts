import type { HealthHint } from "../../../routing/health/target-health.ts";
import type { Handlers } from "../../link/link.ts";
import type { RoutingMessages } from "../../link/messages.ts";

type HintMessages = Pick<RoutingMessages, "health.changed">;

/** Passes on what a worker finds out about targets to all others. */
export class HealthHints {
  readonly #workers = new Set<(hint: HealthHint) => void>();

  /** For one worker; `tell`: tells it what others found out. */
  ofWorker(tell: (hint: HealthHint) => void): {
    readonly handlers: Handlers<HintMessages>;
    end(): void;
  } {
    this.#workers.add(tell);
    return {
      handlers: {
        "health.changed": (hint) => {
          for (const other of this.#workers) if (other !== tell) other(hint);
        },
      },
      end: () => void this.#workers.delete(tell),
    };
  }
}
