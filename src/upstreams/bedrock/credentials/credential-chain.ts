import type { fromNodeProviderChain } from "@aws-sdk/credential-providers";
import type { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { readIdentity } from "./aws-identity.ts";
import { credentialFailure } from "./credential-failure.ts";
import type { LoadCredentials } from "./credentials.ts";

type Chain = ReturnType<typeof fromNodeProviderChain>;

export interface ChainOptions {
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
