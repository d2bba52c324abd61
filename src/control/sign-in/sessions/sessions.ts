import { type RandomBytes, randomBase62 } from "../../../domain/keys/base62.ts";
import type { PepperKey } from "../../../domain/keys/peppers.ts";
import type { ControlView } from "../../../store/repositories/control-store.ts";
import { timingSafeEqual } from "node:crypto";
import type { Session } from "../../../store/entities.ts";

/** 43 characters of 62 are 256 bits. */
const secretLength = 43;
const secretPattern = /^[0-9A-Za-z]{43}$/;

/** A value for a session's cookie, which is sent once and never stored. */
export function newSecret(random: RandomBytes): string {
  return randomBase62(secretLength, random);
}

/** The id under which a cookie's session is stored; undefined for malformed secrets. */
export function sessionId(secret: string | undefined): string | undefined {
  if (secret === undefined || !secretPattern.test(secret)) return undefined;
  return sha256(secret);
}

export async function findSession({ sessions, users }: ControlView, id: string) {
  const session = await sessions.get(id);
  return { session, user: session && (await users.get(session.userId)) };
}

export function isSessionOver(session: Session, now: number, idleMs: number): boolean {
  return now >= session.expiresAt || now >= session.lastSeenAt + idleMs;
}

/** Whether to write the last use: at most once a minute, more often for a short idle time. */
export function isSightingDue(session: Session, now: number, idleMs: number): boolean {
  return now - session.lastSeenAt >= Math.min(60_000, idleMs / 4);
}

/** The console sends it with each change; other sites cannot read it. */
export function csrfToken(secret: string, { digest }: PepperKey): string {
  return Buffer.from(digest(`csrf ${secret}`)).toString("base64url");
}

export function sha256(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

/** Compares in a time that does not depend on where two texts differ. */
export function isSameText(left: string, right: string): boolean {
  const [one, other] = [Buffer.from(left), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}
