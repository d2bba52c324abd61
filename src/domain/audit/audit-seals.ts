import { timingSafeEqual } from "node:crypto";
import { createKeyDigest, type KeyDigest, type Peppers } from "../keys/peppers.ts";

/** A signature of the gateway and the mark of its pepper. */
export interface AuditSeal {
  readonly pepper: string;
  /** HMAC-SHA-256 in hexadecimal. */
  readonly seal: string;
}

/** A seal of one kind is not valid as another. */
export type SealedKind = "entry" | "head" | "anchor" | "checkpoint";

type SealedValue = string | number | null;

/**
 * Signs the audit chain with keys derived from the peppers: write access to the database is not
 * enough to forge a seal.
 */
export class AuditSeals {
  readonly #first: string;
  readonly #keys: ReadonlyMap<string, KeyDigest>;

  constructor(peppers: Peppers) {
    this.#first = peppers.first.mark;
    this.#keys = new Map(
      peppers.all.map(({ mark, digest }) => [mark, createKeyDigest(digest("seals of the audit"))]),
    );
  }

  /** Seals under the first pepper. */
  make(kind: SealedKind, values: readonly SealedValue[]): AuditSeal {
    return { pepper: this.#first, seal: this.#sign(this.#first, kind, values) ?? "" };
  }

  isRight(kind: SealedKind, values: readonly SealedValue[], sealed: Partial<AuditSeal>): boolean {
    const expected = this.#sign(sealed.pepper ?? "", kind, values);
    if (expected === undefined || sealed.seal?.length !== expected.length) return false;
    return timingSafeEqual(Buffer.from(sealed.seal), Buffer.from(expected));
  }

  /** Whether the pepper of this mark is configured, so that its seals can be verified. */
  canVerify(pepper: string): boolean {
    return this.#keys.has(pepper);
  }

  isFirst(pepper: string): boolean {
    return pepper === this.#first;
  }

  /** Undefined for an unknown pepper. */
  #sign(pepper: string, kind: SealedKind, values: readonly SealedValue[]): string | undefined {
    const digest = this.#keys.get(pepper)?.(JSON.stringify([kind, ...values]));
    return digest && Buffer.from(digest).toString("hex");
  }
}
