import { createHmac, hash } from "node:crypto";
import type { UpstreamRequest } from "../../adapter.ts";
import { percentEncode } from "../endpoint.ts";
import type { Secret } from "../../../domain/keys/secret.ts";

/**
 * Signs requests to one region with AWS Signature Version 4: method, path, body, and the headers that
 * no proxy rewrites. Addresses have no query. Header names must be in lower case.
 */
export class RequestSigner {
  readonly #region: string;
  readonly #service: string;
  readonly #addresses = new Map<string, CanonicalAddress>();
  #key: SigningKey | undefined;
  #time: { readonly second: number; readonly text: string } | undefined;

  /** `service`: the name in signatures, which differs from the host's. */
  constructor(region: string, service = "bedrock") {
    this.#region = region;
    this.#service = service;
  }

  /** Returns the signed request. The body must be sent unchanged, because its bytes are signed. */
  sign(request: UpstreamRequest, credentials: AwsCredentials, nowMs: number): UpstreamRequest {
    const { host, path } = this.#addressOf(request.url);
    const time = this.#timeAt(nowMs);
    const day = time.slice(0, 8);
    const bodyHash = hash("sha256", request.body, "hex");
    const token = credentials.sessionToken?.reveal();
    const added = {
      "x-amz-date": time,
      "x-amz-content-sha256": bodyHash,
      ...(token !== undefined && { "x-amz-security-token": token }),
    };
    const lines =
      `content-type:${request.headers["content-type"] ?? ""}\nhost:${host}\n` +
      `x-amz-content-sha256:${bodyHash}\nx-amz-date:${time}\n` +
      (token === undefined ? "" : `x-amz-security-token:${token}\n`);
    const names = token === undefined ? signedHeaders : signedHeadersWithToken;
    const canonical = `${request.method}\n${path}\n\n${lines}\n${names}\n${bodyHash}`;
    const scope = `${day}/${this.#region}/${this.#service}/aws4_request`;
    const text = `${algorithm}\n${time}\n${scope}\n${hash("sha256", canonical, "hex")}`;
    const signature = createHmac("sha256", this.#keyOf(credentials, day))
      .update(text)
      .digest("hex");
    const authorization =
      `${algorithm} Credential=${credentials.accessKeyId}/${scope}, ` +
      `SignedHeaders=${names}, Signature=${signature}`;
    return { ...request, headers: { ...request.headers, ...added, authorization } };
  }

  /** A region has few addresses: one for each operation of each model. */
  #addressOf(url: string): CanonicalAddress {
    const known = this.#addresses.get(url);
    if (known !== undefined) return known;
    const { host, pathname } = new URL(url);
    const address = { host, path: canonicalPath(pathname) };
    if (this.#addresses.size >= mostAddresses) this.#addresses.clear();
    this.#addresses.set(url, address);
    return address;
  }

  #timeAt(nowMs: number): string {
    const second = Math.floor(nowMs / 1000);
    if (this.#time?.second !== second) this.#time = { second, text: formatTime(nowMs) };
    return this.#time.text;
  }

  /** The signing key of one day and one set of credentials, compared by identity. */
  #keyOf(credentials: AwsCredentials, day: string): Buffer {
    const last = this.#key;
    if (last?.credentials === credentials && last.day === day) return last.key;
    const key = deriveKey(credentials, [day, this.#region, this.#service]);
    this.#key = { credentials, day, key };
    return key;
  }
}

export interface Signature {
  readonly accessKeyId: string;
  readonly sessionToken: string | undefined;
  /** In the signer's time, to the second. */
  readonly signedAtMs: number;
}

/** Who signed a request and when, from its headers. */
export function readSignature(headers: Readonly<Record<string, string>>): Signature | undefined {
  const [, accessKeyId] = /Credential=([^/]+)/.exec(headers["authorization"] ?? "") ?? [];
  if (accessKeyId === undefined) return undefined;
  const signedAtMs = readTime(headers["x-amz-date"] ?? "");
  return { accessKeyId, sessionToken: headers["x-amz-security-token"], signedAtMs };
}

interface SigningKey {
  readonly credentials: AwsCredentials;
  readonly day: string;
  readonly key: Buffer;
}

const algorithm = "AWS4-HMAC-SHA256";
const signedHeaders = "content-type;host;x-amz-content-sha256;x-amz-date";
const signedHeadersWithToken = `${signedHeaders};x-amz-security-token`;
/** Far more than a configuration has; beyond it, values are computed each time. */
const mostAddresses = 10_000;

interface CanonicalAddress {
  readonly host: string;
  readonly path: string;
}

/** `20260102T030405Z` */
function formatTime(nowMs: number): string {
  return new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, "");
}

function readTime(text: string): number {
  return Date.parse(
    text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"),
  );
}

/** The path as sent, in which identifiers are already encoded, is encoded again. */
function canonicalPath(pathname: string): string {
  return pathname.replaceAll(/\/{2,}/g, "/").replaceAll(/[^A-Za-z0-9._~/-]/g, percentEncode);
}

function deriveKey(credentials: AwsCredentials, scope: readonly string[]): Buffer {
  let key: string | Buffer = `AWS4${credentials.secretAccessKey.reveal()}`;
  for (const part of [...scope, "aws4_request"]) {
    key = createHmac("sha256", key).update(part).digest();
  }
  return Buffer.from(key);
}

/** What requests are signed with. Immutable: new credentials replace them. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
  readonly sessionToken: Secret | undefined;
  /** Milliseconds since the Unix epoch; undefined when they have no known expiry. */
  readonly expiresAtMs: number | undefined;
}

/** Loads credentials, never from a cache. Rejects when there are none. */
export type LoadCredentials = () => Promise<AwsCredentials>;
