import { timingSafeEqual } from "node:crypto";
import { createKeyDigest, type KeyDigest, type Peppers } from "../keys/peppers.ts";

/** A signature of the gateway, and the mark of the pepper it was made under. */
export interface AuditSeal {
  readonly pepper: string;
  /** HMAC-SHA-256 in hexadecimal digits. */
  readonly seal: string;
}

/** What a seal is for: a seal of one kind is worth nothing as another. */
export type SealedKind = "entry" | "head" | "anchor" | "checkpoint";

type SealedValue = string | number | null;

/**
 * Signs what the audit's chain rests on, with keys derived from the peppers: who can write the
 * database, and has no pepper, cannot make a seal.
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

  /** Under the first pepper. */
  make(kind: SealedKind, values: readonly SealedValue[]): AuditSeal {
    return { pepper: this.#first, seal: this.#sign(this.#first, kind, values) ?? "" };
  }

  isRight(kind: SealedKind, values: readonly SealedValue[], sealed: Partial<AuditSeal>): boolean {
    const expected = this.#sign(sealed.pepper ?? "", kind, values);
    if (expected === undefined || sealed.seal?.length !== expected.length) return false;
    return timingSafeEqual(Buffer.from(sealed.seal), Buffer.from(expected));
  }

  /** Whether seals under the pepper of this mark can be checked. */
  knows(pepper: string): boolean {
    return this.#keys.has(pepper);
  }

  isFirst(pepper: string): boolean {
    return pepper === this.#first;
  }

  /** Undefined under a pepper that is not known here. */
  #sign(pepper: string, kind: SealedKind, values: readonly SealedValue[]): string | undefined {
    const digest = this.#keys.get(pepper)?.(JSON.stringify([kind, ...values]));
    return digest && Buffer.from(digest).toString("hex");
  }
}
