import type { AssumedRole } from "../settings.ts";
import { identityOf, readIdentity } from "./aws-identity.ts";
import type { LoadCredentials } from "./credentials.ts";
import { credentialFailure } from "./credential-failure.ts";

export interface AssumeRoleOptions {
  readonly role: AssumedRole;
  /** The region whose token service is called. */
  readonly region: string;
  /** Loads the credentials with which the role is assumed, every time anew. */
  readonly base: LoadCredentials;
}

/**
 * Temporary credentials of a role, by `AssumeRole` of the provider's token service. Its client is
 * large, so it is loaded on first use.
 */
export function assumeRole({ role, region, base }: AssumeRoleOptions): LoadCredentials {
  return async () => {
    const own = await base();
    try {
      const { fromTemporaryCredentials } = await import("@aws-sdk/credential-providers");
      const assume = fromTemporaryCredentials({
        masterCredentials: identityOf(own),
        params: paramsOf(role),
        clientConfig: { region },
      });
      return readIdentity(await assume());
    } catch (error) {
      const advice =
        `the role ${role.roleArn} must trust what assumes it, with the external_id and ` +
        "session_tags (sts:TagSession) of the upstream, and allow its duration";
      throw credentialFailure("the role was not assumed", { error, advice });
    }
  };
}

/** The request in the token service's API; undefined members are not sent. */
function paramsOf(role: AssumedRole) {
  const { roleArn, externalId, sessionName, sessionTags, durationMs } = role;
  const tags = Object.entries(sessionTags).map(([Key, Value]) => ({ Key, Value }));
  return {
    RoleArn: roleArn,
    RoleSessionName: sessionName,
    ExternalId: externalId,
    // An empty list would be sent as an empty field.
    Tags: tags.length === 0 ? undefined : tags,
    DurationSeconds: durationMs === undefined ? undefined : Math.floor(durationMs / 1000),
  };
}
