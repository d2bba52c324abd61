import type { fromNodeProviderChain } from "@aws-sdk/credential-providers";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import type { AwsCredentials, LoadCredentials } from "./sign.ts";
import type { AssumedRole } from "../config/assumed-role.ts";
import { Secret } from "../../../domain/keys/secret.ts";
import { cleanMessage } from "../../shared/failure-reply.ts";

type Chain = ReturnType<typeof fromNodeProviderChain>;

interface ChainOptions {
  /** The profile of the shared configuration files; undefined: that of the process environment. */
  readonly profile: string | undefined;
  /** The region in which roles are assumed, unless environment or profile have one. */
  readonly region: string;
}

/**
 * The provider's standard chain: environment, profile (with single sign-on, roles and processes),
 * web identity, container, instance. Its package is large, so it is loaded on first use.
 */
export function credentialChain(options: ChainOptions): LoadCredentials {
  let chain: Chain | undefined;
  // As the provider's clients configure it. Single sign-on has a region of its own, which
  // `clientConfig` would override.
  const callerClientConfig = { region: () => Promise.resolve(options.region) };
  return async () => {
    try {
      chain ??= await openChain(options);
      // The chain keeps credentials without an expiry forever; the cache here decides instead.
      return readIdentity(await chain({ forceRefresh: true, callerClientConfig }));
    } catch (error) {
      throw noCredentials(error, options);
    }
  };
}

async function openChain({ profile }: ChainOptions): Promise<Chain> {
  const { fromNodeProviderChain: open } = await import("@aws-sdk/credential-providers");
  return open({
    ...(profile === undefined ? {} : { profile }),
    // Files may be rotated.
    ignoreCache: true,
  });
}

function noCredentials(error: unknown, { profile }: ChainOptions): UpstreamFailure {
  const advice =
    profile === undefined
      ? "set api_key, or access_key_id and secret_access_key, at the upstream, or give the " +
        "process a profile, a web identity, or the role of a container or instance"
      : `the profile ${profile} must be in the shared configuration files of the process's user`;
  return credentialFailure("no credentials for the provider", { error, advice });
}

interface AssumeRoleOptions {
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
  const { roleArn, externalId, sessionName, sessionTags, duration: durationMs } = role;
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

/** Credentials in the form that the provider's packages use. */
interface AwsIdentity {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

function readIdentity(identity: AwsIdentity): AwsCredentials {
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = identity;
  return {
    accessKeyId,
    secretAccessKey: new Secret(secretAccessKey),
    sessionToken: sessionToken === undefined ? undefined : new Secret(sessionToken),
    expiresAtMs: expiration?.getTime(),
  };
}

function identityOf(credentials: AwsCredentials): AwsIdentity {
  const { accessKeyId, secretAccessKey, sessionToken, expiresAtMs } = credentials;
  return {
    accessKeyId,
    secretAccessKey: secretAccessKey.reveal(),
    ...(sessionToken !== undefined && { sessionToken: sessionToken.reveal() }),
    ...(expiresAtMs !== undefined && { expiration: new Date(expiresAtMs) }),
  };
}

/** No credentials: what happened, the message of the refusal, and what the operator can do. */
function credentialFailure(
  what: string,
  { error, advice }: { readonly error: unknown; readonly advice: string },
): UpstreamFailure {
  const cause = error instanceof Error ? cleanMessage(error.message) : "unknown error";
  const message = `${what} (${cause}); ${advice}`;
  return new UpstreamFailure({ kind: "bad-credential", message }, { cause: error });
}
