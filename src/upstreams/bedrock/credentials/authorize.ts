import type { UpstreamFailureKind } from "../../../domain/errors/failure-kind.ts";
import { whenKnown } from "../../../domain/waiting/wait.ts";
import type {
  AdapterServices,
  FailedAnswer,
  UpstreamAdapter,
  UpstreamRequest,
} from "../../adapter.ts";
import { assumeRole, credentialChain } from "./credential-chain.ts";
import { CredentialCache } from "../../shared/credential-cache.ts";
import { type AwsCredentials, type LoadCredentials, readSignature, RequestSigner } from "./sign.ts";
import type { BedrockCredentials, BedrockSettings } from "../settings.ts";
import { messagesPath } from "../endpoint.ts";
import type { Clock } from "../../../domain/clock.ts";

/** Adds the credential to requests, and learns from refusals. */
interface Authorizer {
  /** Rejects with `UpstreamFailure` `bad-credential`, or the signal's reason. */
  authorize: UpstreamAdapter["authorize"];
  whyNoCredential: NonNullable<UpstreamAdapter["whyNoCredential"]>;
  /**
   * `request` is the one that was sent. After `stale-credential`, the next request is signed again.
   */
  noteFailure(answer: FailedAnswer, request: UpstreamRequest, kind: UpstreamFailureKind): void;
}

type AuthorizerSettings = Pick<BedrockSettings, "region" | "credentials"> &
  Partial<Pick<BedrockSettings, "service">>;

/** `load` replaces the provider's standard chain. */
export function createAuthorizer(
  { region, credentials, service }: AuthorizerSettings,
  { clock, onTrouble }: Pick<AdapterServices, "clock" | "onTrouble">,
  load?: LoadCredentials,
): Authorizer {
  if (credentials.source === "bearer") return bearerAuthorizer(credentials);
  const skew = new ClockSkew(clock);
  const signer = new RequestSigner(region, service === "mantle" ? "bedrock-mantle" : "bedrock");
  const cache = new CredentialCache({
    load: loaderOf({ region, credentials, chain: load }),
    nowMs: () => skew.nowMs(),
    clock,
    onLoadFailed: ({ details }) => onTrouble(details.message),
  });
  return {
    authorize: (request, ending) =>
      whenKnown(cache.get(ending), (known) => signer.sign(request, known, skew.nowMs())),
    whyNoCredential: () => cache.whyNone(),
    noteFailure({ headers: answered }, { headers: sent }, kind) {
      const signature = kind === "stale-credential" ? readSignature(sent) : undefined;
      if (signature === undefined) return;
      if (skew.explains(answered.get("date"), signature.signedAtMs)) return;
      cache.refuse(
        ({ accessKeyId, sessionToken }) =>
          accessKeyId === signature.accessKeyId &&
          sessionToken?.reveal() === signature.sessionToken,
      );
    },
  };
}

function bearerAuthorizer({
  apiKey,
}: Extract<BedrockCredentials, { source: "bearer" }>): Authorizer {
  const key = apiKey.reveal();
  const authorization = `Bearer ${key}`;
  return {
    // The Messages API takes the key as Anthropic does.
    authorize: (request) => ({
      ...request,
      headers: request.url.endsWith(messagesPath)
        ? { ...request.headers, "x-api-key": key }
        : { ...request.headers, authorization },
    }),
    whyNoCredential: () => undefined,
    noteFailure: () => undefined,
  };
}

interface LoaderOptions {
  readonly region: string;
  readonly credentials: SigningCredentials;
  readonly chain: LoadCredentials | undefined;
}

/** The operator's credentials, or those of the role that is assumed with them. */
function loaderOf({ region, credentials, chain }: LoaderOptions): LoadCredentials {
  const base =
    credentials.source === "static"
      ? () => Promise.resolve(fixedCredentials(credentials))
      : (chain ?? credentialChain({ profile: credentials.profile, region }));
  const { assumedRole: role } = credentials;
  return role === undefined ? base : assumeRole({ role, region, base });
}

type SigningCredentials = Exclude<BedrockCredentials, { source: "bearer" }>;
type StaticCredentials = Extract<BedrockCredentials, { source: "static" }>;

function fixedCredentials(settings: StaticCredentials): AwsCredentials {
  const { accessKeyId, secretAccessKey, sessionToken } = settings;
  return { accessKeyId, secretAccessKey, sessionToken, expiresAtMs: undefined };
}

/** The provider refuses signatures that are five minutes off; a skew close to that is corrected. */
const toleranceMs = 4 * 60_000;

/** The provider's time: this machine's clock, corrected by the dates of refusals. */
class ClockSkew {
  readonly #clock: Clock;
  #offsetMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  nowMs(): number {
    return this.#clock.now() + this.#offsetMs;
  }

  /**
   * Learns from the `date` of an answer to a request whose signature was refused. True when the
   * time it was signed with explains the refusal, so the request can be signed again and repeated.
   */
  explains(date: string | null, signedAtMs: number): boolean {
    const theirsMs = Date.parse(date ?? "");
    if (Number.isNaN(theirsMs)) return false;
    if (Math.abs(theirsMs - this.nowMs()) > toleranceMs) {
      this.#offsetMs = theirsMs - this.#clock.now();
      return true;
    }
    // Signed before another refusal corrected the clock.
    return Math.abs(theirsMs - signedAtMs) > toleranceMs;
  }
}
