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
