import type { KeyDigest, PepperKey, Peppers } from "../domain/keys/peppers.ts";

/** An idempotent request. The elements of the lists must be JSON. */
export interface RepeatableRequest {
  /** The `Idempotency-Key` as the caller sent it. */
  readonly key: string;
  /** Owner and key: equal identities are the same request. */
  readonly identity: readonly unknown[];
  /** Everything that the answer depends on; it must be equal under the same identity. */
  readonly content: readonly unknown[];
}

/** The digests of a request under one pepper. */
export interface RequestNames {
  /** As the caller sent it; never stored. */
  readonly key: string;
  /** Digest of the identity. */
  readonly id: string;
  /** Digest of the content. */
  readonly requestDigest: string;
  /** Makes both digests, and the secret that encrypts the answer. */
  readonly digest: KeyDigest;
}

/** The current names of a request, and those under older peppers. */
export interface AllRequestNames extends RequestNames {
  readonly older: readonly RequestNames[];
}

/**
 * Digests that use the peppers, so that a copy of them can be neither read nor checked by guessing.
 */
export function nameRequest(
  { key, identity, content }: RepeatableRequest,
  { first, all }: Peppers,
): AllRequestNames {
  const nameUnder = ({ digest }: PepperKey): RequestNames => {
    const digestOf = (parts: readonly unknown[]): string =>
      Buffer.from(digest(JSON.stringify(parts))).toString("hex");
    return { key, id: digestOf(identity), requestDigest: digestOf(content), digest };
  };
  return { ...nameUnder(first), older: all.slice(1).map(nameUnder) };
}

/** The names under which a reply is kept; undefined for the answer to another request. */
export function namesOfReply(
  { id, requestDigest }: Pick<RequestNames, "id" | "requestDigest">,
  all: AllRequestNames,
): RequestNames | undefined {
  const names = [all, ...all.older].find((each) => each.id === id);
  return names?.requestDigest === requestDigest ? names : undefined;
}
