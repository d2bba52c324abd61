import type { Dialect } from "../replies/error-reply.ts";
import { RepeatedRefusals, ShedReplies } from "../replies/repeated-refusals.ts";
import type { Authenticate, DispatchOptions, KeyedAccess } from "./dispatch-options.ts";

/** A dialect with its authentication and prepared refusals. */
export interface Surface {
  readonly dialect: Dialect;
  readonly access: KeyedAccess;
  readonly authenticate: Authenticate;
  readonly shed: ShedReplies;
  readonly repeated: RepeatedRefusals;
}

export class Surfaces {
  readonly #access: KeyedAccess | undefined;
  readonly #all = new Map<Dialect, Surface>();

  /** Throws if a route needs a key and no authentication is configured. */
  constructor({ routes, keyed }: Pick<DispatchOptions, "routes" | "keyed">) {
    this.#access = keyed;
    // Refusals are needed under overload, when there is no time to prepare them.
    for (const route of routes.routes) if (route.access === "key") this.of(route.dialect);
  }

  of(dialect: Dialect): Surface {
    const known = this.#all.get(dialect);
    if (known !== undefined) return known;
    const access = this.#access;
    if (access === undefined) throw new Error("a route that needs a key has no way to check one");
    const surface = {
      dialect,
      access,
      authenticate: access.authenticate(dialect.credential),
      shed: new ShedReplies(dialect),
      repeated: new RepeatedRefusals(dialect),
    };
    this.#all.set(dialect, surface);
    return surface;
  }
}
