import type { Secret } from "../../../domain/keys/secret.ts";

/** What requests are signed with. Never changed: others take its place. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
  readonly sessionToken: Secret | undefined;
  /** Milliseconds since the Unix epoch; undefined when no end is known. */
  readonly expiresAtMs: number | undefined;
}

/** Asks the outside for credentials, past every cache. Rejects when there are none. */
export type LoadCredentials = () => Promise<AwsCredentials>;
