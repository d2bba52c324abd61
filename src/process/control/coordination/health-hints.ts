import type { HealthHint } from "../../../routing/health/target-health.ts";
import type { Handlers } from "../../link/link.ts";
import type { RoutingMessages } from "../../link/messages.ts";

type HintMessages = Pick<RoutingMessages, "health.changed">;

/** Passes on what a worker learns about targets to all others. */
export class HealthHints {
  readonly #workers = new Set<(hint: HealthHint) => void>();

  /** Connects one worker; `tell` sends it what others learned. */
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
