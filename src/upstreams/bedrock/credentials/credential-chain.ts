import type { fromNodeProviderChain } from "@aws-sdk/credential-providers";
import { Secret } from "../../../domain/secret.ts";
import { UpstreamFailure } from "../../../domain/upstream-failure.ts";
import { cleanMessage } from "../../shared/clean-message.ts";
import type { AwsCredentials, LoadCredentials } from "./credentials.ts";

type Chain = ReturnType<typeof fromNodeProviderChain>;

export interface ChainOptions {
  /** Of the shared configuration files; undefined: the process environment decides. */
  readonly profile: string | undefined;
  /** Where roles are assumed, unless environment or profile say otherwise. */
  readonly region: string;
}

/**
 * The provider's standard chain: environment, profile (with single sign-on, roles and processes),
 * web identity, container, instance. Its package is large, so it is loaded at the first need.
 */
export function credentialChain(options: ChainOptions): LoadCredentials {
  let chain: Chain | undefined;
  return async () => {
    try {
      chain ??= await openChain(options);
      // The chain keeps what it found, for ever if that has no end; the cache here decides instead.
      return readIdentity(await chain({ forceRefresh: true }));
    } catch (error) {
      throw noCredentials(error, options);
    }
  };
}

async function openChain({ profile, region }: ChainOptions): Promise<Chain> {
  const { fromNodeProviderChain: open } = await import("@aws-sdk/credential-providers");
  return open({
    ...(profile === undefined ? {} : { profile }),
    clientConfig: { region },
    // Files may be rotated.
    ignoreCache: true,
  });
}

function readIdentity(identity: Awaited<ReturnType<Chain>>): AwsCredentials {
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = identity;
  return {
    accessKeyId,
    secretAccessKey: new Secret(secretAccessKey),
    sessionToken: sessionToken === undefined ? undefined : new Secret(sessionToken),
    expiresAtMs: expiration?.getTime(),
  };
}

function noCredentials(error: unknown, { profile }: ChainOptions): UpstreamFailure {
  const cause = error instanceof Error ? cleanMessage(error.message) : "unknown error";
  const where =
    profile === undefined
      ? "set api_key, or access_key_id and secret_access_key, at the upstream, or give the " +
        "process a profile, a web identity, or the role of a container or instance"
      : `the profile ${profile} must be in the shared configuration files of the process's user`;
  const message = `no credentials for the provider (${cause}); ${where}`;
  return new UpstreamFailure({ kind: "bad-credential", message }, { cause: error });
}
