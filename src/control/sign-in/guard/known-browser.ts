import { randomBase62 } from "../../../domain/keys/base62.ts";
import type { PepperKey } from "../../../domain/keys/peppers.ts";
import type { User } from "../../../domain/accounts/user.ts";
import type { ControlView } from "../../../store/control-store.ts";
import { addressGroup } from "./address-group.ts";
import { readCookie, writeCookie } from "../sessions/cookies.ts";
import { isSameText } from "../same-text.ts";
import type { SignInServices } from "../services.ts";

/** How long a browser, or an address, is known after a sign-in. */
const knownMs = 90 * 86_400_000;
/** A user is known at the addresses of this many recent sign-ins. */
const signInsKnown = 20;

type KnownServices = Pick<SignInServices, "clock" | "peppers" | "random" | "publicUrl">;

/** A cookie that marks a browser in which the user signed in; it does not sign anybody in. */
export function newKnownCookie(user: User, services: KnownServices): string {
  const { clock, random, publicUrl } = services;
  const id = `${randomBase62(16, random)}.${clock.now()}`;
  const value = `${id}.${signature(user.id, id, services.peppers.first)}`;
  return writeCookie("known", { publicUrl: publicUrl(), value, maxAgeMs: knownMs });
}

interface Visit {
  readonly user: User | undefined;
  readonly request: Request;
  readonly address: string;
}

/**
 * What identifies a known user at a sign-in: the browser, or else the address of an earlier
 * sign-in.
 */
export async function findKnown(
  view: Pick<ControlView, "audit">,
  { user, request, address: from }: Visit,
  services: KnownServices,
): Promise<string | undefined> {
  const browser = user && knownBrowser(user, request, services);
  if (browser !== undefined) return browser;
  const filter = {
    // The same work for unknown users, so that its time does not reveal who exists.
    actorId: user?.id ?? "nobody",
    action: "session.start",
    since: services.clock.now() - knownMs,
  };
  const { items } = await view.audit.list(filter, { limit: signInsKnown });
  const group = addressGroup(from);
  const isKnown = items.some(({ address }) => address !== undefined && isOf(address, group));
  return user !== undefined && isKnown ? `${user.id} ${group}` : undefined;
}

function isOf(address: string, group: string): boolean {
  return addressGroup(address) === group;
}

function knownBrowser(user: User, request: Request, services: KnownServices): string | undefined {
  const text = readCookie(request, "known", services.publicUrl()) ?? "";
  const [, id = "", at = "", sent = ""] =
    /^((?:[0-9A-Za-z]{16})\.(\d{1,15}))\.(\S+)$/.exec(text) ?? [];
  const age = services.clock.now() - Number(at);
  if (id === "" || !(age >= 0 && age < knownMs)) return undefined;
  const isRight = services.peppers.all.some((pepper) =>
    isSameText(sent, signature(user.id, id, pepper)),
  );
  return isRight ? `${user.id} ${id}` : undefined;
}

function signature(userId: string, id: string, { digest }: PepperKey): string {
  return Buffer.from(digest(`known browser ${userId} ${id}`)).toString("base64url");
}
