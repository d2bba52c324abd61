import type { Secret } from "../../../domain/keys/secret.ts";

/** What requests are signed with. Immutable: new credentials replace them. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
  readonly sessionToken: Secret | undefined;
  /** Milliseconds since the Unix epoch; undefined when they have no known expiry. */
  readonly expiresAtMs: number | undefined;
}

/** Loads credentials, never from a cache. Rejects when there are none. */
export type LoadCredentials = () => Promise<AwsCredentials>;
