import type { KeyDigest, PepperKey, Peppers } from "../domain/keys/peppers.ts";

/** A request that may be asked again. What is in the lists must survive JSON. */
export interface RepeatableRequest {
  /** The `Idempotency-Key` as the caller sent it. */
  readonly key: string;
  /** Whose key it is, and the key: equal ones are the same request. */
  readonly identity: readonly unknown[];
  /** All that the answer depends on: under the same identity it must be equal. */
  readonly content: readonly unknown[];
}

/** What a request is known by under one pepper. */
export interface RequestNames {
  /** As the caller sent it; stored nowhere. */
  readonly key: string;
  /** Of the identity. */
  readonly id: string;
  /** Of the content. */
  readonly requestDigest: string;
  /** What both were made with, and the answer is encrypted with. */
  readonly digest: KeyDigest;
}

/** The names of a request now, and those under which it may have been answered before. */
export interface AllRequestNames extends RequestNames {
  readonly older: readonly RequestNames[];
}

/** Digests under the peppers: who has them can neither read a request nor try out what it was. */
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

/** The names under which a reply is kept; undefined: it answers another request. */
export function namesOfReply(
  { id, requestDigest }: Pick<RequestNames, "id" | "requestDigest">,
  all: AllRequestNames,
): RequestNames | undefined {
  const names = [all, ...all.older].find((each) => each.id === id);
  return names?.requestDigest === requestDigest ? names : undefined;
}
