import type { UpstreamFailureKind } from "../../../domain/upstream-failure.ts";
import type { AdapterServices, FailedAnswer, UpstreamRequest } from "../../adapter.ts";
import { ClockSkew } from "./clock-skew.ts";
import { CredentialCache } from "./credential-cache.ts";
import { credentialChain } from "./credential-chain.ts";
import type { AwsCredentials, LoadCredentials } from "./credentials.ts";
import type { BedrockCredentials, BedrockSettings } from "../settings.ts";
import { readSignature, RequestSigner } from "./sign.ts";

/** Adds the credential to requests, and learns from their refusal. */
export interface Authorizer {
  /** Rejects with `UpstreamFailure` `bad-credential`, or the signal's reason. */
  authorize(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamRequest>;
  /** `request` is the one that was sent. After `stale-credential` the next is signed afresh. */
  noteFailure(answer: FailedAnswer, request: UpstreamRequest, kind: UpstreamFailureKind): void;
}

export type AuthorizerSettings = Pick<BedrockSettings, "region" | "credentials">;

/** `load` takes the place of the provider's standard chain. */
export function createAuthorizer(
  { region, credentials }: AuthorizerSettings,
  { clock, onTrouble }: Pick<AdapterServices, "clock" | "onTrouble">,
  load?: LoadCredentials,
): Authorizer {
  if (credentials.source === "bearer") return bearerAuthorizer(credentials);
  const skew = new ClockSkew(clock);
  const source =
    credentials.source === "static"
      ? staticSource(credentials)
      : new CredentialCache({
          load: load ?? credentialChain({ profile: credentials.profile, region }),
          nowMs: () => skew.nowMs(),
          monotonicMs: () => clock.monotonic(),
          onLoadFailed: ({ details }) => onTrouble(details.message),
        });
  return new SigningAuthorizer({ source, skew, signer: new RequestSigner(region) });
}

function bearerAuthorizer({
  apiKey,
}: Extract<BedrockCredentials, { source: "bearer" }>): Authorizer {
  const authorization = `Bearer ${apiKey.reveal()}`;
  return {
    authorize: (request) =>
      Promise.resolve({ ...request, headers: { ...request.headers, authorization } }),
    noteFailure: () => undefined,
  };
}

type CredentialSource = Pick<CredentialCache, "get" | "refuse">;

function staticSource(
  settings: Extract<BedrockCredentials, { source: "static" }>,
): CredentialSource {
  const credentials: AwsCredentials = { ...settings, expiresAtMs: undefined };
  return { get: () => Promise.resolve(credentials), refuse: () => undefined };
}

interface SigningParts {
  readonly source: CredentialSource;
  readonly skew: ClockSkew;
  readonly signer: RequestSigner;
}

class SigningAuthorizer implements Authorizer {
  readonly #parts: SigningParts;

  constructor(parts: SigningParts) {
    this.#parts = parts;
  }

  async authorize(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamRequest> {
    const { source, skew, signer } = this.#parts;
    const credentials = await source.get(signal);
    return signer.sign(request, credentials, skew.nowMs());
  }

  noteFailure(
    { headers: answered }: FailedAnswer,
    { headers: sent }: UpstreamRequest,
    kind: UpstreamFailureKind,
  ): void {
    if (kind !== "stale-credential") return;
    const { source, skew } = this.#parts;
    const signature = readSignature(sent);
    if (signature === undefined) return;
    if (skew.explains(answered.get("date"), signature.signedAtMs)) return;
    source.refuse(signature);
  }
}
