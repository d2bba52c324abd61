import type { Secret } from "../keys/secret.ts";

/** Where events of the ledger are delivered. */
export interface LedgerEventSettings {
  readonly webhook: WebhookSettings | undefined;
  readonly file: EventFileSettings | undefined;
}

export interface WebhookSettings {
  readonly url: string;
  /** `whsec_` and the key in base64. */
  readonly secret: Secret;
  /** Most events in one request. */
  readonly batchEvents: number;
  readonly timeoutMs: number;
  readonly longestPauseMs: number;
}

export interface EventFileSettings {
  readonly path: string;
  /** Size from which a new file is begun. */
  readonly rotateBytes: number;
}
