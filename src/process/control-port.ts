import type { Config } from "../config/config.ts";
import type { CallClaims, KeyStore, RenewedSecret, UsageStore } from "../store/store.ts";

/** What serving calls needs from the control side, which alone has the database. */
export interface ControlPort {
  readonly keys: Pick<KeyStore, "loadKeys">;
  /** Who makes a call with an `Idempotency-Key`, and its kept answer. */
  readonly claims: CallClaims;
  /** A secret was used at this time, in milliseconds since the epoch. */
  noteUse(publicId: string, at: number): void;
  /** A secret matched under an older pepper. */
  renewDigest(secret: RenewedSecret): void;
  /** Takes rows that do not fit into the spool. */
  readonly usage: Pick<UsageStore, "insert">;
}

/** What the control side needs from the data server. */
export interface DataPort {
  /** Resolves to the epoch when calls see every change of keys that was committed before. */
  reloadKeys(): Promise<number>;
  /** Applies a validated configuration. Listeners and storage are not changed. */
  reconfigure(config: Config): void;
}
