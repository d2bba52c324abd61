import type { NetworkList } from "../domain/network.ts";
import type { CorsPolicy } from "./cors.ts";
import type { BodyLimits } from "./body/read-body.ts";

/** What a listener accepts. */
export interface EdgeSettings {
  readonly cors: CorsPolicy;
  readonly bodyLimits: BodyLimits;
  readonly maxHeaders: number;
  /** Whose `x-forwarded-for` is believed. */
  readonly trustedProxies: NetworkList;
}
