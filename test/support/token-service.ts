import { expiration } from "./credential-sources.ts";

/** A role of the token service, with its trust policy. */
export interface TrustedRole {
  readonly roleArn: string;
  readonly externalId?: string;
  /** Whether its trust policy allows `sts:TagSession`. */
  readonly takesTags?: boolean;
  /** Longest session in seconds. Default 3600. */
  readonly longestSeconds?: number;
}

export interface TokenServiceOptions {
  readonly roles: readonly TrustedRole[];
  /** Access key ids that exist; undefined: all. */
  readonly callers?: readonly string[];
  /** Called with each set of credentials. */
  readonly onIssued?: (count: number, session: URLSearchParams) => void;
}

/** Requests for roles as they came, with their signers. */
export interface Session {
  readonly signer: string;
  readonly region: string;
  readonly form: URLSearchParams;
}

/**
 * `AssumeRole` of the provider's token service, with the refusals of its documentation: the
 * signature must be for `sts`, the role must trust the caller's external id and tags, and durations
 * have their bounds; a role that assumes a role has it for an hour at most.
 */
export class TokenService implements AsyncDisposable {
  readonly sessions: Session[] = [];
  readonly #options: TokenServiceOptions;
  readonly #server;

  constructor(options: TokenServiceOptions) {
    this.#options = options;
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => this.#answer(request, new URLSearchParams(await request.text())),
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }

  #answer(request: Request, form: URLSearchParams): Response {
    const authorization = request.headers.get("authorization") ?? "";
    const scope = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/\d{8}\/([^/]+)\/sts\/aws4_request,/;
    const [, signer, region] = scope.exec(authorization) ?? [];
    const { callers } = this.#options;
    if (signer === undefined || region === undefined || callers?.includes(signer) === false) {
      return refuse(403, "InvalidClientTokenId", "The security token included is invalid.");
    }
    this.sessions.push({ signer, region, form });
    const isChained = request.headers.has("x-amz-security-token");
    const refusal = this.#refusal(form, isChained);
    if (refusal !== undefined) return refusal;
    const count = this.sessions.length;
    this.#options.onIssued?.(count, form);
    return xml(
      200,
      `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
        <Credentials>
          <AccessKeyId>ASIA${count}</AccessKeyId>
          <SecretAccessKey>secret ${count}</SecretAccessKey>
          <SessionToken>token ${count}</SessionToken>
          <Expiration>${expiration}</Expiration>
        </Credentials>
      </AssumeRoleResult></AssumeRoleResponse>`,
    );
  }

  #refusal(form: URLSearchParams, isChained: boolean): Response | undefined {
    if (form.get("Action") !== "AssumeRole" || form.get("Version") !== "2011-06-15") {
      return refuse(400, "InvalidAction", "Could not find operation");
    }
    if (!/^[\w+=,.@-]{2,64}$/.test(form.get("RoleSessionName") ?? "")) {
      return refuse(400, "ValidationError", "Value at 'roleSessionName' failed to satisfy");
    }
    const role = this.#options.roles.find(({ roleArn }) => roleArn === form.get("RoleArn"));
    const hasTags = form.has("Tags.member.1.Key");
    const isTrusted =
      role !== undefined &&
      (role.externalId === undefined || role.externalId === form.get("ExternalId")) &&
      (!hasTags || role.takesTags === true);
    if (!isTrusted) {
      const action = hasTags ? "sts:TagSession" : "sts:AssumeRole";
      return refuse(403, "AccessDenied", `User is not authorized to perform: ${action}`);
    }
    const seconds = Number(form.get("DurationSeconds") ?? 3600);
    if (!(seconds >= 900 && seconds <= 43_200)) {
      return refuse(400, "ValidationError", "Value at 'durationSeconds' failed to satisfy");
    }
    const longest = isChained ? 3600 : (role.longestSeconds ?? 3600);
    if (seconds <= longest) return undefined;
    const message = isChained
      ? "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining"
      : "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.";
    return refuse(400, "ValidationError", message);
  }
}

function refuse(status: number, code: string, message: string): Response {
  return xml(
    status,
    `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
      <Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error>
    </ErrorResponse>`,
  );
}

function xml(status: number, body: string): Response {
  return new Response(body, { status, headers: { "content-type": "text/xml" } });
}
