import { Secret } from "../../../domain/keys/secret.ts";
import type { AwsCredentials } from "./credentials.ts";

/** Credentials in the form that the provider's packages use. */
export interface AwsIdentity {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

export function readIdentity(identity: AwsIdentity): AwsCredentials {
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = identity;
  return {
    accessKeyId,
    secretAccessKey: new Secret(secretAccessKey),
    sessionToken: sessionToken === undefined ? undefined : new Secret(sessionToken),
    expiresAtMs: expiration?.getTime(),
  };
}

export function identityOf(credentials: AwsCredentials): AwsIdentity {
  const { accessKeyId, secretAccessKey, sessionToken, expiresAtMs } = credentials;
  return {
    accessKeyId,
    secretAccessKey: secretAccessKey.reveal(),
    ...(sessionToken !== undefined && { sessionToken: sessionToken.reveal() }),
    ...(expiresAtMs !== undefined && { expiration: new Date(expiresAtMs) }),
  };
}
