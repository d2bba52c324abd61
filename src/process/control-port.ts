import type { Refusal } from "../domain/errors/refusal.ts";
import type { Config } from "../config/config.ts";
import type { CallClaims, KeyStore, RenewedSecret } from "../store/store.ts";

/**
 * What a data server needs from control, which alone has the database: called directly within one
 * process, over a link between two.
 */
export interface ControlPort {
  readonly keys: Pick<KeyStore, "loadKeys">;
  /** Who makes a call with an `Idempotency-Key`, and its kept answer. */
  readonly claims: CallClaims;
  /** A secret was used at this time, in milliseconds since the epoch. */
  noteUse(publicId: string, at: number): void;
  /** A secret matched under an older pepper. */
  renewDigest(secret: RenewedSecret): void;
  /** The gateway itself refused a request. */
  recordRefusal(refusal: Refusal): void;
}

/** What control needs from a data server. */
export interface DataPort {
  /** Resolves to the epoch when calls see every change of keys that was committed before. */
  reloadKeys(): Promise<number>;
  /** Applies a validated configuration. Listeners and storage are not changed. */
  reconfigure(config: Config): void;
}
