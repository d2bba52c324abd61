import { createHmac, hash } from "node:crypto";
import type { UpstreamRequest } from "../../adapter.ts";
import { encodePathSegment, percentEncode } from "../endpoint.ts";
import type { Secret } from "../../../domain/keys/secret.ts";

/**
 * Signs requests to one region with AWS Signature Version 4. Header names must be in lower case.
 */
export class RequestSigner {
  readonly #region: string;
  readonly #headers = new CanonicalHeadersWriter();
  readonly #addresses = new Map<string, CanonicalAddress>();
  #key: SigningKey | undefined;
  #time: { readonly second: number; readonly text: string } | undefined;

  constructor(region: string) {
    this.#region = region;
  }

  /** Returns the signed request. The body must be sent unchanged, because its bytes are signed. */
  sign(request: UpstreamRequest, credentials: AwsCredentials, nowMs: number): UpstreamRequest {
    const { host, path, query } = this.#addressOf(request.url);
    const time = this.#timeAt(nowMs);
    const day = time.slice(0, 8);
    const bodyHash = hash("sha256", request.body, "hex");
    const token = credentials.sessionToken?.reveal();
    const added = {
      "x-amz-date": time,
      "x-amz-content-sha256": bodyHash,
      ...(token !== undefined && { "x-amz-security-token": token }),
    };
    const { signedNames, lines } = this.#headers.write(request.headers, { host, ...added });
    const canonical = `${request.method}\n${path}\n${query}\n${lines}\n${signedNames}\n${bodyHash}`;
    const scope = `${day}/${this.#region}/${service}/aws4_request`;
    const text = `${algorithm}\n${time}\n${scope}\n${hash("sha256", canonical, "hex")}`;
    const signature = createHmac("sha256", this.#keyOf(credentials, day))
      .update(text)
      .digest("hex");
    const authorization =
      `${algorithm} Credential=${credentials.accessKeyId}/${scope}, ` +
      `SignedHeaders=${signedNames}, Signature=${signature}`;
    return { ...request, headers: { ...request.headers, ...added, authorization } };
  }

  /** A region has few addresses: one for each operation of each model. */
  #addressOf(url: string): CanonicalAddress {
    const known = this.#addresses.get(url);
    if (known !== undefined) return known;
    const { host, pathname, search } = new URL(url);
    const address = { host, path: canonicalPath(pathname), query: canonicalQuery(search) };
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
    const key = deriveKey(credentials, day, this.#region);
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
/** The service name in signatures, which differs from the host's. */
const service = "bedrock";

/** Far more than a configuration has; beyond it, values are computed each time. */
const mostAddresses = 10_000;

interface CanonicalAddress {
  readonly host: string;
  readonly path: string;
  readonly query: string;
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

function deriveKey(credentials: AwsCredentials, day: string, region: string): Buffer {
  let key: string | Buffer = `AWS4${credentials.secretAccessKey.reveal()}`;
  for (const part of [day, region, service, "aws4_request"]) {
    key = createHmac("sha256", key).update(part).digest();
  }
  return Buffer.from(key);
}

/** The headers that signing adds; the token only if the credentials have one. */
interface AddedHeaders {
  readonly host: string;
  readonly "x-amz-content-sha256": string;
  readonly "x-amz-date": string;
  readonly "x-amz-security-token"?: string;
}

interface CanonicalHeaders {
  /** Names in order, separated by semicolons. */
  readonly signedNames: string;
  /** One line for each header, each with its line end. */
  readonly lines: string;
}

/**
 * Puts headers into the form that is signed: names in lower case and sorted, values trimmed. An
 * adapter sends few constant sets of headers, so the result for each set is cached.
 */
class CanonicalHeadersWriter {
  readonly #forms = new WeakMap<Headers, Form>();

  write(own: Headers, added: AddedHeaders): CanonicalHeaders {
    const form = this.#formOf(own, added["x-amz-security-token"] !== undefined);
    let lines = "";
    for (const piece of form.pieces) {
      lines += typeof piece === "string" ? piece : `${piece.name}:${added[piece.name] ?? ""}\n`;
    }
    return { signedNames: form.signedNames, lines };
  }

  #formOf(own: Headers, hasToken: boolean): Form {
    const known = this.#forms.get(own);
    if (known?.hasToken === hasToken) return known;
    const form = makeForm(own, hasToken);
    this.#forms.set(own, form);
    return form;
  }
}

type Headers = Readonly<Record<string, string>>;

interface Form {
  readonly hasToken: boolean;
  readonly signedNames: string;
  /** Finished lines, or the header whose line changes from request to request. */
  readonly pieces: readonly (string | { readonly name: keyof AddedHeaders })[];
}

/** Headers that proxies rewrite. */
const unsignedHeaders: ReadonlySet<string> = new Set([
  "accept-encoding",
  "traceparent",
  "user-agent",
]);

const alwaysAdded = ["host", "x-amz-content-sha256", "x-amz-date"] as const;
const withToken = [...alwaysAdded, "x-amz-security-token"] as const;

function makeForm(own: Headers, hasToken: boolean): Form {
  const added = (hasToken ? withToken : alwaysAdded).map((name) => ({ name, piece: { name } }));
  const fixed = Object.entries(own)
    .filter(([name]) => !unsignedHeaders.has(name))
    .map(([name, value]) => ({ name, piece: `${name}:${canonicalValue(value)}\n` }));
  const ordered = [...fixed, ...added].toSorted((one, other) => (one.name < other.name ? -1 : 1));
  return {
    hasToken,
    signedNames: ordered.map(({ name }) => name).join(";"),
    pieces: ordered.map(({ piece }) => piece),
  };
}

function canonicalValue(value: string): string {
  return value.trim().replaceAll(/\s+/g, " ");
}

/**
 * Puts the query of an address (with or without its `?`) into the form that Signature Version 4
 * signs: names and values in one encoding, sorted by name and then by value.
 */
function canonicalQuery(search: string): string {
  return search
    .replace(/^\?/, "")
    .split("&")
    .filter((pair) => pair !== "")
    .map(readPair)
    .toSorted((one, other) => compare(one.name, other.name) || compare(one.value, other.value))
    .map(({ name, value }) => `${name}=${value}`)
    .join("&");
}

interface Pair {
  readonly name: string;
  readonly value: string;
}

function readPair(text: string): Pair {
  const end = text.includes("=") ? text.indexOf("=") : text.length;
  return { name: encode(text.slice(0, end)), value: encode(text.slice(end + 1)) };
}

function encode(text: string): string {
  return encodePathSegment(decode(text));
}

/** A `+` is a plus sign; only HTML forms use it for a space. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that encodes nothing is taken literally.
    return text;
  }
}

/** By character code: all characters are ASCII here. */
function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
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
