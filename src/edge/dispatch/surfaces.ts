import type { Dialect } from "../dialect.ts";
import { RepeatedRefusals } from "../replies/repeated-refusals.ts";
import { ShedReplies } from "../replies/shed-replies.ts";
import type { Authenticate, DispatchOptions } from "./dispatch-options.ts";

/** A dialect with its authentication and prepared refusals. */
export interface Surface {
  readonly dialect: Dialect;
  readonly authenticate: Authenticate;
  readonly shed: ShedReplies;
  readonly repeated: RepeatedRefusals;
}

export class Surfaces {
  readonly #authenticate: DispatchOptions["authenticate"];
  readonly #all = new Map<Dialect, Surface>();

  constructor({ routes, authenticate }: Pick<DispatchOptions, "routes" | "authenticate">) {
    this.#authenticate = authenticate;
    // Refusals are needed under overload, when there is no time to prepare them.
    for (const route of routes.routes) if (route.access === "key") this.of(route.dialect);
  }

  of(dialect: Dialect): Surface {
    const known = this.#all.get(dialect);
    if (known !== undefined) return known;
    const surface = {
      dialect,
      authenticate: this.#authenticate(dialect.credential),
      shed: new ShedReplies(dialect),
      repeated: new RepeatedRefusals(dialect),
    };
    this.#all.set(dialect, surface);
    return surface;
  }
}
