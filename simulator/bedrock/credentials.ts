import { createHash, createHmac } from "node:crypto";
import { texts } from "../faults/bedrock-modes.ts";
import { BedrockError } from "./errors.ts";

/** A request as received, nothing decoded. */
export interface WireRequest {
  readonly method: string;
  readonly path: string;
  /** The part after the question mark; empty without one. */
  readonly query: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

interface Verifier {
  readonly credentials: CredentialBook;
  /** Undefined: signatures for any region are valid. */
  readonly region: string | undefined;
  /** Wall clock, milliseconds since the Unix epoch. */
  readonly now: number;
}

const algorithm = "AWS4-HMAC-SHA256";
const service = "bedrock";
const clockSkewMs = 5 * 60 * 1000;

/** Throws `BedrockError` unless the signature (version 4) or the bearer key is valid. */
export function verifySignature(request: WireRequest, verifier: Verifier): void {
  const header = request.headers.get("authorization");
  if (header === null) {
    throw new BedrockError("MissingAuthenticationTokenException", "Missing Authentication Token");
  }
  const bearer = /^bearer +(.*)$/i.exec(header)?.[1];
  if (bearer === undefined) verifyVersion4(request, readAuthorization(header), verifier);
  else verifyApiKey(bearer, verifier.credentials);
}

/** The same for a native API. A key is sent as Anthropic's on its Messages API. */
export function verifyText(request: Request, text: string, verifier: Verifier): void {
  const headers = new Headers(request.headers);
  const key = headers.get("x-api-key");
  if (key !== null) headers.set("authorization", `Bearer ${key}`);
  const { pathname: path } = new URL(request.url);
  const body = new TextEncoder().encode(text);
  const sent = { method: "POST", path, query: "", headers, body };
  verifySignature(sent, verifier);
}

function verifyApiKey(apiKey: string, credentials: CredentialBook): void {
  if (!credentials.hasApiKey(apiKey)) {
    const message = "Authentication failed: Please make sure your API Key is valid.";
    throw new BedrockError("AccessDeniedException", message);
  }
  if (credentials.isExpired(apiKey)) {
    throw new BedrockError("ExpiredTokenException", "Bearer Token has expired");
  }
}

interface Authorization {
  readonly accessKeyId: string;
  readonly date: string;
  readonly region: string;
  readonly service: string;
  readonly terminator: string;
  /** Lower-case names in the order they were signed. */
  readonly signedHeaders: readonly string[];
  readonly signature: string;
}

const authorizationPattern =
  /^AWS4-HMAC-SHA256 +Credential=(?<accessKeyId>[^/,]+)\/(?<date>[^/,]*)\/(?<region>[^/,]*)\/(?<service>[^/,]*)\/(?<terminator>[^/,]*), *SignedHeaders=(?<signedHeaders>[^,]+), *Signature=(?<signature>[^,]+)$/;

function readAuthorization(header: string): Authorization {
  const parts = authorizationPattern.exec(header.trim())?.groups;
  if (parts === undefined) throw incomplete(`Authorization header requires ${algorithm}.`);
  const { accessKeyId = "", date = "", region = "", service: named = "", terminator = "" } = parts;
  const { signedHeaders = "", signature = "" } = parts;
  const names = signedHeaders.split(";");
  return { accessKeyId, date, region, service: named, terminator, signedHeaders: names, signature };
}

function verifyVersion4(request: WireRequest, given: Authorization, verifier: Verifier): void {
  const { headers } = request;
  const timestamp = headers.get("x-amz-date") ?? "";
  if (timestamp === "") {
    throw incomplete(
      "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.",
    );
  }
  const credential = verifier.credentials.credential(given.accessKeyId);
  const token = headers.get("x-amz-security-token") ?? undefined;
  if (credential === undefined || token !== credential.sessionToken) {
    throw new BedrockError("UnrecognizedClientException", texts.invalidToken);
  }
  verifyScope(given, timestamp, verifier.region);
  verifyTime(timestamp, verifier.now);
  verifySignedHeaders(given.signedHeaders, headers);
  const bodyHash = createHash("sha256").update(request.body).digest("hex");
  if ((headers.get("x-amz-content-sha256") ?? bodyHash) !== bodyHash) throw mismatch();
  const expected = signatureOf(canonicalRequest(request, given, bodyHash), timestamp, {
    given,
    credential,
  });
  if (given.signature !== expected) throw mismatch();
  if (verifier.credentials.isExpired(given.accessKeyId)) {
    throw new BedrockError("ExpiredTokenException", texts.expiredToken);
  }
}

function verifyScope(given: Authorization, timestamp: string, region: string | undefined): void {
  const isRegion = given.region !== "" && given.region === (region ?? given.region);
  const isService = given.service === service || given.service === "bedrock-mantle";
  const isScope = isService && given.terminator === "aws4_request";
  if (isRegion && isScope && timestamp.startsWith(`${given.date}T`)) return;
  const scope = `${region ?? "a region"}/${service}/aws4_request, on the day of the request`;
  const message = `Credential should be scoped to ${scope}.`;
  throw new BedrockError("InvalidSignatureException", message);
}

function verifyTime(timestamp: string, now: number): void {
  const extended = timestamp.replace(
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/,
    "$1-$2-$3T$4:$5:$6Z",
  );
  const signedAt = extended === timestamp ? Number.NaN : Date.parse(extended);
  if (Number.isNaN(signedAt)) {
    throw incomplete(`Date must be in ISO-8601 'basic format'. Got '${timestamp}'.`);
  }
  if (Math.abs(signedAt - now) <= clockSkewMs) return;
  const basicNow = new Date(now).toISOString().replace(/\.\d+|[-:]/g, "");
  const lead = signedAt < now ? "Signature expired" : "Signature not yet current";
  const message = `${lead}: ${timestamp} is not within 5 min. of ${basicNow}`;
  throw new BedrockError("InvalidSignatureException", message);
}

/** The host and all `x-amz-` headers must be signed, else they could be replaced. */
function verifySignedHeaders(signedHeaders: readonly string[], headers: Headers): void {
  const required = ["host", ...headers.keys()].filter((name) => /^(?:host$|x-amz-)/.test(name));
  // Libraries do not sign their user agent.
  const missing = required.find(
    (name) => name !== "x-amz-user-agent" && !signedHeaders.includes(name),
  );
  if (missing === undefined) return;
  const message = `'${missing}' must be a 'SignedHeader' in the AWS Authorization.`;
  throw new BedrockError("InvalidSignatureException", message);
}

/** The received path, in which ids are already encoded, is encoded once more. */
function canonicalRequest(request: WireRequest, given: Authorization, bodyHash: string): string {
  const { headers } = request;
  const path = request.path.split("/").map(uriEncode).join("/");
  const query = request.query.split("&").toSorted(byName).join("&");
  const values = given.signedHeaders.map((name) => {
    const value = (headers.get(name) ?? "").trim().replace(/ +/g, " ");
    return `${name}:${value}\n`;
  });
  const names = given.signedHeaders.join(";");
  return [request.method, path, query, values.join(""), names, bodyHash].join("\n");
}

function signatureOf(
  canonical: string,
  timestamp: string,
  by: { readonly given: Authorization; readonly credential: SimulatedCredential },
): string {
  const { given, credential } = by;
  const scope = [given.date, given.region, given.service, "aws4_request"];
  const hash = createHash("sha256").update(canonical).digest("hex");
  const text = [algorithm, timestamp, scope.join("/"), hash].join("\n");
  let key: Buffer = Buffer.from(`AWS4${credential.secretAccessKey}`);
  for (const part of scope) key = createHmac("sha256", key).update(part).digest();
  return createHmac("sha256", key).update(text).digest("hex");
}

function uriEncode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  });
}

function byName(one: string, other: string): number {
  const [name = "", otherName = ""] = [one, other].map((pair) => pair.split("=")[0]);
  if (name !== otherName) return name < otherName ? -1 : 1;
  return one < other ? -1 : Number(one > other);
}

function incomplete(message: string): BedrockError {
  return new BedrockError("IncompleteSignatureException", message);
}

function mismatch(): BedrockError {
  return new BedrockError("InvalidSignatureException", texts.mismatch);
}

/** A key pair that signs requests. If it has a session token, every request must contain it. */
export interface SimulatedCredential {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** Published on purpose: they are valid only at a simulator, which really verifies them. */
export const demoCredentials: SimulatedCredential = {
  accessKeyId: "SIMULATORACCESSKEY",
  secretAccessKey: "simulator/secret/access/key/open/to/everybody",
};
export const demoApiKey = "simulator-api-key-open-to-everybody";

export interface CredentialOptions {
  readonly credentials?: readonly SimulatedCredential[] | undefined;
  /** Bearer keys. */
  readonly apiKeys?: readonly string[] | undefined;
}

/** The valid credentials, which may change while the simulator runs. */
export class CredentialBook {
  readonly #credentials = new Map<string, SimulatedCredential>();
  readonly #apiKeys: Set<string>;
  readonly #expired = new Set<string>();

  /** Without pairs and keys, the published credentials of the demo are valid. */
  constructor({ credentials, apiKeys }: CredentialOptions) {
    const isDemo = credentials === undefined && apiKeys === undefined;
    for (const credential of isDemo ? [demoCredentials] : (credentials ?? [])) {
      this.issue(credential);
    }
    this.#apiKeys = new Set(isDemo ? [demoApiKey] : apiKeys);
  }

  /** Replaces a credential with the same id, even an expired one. */
  issue(credential: SimulatedCredential): void {
    this.#credentials.set(credential.accessKeyId, credential);
    this.#expired.delete(credential.accessKeyId);
  }

  issueApiKey(apiKey: string): void {
    this.#apiKeys.add(apiKey);
    this.#expired.delete(apiKey);
  }

  /** `name` is an access key id or a bearer key. */
  expire(name: string): void {
    this.#expired.add(name);
  }

  credential(accessKeyId: string): SimulatedCredential | undefined {
    return this.#credentials.get(accessKeyId);
  }

  hasApiKey(apiKey: string): boolean {
    return this.#apiKeys.has(apiKey);
  }

  isExpired(name: string): boolean {
    return this.#expired.has(name);
  }
}
